"""A7, and A6 at a read-out behind a residual: the same functions, budgets that hold, constants that cannot be
lowered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax as softmax_of
from scipy.stats import chi2

from boundcalc.base.errors import CertificateError
from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints.forward import ACTIVATIONS
from boundcalc.engine.evaluate import Evaluator, evaluate
from boundcalc.layers.facts import Context
from boundcalc.proof.checker import check
from boundcalc.proof.second._meeting import looked_up as second_looked_up
from boundcalc.proof.second._meeting import read_out as second_read_out
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Budget,
    Embedding,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Normaliser,
    Norms,
    Pool,
    Residual,
    Sample,
    Setting,
)
from boundcalc.statements.merge import _split_readout, look_up
from boundcalc.statements.network import claimed as facts
from boundcalc.statements.noises import events, spread
from boundcalc.statements.premise import no_member
from boundcalc.statements.weights import Weights
from tests.proof import alone
from tests.soundness.network import merged

Array = NDArray[np.float64]
Tokens = NDArray[np.int64]
Tensors = dict[str, Array]

VOCABULARY, T, D, HEADS, WIDTH, HIDDEN = 3, 5, 6, 2, 3, 8
softmax = partial(softmax_of, axis=-1)
OWN = 2
"""The token of the row that is read."""


def model(*, bias: bool = True, own_row: int | None = OWN, inner: tuple[Layer, ...] = (), pool: str = "cls") -> Setting:
    """A Transformer block on tokens, and budgets far above any norm, for the test to lower."""
    heads = Attention(
        D, HEADS, d_head=WIDTH, d_value=WIDTH, combine="concat", normaliser=Normaliser("softmax", 2.0), qk_bias=bias,
        v_bias=bias, block=0,
    )  # fmt: skip
    offsets = ("b_O", "b_1", "b_2", "b_readout") if bias else (None,) * 4
    layers = (
        Embedding(VOCABULARY, D, "learned", own_row=own_row),
        Residual((*inner, heads, Linear("W_O", HEADS * WIDTH, D, offsets[0], 0))),
        Residual(
            (Linear("W_1", D, HIDDEN, offsets[1], 0), Activation("gelu"), Linear("W_2", HIDDEN, D, offsets[2], 0))
        ),
        Pool(pool),  # type: ignore[arg-type]
        Linear("readout", D, 1, offsets[3]),
    )
    return Setting(Architecture(seq_len=T, layers=layers), Norms(C=1.0), Sample(10**6, margin=0.25))


def drawn(setting: Setting, rng: np.random.Generator) -> Tensors:
    found: Tensors = {}
    shapes = {
        "embedding": (VOCABULARY, D), "positions": (T, D), "W_Q": (HEADS, D, WIDTH), "W_K": (HEADS, D, WIDTH),
        "W_V": (HEADS, D, WIDTH), "W_O": (HEADS * WIDTH, D), "W_1": (D, HIDDEN), "W_2": (HIDDEN, D), "readout": (D, 1),
        "b_Q": (HEADS, WIDTH), "b_V": (HEADS, WIDTH), "b_O": (D,), "b_1": (HIDDEN,), "b_2": (D,), "b_readout": (1,),
    }  # fmt: skip
    for kind, shape in shapes.items():
        found[kind] = rng.standard_normal(shape) * rng.exponential()
        if kind.startswith("b_") and setting.architecture.stages[-1].bias is None:  # type: ignore[attr-defined]
            found[kind] = found[kind] * 0
    return found


def fitted(setting: Setting, w: Tensors) -> Setting:
    """The setting whose budgets just hold some weights."""

    def op(x: Array) -> float:
        return float(np.linalg.norm(x, 2))

    scores = [np.vstack([w["W_Q"][h], w["b_Q"][h]]) @ w["W_K"][h].T for h in range(HEADS)]
    has_bias = bool(setting.architecture.stages[-1].bias)  # type: ignore[attr-defined]
    scores = scores if has_bias else [score[:-1] for score in scores]
    budgets = {
        "embedding": Budget(row=float(np.linalg.norm(w["embedding"], axis=1).max())),
        "positions": Budget(row=float(np.linalg.norm(w["positions"], axis=1).max())),
        "readout": Budget(op=op(w["readout"])),
        **{f"W_QK[0,{h}]": Budget(op=op(scores[h])) for h in range(HEADS)},
        **{f"W_V[0,{h}]": Budget(op=op(w["W_V"][h])) for h in range(HEADS)},
        **{f"{kind}[0]": Budget(op=op(w[kind])) for kind in ("W_O", "W_1", "W_2")},
    }
    if has_bias:
        budgets |= {f"b_V[0,{h}]": Budget(op=float(np.linalg.norm(w["b_V"][h]))) for h in range(HEADS)}
        budgets |= {f"{kind}[0]": Budget(op=float(np.linalg.norm(w[kind]))) for kind in ("b_O", "b_1", "b_2")}
        budgets["b_readout"] = Budget(op=float(np.linalg.norm(w["b_readout"])))
    return replace(
        setting, norms=Norms(budgets={key: each.map(lambda x: x * (1 + 1e-12)) for key, each in budgets.items()})
    )


def original(w: Tensors, tokens: Tokens) -> Array:
    """The network as it is written, read at its first row; outputs (n,)."""
    rows = w["embedding"][tokens] + w["positions"]
    queries = np.einsum("nd,hde->nhe", rows[:, 0], w["W_Q"]) + w["b_Q"]
    weights = softmax(np.einsum("nhe,ntd,hde->nht", queries, rows, w["W_K"]) / 2)
    heads = np.einsum("nht,ntd,hde->nhe", weights, rows, w["W_V"]) + w["b_V"]
    y = rows[:, 0] + heads.reshape(len(rows), -1) @ w["W_O"] + w["b_O"]
    y = y + ACTIVATIONS["gelu"](y @ w["W_1"] + w["b_1"]) @ w["W_2"] + w["b_2"]
    return (y @ w["readout"] + w["b_readout"])[:, 0]


def made_of(w: Tensors) -> Tensors:
    """The tables and products of A7 and A6, by their own definitions."""
    row = w["embedding"][OWN] + w["positions"][0]
    q = np.einsum("he,hde->hd", np.einsum("d,hde->he", row, w["W_Q"]) + w["b_Q"], w["W_K"]) / 2
    return {
        "token_scores": w["embedding"] @ q.T,
        "position_scores": w["positions"] @ q.T,
        "token_values": np.einsum("td,hde->the", w["embedding"], w["W_V"]),
        "position_values": np.einsum("td,hde->the", w["positions"], w["W_V"]),
        "first_row": row + w["b_V"].reshape(-1) @ w["W_O"] + w["b_O"],
        "W_2_to_readout": w["W_2"] @ w["readout"],
        "b_readout": w["b_2"] @ w["readout"] + w["b_readout"],
    }


def looked(w: Tensors, m: Tensors, tokens: Tokens) -> Array:
    """The network of the larger class."""
    weights = softmax(m["token_scores"][tokens].transpose(0, 2, 1) + m["position_scores"].T)
    heads = np.einsum("nht,nthe->nhe", weights, m["token_values"][tokens] + m["position_values"])
    y = heads.reshape(len(tokens), -1) @ w["W_O"] + m["first_row"]
    return (y @ w["readout"] + ACTIVATIONS["gelu"](y @ w["W_1"] + w["b_1"]) @ m["W_2_to_readout"] + m["b_readout"])[
        :, 0
    ]


def examples(rng: np.random.Generator, n: int = 30) -> Tokens:
    tokens = rng.integers(0, VOCABULARY, (n, T))
    tokens[:, 0] = OWN
    return tokens


def longest(values: Array) -> float:
    return math.sqrt((np.linalg.norm(values, axis=-1).max(0) ** 2).sum())


def entries(x: Array) -> float:
    return float(np.linalg.norm(x))


def nuclear(x: Array) -> float:
    return float(np.linalg.norm(x.reshape(len(x), -1), "nuc"))


_SCORES = {"sup": lambda x: float(np.abs(x).max()), "fro": entries, "schatten": nuclear}
_VALUES = {"heads": longest, "fro": entries, "schatten": nuclear}
SIZES: Mapping[str, Mapping[str, Callable[[Array], float]]] = {
    "token_scores": _SCORES,
    "position_scores": _SCORES,
    "token_values": _VALUES,
    "position_values": _VALUES,
    "first_row": {"op": entries},
    "b_readout": {"op": entries},
    "W_2_to_readout": {"op": entries, "two_one_t": lambda x: float(np.abs(x).sum())},
}


def told_size(name: str, size: float) -> Any:
    return (1.0, size * (1 + 1e-12)) if name == "schatten" else size * (1 + 1e-12)


def outside(larger: Setting, m: Tensors) -> list[str]:
    """Products that are not within the budgets of the larger class."""
    found: list[str] = []
    for kind, sizes in SIZES.items():
        place = larger.norms.place(kind, 0)
        if place is None:
            continue
        for name, size in sizes.items():
            limit = getattr(larger.norms.budgets[place], name)
            limit = limit[1] if name == "schatten" and limit is not None else limit
            if limit is not None and size(m[kind]) > limit * (1 + 1e-9):
                found.append(f"{kind} {name}")
    return found


@pytest.mark.parametrize("bias", [True, False])
def test_the_larger_class_has_the_same_functions_within_its_budgets(bias: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        base = model(bias=bias)
        w = drawn(base, rng)
        setting = fitted(base, w)
        larger = merged(setting)
        assert larger is not None
        kinds = [type(layer) for layer in larger.architecture.stages]
        assert kinds == [Lookup, Pool, Linear, Residual, Pool]
        tokens, m = examples(rng), made_of(w)
        assert np.allclose(original(w, tokens), looked(w, m, tokens), rtol=1e-10, atol=1e-10)
        assert outside(larger, m) == []


def test_budgets_of_products_count_beside_those_that_follow() -> None:
    rng = np.random.default_rng(2)
    base = model()
    w = drawn(base, rng)
    setting, m = fitted(base, w), made_of(w)
    own = {
        kind
        if kind in ("token_scores", "position_scores", "token_values", "position_values")
        else f"{kind}[0]": Budget(**{name: told_size(name, size(m[kind])) for name, size in sizes.items()})
        for kind, sizes in SIZES.items()
        if kind != "b_readout"
    }
    told = replace(setting, norms=replace(setting.norms, budgets={**setting.norms.budgets, **own}))
    larger, follows = merged(told), merged(setting)
    assert larger is not None
    assert follows is not None
    assert outside(larger, m) == []
    for key, budget in own.items():
        for name in ("op", "sup", "row"):
            if (mine := getattr(budget, name)) is not None:
                assert getattr(larger.norms.budgets[key], name) <= mine * (1 + 1e-12)
                assert getattr(larger.norms.budgets[key], name) <= getattr(follows.norms.budgets[key], name)
    before, after = (Evaluator(s, no_member).value("best") for s in (setting, told))
    assert after.log_risk <= before.log_risk + 1e-9
    for key in own:  # a product is of a network that has it
        with pytest.raises(Exception, match="norms of"):
            Setting(Architecture(seq_len=T), Norms(C=1.0, budgets={key: own[key]}))


def test_budgets_that_follow_cannot_be_lowered() -> None:
    """Along one direction every inequality of A7 is met but for the factor of two tables and its like."""
    base = model(bias=False)
    w = {kind: np.zeros_like(value) for kind, value in drawn(base, np.random.default_rng(0)).items()}
    w["embedding"][:, 0], w["positions"][:, 0] = 2.0, 0.5
    for kind in ("W_Q", "W_K", "W_V"):
        w[kind][:, 0, 0] = 3.0
    for kind in ("W_O", "W_1", "W_2", "readout"):
        w[kind][0, 0] = 1.0
    larger = merged(fitted(base, w))
    assert larger is not None
    m = made_of(w)
    for kind in ("token_scores", "position_scores", "token_values", "position_values", "first_row"):
        (name, size), *_ = SIZES[kind].items()
        limit = getattr(larger.norms.budgets[larger.norms.place(kind, 0) or ""], name)
        assert limit == pytest.approx(size(m[kind]), rel=1e-9)


APART = {
    "a row of data": model(own_row=None),
    "rows that are normalised first": model(inner=(LayerNorm("norm", D, block=0, variance_floor=0.1),)),
    "a mean over rows": model(pool="mean"),
}


def left_alone(setting: Setting, mine: Any = look_up, second: Any = second_looked_up) -> None:
    """Neither checker merges anything."""
    assert mine(setting) is None
    same = alone.seen(setting)
    assert second(same) is same


@pytest.mark.parametrize("what", APART)
def test_other_networks_look_nothing_up(what: str) -> None:
    left_alone(APART[what])


def test_a_second_attention_a_mask_and_other_weights_are_left_alone() -> None:
    base = model()
    first, block, *rest = base.architecture.stages
    assert isinstance(block, Residual)
    heads, output = block.branch
    assert isinstance(heads, Attention)
    branch: Any = (replace(heads, block=1), replace(output, block=1))  # type: ignore[type-var]
    again = replace(block, branch=branch)
    others = [
        (first, block, again, *rest),
        (first, Residual((replace(heads, causal=True), output)), *rest),
        (first, Residual((replace(heads, normaliser=Normaliser("softmax1", 2.0)), output)), *rest),
        (first, Residual((replace(heads, normaliser=Normaliser("sigmoid", 2.0)), output)), *rest),
        (first, Residual((replace(heads, cap=3.0), output)), *rest),
        (replace(first, segments=2), block, *rest),  # type: ignore[type-var]
        (first, Residual(block.branch, skip=False), *rest),
    ]
    for layers in others:
        left_alone(Setting(Architecture(seq_len=T, layers=layers), base.norms))


@pytest.mark.parametrize("between", [Activation("tanh"), Ball(0.5), LayerNorm("norm", D, gain=False)])
def test_a_read_out_behind_what_acts_meets_nothing(between: Layer) -> None:
    *front, pool, readout = model().architecture.stages
    setting = Setting(Architecture(seq_len=T, layers=(*front, between, pool, readout)), Norms(C=1.0))
    left_alone(setting, _split_readout, second_read_out)


def test_noise_on_tables_stays_within_its_spread() -> None:
    """The heads' outputs are one event; every score is one. With one event for all scores some move farther."""
    layer = Lookup(VOCABULARY, HEADS, WIDTH)
    norms = Norms(budgets={w.kind: Budget(fro=1.0) for w in layer.weights(T)})
    slots = {slot.kind: slot for slot in facts(layer, Context(Weights(FLOAT, norms), 0.0, 1, T)).slots}
    scores = slots["position_scores"].members[0].targets[1]
    pooled = slots["position_values"].members[0].targets[1]
    assert (events(scores), events(pooled)) == (T * HEADS, 1)
    rng = np.random.default_rng(5)
    for t in (1.0, 2.0):
        chance = math.exp(-(t**2) / 2)
        noise = rng.standard_normal((20_000, T, HEADS, WIDTH))
        weights = softmax(rng.standard_normal((20_000, HEADS, T)) * 6)  # near one row each, the worst case
        rows = np.linalg.norm(np.einsum("nht,nthe->nhe", weights, noise).reshape(20_000, -1), axis=1)
        room = 4 * math.sqrt(chance / 20_000)
        assert np.mean(rows > spread(FLOAT, pooled, t)) <= chance + room
        assert chi2.sf(spread(FLOAT, pooled, t) ** 2, HEADS * WIDTH) <= chance
        largest = np.abs(rng.standard_normal((20_000, T * HEADS))).max(1)
        assert np.mean(largest > spread(FLOAT, scores, t)) <= events(scores) * chance + room
        assert np.mean(largest > spread(FLOAT, scores, t)) > chance + room  # without its union
        assert np.mean(rows > t) > chance + room  # without the length of the row


def test_certificates_of_tables_are_checked_twice_and_forgeries_refused() -> None:
    found = evaluate(replace(model(), sample=Sample(10**7, margin=0.25)))
    for certificate in (found.certificate, found.risk_certificate):
        assert certificate is not None
        assert certificate.meeting
        assert check(certificate).log_value == pytest.approx(float(alone.log_value(certificate)), abs=1e-12)
        layers = certificate.setting.architecture.stages
        data = Architecture(seq_len=T, layers=(replace(layers[0], own_row=None), *layers[1:]))  # type: ignore[type-var]
        for forged in (
            replace(certificate, meeting=False),
            replace(certificate, setting=replace(certificate.setting, architecture=data)),
        ):
            with pytest.raises(CertificateError):
                check(forged)
            with pytest.raises(CertificateError):
                alone.log_value(forged)


def test_a_row_without_data_never_makes_a_bound_larger() -> None:
    rng = np.random.default_rng(6)
    for _ in range(12):
        base, plain = model(bias=bool(rng.integers(2))), None
        w = drawn(base, rng)
        setting = replace(fitted(base, w), sample=Sample(int(10 ** rng.uniform(4, 8)), margin=10 ** rng.uniform(-2, 1)))
        layers = setting.architecture.stages
        data = Architecture(seq_len=T, layers=(replace(layers[0], own_row=None), *layers[1:]))  # type: ignore[type-var]
        plain, told = evaluate(replace(setting, architecture=data)), evaluate(setting)
        assert told.log10 <= plain.log10 + 1e-9
        if plain.risk_refusal is None:
            assert told.log_risk <= plain.log_risk + 1e-9
