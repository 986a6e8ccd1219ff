"""Attacks on what the package says of each layer: radius, Lipschitz factor, and what an error of each map costs.

Real layers in NumPy, weights inside their budgets. No attack may exceed a claim; where a claim is tight, some attack
comes within five per cent of it; and a claim lowered by a tenth is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from boundcalc.layers import heads as one_attention
from boundcalc.layers.base import TOKENS, Weight
from boundcalc.layers.facts import PUBLISHED, Context, Facts
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Budget,
    Embedding,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Normaliser,
    Norms,
    Pool,
    SoftCap,
)
from boundcalc.statements.network import claimed
from boundcalc.statements.weights import Matrix, Weights
from boundcalc.testing.drawing import Array, Dice, Parameters
from tests.soundness.network import Network, joined, perturbed, rows, tokens_or_rows
from tests.soundness.test_layer_constants import slope_at, worst_direction

SLACK = 1 + 1e-6
TIGHT = 0.95
KNOB = Norms(C=1.0)


@dataclass(frozen=True)
class Subject:
    """A layer, the budgets of its weights, and where it stands."""

    name: str
    layer: Layer
    norms: Norms = KNOB
    width: int = 2
    radius: float = 1.0
    seq_len: int = 3
    tight: frozenset[str] = frozenset()
    """Claims ("radius", "lipschitz", or a kind of map) that some attack must come close to."""
    published: frozenset[str] = frozenset()

    def network(self) -> Network:
        return Network([self.layer], self.norms, self.seq_len, self.radius, self.published)


def budgets(**given: Budget) -> Norms:
    return Norms(C=1.0, budgets={key.replace("__", "."): budget for key, budget in given.items()})


def heads(
    *,
    joint: bool = True,
    d: int = 2,
    normaliser: str = "softmax",
    bias: bool = False,
    sizes: float = 1.0,
    **values: object,
) -> tuple[Attention, Norms]:
    """A layer of heads, its scores from W_QK or from W_Q and W_K."""
    made = Normaliser(normaliser, None, 1.5, 0.8) if normaliser == "custom" else Normaliser(normaliser)
    layer = Attention(d=d, normaliser=made, qk_bias=bias, v_bias=bias, **values)  # type: ignore[arg-type]
    matrix = Budget(op=sizes)
    kinds = ["W_V", *(["W_QK"] if joint else ["W_Q", "W_K"])]
    given: dict[str, Budget] = {kind: matrix for kind in kinds} | {"W_V": Budget(op=1.3)}
    if bias:
        given["b_V"] = Budget(op=0.7)
        if not joint:  # a joint score matrix holds its offsets
            given |= {"b_Q": Budget(op=0.6), "b_K": Budget(op=10.0)}
    return layer, Norms(C=1.0, budgets=given)


def own_query(**values: object) -> tuple[Attention, Norms]:
    """A layer whose heads have queries of their own."""
    layer = Attention(d=2, qk="fixed", **values)  # type: ignore[arg-type]
    given = {"q": Budget(op=2.0), "W_V": Budget(op=1.3)} | ({"b_V": Budget(op=0.7)} if layer.v_bias else {})
    return layer, Norms(C=1.0, budgets=given)


def normalised_heads() -> Iterator[Subject]:
    """L13: rows far shorter than sqrt(eps), where the normaliser is steepest, and far longer."""
    for mode in ("head", "width"):
        for eps, sizes in ((0.2, 0.3), (0.2, 3.0), (1e-3, 0.02)):
            layer, norms = heads(
                joint=False,
                d_head=2,
                heads=2,
                kv_heads=1 if sizes == 3.0 else 2,
                qk="split",
                combine="concat",
                qk_norm=mode,
                qk_eps=eps,
                sizes=sizes,
            )
            gains = {"norm_Q.gain": Budget(sup=1.4), "norm_K.gain": Budget(sup=0.8)}
            given = Norms(C=1.0, budgets={**norms.budgets, **gains})
            yield Subject(f"normalised {mode} {eps} {sizes}", layer, given)
    layer, norms = heads(joint=False, bias=True, d_head=2, heads=2, qk="split", qk_norm="head", qk_eps=0.1, cap=0.7)
    yield Subject("normalised biased", layer, norms)


def subjects() -> Iterator[Subject]:
    """Every kind of layer, with every option that changes its rule."""
    w = Budget(op=1.4, two_one=1.6)
    yield Subject(
        "linear",
        Linear("W", 2, 3, bias="b"),
        budgets(W=w, b=Budget(op=0.5)),
        radius=1.7,
        tight=frozenset({"radius", "lipschitz", "W", "b"}),
    )
    for name in ("relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "mish", "tanh"):
        yield Subject(name, Activation(name), width=1, radius=3.0, tight=frozenset({"lipschitz"}))
    yield Subject("ball", Ball(0.8), radius=1.5, tight=frozenset({"radius", "lipschitz"}))
    gain, offset = Budget(sup=1.5), Budget(op=0.4)
    for centred in (True, False):
        for floor in (0.0, 0.1):
            yield Subject(
                f"norm {centred} {floor}",
                LayerNorm("n", 3, 0.05, centred, offset=True, variance_floor=floor),
                budgets(n__gain=gain, n__offset=offset),
                width=3,
                radius=0.7,
                tight=frozenset({"lipschitz", "n.offset"} | ({"radius"} if not centred and not floor else set())),
            )
    for name in ("softmax", "softmax1", "sigmoid", "linear", "custom"):
        for bias in (False, True):
            for joint in (True, False):
                layer, norms = heads(joint=joint, normaliser=name, bias=bias, d_head=2, heads=2)
                tight = {"W_V", "radius"} if name == "softmax" and joint and not bias else set[str]()
                tight |= {"W_V", "b_V"} if name == "softmax" and bias else set()
                tight |= {"W_V", "W_QK"} if name == "linear" and not joint and not bias else set()
                label = f"{name}{' biased' if bias else ''} {'joint' if joint else 'product'}"
                yield Subject(label, layer, norms, radius=1.2, tight=frozenset(tight))
                if bias:
                    yield Subject(f"{label} published", layer, norms, radius=1.2, published=PUBLISHED)
    for causal, combine in ((True, "sum"), (False, "concat")):
        layer, norms = heads(causal=causal, combine=combine, heads=3, d_value=2)
        yield Subject(f"heads {combine}", layer, norms, seq_len=4, tight=frozenset({"radius", "W_V"}))
    for name in ("softmax", "sigmoid", "linear"):
        layer, norms = heads(
            joint=False,
            normaliser=name,
            bias=name != "linear",
            d_head=2,
            heads=4,
            kv_heads=2,
            qk="split",
            combine="concat",
        )
        yield Subject(f"rotary {name}", layer, norms, tight=frozenset({"W_V"} if name == "softmax" else ()))
    for name, bias, cap in (
        ("softmax", True, None),
        ("softmax1", False, None),
        ("softmax1", True, 0.5),
        ("linear", 0, None),
    ):
        pooling, norms = own_query(normaliser=Normaliser(name), v_bias=bool(bias), cap=cap)
        tight = {"W_V"} if name == "softmax" else {"W_V", "q"} if name == "linear" else set[str]()
        yield Subject(f"own query {name} {bias} {cap}", pooling, norms, tight=frozenset(tight))
    pooling, norms = own_query(heads=2, combine="concat", v_bias=True)
    yield Subject("own query published", pooling, norms, published=PUBLISHED)
    layer, norms = heads(heads=2, d_head=1)
    per_head = {"W_V[0,0]": Budget(op=0.3), "W_V[0,1]": Budget(op=2.0), "W_QK[0,1]": Budget(op=3.0)}
    unequal = Norms(C=1.0, budgets={**norms.budgets, **per_head})
    yield Subject("unequal heads", replace(layer, block=0), unequal, tight=frozenset({"radius", "W_V"}))
    for name in ("silu", "gelu", "relu"):
        yield Subject(
            f"gated {name}",
            GatedFeedForward(2, 3, name),
            budgets(W_1=Budget(op=1.4), W_2=Budget(op=0.8), W_3=Budget(op=1.7)),
            radius=1.3,
            tight=frozenset({"radius", "lipschitz", "W_1", "W_2", "W_3"} if name == "relu" else ()),
        )
    yield Subject(
        "gated with offsets",
        GatedFeedForward(2, 3, "relu", bias=True),
        budgets(**{f"W_{i}": Budget(op=1.4) for i in (1, 2, 3)}, **{f"b_{i}": Budget(op=0.6) for i in (1, 2, 3)}),
        radius=1.3,
        tight=frozenset({"b_2"}),
    )
    yield Subject(
        "norm with gain 1 + w",
        LayerNorm("n", 3, 0.05, centred=False, around_one=True),
        budgets(n__gain=gain),
        width=3,
        radius=0.7,
        tight=frozenset({"lipschitz", "radius", "n.gain"}),
    )
    yield Subject("soft cap", SoftCap(1, 0.4), width=1, radius=3.0, tight=frozenset({"radius"}))
    yield Subject("soft cap out of reach", SoftCap(2, 50.0), tight=frozenset({"radius", "lipschitz"}))
    for cap, offsets in ((0.3, "none"), (None, "fixed"), (2.0, "fixed")):
        for joint, bias in ((True, False), (False, True)):
            layer, norms = heads(joint=joint, bias=bias, d_head=2, heads=2, cap=cap, offsets=offsets, sizes=3.0)
            yield Subject(f"heads cap {cap} {offsets} {bias}", layer, norms, tight=frozenset({"W_V"}))
        layer, norms = heads(joint=False, d_head=2, qk="split", combine="concat", heads=2, cap=cap, offsets=offsets)
        yield Subject(f"rotary cap {cap} {offsets}", layer, norms, tight=frozenset({"W_V"}))
    yield from normalised_heads()
    for joint, bias in ((True, False), (True, True), (False, False)):
        layer, norms = heads(joint=joint, bias=bias, d_head=2, heads=2, offsets="learned", buckets=2)
        given = Norms(C=1.0, budgets={**norms.budgets, "score_offsets": Budget(sup=1.5)})
        yield Subject(f"learned offsets {joint} {bias}", layer, given, tight=frozenset({"W_V"}))
    layer, norms = heads(
        joint=False, d_head=2, qk="split", combine="concat", heads=2, offsets="learned", buckets=3, cap=2.0
    )
    given = Norms(C=1.0, budgets={**norms.budgets, "score_offsets": Budget(sup=1.5)})
    yield Subject("rotary learned offsets", layer, given)
    table = {"embedding": Budget(row=1.2), "positions": Budget(row=0.5), "segments": Budget(row=0.3)}
    yield Subject(
        "embedding",
        Embedding(4, 2, "learned", segments=2),
        budgets(**table),
        tight=frozenset({"embedding", "positions", "segments"}),
    )
    yield Subject("fixed positions", Embedding(0, 2, "fixed", 0.5), tight=frozenset({"radius", "lipschitz"}))
    for name, bias in (("relu", None), ("gelu", "c")):
        yield Subject(
            f"hidden {name}",
            Hidden("W", "v", 2, 3, name, bias),
            budgets(W=Budget(op=1.4), v=Budget(op=0.8), c=Budget(op=0.6)),
            radius=1.3,
            tight=frozenset({"radius", "lipschitz", "W", "v"} if name == "relu" else ()),
        )
    looked_up = {f"{of}_scores": Budget(sup=4.0) for of in ("token", "position")}
    looked_up |= {f"{of}_values": Budget(heads=1.3) for of in ("token", "position")}
    yield Subject("lookup", Lookup(3, 2, 2), budgets(**looked_up), tight=frozenset({"token_values", "position_values"}))
    for how in ("mean", "cls"):
        yield Subject(how, Pool(how), tight=frozenset({"radius", "lipschitz"}))


Claim = tuple[str, float]


@dataclass
class Attack:
    """One layer with drawn weights and an input."""

    subject: Subject
    network: Network
    p: Parameters
    x: Array

    @property
    def place(self) -> tuple[Layer, Context, Facts]:
        return self.network.known[0]

    def layer(self, p: Parameters, *, project: bool = False) -> Callable[[Array], Array]:
        layer, at, _ = self.place
        return lambda z: np.atleast_2d(self.network.apply(layer, p, z, at, project=project))

    def ratios(self, dice: Dice) -> Iterator[Claim]:
        """(claim, observed over claimed)."""
        layer, _, here = self.place
        f = self.layer(self.p)
        y = f(self.x)
        yield "radius", rows(y) / here.radius
        if layer.widths()[0] != TOKENS:
            yield from self.stretch(dice, f, y)
        p = joined(self.network, layer, self.p)
        for slot in here.slots:
            targets = [target for member in slot.members for target in member.targets]
            reach = min(float(target.radius * target.norms.op) for target in targets)
            for eps in (1e-6 * reach, float(dice.rng.choice([0.1, 1.0, 4.0])) * reach):
                near = perturbed(dice, p, slot.kind, getattr(layer, "block", None), targets, eps)
                change = rows(self.layer(near, project=True)(self.x) - y)
                yield slot.kind, change / (slot.sensitivity * eps)
                if slot.cap is not None:
                    yield f"{slot.kind} cap", change / slot.cap
                if slot.saturates:
                    yield f"{slot.kind} bent", change / (slot.cap * np.tanh(slot.sensitivity * eps / slot.cap))

    def stretch(self, dice: Dice, f: Callable[[Array], Array], y: Array) -> Iterator[Claim]:
        here = self.place[2]
        yield (
            "lipschitz",
            slope_at(f, self.x, worst_direction(f, self.x, int(dice.rng.integers(len(y))))) / here.lipschitz,
        )
        for size in (0.1, 1.0):
            z = (1 - size) * self.x + size * tokens_or_rows(dice, self.network, self.subject.width, 0)
            if rows(z - self.x) > 1e-6:
                yield "lipschitz", rows(f(z) - y) / (here.lipschitz * rows(z - self.x))


def attacks(subject: Subject, number: int) -> Iterator[Claim]:
    """Random weights and inputs, each then improved by keeping what came closest and trying near it."""
    rng = np.random.default_rng(len(subject.name) * 1009 + number)
    network = subject.network()
    vocabulary = subject.layer.vocabulary if isinstance(subject.layer, Embedding | Lookup) else 0
    for case in range(number):
        dice = Dice(rng, aligned=case % 2 == 0)
        x = tokens_or_rows(dice, network, subject.width, vocabulary)
        if isinstance(subject.layer, LayerNorm):
            x = x * rng.choice([1.0, 0.1, 1e-3])
            if subject.layer.variance_floor:
                x = x / max(rows(x), 1e-9) * network.radius
        if isinstance(subject.layer, Activation):
            x = rng.uniform(-3, 3, x.shape)
        yield from Attack(subject, network, network.draw(dice), x).ratios(dice)


SUBJECTS = list(subjects())


def reached(subject: Subject, number: int = 64) -> dict[str, float]:
    """The largest ratio per claim."""
    largest: dict[str, float] = {}
    for name, ratio in attacks(subject, number):
        largest[name] = max(ratio, largest.get(name, 0.0))
    return largest


def excesses(subject: Subject) -> set[str]:
    return {name for name, ratio in reached(subject).items() if ratio > SLACK}


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_no_attack_exceeds_a_claim(subject: Subject) -> None:
    ratios = reached(subject)
    assert {name: ratio for name, ratio in ratios.items() if ratio > SLACK} == {}
    assert {name: ratios.get(name) for name in subject.tight if ratios.get(name, 0.0) < TIGHT} == {}


# ------------------------------------------------------------------------------------------------ tight heads


def alone(kap: float, b: float, size: int, **values: object) -> Subject:
    """One head with kap = b^2 C_W."""
    layer = Attention(d=2, **values)  # type: ignore[arg-type]
    norms = Norms(budgets={"W_QK": Budget(op=kap / b**2), "W_V": Budget(op=1.0)})
    return Subject("head", layer, norms, radius=b, seq_len=size)


def extremal(kap: float, b: float, copies: int) -> tuple[Array, Array, int]:
    """Rows +-b e_2 in equal numbers and one query b e_1 that hardly attends to itself.

    W = (kap/b^2) diag(-1, 1): the query scores 0 on the pairs and -kap on itself, and its own row
    has little weight among many. It comes last, so the mask may be causal.
    """
    pairs = np.tile(np.array([[0.0, b], [0.0, -b]]), (copies, 1))
    x = np.concatenate([pairs, [[b, 0.0]]])
    w = kap / b**2 * np.array([[-1.0, 0.0], [0.0, 1.0]])
    return x, w, len(x) - 1


def extremal_stretch(kap: float, *, causal: bool, normaliser: str = "softmax") -> float:
    """The slope of the extremal head, over the claimed factor."""
    x, w, row = extremal(kap, 1.5, 60)
    subject = alone(kap, 1.5, len(x), causal=causal, normaliser=Normaliser(normaliser))
    network = subject.network()
    p: Parameters = {("W_QK", None, 0): w, ("W_V", None, 0): np.eye(2)}
    attack = Attack(subject, network, p, x)
    f = attack.layer(attack.p)
    return slope_at(f, x, worst_direction(f, x, row)) / attack.place[2].lipschitz


def extremal_score(gap: float) -> tuple[float, float]:
    """Two opposite rows whose weights e^-gap : 1 become 1 : e^-gap: change over claim, and over the cap."""
    subject = alone(4.0, 1.0, 2)
    network = subject.network()
    x = np.array([[1.0, 0.0], [-1.0, 0.0]])
    p: Parameters = {("W_QK", None, 0): np.diag([-gap / 2, 0.0]), ("W_V", None, 0): np.eye(2)}
    attack = Attack(subject, network, p, x)
    slot = attack.place[2].slots[0]
    assert slot.cap is not None
    near: Parameters = {**p, ("W_QK", None, 0): np.diag([gap / 2, 0.0])}
    change = rows(attack.layer(near)(x) - attack.layer(p)(x))
    return change / (slot.sensitivity * gap), change / slot.cap


def test_the_factor_of_a_softmax_head_is_tight() -> None:
    for kap in (0.3, 1.0, 3.0):
        for causal in (False, True):
            for name in ("softmax", "softmax1"):
                ratio = extremal_stretch(kap, causal=causal, normaliser=name)
                assert ratio <= SLACK
                assert ratio > TIGHT


def test_the_cost_of_a_score_error_is_tight() -> None:
    for gap in (1e-3, 0.1, 1.0, 6.0):
        ratio, cap = extremal_score(gap)
        assert ratio <= SLACK
        assert cap <= SLACK
    assert extremal_score(1e-3)[0] > TIGHT
    assert extremal_score(7.9)[1] > TIGHT


# ------------------------------------------------------------------------------------------------ queries of the
# layer's own


def extremal_query(gap: float, lowered: float = 1.0) -> float:
    """Two opposite rows, q turned round so that both scores move by gap/2: change over 2 tanh(gap/2 / 2) b C_V."""
    layer = Attention(d=2, qk="fixed")
    norms = Norms(budgets={"q": Budget(op=gap), "W_V": Budget(op=1.0)})
    network = Subject("own query", layer, norms, seq_len=2).network()
    x = np.array([[1.0, 0.0], [-1.0, 0.0]])
    p: Parameters = {("q", None, 0): np.array([[-gap / 2], [0.0]]), ("W_V", None, 0): np.eye(2)}
    attack = Attack(Subject("own query", layer, norms, seq_len=2), network, p, x)
    slot = attack.place[2].slots[0]
    assert slot.saturates
    assert slot.cap is not None
    change = rows(attack.layer({**p, ("q", None, 0): -p["q", None, 0]})(x) - attack.layer(p)(x))
    return change / (lowered * slot.cap * float(np.tanh(slot.sensitivity * gap / slot.cap)))


@pytest.mark.parametrize("gap", [0.01, 1.0, 3.0, 8.0])
def test_the_bent_cost_of_a_query_is_exact(gap: float) -> None:
    assert extremal_query(gap) == pytest.approx(1.0)
    assert extremal_query(gap, 0.9) > SLACK


def test_the_factor_of_a_query_is_that_of_l7_without_its_part() -> None:
    """As `extremal`: two rows apart along v with weights one half each, q beside v."""
    for size in (0.5, 2.0, 6.0):
        layer = Attention(d=2, qk="fixed")
        subject = Subject("own query", layer, Norms(budgets={"q": Budget(op=size), "W_V": Budget(op=1.0)}), seq_len=2)
        p: Parameters = {("q", None, 0): np.array([[0.0], [size]]), ("W_V", None, 0): np.eye(2)}
        attack = Attack(subject, subject.network(), p, np.array([[1.0, 0.0], [-1.0, 0.0]]))
        f = attack.layer(p)
        ratio = slope_at(f, attack.x, worst_direction(f, attack.x, 0)) / attack.place[2].lipschitz
        assert TIGHT < ratio <= SLACK


# ------------------------------------------------------------------------------------------------ normalised, added,
# mixed

PAIR = np.array([[1.0], [-1.0]])
"""Two opposite rows: a score error of +-e turns equal weights into masses that differ by tanh e."""


def one_head(**values: object) -> tuple[Attention, Norms]:
    plain = Attention(1, d_head=1, qk="split", combine="concat", normaliser=Normaliser("softmax", 1.0))
    layer = replace(plain, **values)  # type: ignore[arg-type]
    return layer, Norms(C=1.0, budgets={"norm_Q.gain": Budget(sup=1.5), "norm_K.gain": Budget(sup=0.7)})


def changed(layer: Layer, norms: Norms, p: Parameters, kind: str, error: Array, x: Array = PAIR) -> float:
    """The change that an error of one map makes, over what is claimed of it: covered to |error| times its radius."""
    subject = Subject("pair", layer, norms, seq_len=len(x), width=x.shape[1])
    attack = Attack(subject, subject.network(), p, x)
    slot = next(slot for slot in attack.place[2].slots if slot.kind == kind)
    eps = float(np.linalg.norm(error)) * float(slot.members[0].targets[0].radius)
    (key,) = (key for key in p if key[0] == kind)
    change = rows(attack.layer({**p, key: p[key] + error})(x) - attack.layer(p)(x))
    return change / (slot.sensitivity * eps)


@pytest.mark.parametrize("mode", ["head", "width"])
@pytest.mark.parametrize("kind", ["W_Q", "W_K", "norm_Q.gain", "norm_K.gain"])
def test_the_cost_of_normalised_queries_and_keys_is_tight(kind: str, mode: str) -> None:
    """From a map (a gain) that is 0, with the normaliser at its steepest.

    Nine tenths of the claim would be exceeded.
    """
    layer, norms = one_head(qk_norm=mode, qk_eps=0.04 if kind.startswith("W") else 1e-9)
    p: Parameters = {("W_V", None, 0): np.eye(1), ("W_Q", None, 0): np.eye(1), ("W_K", None, 0): np.eye(1)}
    p |= {("norm_Q.gain", None, None): np.array([1.5]), ("norm_K.gain", None, None): np.array([0.7])}
    key = next(key for key in p if key[0] == kind)
    p[key] = 0 * p[key]
    ratio = changed(layer, norms, p, kind, np.full(p[key].shape, 1e-4))
    assert TIGHT < ratio <= SLACK


def test_the_cost_of_learned_offsets_is_tight() -> None:
    layer = Attention(1, normaliser=Normaliser("softmax", 2.0), offsets="learned", buckets=2)
    p: Parameters = {("W_V", None, 0): np.eye(1), ("W_QK", None, 0): 0 * np.eye(1)}
    p["score_offsets", None, None] = np.zeros((2, 1))
    error = np.array([[1.0], [-1.0]])
    assert (
        TIGHT < math.sqrt(2) * changed(layer, KNOB, p, "score_offsets", 1e-4 * error) <= SLACK
    )  # by its largest entry


# ------------------------------------------------------------------------------------------------ negative controls


def subject_named(name: str) -> Subject:
    return next(subject for subject in SUBJECTS if subject.name == name)


def lowered(monkeypatch: pytest.MonkeyPatch, change: Callable[[Facts], Facts]) -> None:
    """Every layer claims something else."""
    honest = claimed
    monkeypatch.setattr("tests.soundness.network.facts", lambda layer, at: change(honest(layer, at)))


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.tight], ids=lambda s: s.name)
def test_claims_lowered_by_a_tenth_are_noticed(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(fact: Facts) -> Facts:
        slots = tuple(replace(slot, sensitivity=0.9 * slot.sensitivity) for slot in fact.slots)
        return replace(fact, radius=0.9 * fact.radius, lipschitz=0.9 * fact.lipschitz, slots=slots)

    lowered(monkeypatch, change)
    assert subject.tight <= excesses(subject)


def test_a_lower_softmax_constant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = one_attention.normaliser_constants

    def nine_tenths(*args: Any) -> tuple[float, float]:
        c, mass = honest(*args)
        return 0.9 * c, mass

    monkeypatch.setattr(one_attention, "normaliser_constants", nine_tenths)
    assert extremal_score(1e-3)[0] > SLACK


def test_a_key_bias_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Weights.scores

    def without(self: Weights, joint: Weight, *args: Any) -> Matrix:
        factors = tuple(factor for factor in joint.factors if factor.kind != "b_K")
        return honest(self, replace(joint, factors=factors), *args)

    subject = subject_named("linear biased product")
    assert excesses(subject) == set()
    monkeypatch.setattr(Weights, "scores", without)
    assert excesses(subject)


def test_heads_that_do_not_add_up_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_attention, "total", lambda values: values[0])
    assert excesses(subject_named("unequal heads"))


def test_an_offset_left_out_of_the_radius_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Weights.vector
    monkeypatch.setattr(Weights, "vector", lambda *args: (0.0, honest(*args)[1]))
    for name in ("linear", "softmax biased joint"):
        assert "radius" in excesses(subject_named(name)) or "W_V" in excesses(subject_named(name))
