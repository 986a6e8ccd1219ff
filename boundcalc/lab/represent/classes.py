"""Norm budgets in which every function of a class has a certified representation, at every place it may hide.

The encoding, beta and hidden units are fixed once for s, T and the class; only the vectors that read the chosen positions,
and which units are used, depend on the function. What follows for all of them is proved in docs/representation.md and
tested on constructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.construct import Construction, build, literal_signs, threshold_units, usable
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import block_layers, read_layers
from boundcalc.lab.represent.positions import Positions
from boundcalc.lab.represent.represent import GAMMA, positions_for
from boundcalc.lab.represent.selection import AnySelection, Selected, Selection
from boundcalc.lab.represent.tune import Cases, Choice, Tuner, value_sizes
from boundcalc.lab.represent.units import MOST_CORNERS, Units, corner_units, corners, ramp_units
from boundcalc.norms.limits import every, explicit
from boundcalc.norms.matrix import Measured
from boundcalc.setting import Architecture, Norms, Sample, Setting
from boundcalc.setting.validate import choice, size

_MOST_SYMMETRIC = 512


def _guard(s: int) -> float:
    """Readers and units are rounded to 26 bits and budgets computed in floats: this is more than both can matter.

    Sums over ramps that alternate in sign (parity) lose about 1e-9 s^2 of their value.
    """
    return 1 + 1e-6 + 4e-9 * s * s


@dataclass(frozen=True)
class FunctionClass:
    """A class of s-sparse functions.

    Attributes:
        title: a few words.
        by_mean: whether it is represented by the mean of the literals.
        signed: whether inputs may count negated.
        log2_rules: (s) -> log_2 of at least the number of functions on given bits.
        most: largest s offered, and why no larger.
    """

    title: str
    by_mean: bool
    signed: bool
    log2_rules: Callable[[int], float]
    most: int
    why: str


_TABLE = "norms and hidden units grow like 2^s"
_KNOTS = "hidden units grow like s and norms like s^3"
CLASSES: dict[str, FunctionClass] = {
    "any": FunctionClass("any function of s bits", False, True, lambda s: 2.0**s, MOST_CORNERS, _TABLE),
    "symmetric": FunctionClass(
        "symmetric functions of s bits", True, False, lambda s: s + 1.0, _MOST_SYMMETRIC, _KNOTS
    ),
    "threshold": FunctionClass(
        "at least h of s bits, or not", True, False, lambda s: 1 + math.log2(s), _MOST_SYMMETRIC, _KNOTS
    ),
    "signed-symmetric": FunctionClass(
        "symmetric functions of s bits or negated bits", True, True, lambda s: 2.0 * s + 1, _MOST_SYMMETRIC, _KNOTS
    ),
    "signed-threshold": FunctionClass(
        "at least h of s bits or negated bits, or not",
        True,
        True,
        lambda s: s + 1 + math.log2(s),
        _MOST_SYMMETRIC,
        _KNOTS,
    ),
}


@dataclass(frozen=True)
class ClassBudgets:
    """Norms that suffice for every function of a class.

    Attributes:
        name: of the class.
        s: bits that matter.
        positions: of the encoding.
        choice: amplitudes, beta, scales and units.
        norms: the budgets, at margin 1.
        width: d, coordinates of a row.
        units: k, hidden units.
    """

    name: str
    s: int
    positions: Positions
    choice: Choice
    norms: Norms
    width: int
    units: int

    def setting(self, **sample: Any) -> Setting:
        """The question what learning takes with these budgets, at margin 1 and training error 0."""
        layers = (*block_layers(self.width, self.units, 1), *read_layers(1))
        architecture = Architecture(seq_len=self.positions.count + 1, layers=layers, input_radius=1.0, depth=1)
        return Setting(architecture, self.norms, Sample(margin=GAMMA, **sample))

    def member(self, function: SparseFunction) -> Construction:
        """A network within these budgets that represents a function of the class with margin at least 1."""
        return _member(self, function)


@lru_cache(maxsize=64)
def class_budgets(
    name: str, s: int, seq_len: int, positions: Literal["orthonormal", "compact"] = "orthonormal"
) -> ClassBudgets:
    """Budgets for a class, at the amplitudes, beta and scales of least closed-form capacity."""
    family = CLASSES[choice("class", name, CLASSES)]
    s, T = size("s", s), size("T", seq_len)
    if s > T:
        raise InvalidSetting(f"s = {s} bits cannot hide among T = {T}: choose s <= T")
    if s > family.most:
        others = "; symmetric and threshold functions are offered for larger s" if name == "any" else ""
        raise InvalidSetting(f"s = {s} is too large for class {name!r}: {family.why}; at most {family.most}{others}")
    where = positions_for(T, s, positions)
    shared = family.by_mean and not family.signed
    view = AnySelection(s, T, where.coherence, shared=shared, by_mean=family.by_mean)
    tuner = Tuner(view, *_parts(name, s))
    guard = _guard(s)
    found = tuner.best()
    found = replace(found, gain=found.gain * guard)
    place, bit, constant = found.place, found.bit, found.constant
    mass = view.gathered(found.beta)[0]
    reading, one = view.reading / (bit * mass), tuner.one(place, constant, found.beta)
    units = found.units
    op, two_one = (found.scale * x * guard for x in tuner.sizes(reading, one, units))
    columns = np.vstack([np.linalg.norm(reading, 2) * units.alpha, one * units.theta])
    fro = found.scale * float(np.linalg.norm(columns)) * guard
    keys = found.beta / place * view.total * guard
    width = where.width + (1 if shared else where.width) + 2
    flat = math.sqrt(s) if where.exact else math.sqrt(where.width)
    w_1 = found.gain * float(np.linalg.norm(units.weight)) * guard
    w_1_flat = found.gain * float(np.abs(units.weight).sum()) * guard
    rank = 1 if "threshold" in name else len(units.alpha) + 1
    across, rows = keys * flat * guard, math.sqrt(width)
    measured = {
        "W_QK[0]": Measured((width, width), keys, keys, across, keys, across, rank=1),
        "W_V[0]": Measured(
            (width, units.count), min(op, fro), fro, two_one, rows * fro * guard, rows * two_one, rank=rank
        ),
        "W_1[0]": Measured((units.count, 1), w_1, w_1, w_1, w_1_flat, w_1_flat, rank=1),
    }
    budgets = {key: every(norms) for key, norms in measured.items()} | {"readout": explicit(np.ones((1, 1)))}
    return ClassBudgets(name, s, where, found, Norms(budgets=budgets), width, units.count)


def _parts(name: str, s: int) -> tuple[Any, Any, Any]:
    """Units, cases and sizes of the value matrix that are worst for the class."""
    if name == "any":
        parity = np.where(corners(s).prod(1) > 0, 1.0, -1.0)
        return (lambda slack, sizes: corner_units(parity, sizes)), _any_corner_cases, _any_corner_sizes
    if "threshold" in name:
        profile = (0,) * s + (1,)  # the line farthest from 0; its mirror image, OR, has the same norms
        fit = lambda slack, sizes: threshold_units(profile, slack)  # noqa: E731
    else:
        profile = tuple(h % 2 for h in range(s + 1))  # parity uses every ramp; other profiles use some of them
        fit = lambda slack, sizes: ramp_units(profile, slack, sizes)  # noqa: E731
    return fit, (lambda units, slack: Cases.of_mean(units, profile, slack)), value_sizes


def _any_corner_cases(units: Units, slack: float) -> Cases:
    """The worst over all functions with at most 2^(s-1) corners of the rarer value.

    At a rare corner its own unit counts for the sign; at another the units of rare corners at distance 1 may be on by
    the slack. The norm is at most that of the 2^(s-1) largest values among all corners', and the constant.
    """
    s = len(units.alpha)
    scale, weight = 2 * abs(units.alpha[0, 0]), abs(units.weight[0])
    constant = units.theta[-1]
    wobble = s * slack / 2
    on = scale * max(0.0, 1 - wobble) * weight - constant * abs(units.weight[-1])
    near = scale * weight * max(0.0, wobble) * s if wobble < 1 else math.inf
    off = constant * abs(units.weight[-1]) - near
    distance = np.repeat(np.arange(s + 1), [math.comb(s, h) for h in range(s + 1)])
    largest = np.sort((scale * (np.abs(1 - distance) + wobble)) ** 2)[::-1][: 1 << (s - 1)]
    norm = math.sqrt(float(largest.sum()) + constant**2)
    return Cases(np.array([on, off]), np.array([norm, norm]))


def _any_corner_sizes(reading: np.ndarray, one: float, units: Units) -> tuple[float, float]:
    """|W_V|_op and |W_V|_21 at most, whatever at most 2^(s-1) corners are used.

    Over all 2^s corners the s rows of bits and the row of ones are orthogonal, so with them all W_V W_V^T would be
    diagonal there, and fewer columns make it no larger.
    """
    s = len(units.alpha)
    slope, offset, constant = abs(units.alpha[0, 0]), abs(units.theta[0]), float(units.theta[-1])
    longest = float(np.linalg.norm(reading, 2))
    all_corners = float(1 << s)
    op = math.sqrt(max(all_corners * (slope * longest) ** 2, (all_corners * offset**2 + constant**2) * one**2))
    column = math.hypot(longest * slope * math.sqrt(s), offset * one)
    count = 1 << (s - 1)
    fro = math.sqrt(count * column**2 + (constant * one) ** 2)
    return min(op, fro), count * column + constant * one


def _member(budgets: ClassBudgets, function: SparseFunction) -> Construction:
    """The class's amplitudes and beta, and those of its units that the function needs."""
    family, found = CLASSES[budgets.name], budgets.choice
    smallest = usable(function, budgets.positions.count)
    selection = Selection(budgets.positions, smallest.variables)
    if smallest.arity != budgets.s:
        raise InvalidSetting(f"the class is of functions of {budgets.s} bits, this one depends on {smallest.arity}")
    if not family.by_mean:
        plain = smallest.tabulated()
        view = Selected(selection, shared=False, signs=None)
        return build(plain, view, "corners", replace(found, units=_used_corners(found.units, plain.table)))
    symmetric = smallest.symmetric
    if symmetric is None or (any(symmetric.negated) and not family.signed):
        raise InvalidSetting(f"{smallest.describe()} is not in the class {budgets.name!r}: {family.title}")
    if "threshold" in budgets.name and symmetric.changes != 1:
        raise InvalidSetting(f"{smallest.describe()} is not in the class {budgets.name!r}: {family.title}")
    view = Selected(selection, shared=not family.signed, signs=literal_signs(smallest))
    if "threshold" in budgets.name:
        middle = next(h for h in range(budgets.s) if symmetric.profile[h] != symmetric.profile[h + 1])
        line = (2 * middle + 1 - budgets.s) / budgets.s
        sign = 1.0 if symmetric.profile[-1] else -1.0
        slope = found.units.alpha[0]
        units = Units(found.units.alpha, -line * slope, sign * np.abs(found.units.weight) * np.sign(slope))
        return build(smallest, view, "threshold", replace(found, units=units))
    kind = "signed mean" if family.signed else "mean"
    return build(smallest, view, kind, replace(found, units=_used_ramps(found.units, symmetric.profile)))


def _used_corners(template: Units, table: tuple[int, ...]) -> Units:
    """The corners of the rarer value, at the template's scales; the constant last."""
    s = len(template.alpha)
    signs = 2.0 * np.asarray(table) - 1
    rare = 1.0 if (signs > 0).sum() <= (signs < 0).sum() else -1.0
    chosen = corners(s)[signs == rare]
    scale, offset = abs(template.alpha[0, 0]), template.theta[0]
    alpha = np.concatenate([chosen.T * scale, np.zeros((s, 1))], axis=1)
    theta = np.concatenate([np.full(len(chosen), offset), template.theta[-1:]])
    weight = np.concatenate([np.full(len(chosen), abs(template.weight[0])), [-abs(template.weight[-1])]])
    return Units(alpha, theta, rare * weight)


def _used_ramps(template: Units, profile: tuple[int, ...]) -> Units:
    """The ramps where the profile changes, rising or falling as it does; the constant last."""
    keep: list[int] = []
    signs: list[float] = []
    for h in range(len(profile) - 1):
        if profile[h] != profile[h + 1]:
            keep += [2 * h, 2 * h + 1]
            signs += [1.0, -1.0] if profile[h + 1] else [-1.0, 1.0]
    keep.append(template.count - 1)
    signs.append(1.0 if profile[0] else -1.0)
    return Units(template.alpha[:, keep], template.theta[keep], np.abs(template.weight[keep]) * np.array(signs))
