"""The shortcuts against the plain module: values and gradients. tests/lab/certify holds it against torch's layers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from boundcalc.lab.train._bits import bit_forward, bit_plan, reach, two_sided  # noqa: E402
from boundcalc.lab.train.model import draw_weights, forward_last_row, plain  # noqa: E402
from boundcalc.lab.train.parameters import CLS, Init  # noqa: E402
from boundcalc.lab.train.stack import Stack  # noqa: E402
from boundcalc.lab.train.tasks import Shape  # noqa: E402
from boundcalc.setting import Architecture, Normaliser  # noqa: E402

BLOCK: dict[str, Any] = {"style": "post", "residual": True, "bias": True, "activation": "gelu", "d_ff": 256}
BITS: dict[str, dict[str, Any]] = {
    "post without norm": BLOCK | {"normalisation": "none"},
    "post-LN": BLOCK | {"normalisation": "layernorm"},
    "pre without norm, grouped, gated": BLOCK
    | {"normalisation": "none", "style": "pre", "gated": True, "kv_heads": 4, "bias": False},
    "edelman": {"style": "edelman", "heads": 4},
    "edelman, narrow heads": {"style": "edelman", "heads": 8, "d_head": 4},
    "pooler, classes": BLOCK | {"normalisation": "none", "pooler": True, "classes": 3},
    "fixed positions": BLOCK | {"normalisation": "none", "positions": "fixed", "position_radius": 2.0},
}
DEEP: dict[str, dict[str, Any]] = {
    "post-LN, depth 2": BLOCK | {"normalisation": "layernorm", "depth": 2},
    "pre-LN, depth 3": BLOCK | {"normalisation": "layernorm", "style": "pre", "depth": 3},
    "edelman, depth 2": {"style": "edelman", "heads": 4, "depth": 2, "activation": "gelu"},
    "causal": BLOCK | {"normalisation": "none", "causal": True, "depth": 2},
    "mean": BLOCK | {"normalisation": "none", "readout": "mean"},
    "pre-RMS, grouped, gated": BLOCK
    | {"normalisation": "rmsnorm", "style": "pre", "gated": True, "kv_heads": 4, "bias": False},
    "embedding norm": BLOCK | {"normalisation": "layernorm", "embedding_norm": True},
    "softmax1": BLOCK | {"normalisation": "none", "normaliser": Normaliser("softmax1")},
    "no positions": BLOCK | {"normalisation": "none", "positions": "none"},
}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def architecture(T: int, **fields: Any) -> Architecture:
    base: dict[str, Any] = {"depth": 1, "d": 64, "heads": 16, "positions": "learned", "vocabulary": 3}
    return Architecture(seq_len=T + 1, **(base | fields))


def models(arch: Architecture, dtype: Any, scale: float, count: int) -> dict[str, Any]:
    drawn: list[dict[str, Any]] = []
    for seed in range(count):
        weights = draw_weights(arch, Init(1.0, 0.3), torch.Generator().manual_seed(seed))
        drawn.append({k: v * (scale if k[:3] in ("W_Q", "W_K") else 1.0) for k, v in weights.items()})
    return {k: torch.stack([one[k] for one in drawn]).to(dtype) for k in drawn[0]}


def bits(count: int, n: int, T: int) -> Any:
    x = torch.randint(0, 2, (count, n, T), generator=torch.Generator().manual_seed(7))
    x[:, 0], x[:, 1] = 0, 1  # a sample without ones, and one without zeros
    return x


def tokens(x: Any) -> Any:
    return torch.cat([torch.full((*x.shape[:-1], 1), CLS), x], -1)


def with_gradients(weights: dict[str, Any], run: Any) -> tuple[Any, dict[str, Any]]:
    leaves = {k: v.detach().clone().requires_grad_() for k, v in weights.items()}
    out = run(leaves)
    probe = torch.randn(out.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(out.dtype)
    grads = torch.autograd.grad((out * probe).sum(), list(leaves.values()), allow_unused=True)
    return out.detach(), {k: g for k, g in zip(leaves, grads, strict=True) if g is not None}


def difference(a: tuple[Any, dict[str, Any]], b: tuple[Any, dict[str, Any]]) -> float:
    """The largest difference of values, and of gradients relative to each tensor's largest entry (at least 1)."""
    worst = float((a[0] - b[0]).abs().max())
    assert a[1].keys() == b[1].keys()
    for name in a[1]:
        size = float(b[1][name].abs().max())
        worst = max(worst, float((a[1][name] - b[1][name]).abs().max()) / max(1.0, size))
    return worst


def plainly(arch: Architecture, weights: dict[str, Any], x: Any) -> Any:
    return torch.stack([plain(arch, {k: v[i] for k, v in weights.items()}, tokens(x)[i]) for i in range(len(x))])


@pytest.mark.parametrize("scale", [1.0, 6.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", BITS)
def test_shared_exponentials_equal_the_plain_module(name: str, dtype: Any, scale: float) -> None:
    """In values and in the gradients of all weights."""
    arch = architecture(48, **BITS[name])
    plan = bit_plan(arch)
    assert plan is not None
    weights, x = models(arch, dtype, scale, 2), bits(2, 9, 48)
    sides = two_sided(x, dtype)
    assert float(bit_forward(plan, weights, sides)[1].max()) <= reach(dtype)
    fast = with_gradients(weights, lambda w: bit_forward(plan, w, sides)[0])
    slow = with_gradients(weights, lambda w: plainly(arch, w, x))
    assert difference(fast, slow) < TOLERANCE[dtype]


def test_the_comparison_sees_a_wrong_gradient() -> None:
    """Negative control: an error of 1e-4 in one entry of one gradient is rejected."""
    arch = architecture(16, **BITS["post-LN"])
    weights, x = models(arch, torch.float32, 1.0, 1), bits(1, 5, 16)
    right = with_gradients(weights, lambda w: plainly(arch, w, x))
    wrong = (right[0], {k: v.clone() for k, v in right[1].items()})
    wrong[1]["W_V[0]"][0, 0, 0, 0] += 1e-4
    assert difference(wrong, right) > 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", DEEP)
def test_reading_one_row_equals_the_plain_module(name: str, dtype: Any) -> None:
    arch = architecture(24, **DEEP[name])
    assert bit_plan(arch) is None
    weights, x = models(arch, dtype, 3.0, 2), bits(2, 6, 24)
    each = torch.func.vmap(lambda w, t: forward_last_row(arch, w, t))
    fast = with_gradients(weights, lambda w: each(w, tokens(x)))
    slow = with_gradients(weights, lambda w: plainly(arch, w, x))
    assert difference(fast, slow) < 3 * TOLERANCE[dtype]


def test_sharp_models_take_the_other_path_and_do_not_disturb_their_neighbours() -> None:
    """Scores far beyond what shared exponentials can hold: still equal to the plain module, also in gradients."""
    arch = architecture(64, **(BLOCK | {"normalisation": "none"}))
    shape = Shape("bits", 65, "binary", vocabulary=3)
    calm, sharp = models(arch, torch.float64, 1.0, 1), models(arch, torch.float64, 40.0, 1)
    both = {k: torch.cat([calm[k], sharp[k], calm[k]]) for k in calm}
    x = bits(1, 7, 64).expand(3, -1, -1)
    stack = Stack(arch, shape, both)
    inputs = stack.inputs(x)

    def run(weights: dict[str, Any]) -> Any:
        stack.weights = weights
        return stack(inputs)

    fast = with_gradients(both, run)
    assert stack.plan is not None
    spread = bit_forward(stack.plan, both, inputs)[1]
    assert (spread > reach(torch.float64)).tolist() == [False, True, False]
    slow = with_gradients(both, lambda w: plainly(arch, w, x))
    assert difference(fast, slow) < 1e-10
    assert bool(torch.isfinite(fast[0]).all())
