"""L: radius, Lipschitz factor and parameter sensitivities of every primitive layer (S: its score covers).

A rule reads a layer, the budgets of its weights and the radius of its input, and says how far its output
reaches, how much it stretches errors of its input, and which maps must be covered (`Slot`s). The metric is the
largest l2 norm of a row. Every rule is one function, generic over the number system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Embedding,
    Experts,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Pool,
    SoftCap,
)
from boundcalc.statements.attention import attention
from boundcalc.statements.hidden import hidden
from boundcalc.statements.lookup import lookup
from boundcalc.statements.slots import Context, Facts, Member, Slot, offset_slot, vector_target
from boundcalc.statements.targets import MatrixNorms, Points, Target
from boundcalc.statements.weights import Matrix

if TYPE_CHECKING:
    from boundcalc.base.cases import Brought

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


_ROUNDING = 1e-9
"""A limit that is met up to rounding is met, in every number system alike."""


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


def _linear(layer: Linear, at: Context) -> Facts:
    """L6, T8."""
    matrix = at.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)
    target = Target("map", layer.d_in, layer.d_out, at.radius, matrix.covered, Points(at.rows))
    slots = [Slot(layer.kind, at.ns.number(1), (Member(1, (target,)),))]
    radius = at.radius * matrix.whole.op
    if layer.bias:
        norm, covered = at.weights.vector(layer.bias, layer.block)
        radius = radius + norm
        slots.append(offset_slot(layer.bias, at.ns.number(1), layer.d_out, covered, at))
    return Facts(radius, matrix.whole.op, tuple(slots), ("L6", "T8") if layer.bias else ("L6",))


def _activation(layer: Activation, at: Context) -> Facts:
    """L3."""
    return Facts(at.radius, at.ns.number(ACTIVATION_LIPSCHITZ[layer.name]), (), ("L3",))


def _hidden(layer: Hidden, at: Context) -> Facts:
    """V4."""
    return hidden(layer, at, ACTIVATION_LIPSCHITZ[layer.activation])


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
        slots.append(offset_slot(kind, ns.number(1), layer.d, covered, at))
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
            offset_slot("b_1", stretch * value * c2, layer.d_ff, near1, at),
            offset_slot("b_3", gate * c2, layer.d_ff, near3, at),
            offset_slot("b_2", ns.number(1), layer.d, near2, at),
        ]

    def slot(kind: str, sensitivity: Number, d: int, k: int, radius: Number, matrix: Matrix) -> Slot:
        return Slot(kind, sensitivity, (Member(1, (Target("map", d, k, radius, matrix.covered, Points(at.rows)),)),))

    slots = (
        slot("W_1", stretch * value * c2, layer.d, layer.d_ff, b, w1),
        slot("W_3", gate * c2, layer.d, layer.d_ff, b, w3),
        slot("W_2", ns.number(1), layer.d_ff, layer.d, inner, w2),
    )
    return Facts(radius, steep, (*slots, *offsets), ("L9", "T8") if layer.bias else ("L9",))


def _experts(layer: Experts, at: Context) -> Facts:
    """L15."""
    one = _gated(GatedFeedForward(layer.d, layer.d_ff, layer.activation, layer.block), at)
    gate = at.weights.matrix("W_gate", layer.block, None, layer.d, layer.experts)
    c = 1 / at.ns.sqrt(at.ns.number(2))
    target = Target("map", layer.d, layer.experts, at.radius, gate.covered, Points(at.rows))
    slots = [Slot("W_gate", c * one.radius, (Member(1, (target,)),), cap=2 * one.radius)]
    for slot in one.slots:
        (member,) = slot.members
        slots.append(replace(slot, members=(replace(member, multiplicity=layer.experts),)))
    stretch = one.lipschitz + c * one.radius * gate.whole.op
    return Facts(one.radius, stretch, tuple(slots), ("L9", "L15"))


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
    Hidden: _hidden,
    SoftCap: _softcap,
    LayerNorm: _layernorm,
    Attention: attention,
    GatedFeedForward: _gated,
    Experts: _experts,
    Embedding: _embedding,
    Lookup: lookup,
    Pool: _pool,
}


_BROUGHT: dict[str, Brought] = {}


def register_rule(cls: type[Layer], rule: Callable[[Any, Context], Facts], cases: Brought) -> None:
    """The rule of a further class of layers: a layer and where it stands to its facts. One class has one rule.

    Args:
        cls: the class.
        rule: its radius, its Lipschitz factor and what must be covered.
        cases: layers with weights and a forward pass (`boundcalc.laws.LayerExample`), what must be refused, and rules that are
            false; or what makes these.

    Raises:
        InvalidSetting: where there is a rule already, or the cases are not complete.
    """
    if cls in _RULES:
        raise InvalidSetting(f"layer {cls.label!r} has a rule already")
    from boundcalc.base.cases import refuse_incomplete

    refuse_incomplete("layer", cls.label, cases)
    _RULES[cls], _BROUGHT[cls.label] = rule, cases


def remove_rule(cls: type[Layer]) -> None:
    """Takes out what was registered."""
    del _RULES[cls], _BROUGHT[cls.label]


def cases_of(label: str) -> Any:
    """What a class of layers was registered with; the library's own are made where they are asked for."""
    brought = _BROUGHT.get(label) or import_module("boundcalc.laws.brought.layers").cases(label)
    from boundcalc.base.cases import complete

    return complete("layer", label, brought)
