"""A6 and A7: merged networks are the same functions, their budgets hold, nothing is merged across what acts.

Products are made here from the network as it is written, by the definitions of docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.search import Search
from boundcalc.proof.checker import check
from boundcalc.proof.second._meeting import joined
from boundcalc.proof.second._numbers import Refused
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Budget,
    Embedding,
    GatedFeedForward,
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
from boundcalc.setting.norms import place_of
from boundcalc.statements import merge
from boundcalc.testing._drawing import Array, Dice, Parameters, norm_of
from boundcalc.theorems import POLICIES
from tests.laws.settings import settings
from tests.proof import alone
from tests.proof.both import refusals
from tests.soundness.network import Network, merged, outside

TANH = Activation("tanh")

# -- networks without branches


def setting(
    *layers: Layer, radius: float = 1.0, pool: str = "mean", budgets: Mapping[str, Budget] | None = None
) -> Setting:
    stages = (*layers, Pool(pool), Linear("readout", 3, 1))  # type: ignore[arg-type]
    return Setting(
        Architecture(seq_len=4, layers=stages, input_radius=radius), Norms(C=1 - 1e-9, budgets=budgets or {})
    )


def map_(kind: str, d: int, k: int, bias: str | None = None) -> Linear:
    return Linear(kind, d, k, bias, 0)


def heads(d: int, out: int | None = None, **options: Any) -> Attention:
    return Attention(d, **{"d_value": out, "normaliser": Normaliser("softmax", 1.5), "block": 1, **options})


A = map_("A", 3, 3)
OWN = Norms(C=1.0, budgets={"W_1[0]": Budget(op=0.5, two_one=0.9), "W_V": Budget(op=2.0, two_one=3.0)})

# -- a block on tokens, read at a row without data

VOCABULARY, T, D, HEADS, WIDTH, HIDDEN = 3, 5, 6, 2, 3, 8
TOKEN = 2
"""What stands at the row that is read, the last one."""


def block(*, bias: bool = True, inner: tuple[Layer, ...] = (), pool: str = "cls", **options: Any) -> Setting:
    """With budgets of many sizes, so that every one counts; with offsets, of single heads too."""
    o, first, last, out = ("b_O", "b_1", "b_2", "b_readout") if bias else (None,) * 4
    attention = heads(D, WIDTH, heads=HEADS, d_head=WIDTH, combine="concat", qk_bias=bias, v_bias=bias, **options)
    layers = (
        Embedding(VOCABULARY, D, "learned", own_row=TOKEN),
        Residual((*inner, attention, Linear("W_O", HEADS * WIDTH, D, o, 1))),
        Residual((Linear("W_1", D, HIDDEN, first, 1), Activation("gelu"), Linear("W_2", HIDDEN, D, last, 1))),
        Pool(pool),  # type: ignore[arg-type]
        Linear("readout", D, 1, out),
    )
    sizes = {"W_QK[1,0]" if bias else "W_QK": 9.0, "W_V": 3.0, "W_O": 0.7, "readout": 1.3}
    budgets = {"embedding": Budget(row=2.0), "positions": Budget(row=0.5)}
    budgets |= {key: Budget(op=size) for key, size in sizes.items()}
    return Setting(Architecture(seq_len=T, layers=layers), Norms(C=1.0, budgets=budgets), Sample(10**6, margin=0.25))


def changed(edit: Callable[..., Sequence[Layer]]) -> Setting:
    """The block with other layers."""
    base = block()
    return replace(base, architecture=Architecture(seq_len=T, layers=tuple(edit(*base.architecture.stages))))


def reading(**changes: Any) -> Setting:
    """The block with another first layer, of whose last row nothing is known unless it is said."""
    return changed(lambda first, *rest: (replace(first, **{"own_row": None, **changes}), *rest))


def ending(layer: Layer) -> Setting:
    """The block with a layer in front of its pooling."""
    return changed(lambda *layers: (*layers[:-2], layer, *layers[-2:]))


def twice() -> Setting:
    """The block with a second attention."""
    second = Residual((heads(D, WIDTH, heads=HEADS, combine="concat", block=2), Linear("W_O", D, D, None, 2)))
    return changed(lambda first, residual, *rest: (first, residual, second, *rest))


MERGED = {
    "nothing": setting(A, pool="cls"),
    "identity and pooling": setting(A, Activation("identity")),
    "a ball out of reach": setting(A, Ball(1.0)),
    "three maps": setting(A, Ball(2.0), map_("B", 3, 3), map_("D", 3, 3), TANH),
    "a map in front of heads": setting(A, heads(3, heads=2)),
    "sigmoid": setting(A, heads(3, normaliser=Normaliser("sigmoid", 1.5))),
    "heads of their own": setting(
        A, heads(3, heads=2), budgets={"W_V[1,0]": Budget(op=0.4), "W_QK[1,1]": Budget(op=2.0)}
    ),
    "depth 1": Setting.of(depth=1, d=4, seq_len=4),
    "depth 3": Setting.of(depth=3, d=4, seq_len=4, C=0.8),
    "tanh and mean": Setting.of(depth=2, d=4, seq_len=4, activation="tanh", readout="mean"),
    "budgets of their own": Setting.of(depth=2, d=4, seq_len=4, norms=OWN),
    "a row without data": block(),
    "a row without data or offsets": block(bias=False),
}
FRONT, START, END = slice(-2), slice(2), slice(-2, None)
"""The layers that must stay as they are."""
APART = {
    "an activation": (setting(A, Activation("relu")), FRONT),
    "an activation of slope 1 at 0": (setting(A, TANH), FRONT),
    "a ball within reach": (setting(A, Ball(1.0), radius=5.0), FRONT),
    "LayerNorm": (setting(A, LayerNorm("norm", 3, gain=False, centred=False)), FRONT),
    "large weights": (Setting.of(depth=2, d=4, seq_len=4, C=1.5), FRONT),
    "an offset": (setting(map_("A", 3, 3, "a")), FRONT),
    "a bottleneck": (setting(map_("A", 6, 2), heads(2, 3), TANH), FRONT),
    "offsets of scores": (setting(A, heads(3, qk_bias=True), TANH), FRONT),
    "separate queries": (setting(A, heads(3, qk="split", d_head=1), TANH), FRONT),
    "a branch": (setting(A, Residual((GatedFeedForward(3, 2),))), FRONT),
    "shared weights": (setting(A, TANH, A), FRONT),
    "a row of data": (reading(), START),
    "segments": (reading(segments=2, own_row=TOKEN), START),
    "no skip": (changed(lambda first, residual, *rest: (first, replace(residual, skip=False), *rest)), START),
    "rows that are normalised first": (block(inner=(LayerNorm("norm", D, block=1, variance_floor=0.1),)), START),
    "a mean over rows": (block(pool="mean"), START),
    "a second attention": (twice(), START),
    "a mask": (block(causal=True), START),
    "softmax1": (block(normaliser=Normaliser("softmax1", 2.0)), START),
    "sigmoid": (block(normaliser=Normaliser("sigmoid", 2.0)), START),
    "a cap": (block(cap=3.0), START),
    "tanh before the read-out": (ending(TANH), END),
    "a ball before the read-out": (ending(Ball(0.5)), END),
    "LayerNorm before the read-out": (ending(LayerNorm("norm", D, gain=False)), END),
}


def products(base: Setting, larger: Setting, old: Parameters) -> Parameters:
    """The weights of the larger network: a map that is gone goes into what follows it."""
    if isinstance(larger.architecture.stages[0], Lookup):
        return tables(old)
    left = {(layer.kind, layer.block) for layer in larger.architecture.stages if isinstance(layer, Linear)}
    new, waits = dict(old), None
    for layer in base.architecture.stages:
        if isinstance(layer, Linear):
            place = layer.kind, layer.block, None
            new[place] = old[place] if waits is None else waits @ old[place]
            waits = None if place[:2] in left else new[place]
        elif isinstance(layer, Attention) and waits is not None:
            for head in range(layer.heads):
                for kind, right in (("W_QK", waits.T), ("W_V", np.eye(layer.out))):
                    new[kind, layer.block, head] = waits @ old[kind, layer.block, head] @ right
            waits = None
    return new


def tables(old: Parameters) -> Parameters:
    """A7, and A6 at the read-out, of `block`: what its heads look up, the first row, W_2 R and the offset behind it."""

    def offset(kind: str, size: int, block: int | None, head: int | None = None) -> Array:
        return old.get((kind, block, head), np.zeros(size))

    rows = {"token": old["embedding", None, None], "position": old["positions", None, None]}
    own = rows["token"][TOKEN] + rows["position"][-1]
    asks = own if len(old["W_QK", 1, 0]) == D else np.append(own, 1.0)
    queries = np.stack([asks @ old["W_QK", 1, head] / 1.5 for head in range(HEADS)], axis=1)
    values = np.hstack([old["W_V", 1, head] for head in range(HEADS)])
    carried = np.concatenate([offset("b_V", WIDTH, 1, head) for head in range(HEADS)]) @ old["W_O", 1, None]
    readout = old["readout", None, None]
    new = dict(old)
    for what, table in rows.items():
        new[f"{what}_scores", None, None], new[f"{what}_values", None, None] = table @ queries, table @ values
    new["first_row", 1, None] = own + carried + offset("b_O", D, 1)
    new["W_2_to_readout", 1, None] = old["W_2", 1, None] @ readout
    new["b_readout", None, None] = offset("b_2", D, 1) @ readout + offset("b_readout", 1, None)
    return new


def longest(values: Array) -> float:
    """The norm of values that a budget calls `heads`."""
    parts = values.reshape(len(values), HEADS, WIDTH)
    return float(np.linalg.norm(np.linalg.norm(parts, axis=-1).max(axis=0)))


def outside_products(larger: Setting, new: Parameters) -> set[str]:
    """Weights that are not within the budgets of the larger class; of values the longest of each head count."""
    wrong = outside(larger, new)
    for (kind, block, _), array in new.items():
        heads = larger.norms.find(kind, block).heads if kind.endswith("_values") else None
        if heads is not None and longest(array) > heads * (1 + 1e-9):
            wrong.add(kind)
    return wrong


def faults(base: Setting, rounds: int = 12) -> set[str]:
    """Where the merged network differs, or has weights outside their budgets."""
    larger, wrong = merged(base), set[str]()
    assert larger is not None
    before, after = Network.of(base), Network.of(larger)
    for seed in range(rounds):
        dice = Dice(np.random.default_rng(seed), aligned=seed % 3 == 0)
        old, x = before.draw(dice, whole=True), before.inputs(dice)
        if x.ndim == 1:
            x[-1] = TOKEN
        new = products(base, larger, old)
        if np.abs(before.run(old, x)[-1] - after.run(new, x)[-1]).max() > 1e-10:
            wrong.add("another function")
        wrong |= outside_products(larger, new)
    return wrong


@pytest.mark.parametrize("what", MERGED)
def test_merged_networks_are_the_same_function_and_both_checkers_know_them(what: str) -> None:
    assert faults(MERGED[what]) == set()
    bound = evaluate(replace(MERGED[what], sample=Sample(10**7, margin=0.005)))
    for certificate in (bound.certificate, bound.risk_certificate):
        assert check(certificate).log_value == pytest.approx(float(alone.log_value(certificate)), abs=1e-12)
        if certificate.meeting:
            with pytest.raises(CertificateError):
                alone.log_value(replace(certificate, meeting=False))


@pytest.mark.parametrize("what", APART)
def test_what_does_not_meet_is_left_alone(what: str) -> None:
    base, kept = APART[what]
    larger = merged(base)
    assert larger is None or larger.architecture.stages[kept] == base.architecture.stages[kept]


def second_merged(base: Setting) -> Any:
    """What the second checker merges."""
    try:
        return joined(alone.seen(base))
    except Refused:
        return None


def test_both_checkers_merge_the_same() -> None:
    """Layers and budgets, to the last bit; also of random settings."""
    bases = [*MERGED.values(), *(base for base, _ in APART.values()), *settings("merged twice", 60)]
    for base in bases:
        larger, second = merged(base), second_merged(base)
        assert (larger is None) == (second is None)
        if larger is not None:
            seen = alone.seen(larger)
            assert (second.stages, second.norms) == (seen.stages, seen.norms)
    assert sum(merged(base) is not None for base in bases) > len(MERGED) + 20


@pytest.mark.parametrize("what", ["an activation", "an activation of slope 1 at 0", "a ball within reach", "LayerNorm"])
def test_a_condition_on_what_is_between_that_is_dropped_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = Activation | Ball | LayerNorm | Pool
    monkeypatch.setattr(merge, "_does_nothing", lambda layer, radius: isinstance(layer, passed))
    assert "another function" in faults(APART[what][0])


def with_data(base: Setting) -> Setting:
    """The same where the row that is read is data too."""
    first, *rest = base.architecture.stages
    return replace(base, architecture=Architecture(seq_len=T, layers=(replace(first, own_row=None), *rest)))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("base", "others"),
    [
        (
            Setting.of(depth=1, n_train=10**6, margin=1.0),
            (lambda s: s.but(C=1.5), lambda s: s.but(normalisation="none", input_radius=3.0, C=1.01)),
        ),
        (block().but(n_train=10**7), (with_data,)),
    ],
)
def test_both_checkers_ask_for_the_conditions_themselves(base: Setting, others: Any) -> None:
    search = Search(base, replace(POLICIES["best"], comparison=False))
    honest = min(search.candidates("gap"), key=lambda bound: bound.log_value).certificate
    assert honest.meeting
    for wrong in (replace(honest, meeting=False), *(replace(honest, setting=other(base)) for other in others)):
        refusals(wrong)


# -- budgets of products

SIZES: Mapping[str, tuple[str, ...]] = {
    "token_scores": ("sup", "fro"),
    "position_scores": ("sup", "fro"),
    "token_values": ("heads", "fro"),
    "position_values": ("heads", "fro"),
    "first_row[1]": ("op",),
    "W_2_to_readout[1]": ("op", "two_one_t"),
}


def size(name: str, array: Array) -> float:
    return longest(array) if name == "heads" else norm_of(name, array)


def test_budgets_of_products_count_beside_those_that_follow() -> None:
    base = block()
    new = tables(Network.of(base).draw(Dice(np.random.default_rng(2)), whole=True))
    arrays = {key: new[place_of(key)] for key in SIZES}
    sizes: dict[str, Any] = {
        key: {name: size(name, arrays[key]) * (1 + 1e-12) for name in names} for key, names in SIZES.items()
    }
    own = {key: Budget(**norms) for key, norms in sizes.items()}
    told = replace(base, norms=replace(base.norms, budgets={**base.norms.budgets, **own}))
    larger, follows = merged(told), merged(base)
    assert larger is not None
    assert follows is not None
    assert outside_products(larger, new) == set()
    for key, (name, *_) in SIZES.items():
        limits = [getattr(each[key], name) for each in (larger.norms.budgets, follows.norms.budgets, own)]
        assert limits[0] <= min(limits) * (1 + 1e-12)
    for key, budget in own.items():  # a product is of a network that has it
        with pytest.raises(Exception, match="norms of"):
            Setting(Architecture(seq_len=T), Norms(C=1.0, budgets={key: budget}))


def test_budgets_that_follow_cannot_be_lowered() -> None:
    """Along one direction every inequality of A7 is met."""
    base = block(bias=False)
    old = Network.of(base).zeros()
    for (kind, place, head), array in old.items():
        budget, table = base.norms.find(kind, place, head), kind in ("embedding", "positions")
        array[:, 0] = budget.row if table else 0
        array[0, 0] = budget.row if table else budget.op
    larger, new = merged(base), tables(old)
    assert larger is not None
    for key, (name, *_) in SIZES.items():
        assert getattr(larger.norms.budgets[key], name) == pytest.approx(size(name, new[place_of(key)]), rel=1e-9)


def test_a_row_without_data_never_makes_a_bound_larger() -> None:
    rng = np.random.default_rng(6)
    for bias in (True, False, True, False):
        base = replace(block(bias=bias), sample=Sample(int(10 ** rng.uniform(4, 8)), margin=10 ** rng.uniform(-2, 1)))
        plain, merged_ = evaluate(with_data(base)), evaluate(base)
        assert merged_.log10 <= plain.log10 + 1e-9
        assert plain.risk_refusal is not None or merged_.log_risk <= plain.log_risk + 1e-9
