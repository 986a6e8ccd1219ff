"""K2: the gap by Gaussian comparison with numbers that a search finds and that are proved here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.comparison.closed import (
    cost_of_sign,
    hoelder,
    hyperbolic,
    kappa,
    mean_of_signs,
    score_complexity,
)
from boundcalc.statements.comparison.network import Network, Sizes, expected_gap, sizes_of
from boundcalc.statements.comparison.series import (
    LARGEST_SCORE,
    MOST_CELLS,
    MOST_ORDERS,
    SMALLEST_CELL,
    Kernel,
    series,
    unproved_kernel,
)

_LARGEST = 1e100
_GRID = 32
"""Values of a block are centred at th/32 of their mean, th = 0..32, whichever is smallest."""


@dataclass(frozen=True)
class Strata:
    """Ranges x_0 < ... < x_K = 1 of the largest column's share, and a bound J of the stretch in each (K2, dominant column)."""

    edges: tuple[float, ...]
    stretch: tuple[float, ...]


@dataclass(frozen=True)
class Tuning:
    """The numbers of a proof by K2. Any that pass the checks are valid.

    Attributes:
        curvature: be, the slope at which 1/Z is linearised.
        split: p, how the remainder is split in two.
        signs: for one sign per example.
        gaussian: for Gaussians over rows; None at depth 1 with the first row read.
        strata: one for every block after the first; None where columns are not told apart.
    """

    curvature: float
    split: float
    signs: Kernel | None
    gaussian: Kernel | None
    strata: tuple[Strata | None, ...] = ()


def stretch_holds(
    ns: NumberSystem, hull: Number, bend: Number, stretch: float, certain: Callable[[Any, Any], bool]
) -> bool:
    """Whether J(S, h) <= stretch: the largest |d (1 + h (phi - mean))| in L2, of weights d within a factor e^S.

    Where phi = 1 has mass x, the square is (B w - A0)/(e^S w^2) with w in [1/(x + (1-x) e^S), 1], A1 = (1 + h(1-x))^2,
    A0 = (1 - hx)^2, B = (x A1 + (1-x) A0)(1 + e^S) - x (A1 - A0): monotone in B and A0, so cells of x have upper ends.
    """
    limit, up = ns.number(stretch) ** 2, ns.exp(hull)
    cells, seen = [(0.0, 1.0)], 0
    while cells:
        a, b = cells.pop()
        seen += 1
        if seen > MOST_CELLS:
            return False
        low, high = ns.number(a), ns.number(b)
        most_one, least_one = (1 + bend * (1 - low)) ** 2, (1 + bend * (1 - high)) ** 2
        left, right = 1 - bend * low, 1 - bend * high
        ends = left * left, right * right
        crosses = bool(bend * low <= 1) and bool(bend * high >= 1)
        least_zero, most_zero = ns.number(0) if crosses else ns.minimum(*ends), ns.maximum(*ends)
        b_most = (high * most_one + (1 - low) * most_zero) * (1 + up) - low * (least_one - most_zero)
        lowest = 1 / (low + (1 - low) * up)
        if bool(2 * least_zero <= b_most * lowest):
            value = (b_most * lowest - least_zero) / (up * lowest**2)
        elif bool(2 * least_zero >= b_most):
            value = (b_most - least_zero) / up
        else:
            value = b_most**2 / (4 * least_zero * up)
        if certain(value, limit):
            continue
        if b - a < SMALLEST_CELL:
            return False
        cells += [(a, (a + b) / 2), ((a + b) / 2, b)]
    return True


@dataclass(frozen=True)
class _Kind:
    """Signs or Gaussians: the factor to Gaussians, what a sign inside and outside of a mean costs, and a centre."""

    factor: Number
    inside: Number
    outside: Number
    centre: Number


def _kinds(ns: NumberSystem, m: Number) -> tuple[_Kind, _Kind]:
    beta = mean_of_signs(ns)
    signs = beta * ns.sqrt(1 + 1 / m)
    gaussian = _Kind(ns.number(1), beta / 2, beta, beta / 2)
    return gaussian, _Kind(ns.sqrt(ns.pi / 2), cost_of_sign(ns, m), (1 + signs) / 2, signs / 2)


def _decoupled(
    ns: NumberSystem, gaussian: Number, plain: Number, hull: Number, half: Number, kind: _Kind, *, inside: bool
) -> Number:
    """The step of a block, values and scores choosing their neurons apart; `plain` is its R (or G) before."""
    beta = mean_of_signs(ns)
    _, sinh = hyperbolic(ns, half)
    scores = kappa(ns, half) * hull * score_complexity(ns, gaussian)
    more, mine = (beta / 2, kind.inside) if inside else (ns.number(0), ns.number(0))
    found: Number = None
    for step in range(_GRID + 1):
        centre = ns.number(step) / _GRID
        spread = gaussian + (beta / 4 if inside and step == _GRID else more)
        value = centre * (plain + mine) + kind.factor * hoelder(
            ns, ns.sqrt(sinh**2 + (1 - centre) ** 2) * spread, scores
        )
        found = value if found is None else ns.minimum(found, value)
    return found


def _apart(ns: NumberSystem, x: Number) -> Number:
    """How much of the scores does not lie on a column of share x."""
    return (1 - x) * ns.sqrt(2 * x**2 + (1 - x) ** 2)


def _step(ns: NumberSystem, gaussian: Number, plain: Number, size: Sizes, kind: _Kind, strata: Strata | None) -> Number:
    """The complexity behind a block, from those before it."""
    hull, half = size.hull, size.half_range
    outside = _decoupled(ns, gaussian, plain, hull, half, kind, inside=False) + kind.outside
    whole = ns.minimum(_decoupled(ns, gaussian, plain, hull, half, kind, inside=True), outside)
    if strata is None:
        return whole
    beta = mean_of_signs(ns)
    first = ns.number(strata.edges[0])
    share = first**2 + (1 - first) ** 2
    least = ns.minimum(half, share * hull / 2)
    worst = ns.sqrt(share) * _decoupled(ns, gaussian, plain, share * hull, least, kind, inside=False)
    for (low, high), stretch in zip(pairwise(strata.edges), strata.stretch, strict=True):
        a, b = ns.number(low), ns.number(high)
        bend = hull * b**2
        own = (ns.number(stretch) + bend / 4) * gaussian
        others = kappa(ns, hull / 2) * hull * _apart(ns, a) * score_complexity(ns, gaussian)
        main = b * kind.factor * hoelder(ns, own, others, bend * beta / 4)
        worst = ns.maximum(worst, ns.sqrt(main**2 + b**2 + (1 - a) ** 2 * (whole**2 + 1)))
    lipschitz = ns.maximum(1 - first / 2, ns.sqrt(share) / 2)
    classes = ns.number(2 * len(strata.edges))
    union = lipschitz * ns.sqrt(2 * ns.log(classes))
    return ns.minimum(whole, worst + union + kind.centre)


def sharp(ns: NumberSystem, network: Network, tuning: Tuning, steep: Number, m: Number) -> Number:
    """K2: above E sup (P - P_m) loss, given complexities of block 1 and strata that `problem` has accepted."""
    columns = any(strata is not None for strata in tuning.strata)
    sizes = sizes_of(ns, network, columns=columns)
    of_rows, of_examples = _kinds(ns, m)
    gaussian = None if tuning.gaussian is None else ns.number(tuning.gaussian.bound)
    plain = None if tuning.signs is None else ns.number(tuning.signs.bound)
    for index, (size, strata) in enumerate(zip(sizes[1:-1], tuning.strata, strict=True)):
        before, last = gaussian, index == len(tuning.strata) - 1
        gaussian = None if last and not network.mean else _step(ns, before, before, size, of_rows, strata)
        plain = None if plain is None else _step(ns, before, plain, size, of_examples, strata)
    if network.mean:
        plain = ns.sqrt(ns.pi / 2) * gaussian
    return expected_gap(ns, network, sizes[-1].scale, plain + cost_of_sign(ns, m), steep, m)


def problem(ns: NumberSystem, network: Network, tuning: Tuning, certain: Callable[[Any, Any], bool]) -> str | None:
    """Why a tuning proves nothing about a network; None where every number in it is proved."""
    depth = len(network.blocks)
    if len(tuning.strata) != depth - 1:
        return f"a network of {depth} blocks has {depth - 1} steps, got {len(tuning.strata)}"
    if not 0 < tuning.curvature <= 1 or not 0 < tuning.split < 1:
        return "the curvature lies in (0, 1], the split in (0, 1)"
    if (tuning.gaussian is None) != (depth == 1 and not network.mean) or (tuning.signs is None) != network.mean:
        return "signs are bounded where one row is read, Gaussians where blocks follow or rows are averaged"
    numbers = [kernel.bound for kernel in (tuning.signs, tuning.gaussian) if kernel is not None]
    numbers += [stretch for strata in tuning.strata if strata is not None for stretch in strata.stretch]
    if not all(0 < number < _LARGEST for number in numbers):
        return "the numbers of a tuning are finite and above 0"
    fro, most = network.blocks[0].scores_fro * network.radius**2, network.blocks[0].scores_op * network.radius**2
    limit = ns.number(LARGEST_SCORE)
    if not certain(fro, limit):
        return f"the series of block 1 is for scores up to {LARGEST_SCORE:g}"
    claims = [
        (kernel, factor)
        for kernel, factor in ((tuning.signs, ns.sqrt(ns.pi / 2)), (tuning.gaussian, ns.number(1)))
        if kernel is not None
    ]
    orders, rest = divmod(len(claims[0][0].weights) - 2, 3)
    weighed = all(len(kernel.weights) == 3 * orders + 2 and min(kernel.weights) > 0 for kernel, _ in claims)
    if rest or not 4 <= orders <= MOST_ORDERS or not weighed:
        return f"a series of n orders has 3n + 2 terms, n from 4 to {MOST_ORDERS}, each with a weight above 0"
    if not certain(4 * fro, ns.number(orders + 1)):
        return f"a series of {orders} orders does not converge for such scores"
    wrong = unproved_kernel(
        series(ns, fro, most, orders, tuning.curvature, tuning.split, ns.number(1)), claims, certain
    )
    if wrong is not None:
        return f"the complexity of block 1 is not shown to be at most {wrong.bound!r}"
    columns = any(strata is not None for strata in tuning.strata)
    proved: list[tuple[Number, Number, float]] = []  # J rises with S and h, so that one proof may serve several blocks
    for size, strata in zip(sizes_of(ns, network, columns=columns)[1:-1], tuning.strata, strict=True):
        if strata is None:
            continue
        if network.heads != 1:
            return "columns are told apart in networks of one head"
        if not certain(size.hull, limit):
            return f"columns are told apart for scores up to {LARGEST_SCORE:g}"
        edges = strata.edges
        rising = all(low < high for low, high in pairwise(edges))
        if len(edges) < 2 or not rising or edges[0] < 0.7 or edges[-1] != 1 or len(strata.stretch) != len(edges) - 1:
            return "the largest share rises from at least 0.7 to 1, with a stretch for every range"
        for high, stretch in zip(edges[1:], strata.stretch, strict=True):
            bend = size.hull * ns.number(high) ** 2
            if any(certain(size.hull, s) and certain(bend, h) and known <= stretch for s, h, known in proved):
                continue
            if not stretch_holds(ns, size.hull, bend, stretch, certain):
                return f"the stretch of a column is not shown to be at most {stretch!r}"
            proved.append((size.hull, bend, stretch))
    return None
