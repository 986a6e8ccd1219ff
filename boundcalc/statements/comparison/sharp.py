"""K2: the gap by Gaussian comparison with numbers that a search finds and that are proved here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import factorial
from operator import mul
from typing import Any

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.statements.comparison.closed import (
    hoelder,
    hyperbolic,
    kappa,
    mean_of_signs,
    of_outputs,
    score_complexity,
)
from boundcalc.statements.comparison.network import Network, Sizes, sizes_of

LARGEST_SCORE = 2.0
"""Score ranges up to which the series and dominant columns are used; beyond, K alone."""
_MOST_ORDERS = 60
"""Orders of the series that may be written out; what is left is bounded."""
_MOST_CELLS = 20_000
_SMALLEST_CELL = 2.0**-24
"""Ends of cells are binary fractions of so many bits, and exact."""
_LARGEST = 1e100
_GRID = 32
"""Values of a block are centred at th/32 of their mean, th = 0..32, whichever is smallest."""

_Certain = Callable[[Any, Any], bool]
"""Whether a <= b surely."""
Terms = Callable[[Sequence[Number], Sequence[Number]], list[Number]]
"""Bounds of every term of the series, for mean length and covariance between two pairs of ends."""


@dataclass(frozen=True)
class Kernel:
    """A bound of the complexity of block 1, which a subdivision proves.

    Attributes:
        bound: the complexity is at most this.
        weights: one for each term of the series, above 0 (Cauchy's inequality).
    """

    bound: float
    weights: tuple[float, ...]


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


def _inverse_of_mean(ns: NumberSystem, most: Number, be: Number) -> tuple[Number, Number, Number]:
    """al, em and de of 1/Z = al - be (Z - 1) + e(Z), where e is small on the range of Z (K2)."""
    tanh = 2 * (1 - 2 / (ns.exp(most) + 1))
    top = ns.exp(most**2 / 2)
    if most > 1 / ns.number(8):
        cosh, sinh = hyperbolic(ns, most)
        mean = 1 / most - cosh / sinh
        top = ns.minimum(top, ns.exp(-most * mean) * (cosh + mean * sinh))
    high = ns.maximum(ns.number(1), 1 / top + be * (top - 1))
    low = 2 * ns.sqrt(be) - be  # the minimum of the convex function over all Z
    return (high + low) / 2, (high - low) / 2, tanh * ns.maximum(1 - be, be * top - 1 / top)


def series(ns: NumberSystem, fro: Number, most: Number, orders: int, curvature: float, split: float) -> Terms:
    """Block 1 as a series of tensors, for scores of Frobenius size F and range S: bounds of its terms (K2)."""
    be, p, zero = ns.number(curvature), ns.number(split), ns.number(0)
    al, small, slope = _inverse_of_mean(ns, most, be)
    bend = 9 * (be / al) ** 2 - 6 * (be / al)
    of_n, of_z = small / ns.sqrt(p), slope / ns.sqrt(1 - p)
    first = (4 * fro) ** (orders + 1) / factorial(orders + 1) / (1 - 4 * fro / (orders + 2))
    single = (2 * fro) ** (orders + 1) / factorial(orders + 1) / (1 - 2 * fro / (orders + 2)) / 2
    tails = al * single + be * first / 8, of_n * single + of_z * single / 2  # of the orders that are not written out
    powers = [ns.number(1)]
    for _ in range(orders):
        powers.append(powers[-1] * fro)
    inverse = [1 / ns.number(factorial(n)) for n in range(orders + 2)]

    def terms(low: Sequence[Number], high: Sequence[Number]) -> list[Number]:
        spread = 1 - low[0] ** 2
        covariance = ns.minimum(high[1], spread)
        moments, out, back = [zero] * 2, 1 + high[0], 1 - low[0]
        power_out, power_back = out, back
        for _ in range(2, orders + 2):
            moments.append(spread * (power_out + power_back) / 2)
            power_out, power_back = power_out * out, power_back * back
        fourth = moments[4]
        third = ns.sqrt(covariance * ns.maximum(zero, fourth - low[1] ** 2))
        moments[2], moments[3] = covariance, ns.minimum(moments[3], third)
        scaled = [moment * inverse[j] for j, moment in enumerate(moments)]
        shifted = [moment * inverse[j] for j, moment in enumerate(moments[1:])]  # m_(n+1)/n!
        bounds = [high[0]]
        for n, power in enumerate(powers[1:], start=1):
            if n == 3:
                bent = ns.maximum(bend * covariance**4, bend * low[1] ** 4)
                term = al / 6 * ns.sqrt(ns.maximum(zero, fourth * fourth + bent))
            else:
                products = sum(map(mul, shifted[1 : n - 1], scaled[n - 1 : 1 : -1]), start=zero)
                term = al * shifted[n] + be * products
            bounds.append(power * term)
        root = ns.sqrt(spread)
        bounds.append(root * tails[0])
        for n, power in enumerate(powers[1:], start=1):
            bounds.append(of_n * power * shifted[n])
            if n > 1:
                bounds.append(of_z * power * scaled[n])
        bounds.append(root * tails[1])
        return bounds

    return terms


def _shown(holds: Callable[..., bool], ends: tuple[float, ...]) -> bool:
    """Whether something holds between such lower and upper ends of one or two numbers: in every one of some cells."""
    cells, seen = [ends], 0
    while cells:
        cell = cells.pop()
        seen += 1
        if holds(*cell):
            continue
        widths = [high - low for low, high in zip(cell[::2], cell[1::2], strict=True)]
        if seen > _MOST_CELLS or max(widths) < _SMALLEST_CELL:
            return False
        at = 0 if 2 * widths[0] >= widths[-1] else 2
        middle = (cell[at] + cell[at + 1]) / 2
        cells += [(*cell[: at + 1], middle, *cell[at + 2 :]), (*cell[:at], middle, *cell[at + 1 :])]
    return True


def _kernel_holds(ns: NumberSystem, terms: Terms, kernel: Kernel, certain: _Certain) -> bool:
    """Whether subdivision of mean lengths and covariances proves a claim."""
    shares = [1 / ns.number(weight) for weight in kernel.weights]
    limit = ns.number(kernel.bound) ** 2 / sum(map(ns.number, kernel.weights), start=ns.number(0))

    def holds(a: float, b: float, c: float, d: float) -> bool:
        if c > 1 - a * a:
            return True  # the covariance is at most 1 - the squared mean length
        bounds = terms((ns.number(a), ns.number(c)), (ns.number(b), ns.number(d)))
        return certain(sum(map(mul, map(mul, bounds, bounds), shares), start=ns.number(0)), limit)

    return _shown(holds, (0.0, 1.0, 0.0, 1.0))


def _stretch_holds(ns: NumberSystem, hull: Number, bend: Number, stretch: float, certain: _Certain) -> bool:
    """Whether J(S, h) <= stretch: the largest |d (1 + h (phi - mean))| in L2, of weights d within a factor e^S.

    Where phi = 1 has mass x, the square is (B w - A0)/(e^S w^2) with w in [1/(x + (1-x) e^S), 1], A1 = (1 + h(1-x))^2,
    A0 = (1 - hx)^2, B = (x A1 + (1-x) A0)(1 + e^S) - x (A1 - A0): monotone in B and A0, so cells of x have upper ends.
    """
    limit, up = ns.number(stretch) ** 2, ns.exp(hull)

    def holds(a: float, b: float) -> bool:
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
        return certain(value, limit)

    return _shown(holds, (0.0, 1.0))


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


def problem(ns: NumberSystem, network: Network, tuning: Tuning, certain: _Certain) -> str | None:
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
    if rest or not 4 <= orders <= _MOST_ORDERS or min(weights) <= 0:
        return f"a series of n orders has 3n + 2 terms, n from 4 to {_MOST_ORDERS}, each with a weight above 0"
    if not certain(4 * fro, ns.number(orders + 1)):
        return f"a series of {orders} orders does not converge for such scores"
    terms = series(ns, fro, most, orders, tuning.curvature, tuning.split)
    if not _kernel_holds(ns, terms, tuning.kernel, certain):
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
            if not _stretch_holds(ns, size.hull, bend, stretch, certain):
                return f"the stretch of a column is not shown to be at most {stretch!r}"
            proved.append((size.hull, bend, stretch))
    return None
