"""L and S as statements; every value is what the layer's own rule in `calculus.layers` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.statement import Statement
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Experts,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Normaliser,
    Norms,
    SoftCap,
)
from boundcalc.statements.covers import LEMMAS, Counting
from boundcalc.statements.covers.uniform import Volumetric
from boundcalc.statements.layers import facts
from boundcalc.statements.layers.activation import ACTIVATION_LIPSCHITZ
from boundcalc.statements.layers.attention.heads import normaliser_constants
from boundcalc.statements.slots import Context, Facts, Slot
from boundcalc.statements.targets import MatrixNorms, Target
from boundcalc.statements.weights import Matrix, Weights

_Values = Mapping[str, Number]


class Given(Weights):
    """Norms given as numbers of any system, so that a layer's rule can be asked for its value."""

    def __init__(self, ns: NumberSystem, given: Mapping[str, MatrixNorms | Number]) -> None:
        super().__init__(ns, Norms())
        self.given = given

    def matrix(self, kind: str, block: int | None, head: int | None, d: int, k: int, rank: int | None = None) -> Matrix:
        norms = self.given[kind]
        whole = (
            norms
            if isinstance(norms, MatrixNorms)
            else MatrixNorms(norms, norms, norms, norms, norms, norms, min(d, k))
        )
        return Matrix(whole, whole)

    def scores(self, *where: Any, **biases: Any) -> Matrix:
        return self.matrix("W_QK", None, None, 1, 1)

    def vector(self, kind: str, block: int | None, head: int | None = None) -> tuple[Number, Number]:
        return self.given[kind], self.given[kind]

    def gain(self, kind: str, block: int | None) -> tuple[Number, Number]:
        return self.given[kind], self.given[kind]


def _rule(
    ns: NumberSystem,
    layer: Layer,
    radius: Number,
    given: Mapping[str, MatrixNorms | Number] | None = None,
    rows: int = 1,
    seq_len: int = 1,
) -> Facts:
    return facts(layer, Context(Given(ns, given or {}), radius, rows, seq_len))


def _slots(fact: Facts) -> dict[str, Slot]:
    return {slot.kind: slot for slot in fact.slots}


def _norm_free(ns: NumberSystem) -> Context:
    return Context(Given(ns, {}), ns.number(1), 1, 1)


def _softmax(ns: NumberSystem, temperature: Number) -> Number:
    return normaliser_constants(Normaliser("softmax"), temperature, ns.number(1), _norm_free(ns))[0]


def _normaliser(
    ns: NumberSystem,
    name: str,
    temperature: Number,
    score_radius: Number,
    c: float | None = None,
    mu: float | None = None,
) -> _Values:
    constants = normaliser_constants(Normaliser(name, c=c, mu=mu), temperature, score_radius, _norm_free(ns))
    return dict(zip(("c", "mu"), constants, strict=True))


def _has_constants(name: str) -> Refusal | None:
    """Why a normaliser of this name has no constants, or None."""
    try:
        Normaliser(name, **({"c": 1.0, "mu": 1.0} if name == "custom" else {}))
    except Unsupported as error:
        return error.refusal
    return None


def _activation(ns: NumberSystem, name: str) -> Number:
    return _rule(ns, Activation(name), ns.number(1)).lipschitz


def _has_slope(name: str) -> Refusal | None:
    if name in ACTIVATION_LIPSCHITZ:
        return None
    return Refusal("L3", f"activation {name!r}", f"one of {', '.join(ACTIVATION_LIPSCHITZ)}")


def _ball(ns: NumberSystem, beta: Number, radius: float) -> _Values:
    fact = _rule(ns, Ball(radius), beta)
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _layernorm(
    ns: NumberSystem, beta: Number, d: int, gain: Number, offset: Number, eps: float, variance_floor: float = 0.0
) -> _Values:
    layer = LayerNorm("norm", d, eps, offset=True, variance_floor=variance_floor)
    fact = _rule(ns, layer, beta, {"norm.gain": gain, "norm.offset": offset})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _smooth(eps: float, variance_floor: float = 0.0) -> Refusal | None:
    if eps + variance_floor > 0:
        return None
    return Refusal("L5", "eps = 0 and no variance floor", "eps > 0, or a variance the class guarantees")


def _linear(ns: NumberSystem, b: Number, op: Number, bias: Number | None = None) -> _Values:
    layer = Linear("W", 1, 1, bias=None if bias is None else "c")
    fact = _rule(ns, layer, b, {"W": op, "c": bias})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _head(
    ns: NumberSystem, b: Number, c_w: Number, c_v: Number, normaliser: str = "softmax", temperature: float = 1.0
) -> _Values:
    layer = Attention(1, normaliser=Normaliser(normaliser, temperature))
    fact = _rule(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    slots = _slots(fact)
    return {
        "radius": fact.radius,
        "lipschitz": fact.lipschitz,
        "score sensitivity": slots["W_QK"].sensitivity,
        "score cap": slots["W_QK"].cap,
        "value sensitivity": slots["W_V"].sensitivity,
        "value radius": slots["W_V"].members[0].targets[0].radius,
    }


def _heads(
    ns: NumberSystem,
    b: Number,
    c_w: Number,
    c_v: Number,
    heads: int,
    combine: Literal["sum", "concat"] = "sum",
    temperature: float = 1.0,
) -> _Values:
    layer = Attention(1, heads=heads, combine=combine, normaliser=Normaliser("softmax", temperature))
    fact = _rule(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz, "score sensitivity": fact.slots[0].sensitivity}


def _gated(ns: NumberSystem, b: Number, c1: Number, c3: Number, c2: Number, activation: str = "silu") -> _Values:
    fact = _rule(ns, GatedFeedForward(1, 1, activation), b, {"W_1": c1, "W_3": c3, "W_2": c2})
    slots = _slots(fact)
    return {
        "radius": fact.radius,
        "lipschitz": fact.lipschitz,
        **{f"{kind} sensitivity": slot.sensitivity for kind, slot in slots.items()},
        "W_2 radius": slots["W_2"].members[0].targets[0].radius,
    }


def _around_one(ns: NumberSystem, beta: Number, d: int, gain: Number, eps: float) -> _Values:
    """By the largest entry of w, where the gain is 1 + w."""
    fact = _rule(ns, LayerNorm("norm", d, eps, centred=False, around_one=True), beta, {"norm.gain": gain})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _fixed_offsets(ns: NumberSystem, b: Number, c_w: Number, c_v: Number) -> _Values:
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), offsets="fixed")
    fact = _rule(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _soft_cap(ns: NumberSystem, b: Number, width: int, cap: float, c_w: Number, c_v: Number) -> _Values:
    """Of rows of some width, and of a head whose scores are capped."""
    rows = _rule(ns, SoftCap(width, cap), b)
    head = Attention(1, normaliser=Normaliser("softmax", 1.0), cap=cap)
    capped = _rule(ns, head, b, {"W_QK": c_w, "W_V": c_v}).lipschitz
    return {"radius": rows.radius, "lipschitz": rows.lipschitz, "head lipschitz": capped}


def _normalised(
    ns: NumberSystem, b: Number, c_q: Number, c_k: Number, g_q: Number, g_k: Number, d_head: int, eps: float
) -> _Values:
    """Of one head with |W_V| = 1 and temperature 1: by the gains' largest entries."""
    layer = Attention(1, d_head=d_head, qk="split", normaliser=Normaliser("softmax", 1.0), qk_norm="head", qk_eps=eps)
    given = {"W_Q": c_q, "W_K": c_k, "W_V": ns.number(1), "norm_Q.gain": g_q, "norm_K.gain": g_k}
    fact = _rule(ns, layer, b, given)
    return {
        "lipschitz": fact.lipschitz,
        **{kind: slot.sensitivity / b for kind, slot in _slots(fact).items() if kind != "W_V"},
    }


def _learned_offsets(ns: NumberSystem, b: Number, c_w: Number, c_v: Number, largest: Number, buckets: int) -> _Values:
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), offsets="learned", buckets=buckets)
    fact = _rule(ns, layer, b, {"W_QK": c_w, "W_V": c_v, "score_offsets": largest})
    slot = _slots(fact)["score_offsets"]
    assert slot.cap is not None  # noqa: S101 - scores always have one
    return {"lipschitz": fact.lipschitz, "per eps": slot.sensitivity, "at most": slot.cap}


def _mixed_experts(
    ns: NumberSystem, b: Number, gate: Number, c1: Number, c3: Number, c2: Number, activation: str = "silu"
) -> _Values:
    fact = _rule(ns, Experts(1, 1, 1, activation), b, {"W_gate": gate, "W_1": c1, "W_3": c3, "W_2": c2})
    slots = _slots(fact)
    assert slots["W_gate"].cap is not None  # noqa: S101 - convex weights always have one
    return {
        "radius": fact.radius,
        "lipschitz": fact.lipschitz,
        "gate": slots["W_gate"].sensitivity,
        "gate at most": slots["W_gate"].cap,
        "W_1": slots["W_1"].sensitivity,
    }


def _score_targets(
    ns: NumberSystem, b: Number, norms: MatrixNorms, d: int, queries: int, seq_len: int
) -> dict[str, Target]:
    layer = Attention(d, normaliser=Normaliser("softmax", 1.0))
    fact = _rule(ns, layer, b, {"W_QK": norms, "W_V": ns.number(1)}, queries, seq_len)
    return {target.kind: target for target in _slots(fact)["W_QK"].members[0].targets}


def _closed(ns: NumberSystem, family: str, target: Target, eps: Number, samples: int) -> Number:
    """What the first cover of a family that serves a target costs, as a paper would print it."""
    lemma = next(each for each in LEMMAS.values() if each.family == family and each.applies(target) is None)
    return lemma.closed(ns, lemma.reach(target) / eps, target, ns.number(target.points.count(samples)))


def _score_pairs(
    ns: NumberSystem, b: Number, fro: Number, eps: Number, samples: int, queries: int, seq_len: int
) -> Number:
    target = _score_targets(ns, b, MatrixNorms(fro, fro, fro, fro, fro, fro, 1), 1, queries, seq_len)["score"]
    return _closed(ns, Counting.family, target, eps, samples)


def _score_sides(
    ns: NumberSystem,
    b: Number,
    two_one: Number,
    two_one_t: Number,
    d: int,
    eps: Number,
    samples: int,
    queries: int,
    seq_len: int,
) -> _Values:
    norms = MatrixNorms(two_one, two_one, two_one, two_one_t, two_one, two_one, d)
    targets = _score_targets(ns, b, norms, d, queries, seq_len)

    return {f"{side} side": _closed(ns, Counting.family, targets[side], eps, samples) for side in ("query", "key")}


def _score_uniform(ns: NumberSystem, b: Number, op: Number, d: int, eps: Number) -> Number:
    norms = MatrixNorms(op, op, op, op, op, op, d)
    target = _score_targets(ns, b, norms, d, 1, 1)["query"]
    return _closed(ns, Volumetric.family, target, eps, 1)


def _split_scores(ns: NumberSystem, b: Number, c_q: Number, c_k: Number, d_head: int) -> _Values:
    """Output error per eps_Q and eps_K over that per unit of score error, and the lipschitz factor, with |W_V| = 1."""
    layer = Attention(1, d_head=d_head, qk="split")
    fact = _rule(ns, layer, b, {"W_Q": c_q, "W_K": c_k, "W_V": ns.number(1)})
    slots = _slots(fact)
    return {
        "score error per eps_Q": slots["W_Q"].sensitivity / b,
        "score error per eps_K": slots["W_K"].sensitivity / b,
        "lipschitz": fact.lipschitz,
    }


def _own_query(ns: NumberSystem, b: Number, c_q: Number, c_v: Number, seq_len: int) -> _Values:
    """Output error per eps_q, the most it can be, and the lipschitz factor, of one head."""
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), qk="fixed")
    fact = _rule(ns, layer, b, {"q": c_q, "W_V": c_v}, 1, seq_len)
    slot = _slots(fact)["q"]
    assert slot.cap is not None  # noqa: S101 - scores always have one
    return {"per eps_q": slot.sensitivity, "at most": slot.cap, "lipschitz": fact.lipschitz}


LAYERS = (
    Statement("L1", compute=_softmax),
    Statement("L2", compute=_normaliser, applies=_has_constants),
    Statement("L3", compute=_activation, applies=_has_slope),
    Statement("L4", compute=_ball),
    Statement("L5", compute=_layernorm, applies=_smooth),
    Statement("L6", compute=_linear),
    Statement("L7", compute=_head, applies=_has_constants),
    Statement("L8", compute=_heads),
    Statement("L9", compute=_gated, applies=_has_slope),
)

LAYERS += (
    Statement("L10", compute=_around_one),
    Statement("L11", compute=_fixed_offsets),
    Statement("L12", compute=_soft_cap),
    Statement("L13", compute=_normalised),
    Statement("L14", compute=_learned_offsets),
    Statement("L15", compute=_mixed_experts, applies=_has_slope),
)

SCORES = (
    Statement("S1", compute=_score_pairs),
    Statement("S2", compute=_score_sides),
    Statement("S3", compute=_score_uniform),
    Statement("S4", compute=_split_scores),
    Statement("S5", compute=_own_query),
)
