"""L: radius, Lipschitz factor and parameter sensitivities of every primitive layer (S: its score covers).

A rule reads a layer, the budgets of its weights and the radius of its input, and says how far its output
reaches, how much it stretches errors of its input, and which maps must be covered (`Slot`s). The metric is the
largest l2 norm of a row. Every rule is one function, generic over the number system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Embedding,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Normaliser,
    Pool,
    SoftCap,
)
from boundcalc.statements.targets import MatrixNorms, Points, Target
from boundcalc.statements.weights import Matrix, Weights

ACTIVATION_LIPSCHITZ = {
    "relu": 1.0,
    "tanh": 1.0,
    "identity": 1.0,
    "gelu": 1.12891,
    "gelu_tanh": 1.12900,
    "silu": 1.09984,
    "quick_gelu": 1.09984,
    "mish": 1.08850,
}
"""L3, rounded up; all of these also satisfy |s(x)| <= |x|."""


@dataclass(frozen=True, slots=True)
class Member:
    """One of the equal or similar maps of a slot (a head), and the ways it can be covered."""

    multiplicity: int
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """Maps of one kind in one layer, all covered to the same eps.

    Attributes:
        kind: name of the matrix.
        sensitivity: error of the layer's output per eps.
        members: the maps.
        cap: error of the layer's output however wrong the maps are.
        saturates: whether an error of e, to first order, is at most cap tanh(e / cap) (S5).
    """

    kind: str
    sensitivity: Number
    members: tuple[Member, ...]
    cap: Number | None = None
    saturates: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What composition needs to know of one layer."""

    radius: Number
    lipschitz: Number
    slots: tuple[Slot, ...] = ()
    uses: tuple[str, ...] = ()


_ROUNDING = 1e-9
"""A limit that is met up to rounding is met, in every number system alike."""

PUBLISHED = frozenset({"L1", "L7"})
"""The statements of L whose published constants differ from ours."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a layer stands.

    Attributes:
        weights: the budgets, in some number system.
        radius: largest l2 norm of an input row.
        rows: rows of its output that are used, per sample.
        seq_len: T.
        published: statements ("L1", "L7") whose published constants are taken instead of the sharp ones (PUB).
    """

    weights: Weights
    radius: Number
    rows: int
    seq_len: int
    published: frozenset[str] = frozenset()

    @property
    def ns(self) -> NumberSystem:
        """The number system."""
        return self.weights.ns


def facts(layer: Layer, at: Context) -> Facts:
    """The rule of a primitive layer, applied (residuals are composition's business)."""
    rule = _RULES.get(type(layer))
    if rule is None:
        raise Unsupported(
            Refusal(
                f"a bound for layer {layer.label!r}",
                f"no statement about {type(layer).__name__}",
                "its radius, Lipschitz factor and what must be covered",
                "Say them with register_rule.",
            )
        )
    return rule(layer, at)


def vector_target(ns: NumberSystem, kind: str, size: int, norm: Number, radius: Number | None = None) -> Target:
    """Target of an offset (T8) or of a gain (T9)."""
    norms = MatrixNorms(norm, norm, norm, norm, norm, norm, 1)
    return Target(
        "gain" if kind == "gain" else "vector", 1, size, ns.number(1) if radius is None else radius, norms, Points(0, 1)
    )


def _offset_slot(kind: str, sensitivity: Number, size: int, norm: Number, at: Context) -> Slot:
    return Slot(kind, sensitivity, (Member(1, (vector_target(at.ns, "vector", size, norm),)),))


def _linear(layer: Linear, at: Context) -> Facts:
    """L6, T8."""
    matrix = at.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)
    target = Target("map", layer.d_in, layer.d_out, at.radius, matrix.covered, Points(at.rows))
    slots = [Slot(layer.kind, at.ns.number(1), (Member(1, (target,)),))]
    radius = at.radius * matrix.whole.op
    if layer.bias:
        norm, covered = at.weights.vector(layer.bias, layer.block)
        radius = radius + norm
        slots.append(_offset_slot(layer.bias, at.ns.number(1), layer.d_out, covered, at))
    return Facts(radius, matrix.whole.op, tuple(slots), ("L6", "T8") if layer.bias else ("L6",))


def _activation(layer: Activation, at: Context) -> Facts:
    """L3."""
    return Facts(at.radius, at.ns.number(ACTIVATION_LIPSCHITZ[layer.name]), (), ("L3",))


def _ball(layer: Ball, at: Context) -> Facts:
    """L4."""
    return Facts(at.ns.minimum(at.radius, at.ns.number(layer.radius)), at.ns.number(1), (), ("L4",))


def _softcap(layer: SoftCap, at: Context) -> Facts:
    """L12."""
    ns = at.ns
    reach = ns.minimum(at.radius, ns.number(layer.cap) * ns.sqrt(ns.number(layer.d)))
    return Facts(reach, ns.number(1), (), ("L12",))


def _layernorm(layer: LayerNorm, at: Context) -> Facts:
    """L5, T9, T9b."""
    ns = at.ns
    d, eps = ns.number(layer.d), ns.number(layer.eps)
    floor = ns.number(layer.variance_floor)
    _check_floor(layer, at)
    reach = at.radius * ns.sqrt(d / (at.radius**2 + d * eps)) if layer.eps else ns.sqrt(d)
    stretch = 1 / ns.sqrt(floor + eps)
    slots: list[Slot] = []
    radius = reach
    if layer.gain:
        kind = f"{layer.kind}.gain"
        largest, covered = at.weights.gain(kind, layer.block)
        if layer.around_one:
            largest = 1 + largest
        radius, stretch = largest * reach, largest * stretch
        slots.append(Slot(kind, ns.number(1), (Member(1, (vector_target(ns, "gain", layer.d, covered, reach),)),)))
    if layer.offset:
        kind = f"{layer.kind}.offset"
        norm, covered = at.weights.vector(kind, layer.block)
        radius = radius + norm
        slots.append(_offset_slot(kind, ns.number(1), layer.d, covered, at))
    uses = ("L5", "T9", "L10") if layer.around_one else ("L5", "T9")
    return Facts(radius, stretch, tuple(slots), uses)


def _check_floor(layer: LayerNorm, at: Context) -> None:
    """Refuses a class without members: rows of norm b have a mean square of at most b^2 / d, and no variance above it."""
    most = at.radius**2 / at.ns.number(layer.d)
    if layer.centred and layer.d == 1:
        most = at.ns.number(0)
    if not layer.variance_floor or _has_symbols(layer.variance_floor) or _has_symbols(most):
        return  # of symbols it may not be known, and algebra takes a minute to say so
    if _surely(at.ns.number(layer.variance_floor) * (1 - _ROUNDING) > most):
        name = layer.kind if layer.block is None else f"{layer.kind}[{layer.block}]"
        raise InvalidSetting(
            f"no network has a variance of {layer.variance_floor:g} before {name}: rows x there have |x| <= "
            f"{_spoken(at.radius)} and a variance of at most {_spoken(most)}; lower the variance_floor (0 for none)"
        )


def _has_symbols(number: Number) -> bool:
    return bool(getattr(number, "free_symbols", ()))


def _surely(comparison: Any) -> bool:
    """Whether a comparison holds; of arrays, at some point."""
    return bool(comparison.any()) if hasattr(comparison, "any") else bool(comparison)


def _spoken(number: Number) -> str:
    try:
        return f"{float(number):.4g}"
    except (TypeError, OverflowError):  # an array, a symbol, a number beyond floats
        return "a size that the budgets fix"


def normaliser_constants(
    normaliser: Normaliser, temperature: Number, score_radius: Number, at: Context
) -> tuple[Number, Number]:
    """L1 and L2: the l_inf -> l_1 constant c and the largest l_1 mass mu of a row of weights."""
    ns = at.ns
    one = ns.number(1)
    if normaliser.name in ("softmax", "softmax1"):
        return (ns.number(2) if "L1" in at.published else one) / temperature, one
    if normaliser.name == "sigmoid":
        return one / (4 * temperature), one
    if normaliser.name == "linear":
        return one / temperature, score_radius / temperature
    if normaliser.c is None or normaliser.mu is None:
        raise TypeError("a custom normaliser without (c, mu) should not have passed validation")
    return ns.number(normaliser.c) / temperature, ns.number(normaliser.mu)


@dataclass(frozen=True, slots=True)
class _Head:
    """One kind of head: how many, its lipschitz factor, value radius and covers."""

    count: int
    lipschitz: Number
    value_radius: Number
    inside: Number
    """What a shift of the weights moves: the values without an offset that a conserved mass carries along."""
    score_error: Number
    """Output error per unit of uniform score error."""
    mass: Number
    scores: tuple[tuple[str, Number, Target | tuple[Target, ...]], ...]
    """(kind, score error per eps, targets)."""
    value: Target
    offset: Number | None


def _attention(layer: Attention, at: Context) -> Facts:
    """L7, L8 and the score covers S1-S5."""
    build = {"joint": _joint_head, "split": _split_head, "fixed": _fixed_head}[layer.qk]
    heads = [build(layer, at, group, count) for group, count in _head_groups(layer, at)]
    ns = at.ns

    def gather(values: Sequence[Number]) -> Number:
        """Errors of heads add up when outputs are summed; side by side they add as squares."""
        if layer.combine == "concat":
            return ns.sqrt(total([head.count * value**2 for head, value in zip(heads, values, strict=True)]))
        return total([head.count * value for head, value in zip(heads, values, strict=True)])

    slots: list[Slot] = []
    wrong = gather([2 * head.mass * head.inside for head in heads])
    for index, (kind, _, _) in enumerate(heads[0].scores):
        parts = [head.scores[index] for head in heads]
        sensitivity = gather([head.score_error * part[1] for head, part in zip(heads, parts, strict=True)])
        shared = kind in ("W_K", "b_K")
        members = tuple(
            Member(_shared(head.count, layer, shared), _as_tuple(part[2]))
            for head, part in zip(heads, parts, strict=True)
        )
        slots.append(Slot(kind, sensitivity, members, wrong, saturates=kind == "q" and _bends(layer, at)))
    ones = gather([ns.number(1) for _ in heads])
    values = tuple(Member(_shared(head.count, layer, shared=True), (head.value,)) for head in heads)
    slots.append(Slot("W_V", ones, values))
    if layer.v_bias:
        masses = gather([head.mass for head in heads])
        offsets = tuple(
            Member(_shared(head.count, layer, shared=True), (vector_target(ns, "vector", layer.out, head.offset),))
            for head in heads
        )
        slots.append(Slot("b_V", masses, offsets))
    radius = gather([head.mass * head.value_radius for head in heads])
    uses = {
        "L1": layer.normaliser.name in ("softmax", "softmax1"),
        "L2": True,
        "L7": True,
        "L8": layer.heads != 1,
        "L11": layer.offsets != "none",
        "L12": layer.cap is not None,
        "S4": layer.qk == "split",  # how a joint score matrix is covered (S1-S3) is the search's to say
        "S5": layer.qk == "fixed",
    }
    used = tuple(name for name, holds in uses.items() if holds)
    return Facts(radius, gather([head.lipschitz for head in heads]), tuple(slots), used)


def _bends(layer: Attention, at: Context) -> bool:
    """Whether the weights are softmax's, with its exact modulus 2 tanh(e/2) (S5)."""
    return layer.normaliser.name in ("softmax", "softmax1") and "L1" not in at.published


def total(values: Sequence[Number]) -> Number:
    """The sum, in any number system."""
    added = values[0]
    for value in values[1:]:
        added = added + value
    return added


def _as_tuple(targets: Target | tuple[Target, ...]) -> tuple[Target, ...]:
    return targets if isinstance(targets, tuple) else (targets,)


def _shared(count: int, layer: Attention, shared: bool) -> int:
    """How many distinct maps serve so many query heads (grouped queries share keys and values)."""
    return -(-count * layer.groups // layer.heads) if shared else count


def _head_groups(layer: Attention, at: Context) -> list[tuple[int | None, int]]:
    """(a representative head, how many heads have just its budgets), in the order of the first of each.

    Certificates list covers in this order.
    """
    norms = at.weights.norms
    weights = [each for weight in layer.weights(at.seq_len) for each in weight.all]

    def places(head: int) -> list[str | None]:
        return [norms.place(each.kind, layer.block, head) for each in weights]

    own = (
        [place for head in range(layer.heads) for place in places(head) if place and "," in place]
        if norms.headed
        else []
    )
    if not own:
        return [(None, layer.heads)]
    if layer.groups != layer.heads:
        raise Unsupported(Refusal("grouped queries", f"a budget for {own[0]} alone", "the same budgets for every head"))

    def signature(head: int) -> str:
        return repr([place and norms.budgets[place] for place in places(head)])

    alike: dict[str, list[int]] = {}
    for head in range(layer.heads):
        alike.setdefault(signature(head), []).append(head)
    return [(members[0], len(members)) for members in alike.values()]


def _value(layer: Attention, at: Context, head: int | None, mass: Number) -> tuple[Matrix, Target]:
    """The value map, covered on the pooled rows (radius mu b; the query heads of a group share it)."""
    matrix = at.weights.matrix("W_V", layer.block, head, layer.d, layer.out)
    points = Points(at.rows * (layer.heads // layer.groups))
    return matrix, Target("map", layer.d, layer.out, mass * at.radius, matrix.covered, points)


def _temperature(layer: Attention, at: Context) -> Number:
    given = layer.normaliser.temperature
    if given is None and layer.qk == "split":
        assert layer.d_head is not None  # noqa: S101 - validated by Attention
        return at.ns.sqrt(at.ns.number(layer.d_head))
    return at.ns.number(1.0 if given is None else given)


def _joint_head(layer: Attention, at: Context, head: int | None, count: int) -> _Head:
    ns, b = at.ns, at.radius
    tau = _temperature(layer, at)
    conserved, softmax1 = layer.normaliser.name == "softmax", layer.normaliser.name == "softmax1"
    augmented = ns.sqrt(b**2 + 1) if layer.qk_bias else b
    key_radius = augmented if layer.key_bias else b  # a key bias drops out where weights sum to 1 and nothing caps
    rows, columns = layer.scores.shape
    score = at.weights.scores(layer.scores, head, layer.d_head)
    reach = augmented * key_radius
    c, mass = normaliser_constants(layer.normaliser, tau, reach * score.whole.op, at)
    value, value_target = _value(layer, at, head, mass)
    c_v, c_w = value.whole.op, score.whole.op
    offset, offset_covered = at.weights.vector("b_V", layer.block, head) if layer.v_bias else (ns.number(0), None)
    inside = b * c_v if conserved else b * c_v + offset  # what a shift of the weights moves
    if "L7" in at.published:
        spread = 2 * c if layer.normaliser.name == "custom" else 4 / tau
        lipschitz = c_v * mass + spread * inside * augmented * c_w
    elif layer.cap is None and (conserved or (softmax1 and not layer.qk_bias and not layer.v_bias)):
        direct = b**2 * c_w / tau
        lipschitz = c_v * (direct + ns.sqrt(1 + (b * augmented * c_w / tau) ** 2))
    else:
        lipschitz = c_v * mass + c * inside * (key_radius + augmented) * c_w
    n_q, keys = at.rows, at.seq_len
    targets = (
        Target("score", rows, columns, reach, score.covered, Points(n_q * keys)),
        Target("query", rows, columns, reach, score.covered, Points(n_q)),
        Target("key", columns, rows, reach, score.covered, Points(keys)),
    )
    return _Head(
        count,
        lipschitz,
        b * c_v + offset,
        inside,
        c * inside,
        mass,
        (("W_QK", ns.number(1), targets),),
        value_target,
        offset_covered,
    )


def _split_head(layer: Attention, at: Context, head: int | None, count: int) -> _Head:
    ns, b = at.ns, at.radius
    assert layer.d_head is not None  # noqa: S101 - validated by Attention
    tau = _temperature(layer, at)
    zero = ns.number(0)
    q = at.weights.matrix("W_Q", layer.block, head, layer.d, layer.d_head)
    k = at.weights.matrix("W_K", layer.block, head, layer.d, layer.d_head)
    b_q, b_q_covered = at.weights.vector("b_Q", layer.block, head) if layer.qk_bias else (zero, zero)
    b_k, b_k_covered = at.weights.vector("b_K", layer.block, head) if layer.qk_bias else (zero, zero)
    offset, offset_covered = at.weights.vector("b_V", layer.block, head) if layer.v_bias else (zero, None)
    q_radius, k_radius = b * q.whole.op + b_q, b * k.whole.op + b_k
    c, mass = normaliser_constants(layer.normaliser, tau, q_radius * k_radius, at)
    value, value_target = _value(layer, at, head, mass)
    inside = b * value.whole.op if layer.normaliser.name == "softmax" else b * value.whole.op + offset
    lipschitz = value.whole.op * mass + c * inside * (q.whole.op * k_radius + q_radius * k.whole.op)
    scores: list[tuple[str, Number, Target | tuple[Target, ...]]] = [
        ("W_Q", k_radius, Target("map", layer.d, layer.d_head, b, q.covered, Points(at.rows))),
        ("W_K", q_radius, Target("map", layer.d, layer.d_head, b, k.covered, Points(at.seq_len))),
    ]
    if layer.qk_bias:
        scores.append(("b_Q", k_radius, vector_target(ns, "vector", layer.d_head, b_q_covered)))
        scores.append(("b_K", q_radius, vector_target(ns, "vector", layer.d_head, b_k_covered)))
    value_radius = b * value.whole.op + offset
    return _Head(count, lipschitz, value_radius, inside, c * inside, mass, tuple(scores), value_target, offset_covered)


def _fixed_head(layer: Attention, at: Context, head: int | None, count: int) -> _Head:
    """S5: scores <q, x_t>/tau are one linear map with d weights; all rows of the output are the same."""
    ns, b = at.ns, at.radius
    tau = _temperature(layer, at)
    query = at.weights.matrix("q", layer.block, head, layer.d, 1)
    length = query.whole.op
    c, mass = normaliser_constants(layer.normaliser, tau, b * length, at)
    value, value_target = _value(layer, replace(at, rows=1), head, mass)
    c_v = value.whole.op
    offset, offset_covered = at.weights.vector("b_V", layer.block, head) if layer.v_bias else (ns.number(0), None)
    name = layer.normaliser.name
    inside = b * c_v if name == "softmax" else b * c_v + offset
    sharp = layer.cap is None and (name == "softmax" or (name == "softmax1" and not layer.v_bias))
    if sharp and "L7" not in at.published:
        lipschitz = c_v * ns.sqrt(1 + (b * length / tau) ** 2)
    else:
        lipschitz = c_v * mass + c * inside * length
    target = Target("map", layer.d, 1, b, query.covered, Points(at.seq_len))
    scores: tuple[tuple[str, Number, Target | tuple[Target, ...]], ...] = (("q", ns.number(1), target),)
    return _Head(count, lipschitz, b * c_v + offset, inside, c * inside, mass, scores, value_target, offset_covered)


def _gated(layer: GatedFeedForward, at: Context) -> Facts:
    """L9."""
    ns, b = at.ns, at.radius
    w1, w2, w3 = (
        at.weights.matrix(kind, layer.block, None, *shape)
        for kind, shape in (
            ("W_1", (layer.d, layer.d_ff)),
            ("W_2", (layer.d_ff, layer.d)),
            ("W_3", (layer.d, layer.d_ff)),
        )
    )
    stretch = ns.number(ACTIVATION_LIPSCHITZ[layer.activation])
    c1, c2, c3 = w1.whole.op, w2.whole.op, w3.whole.op
    gate, value = b * c1, b * c3
    inner = b**2 * c1 * c3
    steep = b * c1 * c3 * c2 * (1 + stretch)
    offsets: list[Slot] = []
    radius = inner * c2
    if layer.bias:
        (b1, near1), (b3, near3), (b2, near2) = (at.weights.vector(kind, layer.block) for kind in ("b_1", "b_3", "b_2"))
        gate, value = gate + b1, value + b3
        inner = gate * value
        steep = c2 * (stretch * c1 * value + gate * c3)
        radius = inner * c2 + b2
        offsets = [
            _offset_slot("b_1", stretch * value * c2, layer.d_ff, near1, at),
            _offset_slot("b_3", gate * c2, layer.d_ff, near3, at),
            _offset_slot("b_2", ns.number(1), layer.d, near2, at),
        ]

    def slot(kind: str, sensitivity: Number, d: int, k: int, radius: Number, matrix: Matrix) -> Slot:
        return Slot(kind, sensitivity, (Member(1, (Target("map", d, k, radius, matrix.covered, Points(at.rows)),)),))

    slots = (
        slot("W_1", stretch * value * c2, layer.d, layer.d_ff, b, w1),
        slot("W_3", gate * c2, layer.d, layer.d_ff, b, w3),
        slot("W_2", ns.number(1), layer.d_ff, layer.d, inner, w2),
    )
    return Facts(radius, steep, (*slots, *offsets), ("L9", "T8") if layer.bias else ("L9",))


def _embedding(layer: Embedding, at: Context) -> Facts:
    """T10."""
    ns, one = at.ns, at.ns.number(1)
    slots: list[Slot] = []
    radius = at.radius
    if layer.vocabulary:
        row, covered = at.weights.row("embedding")
        radius = row
        points = Points(at.seq_len, layer.vocabulary)
        slots.append(Slot("embedding", one, (Member(1, _table(ns, layer.vocabulary, layer.d, covered, points, at)),)))
    if layer.positions == "fixed":
        radius = radius + ns.number(layer.position_radius)
    elif layer.positions == "learned":
        row, covered = at.weights.row("positions")
        radius = radius + row
        points = Points(at.seq_len, at.seq_len)
        norms = MatrixNorms(covered, covered, covered, covered, covered, covered, layer.d)
        slots.append(Slot("positions", one, (Member(1, (Target("table", at.seq_len, layer.d, one, norms, points),)),)))
    if layer.segments:
        row, covered = at.weights.row("segments")
        radius = radius + row
        points = Points(at.seq_len, layer.segments)
        norms = MatrixNorms(covered, covered, covered, covered, covered, covered, layer.d)
        table = Target("table", layer.segments, layer.d, one, norms, points)
        slots.append(Slot("segments", one, (Member(1, (table,)),)))
    return Facts(radius, one, tuple(slots), ("T10",))


def _table(ns: NumberSystem, rows: int, d: int, covered: Number, points: Points, at: Context) -> tuple[Target, ...]:
    norms = MatrixNorms(covered, covered, covered, covered, covered, covered, d)
    table = Target("table", rows, d, ns.number(1), norms, points)
    budget = at.weights.budget("embedding")
    part = budget.distance or budget
    if part.two_one is None and part.fro is None:
        return (table,)
    matrix = at.weights.matrix("embedding", None, None, rows, d)
    return table, Target("map", rows, d, ns.number(1), matrix.covered, points)


def _pool(layer: Pool, at: Context) -> Facts:
    """Selecting or averaging rows neither stretches nor enlarges."""
    del layer
    return Facts(at.radius, at.ns.number(1))


_RULES: dict[type[Layer], Callable[[Any, Context], Facts]] = {
    Linear: _linear,
    Activation: _activation,
    Ball: _ball,
    SoftCap: _softcap,
    LayerNorm: _layernorm,
    Attention: _attention,
    GatedFeedForward: _gated,
    Embedding: _embedding,
    Pool: _pool,
}


def register_rule(cls: type[Layer], rule: Callable[[Any, Context], Facts]) -> None:
    """The rule of a further class of layers: a layer and where it stands to its facts. One class has one rule."""
    if cls in _RULES:
        raise InvalidSetting(f"layer {cls.label!r} has a rule already")
    _RULES[cls] = rule
