"""L5, L10 and T9: LayerNorm, or RMSNorm without centring."""

from __future__ import annotations

from typing import Any

from flint import arb

from boundcalc.base.errors import InvalidSetting, Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import LayerNorm
from boundcalc.statements.layers import asked
from boundcalc.statements.slots import Context, Facts, LayerRule, Member, Said, Slot, Values, offset_slot, vector_target

_ROUNDING = 1e-9
"""A limit that is met up to rounding is met, in every number system alike."""


def _facts(layer: LayerNorm, at: Context) -> Facts:
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


def _reach(layer: LayerNorm, at: Context) -> arb:
    """L5; a centred row of width 1 is zero."""
    d, radius = arb(layer.d), at.radius
    reach = radius * (d / (radius**2 + d * arb(layer.eps))).sqrt() if layer.eps else d.sqrt()
    reach = arb(0) if layer.centred and layer.d == 1 else reach
    if layer.gain:
        gain = at.weights.gain(f"{layer.kind}.gain", layer.block)[0]
        reach = reach * (1 + gain if layer.around_one else gain)
    return reach + at.weights.vector(f"{layer.kind}.offset", layer.block)[0] if layer.offset else reach


def _value(
    ns: NumberSystem, beta: Number, d: int, gain: Number, offset: Number, eps: float, variance_floor: float = 0.0
) -> Values:
    layer = LayerNorm("norm", d, eps, offset=True, variance_floor=variance_floor)
    fact = asked(ns, layer, beta, {"norm.gain": gain, "norm.offset": offset})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


def _smooth(eps: float, variance_floor: float = 0.0) -> Refusal | None:
    if eps + variance_floor > 0:
        return None
    return Refusal("L5", "eps = 0 and no variance floor", "eps > 0, or a variance the class guarantees")


def _around_one(ns: NumberSystem, beta: Number, d: int, gain: Number, eps: float) -> Values:
    """By the largest entry of w, where the gain is 1 + w."""
    fact = asked(ns, LayerNorm("norm", d, eps, centred=False, around_one=True), beta, {"norm.gain": gain})
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


RULE = LayerRule(
    LayerNorm,
    _facts,
    noise=lambda layer: not layer.around_one,
    reach=_reach,
    says=lambda: {"L5": Said(_value, _smooth), "L10": Said(_around_one)},
)
