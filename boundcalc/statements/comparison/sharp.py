"""K2: the gap by Gaussian comparison with numbers that a search finds and that are proved here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements.comparison.closed import (
    hoelder,
    hyperbolic,
    kappa,
    mean_of_signs,
    of_outputs,
    score_complexity,
)
from boundcalc.statements.comparison.network import Network, Sizes, sizes_of
from boundcalc.statements.comparison.series import (
    LARGEST_SCORE,
    MOST_CELLS,
    MOST_ORDERS,
    SMALLEST_CELL,
    Kernel,
    kernel_holds,
    series,
)

_LARGEST = 1e100
_GRID = 32
"""Values of a block are centred at th/32 of their mean, th = 0..32, whichever is smallest."""


@dataclass(frozen=True)
class Strata:
    """Ranges x_0 < ... < x_K = 1 of the largest column's share, and a bound J of the stretch in each (K2)."""

    edges: tuple[float, ...]
    stretch: tuple[float, ...]


@dataclass(frozen=True)
class Tuning:
    """The numbers of a proof by K2. Any that pass the checks are valid.

    Attributes:
        curvature: be, the slope at which 1/Z is linearised.
        split: p, how the remainder is split in two.
        kernel: the complexity of block 1.
        strata: one for every block after the first; None where columns have no strata.
    """

    curvature: float
    split: float
    kernel: Kernel
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
        left, right = (1 - bend * low) ** 2, (1 - bend * high) ** 2
        if bool(bend * high <= 1):
            least_zero, most_zero = right, left
        elif bool(bend * low >= 1):
            least_zero, most_zero = left, right
        else:
            least_zero, most_zero = ns.number(0), ns.maximum(left, right)
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


def _decoupled(ns: NumberSystem, gaussian: Number, hull: Number, half: Number, *, inside: bool) -> Number:
    """The step of a block, values and scores choosing their neurons apart; `inside`: the values' sign is paid."""
    beta = mean_of_signs(ns)
    _, sinh = hyperbolic(ns, half)
    scores = kappa(ns, half) * hull * score_complexity(ns, gaussian)
    more = beta / 2 if inside else ns.number(0)
    steps: list[Number] = []
    for k in range(_GRID + 1):
        centre = ns.number(k) / _GRID
        spread = gaussian + (beta / 4 if inside and k == _GRID else more)
        moved = hoelder(ns, ns.sqrt(sinh**2 + (1 - centre) ** 2) * spread, scores)
        steps.append(centre * (gaussian + more) + moved)
    return ns.minimum(*steps)


def _apart(ns: NumberSystem, x: Number) -> Number:
    """How much of the scores does not lie on a column of share x."""
    return (1 - x) * ns.sqrt(2 * x**2 + (1 - x) ** 2)


def _whole(ns: NumberSystem, gaussian: Number, size: Sizes) -> Number:
    """The step of a block without strata."""
    inside, outside = (_decoupled(ns, gaussian, size.hull, size.half_range, inside=paid) for paid in (True, False))
    return ns.minimum(inside, outside + mean_of_signs(ns))


def step(
    ns: NumberSystem, gaussian: Number, size: Sizes, strata: Strata | None, proved: Number | None = None
) -> Number:
    """The complexity of a block, from that of the block before; `known` is that without strata, if computed."""
    hull, half, beta = size.hull, size.half_range, mean_of_signs(ns)
    whole = proved if proved is not None else _whole(ns, gaussian, size)
    if strata is None:
        return whole
    first = ns.number(strata.edges[0])
    share = first**2 + (1 - first) ** 2
    worst = ns.sqrt(share) * _decoupled(ns, gaussian, share * hull, ns.minimum(half, share * hull / 2), inside=False)
    for (low, high), stretch in zip(pairwise(strata.edges), strata.stretch, strict=True):
        a, b = ns.number(low), ns.number(high)
        bend = hull * b**2
        own = (ns.number(stretch) + bend / 4) * gaussian
        others = kappa(ns, hull / 2) * hull * _apart(ns, a) * score_complexity(ns, gaussian)
        main = b * hoelder(ns, own, others, bend * beta / 4)
        worst = ns.maximum(worst, ns.sqrt(main**2 + b**2 + (1 - a) ** 2 * (whole**2 + 1)))
    lipschitz = ns.maximum(1 - first / 2, ns.sqrt(share) / 2)
    classes = ns.number(2 * len(strata.edges))
    union = lipschitz * ns.sqrt(2 * ns.log(classes))
    return ns.minimum(whole, worst + union + beta / 2)


def sharp(ns: NumberSystem, network: Network, tuning: Tuning) -> Number:
    """K2: the complexity of outputs, given that of block 1 and strata that `problem` has accepted."""
    columns = any(strata is not None for strata in tuning.strata)
    sizes = sizes_of(ns, network, columns=columns)
    gaussian = ns.number(tuning.kernel.bound)
    for size, strata in zip(sizes[1:-1], tuning.strata, strict=True):
        gaussian = step(ns, gaussian, size, strata)
    return of_outputs(ns, network, sizes[-1].scale, gaussian)


def problem(ns: NumberSystem, network: Network, tuning: Tuning, certain: Callable[[Any, Any], bool]) -> str | None:
    """Why a tuning proves nothing about a network; None where every number in it is proved."""
    depth = len(network.blocks)
    if len(tuning.strata) != depth - 1:
        return f"a network of {depth} blocks has {depth - 1} steps, got {len(tuning.strata)}"
    if not 0 < tuning.curvature <= 1 or not 0 < tuning.split < 1:
        return "the curvature lies in (0, 1], the split in (0, 1)"
    numbers = [
        tuning.kernel.bound,
        *(stretch for strata in tuning.strata if strata is not None for stretch in strata.stretch),
    ]
    if not all(0 < number < _LARGEST for number in numbers):
        return f"the numbers of a tuning are above 0 and below {_LARGEST:g}"
    fro, most = network.blocks[0].scores_fro * network.radius**2, network.blocks[0].scores_op * network.radius**2
    limit = ns.number(LARGEST_SCORE)
    if not certain(fro, limit):
        return f"the series of block 1 is for scores up to {LARGEST_SCORE:g}"
    weights = tuning.kernel.weights
    orders, rest = divmod(len(weights) - 2, 3)
    if rest or not 4 <= orders <= MOST_ORDERS or min(weights) <= 0:
        return f"a series of n orders has 3n + 2 terms, n from 4 to {MOST_ORDERS}, each with a weight above 0"
    if not certain(4 * fro, ns.number(orders + 1)):
        return f"a series of {orders} orders does not converge for such scores"
    if not kernel_holds(series(ns, fro, most, orders, tuning.curvature, tuning.split), tuning.kernel, certain):
        return f"the complexity of block 1 is not shown to be at most {tuning.kernel.bound!r}"
    columns = any(strata is not None for strata in tuning.strata)
    proved: list[tuple[Number, Number, float]] = []  # J rises with S and h, so that one proof may serve several blocks
    for size, strata in zip(sizes_of(ns, network, columns=columns)[1:-1], tuning.strata, strict=True):
        if strata is None:
            continue
        if network.heads != 1:
            return "strata of columns need networks of one head"
        if not certain(size.hull, limit):
            return f"strata of columns need scores of at most {LARGEST_SCORE:g}"
        edges = strata.edges
        rising = all(low < high for low, high in pairwise(edges))
        if len(edges) < 2 or not rising or edges[0] < 0.7 or edges[-1] != 1 or len(strata.stretch) != len(edges) - 1:
            return "the largest share rises from at least 0.7 to 1, with a stretch for every range"
        for high, stretch in zip(edges[1:], strata.stretch, strict=True):
            bend = size.hull * ns.number(high) ** 2
            if any(certain(size.hull, s) and certain(bend, h) and least <= stretch for s, h, least in proved):
                continue
            if not stretch_holds(ns, size.hull, bend, stretch, certain):
                return f"the stretch of a column is not shown to be at most {stretch!r}"
            proved.append((size.hull, bend, stretch))
    return None
