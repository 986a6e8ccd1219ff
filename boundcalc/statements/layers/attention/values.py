"""L1, L2, L7, L8, L11, L13, L14 and S1-S5 as numbers: what the rule of attention says of one layer."""

from __future__ import annotations

from typing import Literal

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Attention, Normaliser
from boundcalc.statements.covers import LEMMAS, Counting, CoverLemma, Volumetric
from boundcalc.statements.layers import asked
from boundcalc.statements.layers.attention.heads import normaliser_constants
from boundcalc.statements.slots import Context, Said, Values, slots_of
from boundcalc.statements.targets import MatrixNorms, Target
from boundcalc.statements.weights import Given


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
) -> Values:
    constants = normaliser_constants(Normaliser(name, c=c, mu=mu), temperature, score_radius, _norm_free(ns))
    return dict(zip(("c", "mu"), constants, strict=True))


def _has_constants(name: str) -> Refusal | None:
    """Why a normaliser of this name has no constants, or None."""
    try:
        Normaliser(name, **({"c": 1.0, "mu": 1.0} if name == "custom" else {}))
    except Unsupported as error:
        return error.refusal
    return None


def _head(
    ns: NumberSystem, b: Number, c_w: Number, c_v: Number, normaliser: str = "softmax", temperature: float = 1.0
) -> Values:
    layer = Attention(1, normaliser=Normaliser(normaliser, temperature))
    fact = asked(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    slots = slots_of(fact)
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
) -> Values:
    layer = Attention(1, heads=heads, combine=combine, normaliser=Normaliser("softmax", temperature))
    fact = asked(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz, "score sensitivity": fact.slots[0].sensitivity}


def _fixed_offsets(ns: NumberSystem, b: Number, c_w: Number, c_v: Number) -> Values:
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), offsets="fixed")
    fact = asked(ns, layer, b, {"W_QK": c_w, "W_V": c_v})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _normalised(
    ns: NumberSystem, b: Number, c_q: Number, c_k: Number, g_q: Number, g_k: Number, d_head: int, eps: float
) -> Values:
    """Of one head with |W_V| = 1 and temperature 1: by the gains' largest entries."""
    layer = Attention(1, d_head=d_head, qk="split", normaliser=Normaliser("softmax", 1.0), qk_norm="head", qk_eps=eps)
    given = {"W_Q": c_q, "W_K": c_k, "W_V": ns.number(1), "norm_Q.gain": g_q, "norm_K.gain": g_k}
    fact = asked(ns, layer, b, given)
    return {
        "lipschitz": fact.lipschitz,
        **{kind: slot.sensitivity / b for kind, slot in slots_of(fact).items() if kind != "W_V"},
    }


def _learned_offsets(ns: NumberSystem, b: Number, c_w: Number, c_v: Number, largest: Number, buckets: int) -> Values:
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), offsets="learned", buckets=buckets)
    fact = asked(ns, layer, b, {"W_QK": c_w, "W_V": c_v, "score_offsets": largest})
    slot = slots_of(fact)["score_offsets"]
    assert slot.cap is not None  # noqa: S101 - scores always have one
    return {"lipschitz": fact.lipschitz, "per eps": slot.sensitivity, "at most": slot.cap}


def _score_targets(
    ns: NumberSystem, b: Number, norms: MatrixNorms, d: int, queries: int, seq_len: int
) -> dict[str, Target]:
    layer = Attention(d, normaliser=Normaliser("softmax", 1.0))
    fact = asked(ns, layer, b, {"W_QK": norms, "W_V": ns.number(1)}, queries, seq_len)
    return {target.kind: target for target in slots_of(fact)["W_QK"].members[0].targets}


def _closed(ns: NumberSystem, kind: type[CoverLemma], target: Target, eps: Number, samples: int) -> Number:
    """What the first cover of a kind that serves a target costs, as a paper would print it."""
    lemma = next(each for each in LEMMAS.values() if isinstance(each, kind) and each.applies(target) is None)
    return lemma.closed(ns, lemma.reach(target) / eps, target, ns.number(target.points.count(samples)))


def _score_pairs(
    ns: NumberSystem, b: Number, fro: Number, eps: Number, samples: int, queries: int, seq_len: int
) -> Number:
    target = _score_targets(ns, b, MatrixNorms(fro, fro, fro, fro, fro, fro, 1), 1, queries, seq_len)["score"]
    return _closed(ns, Counting, target, eps, samples)


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
) -> Values:
    norms = MatrixNorms(two_one, two_one, two_one, two_one_t, two_one, two_one, d)
    targets = _score_targets(ns, b, norms, d, queries, seq_len)
    return {f"{side} side": _closed(ns, Counting, targets[side], eps, samples) for side in ("query", "key")}


def _score_uniform(ns: NumberSystem, b: Number, op: Number, d: int, eps: Number) -> Number:
    norms = MatrixNorms(op, op, op, op, op, op, d)
    target = _score_targets(ns, b, norms, d, 1, 1)["query"]
    return _closed(ns, Volumetric, target, eps, 1)


def _split_scores(ns: NumberSystem, b: Number, c_q: Number, c_k: Number, d_head: int) -> Values:
    """Output error per eps_Q and eps_K over that per unit of score error, and the lipschitz factor, with |W_V| = 1."""
    layer = Attention(1, d_head=d_head, qk="split")
    fact = asked(ns, layer, b, {"W_Q": c_q, "W_K": c_k, "W_V": ns.number(1)})
    slots = slots_of(fact)
    return {
        "score error per eps_Q": slots["W_Q"].sensitivity / b,
        "score error per eps_K": slots["W_K"].sensitivity / b,
        "lipschitz": fact.lipschitz,
    }


def _own_query(ns: NumberSystem, b: Number, c_q: Number, c_v: Number, seq_len: int) -> Values:
    """Output error per eps_q, the most it can be, and the lipschitz factor, of one head."""
    layer = Attention(1, normaliser=Normaliser("softmax", 1.0), qk="fixed")
    fact = asked(ns, layer, b, {"q": c_q, "W_V": c_v}, 1, seq_len)
    slot = slots_of(fact)["q"]
    assert slot.cap is not None  # noqa: S101 - scores always have one
    return {"per eps_q": slot.sensitivity, "at most": slot.cap, "lipschitz": fact.lipschitz}


SAYS = {
    "L1": Said(_softmax),
    "L2": Said(_normaliser, _has_constants),
    "L7": Said(_head, _has_constants),
    "L8": Said(_heads),
    "L11": Said(_fixed_offsets),
    "L13": Said(_normalised),
    "L14": Said(_learned_offsets),
    "S1": Said(_score_pairs),
    "S2": Said(_score_sides),
    "S3": Said(_score_uniform),
    "S4": Said(_split_scores),
    "S5": Said(_own_query),
}
