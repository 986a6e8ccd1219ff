"""G14: a level of a uniform chain sees a map through bounded noise instead of a cover.

At level j a map W is seen as V_j = W + (eps_j/b) u, u the noise of T11-T14 with exponent a_j, drawn anew for every level. What
levels 1..j tell of W together is at most the divergence of Gaussian noise of variance 1/(sum of precisions) from a law fixed
in advance (V1-V3), and per level how much less entropy u has than a Gaussian of its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from boundcalc.base.errors import Refusal
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting.validate import shown
from boundcalc.statements.covers.base import Params
from boundcalc.statements.covers.noise import KEPT, LARGEST_SIDE, RANGES, is_number, noise
from boundcalc.statements.noises import GaussianNoise, Noise, StudentNoise
from boundcalc.statements.targets import Target

MAPS = frozenset({"map", "query"})
"""Matrices that are seen in spectral norm: any law that noise is compared with will do."""
PARTS = frozenset({"vector", "gain", "table"})
"""What is seen part by part, each in its own norm: the Gaussian law (V1) alone."""


class Shape(NamedTuple):
    """Noise of a target: `copies` independent ones on the spectral ball of d x k."""

    d: int
    k: int
    copies: int


def shape(target: Target) -> Shape:
    """A row of a table and an offset have the l2 ball, a coordinate of a gain an interval."""
    if target.kind == "gain":
        return Shape(1, 1, target.k)
    if target.kind in PARTS:
        return Shape(1, target.k, target.d)
    return Shape(target.d, target.k, 1)


def seen(target: Target) -> bool:
    """Whether a target may be seen through channels at all."""
    return target.kind in MAPS | PARTS and min(target.d, target.k) <= LARGEST_SIDE


def refuses(law: Noise, target: Target) -> Refusal | None:
    """Why a target cannot be seen through a channel whose outputs are compared with a law, or None."""
    name = f"{law.name} of a channel"
    if target.kind not in MAPS | PARTS:
        return Refusal(name, f"a {target.kind}", f"a {' or '.join(sorted(MAPS | PARTS))}")
    if target.kind in PARTS and not isinstance(law, GaussianNoise):
        return Refusal(name, f"a {target.kind}", "V1")
    if isinstance(law, StudentNoise) and law.sides(target)[1] == 1:
        return Refusal(name, "one column", "several (V1 is for one)")
    if min(target.d, target.k) > LARGEST_SIDE:
        return Refusal(name, f"{target.d} x {target.k}", f"a side of at most {LARGEST_SIDE}")
    return None


def check_params(law: Noise, params: Params) -> str | None:
    """What is wrong with parameters from a certificate, or None: the exponent of the noise, and those of the law."""
    if "a" not in params:
        return f"a channel takes the exponent a of its noise, got {shown(sorted(params))}"
    low, high = RANGES["a"]
    if not is_number(params["a"], low, high):
        return f"a channel needs {low:g} <= a <= {high:g}, got {params['a']!r}"
    return law.check_params({name: value for name, value in params.items() if name != "a"})


def precision(ns: NumberSystem, sides: Shape, a: float) -> Number:
    """1/(variance of an entry of u): an entry has the mean square 1/(d + k + 1 + 2a)."""
    return ns.number(sides.d + sides.k + 1) + 2 * ns.number(a)


def excess(ns: NumberSystem, sides: Shape, a: float) -> Number:
    """How much less entropy the noise has than a Gaussian of the same variance, at most: its divergence from that."""
    key = ns.name, sides, a
    if key in _KNOWN:
        return _KNOWN[key]
    n = ns.number(sides.d * sides.k)
    gaussian = n / 2 * (1 + ns.log(2 * ns.pi / precision(ns, sides, a)))
    found = sides.copies * (gaussian - noise(ns, sides.d, sides.k, a).entropy)
    if ns.name in KEPT:
        _KNOWN[key] = found
    return found


_KNOWN: dict[tuple[str, Shape, float], Number] = {}


class Heard(NamedTuple):
    """What levels so far have of a map: the sum of precision/eps^2, and what their noise lacks of a Gaussian's entropy."""

    total: Number
    lacking: Number


def heard(ns: NumberSystem, target: Target, a: float, log_eps: float, before: Heard | None = None) -> Heard:
    """With one level more."""
    sides = shape(target)
    total, lacking = precision(ns, sides, a) * ns.exp(-2 * ns.number(log_eps)), excess(ns, sides, a)
    return Heard(total, lacking) if before is None else Heard(before.total + total, before.lacking + lacking)


def told(ns: NumberSystem, law: Noise, target: Target, so_far: Heard, params: Params) -> Number:
    """I_j: what the levels so far tell together of a map, compared with a law of these parameters."""
    return so_far.lacking + law.missed(ns, law.reach(target) * ns.sqrt(so_far.total), *law.sides(target), params)


def information(
    ns: NumberSystem, law: Noise, target: Target, noises: Sequence[tuple[float, float]], params: Params
) -> Number:
    """I_j of levels with the noises (a, log eps)."""
    so_far = None
    for a, log_eps in noises:
        so_far = heard(ns, target, a, log_eps, so_far)
    return ns.number(0) if so_far is None else told(ns, law, target, so_far, params)
