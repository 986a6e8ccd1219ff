"""F0 to F3 and R1: from the values of explicit members to a number that every valid bound of gap or risk reaches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import flint
from flint import arb

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.statements.floors.base import Construction, Room

LEAST_PAIRS = 4
CELLS = 500
"""Steps of the sums of F2."""
_REACH, _ALL = 6, 0.99
"""Where the last step begins: in deviations of a coordinate, and at most."""
_LENGTHS = (1.0, 1.2, 1.4, 1.6)
"""Lengths of a Gaussian vector that F2 tries, in deviations above the mean."""
_STRICT = 1e-9
_MOST_EXACT = 400
"""R1: cells for which the unseen ones are counted exactly; of more by their mean and variance."""
_MANY = 100
"""From so many expected hits of a cell on, Stirling's formula stands for the factorials; which loses less than
1e-13."""
_MAY_FAIL = 0.01
"""F3: the chance that the numbers of examples in the pairs are spread unusually."""
_BERRY_ESSEEN = 0.56
_STEPS = 128
"""F3: quantiles of the normal law that are tried, from 0 to 4."""


def tail(ns: NumberSystem, spread: Number, m: Number, delta: Number) -> Number:
    """F0: how far a supremum that moves by at most spread/m an example may be below its mean with probability delta."""
    cantelli = spread / 2 * ns.sqrt(delta / ((1 - delta) * m))
    mcdiarmid = spread * ns.sqrt(-ns.log1p(-delta) / (2 * m))
    return ns.minimum(cantelli, mcdiarmid)


def _mean_deviation(ns: NumberSystem, m: int, cells: int) -> Number:
    """E |Bin(m, 1/N)/m - 1/N| by De Moivre's formula."""
    v = m // cells + 1
    if v > _MANY:
        log = _log_chance(ns, m, v, cells)
    else:
        log = ns.lgamma(ns.number(m + 1)) - ns.lgamma(ns.number(v + 1)) - ns.lgamma(ns.number(m - v + 1))
        log = log - v * ns.log(ns.number(cells)) + (m - v) * ns.log1p(-1 / ns.number(cells))
    log = log + ns.log1p(-1 / ns.number(cells))
    return 2 * v * ns.exp(log) / m


def _log_chance(ns: NumberSystem, m: int, v: int, cells: int) -> Number:
    """A little below log P(Bin(m, 1/N) = v), by Stirling's formula, without factorials that cancel."""
    more = v * cells - m  # v/m is 1/N times 1 + more/m
    apart = v * ns.log1p(ns.number(more) / m) + (m - v) * ns.log1p(-ns.number(more) / (m * (cells - 1)))
    rest = _stirling(ns, m) - _stirling(ns, v) - _stirling(ns, m - v) - 1 / (1260 * ns.number(v) ** 5)
    return rest - 1 / (1260 * ns.number(m - v) ** 5) - apart - ns.log(2 * ns.pi * v * ns.number(m - v) / m) / 2


def _stirling(ns: NumberSystem, n: int) -> Number:
    """What log n! is above (n + 1/2) log n - n + log(2 pi)/2, from below; from above with 1/(1260 n^5) added."""
    return 1 / ns.number(12 * n) - 1 / (360 * ns.number(n) ** 3)


def _two_values(ns: NumberSystem, cells: int, high: Number, low: Number, m: int, delta: Number) -> Number:
    """F1: members for every choice of high and low losses on equally likely cells; the floor of the gap."""
    drop = high - low
    return drop / 2 * cells * _mean_deviation(ns, m, cells) - tail(ns, drop, ns.number(m), delta)


def opposite(
    ns: NumberSystem, pairs: int, high: Number, low: Number, loose: Number, m: int, delta: Number
) -> Number | None:
    """F3: members for every choice of the cell of each pair with the high loss; None without a floor.

    Args:
        ns: number system.
        pairs: N, equally likely.
        high: losses are at least this where they are high.
        low: losses are at most this where they are low.
        loose: how much higher, or lower, they may be.
        m: samples.
        delta: failure probability of the bound.
    """
    n, mean, may_fail = ns.number(pairs), ns.number(m) / pairs, ns.number(_MAY_FAIL)
    two = 2 / ns.pi
    variance = (1 - two) * m - 2 * n / 5
    if not bool(variance > 0):
        return None
    spread = n + ns.sqrt(2 * n * (1 / may_fail - 1))
    fourth = (3 - 2 * two - 3 * two**2) * mean * (m + spread) + ns.number(m) / 2
    chance = (delta / (1 - may_fail) + ns.number(_BERRY_ESSEEN) * ns.sqrt(fourth) / variance) * (1 + _STRICT)
    least, most = -1, _STEPS  # the largest step whose tail is above the chance
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if bool(_tail(ns, ns.number(4 * middle) / _STEPS) > chance) else (least, middle)
    if least < 0:
        return None
    lengths = ns.sqrt(two) * mean / ns.sqrt(mean + ns.number(2) / 3) * (n - spread / (2 * mean + ns.number(4) / 3))
    total = lengths + ns.number(4 * least) / _STEPS * ns.sqrt(variance)
    return ((high - low) * total - loose * ns.sqrt(m * spread)) / (2 * m)


def _tail(ns: NumberSystem, z: Number) -> Number:
    """Below the chance that a standard Gaussian exceeds z >= 0 (Boyd)."""
    mills = ns.pi / ((ns.pi - 1) * z + ns.sqrt(z**2 + 2 * ns.pi))
    return ns.exp(-(z**2) / 2) / ns.sqrt(2 * ns.pi) * mills


def sphere(
    ns: NumberSystem,
    pairs: int,
    odd: Callable[[Number], Number],
    slope: Number,
    m: int,
    delta: Number,
    cells: int = CELLS,
) -> Number:
    """F2: members f_w, |w| <= 1, with losses lambda(+-w_j) on pairs of cells; the floor, 0 where it is less.

    Args:
        ns: number system.
        pairs: n, at least 4 and even.
        odd: psi(t) = (lambda(-t) - lambda(t))/2 at t >= 0, non-decreasing.
        slope: a Lipschitz constant of lambda.
        m: samples.
        delta: failure probability of the bound.
        cells: steps of the sums.
    """
    n, mean = ns.number(pairs), ns.number(m) / pairs
    short, bent, even = _bends(ns, pairs, odd, slope, cells)
    roots, directions = 1 - (1 - 1 / n) / (2 * mean), slope - short
    if not (bool(roots > 0) and bool(directions > 0)):
        return ns.number(0)
    main = ns.sqrt(mean) * roots * directions
    coupled = ns.minimum(n, 2 * slope * ns.sqrt(n))
    best = ns.number(0)
    for above in _LENGTHS:
        a = ns.sqrt(n) + ns.number(above) / ns.sqrt(ns.number(2))
        room = main - 3 * a / 8
        if not bool(room > 0):
            continue
        spread = mean * bent + ns.number(1) / 4
        long = _chance_of_length(ns, pairs, a) - _chance_of_length(ns, pairs, 2 * a)
        may_fail = 1 - spread / (spread + room**2) - delta * (1 + _STRICT) / long
        if bool(may_fail > 0):
            variance = a**2 * mean * bent + (a / 2 + ns.sqrt(m * even)) ** 2
            less = ns.sqrt(variance * (1 / may_fail - 1))
            best = ns.maximum(best, (a * main - less - a**2 / 8 - coupled) / m)
    return best


def _chance_of_length(ns: NumberSystem, n: int, a: Number) -> Number:
    """The chance that n standard Gaussians, n even, are at least a long: a Poisson sum."""
    y = a**2 / 2
    term = ns.exp((n // 2 - 1) * ns.log(y) - y - ns.lgamma(ns.number(n // 2)))
    total = ns.number(0)
    for k in range(n // 2 - 1, -1, -1):
        total = total + term
        term = term * k / y
    return total


def _bends(
    ns: NumberSystem, pairs: int, odd: Callable[[Number], Number], slope: Number, cells: int
) -> tuple[Number, Number, Number]:
    """Above n E[w b(w)], n E[(w b(w))^2] and E[b(w)^2], b(t) = L t - psi(t), w = |a coordinate of a unit vector|.

    b rises, as L is psi's largest slope, and the density of w falls.
    """
    n = ns.number(pairs)
    most = 2 * ns.exp(ns.lgamma(n / 2) - ns.lgamma((n - 1) / 2)) / ns.sqrt(ns.pi)
    reach = ns.minimum(ns.number(_ALL), ns.number(_REACH) / ns.sqrt(n))
    step, power = reach / cells, (n - 3) / 2
    first, second, even = ns.number(0), ns.number(0), ns.number(0)
    density = most  # at the lower end of a step
    for k in range(1, cells + 2):
        t, width = (k * step, step) if k <= cells else (ns.number(1), 1 - reach)  # at last all that is left
        bend, mass = slope * t - odd(t), density * width
        off = bend * bend * mass  # no power: a ball around 0 has none
        first, second, even = first + t * bend * mass, second + t * t * off, even + off
        density = most * ns.exp(power * ns.log1p(-(t**2))) if k <= cells else most
    return n * first, n * second, even


def drop(room: Room, construction: Construction) -> tuple[Number, Number]:
    """Ramp losses on cells of sign -1 and +1."""
    return room.ramp(construction.output(room, -1)), room.ramp(construction.output(room, 1))


def gap_floor(room: Room, construction: Construction, by: str, cells: int = CELLS) -> Number | None:
    """The floor of a construction for a setting's sample; None where `by` is not about it.

    Args:
        room: the setting.
        construction: whose parameters fit it.
        by: "F1", "F2", "F3" (of the ramp loss on the law less on the sample), or "F1-errors", "F3-errors" (errors on
            the law less the ramp loss on the sample).
        cells: steps of the sums of F2.
    """
    ns, sample = room.ns, room.setting.sample
    m, delta = sample.n_train, ns.number(sample.delta)
    if by == "F2":
        curve = construction.sphere(room)
        if curve is None or curve.pairs < LEAST_PAIRS or curve.pairs % 2:
            return None

        def odd(t: Number) -> Number:
            return (room.ramp(curve.output(-curve.radius * t)) - room.ramp(curve.output(curve.radius * t))) / 2

        return sphere(ns, curve.pairs, odd, curve.slope * curve.radius / room.gamma, m, delta, cells)
    n = construction.cells(room)
    if n < 2 or (by.endswith("errors") and not errs(room, construction)):
        return None
    high, low = drop(room, construction)
    if by.startswith("F1"):
        return _two_values(ns, n, high, low, m, delta)
    if not construction.mirrored(room):
        return None
    further = [room.ramp(construction.furthest(room, sign)) for sign in (1, -1)]
    return opposite(ns, n, high, low, ns.maximum(low - further[0], further[1] - high), m, delta)


def errs(room: Room, construction: Construction, *, strictly: bool = False) -> bool:
    """Whether members err on cells of sign -1 and have the margin on the others (more than the margin)."""
    high = construction.output(room, 1)
    has = bool(high > room.gamma) if strictly else bool(high >= room.gamma)
    return has and bool(construction.output(room, -1) <= 0)


def risk_floor(room: Room, construction: Construction) -> arb | None:
    """R1: cells of small chance that the sample misses, on which a member errs; None where members do not err."""
    if not errs(room, construction, strictly=True):
        return None
    m, rare, delta = room.setting.sample.n_train, construction.cells(room) - 1, arb(room.setting.sample.delta)
    best = arb(0)
    for tenth in range(3, 20) if rare <= _MOST_EXACT else (10,):
        if rare * tenth >= 10 * m:
            continue
        with flint.ctx.workprec(2 * rare + 128 if rare <= _MOST_EXACT else flint.ctx.prec):
            chance = arb(tenth) / (10 * m)
            missed = [(m * (-j * chance).log1p()).exp() for j in range(1, rare + 1 if rare <= _MOST_EXACT else 2)]
            if rare <= _MOST_EXACT:
                unseen = arb(_most_unseen(rare, missed, delta))
            else:
                unseen = rare * missed[0] - (rare * missed[0] * delta / (1 - delta)).sqrt()
            best = best.max(unseen * chance)
    return best


def _most_unseen(rare: int, missed: Sequence[arb], delta: arb) -> int:
    """The largest r such that r cells or more are unseen with a chance above delta (inclusion and exclusion).

    Args:
        rare: how many cells there are.
        missed: the chance that 1, 2, ... named cells are unseen.
        delta: the chance to exceed.
    """
    some = [math.comb(rare, j) * share for j, share in enumerate(missed, start=1)]
    low, high = 0, rare + 1
    while high - low > 1:
        r = (low + high) // 2
        terms = [(-1) ** (j - r) * math.comb(j - 1, r - 1) * some[j - 1] for j in range(r, rare + 1)]
        low, high = (r, high) if bool(sum(terms, start=arb(0)) > delta) else (low, r)
    return low
