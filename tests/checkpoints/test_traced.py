"""Descriptions from a module's own forward pass: every layout, names that say nothing, and what is refused with its
reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints import CheckpointError, audit
from boundcalc.checkpoints.describe import describe
from boundcalc.checkpoints.readers import open_checkpoint
from tests.checkpoints.layouts import nn, torch
from tests.checkpoints.live import SMALL, hf, seeded
from tests.lab.certify import models

RNG = np.random.default_rng(0)
TOKENS = RNG.integers(0, 11, (4, 8))


def test_the_encoder_of_torch_is_described() -> None:
    """Of the other models that users write tests/lab/certify/twelve.py has the check."""
    module = seeded(models.TutorialTransformer)
    _, parity = describe(module, open_checkpoint(module), inputs=TOKENS)
    assert parity.outputs is not None
    assert parity.worst <= 1e-9


class Look(nn.Module):
    """The names of its maps are letters, in another order than they are used in."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.e = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: Any) -> Any:
        n, rows, d = x.shape
        q, k, v = (made(x).view(n, rows, 4, 4).transpose(1, 2) for made in (self.c, self.a, self.b))
        scores = (q @ k.mT / 2).masked_fill(torch.ones(rows, rows).triu(1) > 0, -torch.inf)
        return self.e((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, rows, d))


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.y, self.z, self.s = nn.LayerNorm(16), nn.LayerNorm(16), Look()
        self.u, self.t = nn.Parameter(torch.randn(16, 48) / 4), nn.Linear(48, 16)

    def forward(self, x: Any) -> Any:
        x = x + self.s(self.y(x))
        return x + self.t(nn.functional.silu(self.z(x) @ self.u))


class Nameless(nn.Module):
    """Two blocks that no number tells apart, the read-out first, and a parameter that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.foo, self.p, self.q = nn.Linear(16, 5), Part(), Part()
        self.bar, self.baz, self.spare = nn.Embedding(11, 16), nn.Parameter(torch.randn(8, 16)), nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.foo(self.q(self.p(self.bar(x) + self.baz[: x.shape[1]])))


def test_names_that_say_nothing() -> None:
    module = seeded(Nameless)
    mapping, parity = describe(module, open_checkpoint(module))  # tokens are drawn where none are given
    assert parity.worst <= 1e-9
    roles = mapping["tensors"]
    assert [roles[f"q.s.{name}.weight"] for name in "cabe"] == ["W_Q[1].T", "W_K[1].T", "W_V[1].T", "W_O[1].T"]
    assert (roles["p.u"], roles["foo.weight"]) == ("W_1[0]", "readout.T")
    assert mapping["ignored"]["spare.weight"] == "the forward pass does not read it"
    again = audit(module, mapping=mapping, seed=1)
    assert again.account.balanced
    wrong = {**mapping, "tensors": {**roles, "q.s.c.weight": "W_K[1].T", "q.s.a.weight": "W_Q[1].T"}}
    with pytest.raises(CheckpointError, match="differ"):  # the negative control
        audit(module, mapping=wrong)


class Scaled(nn.Module):
    """LayerScale."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(0.1 + 0.05 * torch.randn(16))

    def forward(self, x: Any) -> Any:
        return self.gamma * x


class RootMeanSquare(nn.Module):
    """As it is written by hand, with an epsilon that no module of torch says."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.eps, self.weight = 1e-3, nn.Parameter(1 + 0.1 * torch.randn(width))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Variant(nn.Module):
    """A block with `scale` of what is added, or with queries and keys that `norm` makes."""

    def __init__(self, norm: Callable[[], Any] = nn.Identity, scale: Callable[[], Any] = nn.Identity) -> None:
        super().__init__()
        self.first, self.second, self.fused, self.out = nn.LayerNorm(16), nn.LayerNorm(16), nn.Linear(16, 48), Look().e
        self.up, self.down, self.scales = nn.Linear(16, 24), nn.Linear(24, 16), nn.ModuleList([scale(), scale()])
        self.norms = nn.ModuleList([norm(), norm()]) if isinstance(norm(), nn.Module) else [norm(), norm()]

    def forward(self, x: Any) -> Any:
        n, rows, _ = x.shape
        q, k, v = (part.view(n, rows, 4, 4).transpose(1, 2) for part in self.fused(self.first(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(self.norms[0](q), self.norms[1](k), v, is_causal=True)
        x = x + self.scales[0](self.out(y.transpose(1, 2).flatten(2)))
        return x + self.scales[1](self.down(nn.functional.gelu(self.up(self.second(x)))))


class Stacked(nn.Module):
    """Blocks between tables and a read-out."""

    def __init__(self, *blocks: Any) -> None:
        super().__init__()
        self.tokens, self.places, self.blocks = nn.Embedding(11, 16), nn.Embedding(8, 16), nn.ModuleList(blocks)
        self.last, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        y = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y)
        return self.head(self.last(y))


VARIANTS: dict[str, Callable[[], Any]] = {
    "normalised queries": lambda: Stacked(*(Variant(lambda: nn.RMSNorm(4, eps=1e-4)) for _ in range(2))),
    "by hand, and LayerScale": lambda: Stacked(*(Variant(lambda: RootMeanSquare(4), Scaled) for _ in range(2))),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_what_few_models_have_is_described_too(name: str) -> None:
    module = seeded(VARIANTS[name])
    mapping, parity = describe(module, open_checkpoint(module), inputs=TOKENS)
    assert parity.worst <= 1e-9
    found = audit(module, mapping=mapping, seed=1)
    assert found.account.balanced
    assert found.account.total == sum(value.numel() for value in module.parameters())
    with pytest.raises(BoundcalcError):  # the negative control
        audit(module, mapping=mapping | {"architecture": mapping["architecture"] | {"qk_eps": 0.5}})
    if "LayerScale" in name:
        block = module.blocks[1].double()
        w = (block.out.weight * block.scales[0].gamma[:, None]).detach().numpy()
        assert found.measured["W_O[1]"].op == pytest.approx(np.linalg.norm(w, 2), rel=1e-9)


@pytest.mark.parametrize(
    ("norm", "why"),
    [
        (lambda: nn.LayerNorm(4), "queries and keys are centred"),
        (lambda: nn.RMSNorm(4, elementwise_affine=False), "normalised without gains"),
        (lambda: partial(nn.functional.normalize, dim=-1), "no Lipschitz constant near 0"),
    ],
)
def test_queries_that_are_normalised_otherwise_are_refused(norm: Callable[[], Any], why: str) -> None:
    module = seeded(lambda: Stacked(Variant(norm), Variant(norm)))
    with pytest.raises(CheckpointError, match=why):
        describe(module, open_checkpoint(module), inputs=TOKENS)


def test_an_encoder_inside_of_a_module_is_described() -> None:
    """BERT's table of token types, and its pooler, which the classifier around it does not read."""

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.out = hf.BertModel(hf.BertConfig(**SMALL)), nn.Linear(SMALL["hidden_size"], 3)

        def forward(self, x: Any) -> Any:
            return self.out(self.encoder(x).last_hidden_state.mean(1))

    module = seeded(Classifier)
    mapping, parity = describe(module, open_checkpoint(module), inputs=TOKENS)
    assert parity.worst <= 1e-9
    assert mapping["tensors"]["encoder.embeddings.token_type_embeddings.weight"] == "segments"
    assert mapping["ignored"]["encoder.pooler.dense.weight"] == "the forward pass does not read it"
    assert audit(module, mapping=mapping, seed=1).architecture.stages[0].segments == 2  # type: ignore[union-attr]


class Bare(nn.Module):
    """Parameters without modules, as they are written on a page."""

    def __init__(self) -> None:
        super().__init__()
        shapes = {"E": (11, 16), **dict.fromkeys("QKVO", (16, 16)), "A": (16, 32), "B": (32, 16), "U": (16, 2)}
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(0.2 * torch.randn(shape)))

    def forward(self, x: Any) -> Any:
        h: Any = self.E[x]
        h = h + torch.einsum("nij,njd->nid", (h @ self.Q @ (h @ self.K).mT / 4).softmax(-1), h @ self.V) @ self.O
        return (h + torch.relu(h @ self.A) @ self.B)[:, 0] @ self.U


def test_parameters_without_modules() -> None:
    module = seeded(Bare)
    mapping, parity = describe(module, open_checkpoint(module), inputs=TOKENS)
    assert parity.worst <= 1e-9
    assert (mapping["tensors"]["E"], mapping["tensors"]["B"]) == ("embedding", "W_2[0]")
    assert len(parity.places) >= 8
    mapping["tensors"] |= {"Q": "W_K[0]", "K": "W_Q[0]"}
    with pytest.raises(CheckpointError, match="differ"):
        audit(module, mapping=mapping)


class Within(nn.Module):
    """A layer between a table and a read-out."""

    def __init__(self, layer: Callable[[], Any]) -> None:
        super().__init__()
        self.table, self.layer, self.out = nn.Embedding(11, 16), layer(), nn.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        x = self.layer(self.table(x))
        return self.out(x[0][:, -1] if isinstance(x, tuple) else x[:, -1])


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (lambda: nn.LSTM(16, 16, batch_first=True), "layer.weight_ih_l0 enters lstm"),
        (lambda: nn.Sequential(nn.Linear(16, 16), nn.Tanh()), "shows no attention"),
        (Look, "its layers come in the order attention, map: no style"),
    ],
)
def test_what_is_not_described_says_why(layer: Callable[[], Any], reason: str) -> None:
    module = seeded(lambda: Within(layer))
    with pytest.raises(CheckpointError, match=reason):
        describe(module, open_checkpoint(module), inputs=TOKENS)
