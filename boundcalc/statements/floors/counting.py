"""F0, F1 and F2: from the values of explicit members to a number that every valid bound of the gap reaches."""

from __future__ import annotations

from collections.abc import Callable

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.floors.base import Construction, Room

LEAST_PAIRS = 4
CELLS = 600
"""Steps of the lower sum of F2."""


def tail(ns: NumberSystem, spread: Number, m: Number, delta: Number) -> Number:
    """F0: how far a supremum that moves by at most spread/m an example may be below its mean with probability delta."""
    cantelli = spread / 2 * ns.sqrt(delta / ((1 - delta) * m))
    mcdiarmid = spread * ns.sqrt(-ns.log1p(-delta) / (2 * m))
    return ns.minimum(cantelli, mcdiarmid)


def mean_deviation(ns: NumberSystem, m: int, cells: int) -> Number:
    """E |Bin(m, 1/N)/m - 1/N| by De Moivre's formula."""
    v = m // cells + 1
    log = ns.lgamma(ns.number(m + 1)) - ns.lgamma(ns.number(v + 1)) - ns.lgamma(ns.number(m - v + 1))
    log = log - v * ns.log(ns.number(cells)) + (m - v + 1) * ns.log1p(-1 / ns.number(cells))
    return 2 * v * ns.exp(log) / m


def two_values(ns: NumberSystem, cells: int, high: Number, low: Number, m: int, delta: Number) -> Number:
    """F1: members for every choice of high and low losses on equally likely cells; the floor of the gap."""
    drop = high - low
    return drop / 2 * cells * mean_deviation(ns, m, cells) - tail(ns, drop, ns.number(m), delta)


def sphere(
    ns: NumberSystem,
    pairs: int,
    odd: Callable[[Number], Number],
    slope: Number,
    radius: Number,
    m: int,
    delta: Number,
    cells: int = CELLS,
) -> Number:
    """F2: members f_w, |w| <= radius, with losses lambda(+-w_j) on pairs of cells.

    Args:
        ns: number system.
        pairs: n, at least 4.
        odd: psi(t) = (lambda(-t) - lambda(t))/2 at t >= 0, non-decreasing.
        slope: a Lipschitz constant of lambda.
        radius: of w.
        m: samples.
        delta: failure probability of the bound.
        cells: steps of the lower sum.
    """
    n, mean = ns.number(pairs), ns.number(m) / pairs
    log_chi = ns.lgamma((n + 1) / 2) - ns.lgamma(n / 2)
    chi = ns.sqrt(ns.number(2)) * ns.exp(log_chi)
    root_pi = ns.sqrt(ns.pi)
    first = 1 / (root_pi * ns.exp(log_chi))  # E|omega| = Gamma(n/2) / (sqrt(pi) Gamma((n+1)/2))
    third = first * 2 / (n + 1)  # E|omega|^3 = Gamma(n/2) Gamma(2) / (sqrt(pi) Gamma((n+3)/2))
    moment = _moment(ns, pairs, lambda t: odd(radius * t), cells)
    gain = ns.sqrt(mean) * (1 - (1 - 1 / n) / (2 * mean)) * chi * moment
    loss = n * slope * radius * (2 * first + n / 4 * third)
    return (gain - loss) / m - tail(ns, ns.number(1), ns.number(m), delta)


def _moment(ns: NumberSystem, pairs: int, odd: Callable[[Number], Number], cells: int) -> Number:
    """Below n E[omega psi(omega)] for a coordinate of a uniform unit vector: t psi(t) rises, the density falls."""
    n = ns.number(pairs)
    density = ns.exp(ns.lgamma(n / 2) - ns.lgamma((n - 1) / 2)) / ns.sqrt(ns.pi)
    reach = ns.minimum(ns.number(1), ns.number(4.5) / ns.sqrt(n))
    step, power = reach / cells, (n - 3) / 2
    total = ns.number(0)
    for k in range(1, cells - 1):
        t = k * step
        total = total + t * odd(t) * ns.exp(power * ns.log1p(-(((k + 1) * step) ** 2)))
    return 2 * n * density * step * total


def drop(room: Room, construction: Construction) -> tuple[Number, Number, bool]:
    """Ramp losses on cells of sign -1 and +1, and whether members err on the first and have the margin on the others."""
    high, low = construction.output(room, 1), construction.output(room, -1)
    errs = bool(low <= 0) and bool(high >= room.gamma)
    return room.ramp(low), room.ramp(high), errs


def gap_floor(room: Room, construction: Construction, by: str, cells: int = CELLS) -> Number | None:
    """The floor of a construction for a setting's sample; None where `by` is not about it.

    Args:
        room: the setting.
        construction: whose parameters fit it.
        by: "F1", "F2" (of the ramp loss on the law less on the sample) or "F1-errors" (errors on the law less the ramp loss
            on the sample).
        cells: steps of the lower sum of F2.
    """
    ns, sample = room.ns, room.setting.sample
    m, delta = sample.n_train, ns.number(sample.delta)
    if by == "F2":
        found = construction.sphere(room)
        if found is None or found[0] < LEAST_PAIRS:
            return None
        pairs, output, steep, radius = found

        def odd(t: Number) -> Number:
            return (room.ramp(output(-t)) - room.ramp(output(t))) / 2

        return sphere(ns, pairs, odd, steep / room.gamma, radius, m, delta, cells)
    high, low, errs = drop(room, construction)
    if by == "F1-errors" and not errs:
        return None
    return two_values(ns, construction.cells(room), high, low, m, delta)
