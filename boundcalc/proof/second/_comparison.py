"""Theorem K and K2 in 50 digits: the expected largest gap of a network whose projections never act."""

from collections import namedtuple
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from ._attention import joint_scores
from ._layers import flat
from ._numbers import MP, Real, demand, num
from ._setting import Budget, Setting
from ._strict import KINDS, Record, ranged, record
from ._walk import Walk

_HALF = num(1) / 2
_MOST_CELLS = 40_000
_SMALLEST = 2.0**-24
_LARGEST_SCORE = 2
_LARGEST_RANGE = 100
_LOWEST_QUARTER = num("1.2711")
_ORDERS = range(4, 61)

Block = namedtuple("Block", "op fro value value_fro value_columns hidden hidden_fro")
"""Norms of the scores (spectral, Frobenius), of the values summed over heads (and columns), of W_1 (spectral,
Frobenius)."""


KINDS.update(
    modest=ranged(0, 1e100, apart=True),
    curvature=ranged(5e-324, 1),
    kernel=record("bound:modest weights:modest*"),
    strata=record("edges:share* stretch:modest*"),
    tuning=record("curvature:curvature split:chance kernel:kernel strata:strata?*"),
)


def expected_gap(setting: Setting, about: Record, tuning: Record | None) -> Real:
    """2 L |w| b complexity/sqrt(m): by K without a tuning, by K2 with one."""
    blocks, readout, acts = _norms(setting, about)
    m = num(setting.sample.n_train)
    steep = 1 / num(setting.sample.margin) if setting.sample.lipschitz is None else num(setting.sample.lipschitz)
    radius = num(setting.input_radius)
    scale, g = _plain(blocks, radius) if tuning is None else _tuned(blocks, radius, tuning, about.heads)
    outputs = scale * (g + _beta() / 2)
    if acts:
        outputs = _combined(outputs, _lengths(blocks[0], radius, g))
    return 2 * steep * readout * outputs / _root(m)


def _lengths(block: Block, radius: Real, g: Real) -> Real:
    """Of the squared lengths that projections divide by."""
    before, values, total = radius * block.value, radius * block.value_fro, num(0)
    if before > 1:
        total += values**2 * g
    if block.hidden * min(num(1), before) > 1:
        squares = block.hidden_fro**2 * before * values * (g + _beta() / 2)
        hull = min((block.hidden * radius * block.value_columns) ** 2, block.hidden * block.hidden_fro * values**2)
        total += min(squares, hull / 2 * ((1 + MP.sqrt(2)) * g + _beta()))
    return total


def _root(m: Real) -> Real:
    return _LOWEST_QUARTER * (1 - num("0.51") / m) * MP.sqrt(m)


def plain_heads(about: Record) -> bool:
    """Whether a network is one of relu and softmax heads on vectors, with one output, its projections acting or not."""
    style = about.layers is None and about.style == "edelman" and about.normaliser.name == "softmax"
    plain = style and about.activation == "relu" and about.normalisation in ("ball", "none") and about.classes == 1
    inputs = about.vocabulary or about.d_patch or about.embedding_norm or about.pooler or about.positions != "none"
    return plain and not (inputs or about.causal)


def _norms(setting: Setting, about: Record) -> tuple[list[Block], Real, bool]:
    """The norms of every block, and whether projections may act; refuses networks that theorem K is not about."""
    demand(plain_heads(about), "theorem K is about relu networks of softmax heads on vectors")
    walk, d = Walk(setting, None, 1), about.d
    blocks: list[Block] = []
    radius, ball = Fraction(about.input_radius), about.normalisation == "ball"
    acts = False
    for layer in flat(setting.stages):
        if layer.label != "attention":
            continue
        tau = num(layer.normaliser.temperature or 1)
        heads = range(layer.heads)
        scores = [joint_scores(walk, layer, head)[0] for head in heads]
        values = [walk.matrix("W_V", layer.block, head, d, d)[0] for head in heads]
        hidden = walk.matrix("W_1", layer.block, None, d, d)[0]
        sums = [sum(getattr(sizes, name) for sizes in values) for name in ("op", "fro", "two_one")]
        most = (max(sizes.op for sizes in scores) / tau, max(sizes.fro for sizes in scores) / tau)
        blocks.append(Block._make((*most, *sums, hidden.op, hidden.fro)))
        if ball:
            inside = (
                sum((_spectral(walk.limit("W_V", layer.block, head)) for head in heads), start=Fraction(0)) * radius
            )
            radius = inside * _spectral(walk.limit("W_1", layer.block))
            acts = acts or max(inside, radius) > 1
    demand(not acts or len(blocks) == 1, "a projection may act")
    return blocks, walk.matrix("readout", None, None, d, 1)[0].op, acts


def _spectral(budget: Budget) -> Fraction:
    """The spectral norm of a budget, exactly."""
    limits = (budget.op, budget.fro, budget.two_one, budget.two_one_t, budget.one_one, budget.nuclear)
    return min(Fraction(limit) for limit in limits if limit is not None)


# -- constants


def _combined(*parts: Real) -> Real:
    return MP.power(sum(MP.power(part, num(2) / 3) for part in parts if part > 0), num(3) / 2)


def _excess(x: Real) -> Real:
    return x**2 / 2 * MP.exp(x) if x < num(1) / 1024 else MP.expm1(x) - x


def _kappa(r: Real) -> Real:
    cosh, sinh = MP.cosh(r), MP.sinh(r)
    at = 2 * sinh / (cosh + MP.sqrt(cosh**2 + 8 * sinh**2))
    return MP.sqrt(1 - at**2) * (cosh + at * sinh) / 2


def _beta() -> Real:
    return MP.sqrt(2 / MP.pi)


def _psi(g: Real) -> Real:
    first = _HALF + MP.sqrt(2)
    return min(first * g + _beta() / 2, (first + _combined(_HALF, num(1))) / 2 * g + _beta() / 4)


def _sizes(blocks: Sequence[Block], radius: Real, *, columns: bool) -> tuple[list[tuple[Real, Real]], Real]:
    """(S, r) of every block after the first, and the scale of the rows that are read."""
    ranges: list[tuple[Real, Real]] = []
    scale, reach, before = radius, radius, num(0)
    demand(blocks[0].op * radius**2 <= _LARGEST_RANGE, "scores move too far")
    for i, block in enumerate(blocks):
        if i:
            hull = block.fro * scale**2
            hull = hull if columns else min(hull, block.op * before**2)
            ranges.append((hull, min(hull / 2, block.op * reach**2)))
            demand(ranges[-1][1] <= _LARGEST_RANGE, "scores move too far")
        before = block.hidden * block.value_columns * scale
        scale *= block.hidden * (block.value_columns if columns else block.value_fro)
        reach *= block.hidden * block.value
    return ranges, scale


def _plain(blocks: Sequence[Block], radius: Real) -> tuple[Real, Real]:
    """K1: the scale of what is read, and G."""
    sizes, scale = _sizes(blocks, radius, columns=False)
    most, fro, beta = blocks[0].op * radius**2, blocks[0].fro * radius**2, _beta()
    one = _combined(MP.sinh(most), 2 * fro * _kappa(most))
    two = fro + _combined(_excess(most), fro * MP.expm1(most))
    g = MP.sqrt(1 + min(one, two) ** 2)
    for hull, r in sizes:
        scores = _kappa(r) * hull * _psi(g)
        centred = g + beta / 2 + _combined(MP.sinh(r) * (g + beta / 4), scores)
        g = min(_combined(MP.cosh(r) * (g + beta / 2), scores), centred)
    return scale, g


# -- K2


def _tuned(blocks: Sequence[Block], radius: Real, tuning: Record, heads: int) -> tuple[Real, Real]:
    """K2: the same."""
    demand(len(tuning.strata) == len(blocks) - 1, "strata are given for every block after the first")
    most, fro = blocks[0].op * radius**2, blocks[0].fro * radius**2
    demand(fro <= _LARGEST_SCORE, "the series of block 1 is for small scores")
    _prove_kernel(tuning.kernel, fro, most, num(tuning.curvature), num(tuning.split))
    sizes, scale = _sizes(blocks, radius, columns=any(stratum is not None for stratum in tuning.strata))
    g = num(tuning.kernel.bound)
    for (hull, half), strata in zip(sizes, tuning.strata, strict=True):
        if strata is not None:
            demand(heads == 1 and hull <= _LARGEST_SCORE, "strata of columns need one head with small scores")
            _prove_strata(strata, hull)
        g = _step(g, hull, half, strata)
    return scale, g


def _decoupled(g: Real, hull: Real, half: Real, *, inside: bool) -> Real:
    beta, scores, sinh = _beta(), _kappa(half) * hull * _psi(g), MP.sinh(half)
    values: list[Real] = []
    for k in range(33):
        at, cost = num(k) / 32, beta / 2 if inside else num(0)
        own = g + (cost / 2 if k == 32 else cost)
        values.append(at * (g + cost) + _combined(MP.sqrt(sinh**2 + (1 - at) ** 2) * own, scores))
    return min(values)


def _step(g: Real, hull: Real, half: Real, strata: Record | None) -> Real:
    beta = _beta()
    whole = min(_decoupled(g, hull, half, inside=True), _decoupled(g, hull, half, inside=False) + beta)
    if strata is None:
        return whole
    first = num(strata.edges[0])
    share = first**2 + (1 - first) ** 2
    worst = [MP.sqrt(share) * _decoupled(g, share * hull, min(half, share * hull / 2), inside=False)]
    for (a, b), stretch in zip(pairwise(map(num, strata.edges)), strata.stretch, strict=True):
        bend, off = hull * b**2, (1 - a) * MP.sqrt(2 * a**2 + (1 - a) ** 2)
        others = _kappa(hull / 2) * hull * off * _psi(g)
        main = b * _combined((num(stretch) + bend / 4) * g, others, bend * beta / 4)
        worst.append(MP.sqrt(main**2 + b**2 + (1 - a) ** 2 * (whole**2 + 1)))
    longest = max(1 - first / 2, MP.sqrt(share) / 2)
    return min(whole, max(worst) + longest * MP.sqrt(2 * MP.log(2 * len(strata.edges))) + beta / 2)


def _prove_strata(strata: Record, hull: Real) -> None:
    """The edges rise to 1, and J is at most what is claimed in every range."""
    edges = strata.edges
    rises = len(edges) > 1 and all(a < b for a, b in pairwise(edges)) and edges[0] >= 0.7 and edges[-1] == 1
    demand(rises and len(strata.stretch) == len(edges) - 1, "shares of a column rise from 0.7 or more to 1")
    up = MP.exp(hull)
    for b, stretch in zip(edges[1:], strata.stretch, strict=True):
        bend, limit = hull * num(b) ** 2, num(stretch) ** 2

        def small(x: Real, y: Real, bend: Real = bend, limit: Real = limit) -> bool:
            zeros = [(1 - bend * x) ** 2, (1 - bend * y) ** 2]
            least = num(0) if bend * x <= 1 <= bend * y else min(zeros)
            one, less = (1 + bend * (1 - x)) ** 2, (1 + bend * (1 - y)) ** 2
            steep = (y * one + (1 - x) * max(zeros)) * (1 + up) - x * (less - max(zeros))
            w = min(num(1), max(1 / (x + (1 - x) * up), 2 * least / steep))
            return (steep * w - least) / (up * w**2) <= limit

        _subdivided(small, ((0.0, 1.0),), "the stretch of a column")


def _subdivided(small: Callable[..., bool], ends: Sequence[tuple[float, float]], what: str) -> None:
    """Something is small between such ends of one or two numbers: in every one of some cells, whose ends are exact."""
    cells, seen = [ends], 0
    while cells:
        cell = cells.pop()
        seen += 1
        widths = [high - low for low, high in cell]
        demand(seen <= _MOST_CELLS and max(widths) >= _SMALLEST, f"{what} is not shown")
        if not small(*(num(end) for pair in cell for end in pair)):
            axis = 0 if len(cell) == 1 or 2 * widths[0] >= widths[1] else 1
            low, high = cell[axis]
            middle = (low + high) / 2
            cells += [(*cell[:axis], half, *cell[axis + 1 :]) for half in ((low, middle), (middle, high))]


def _prove_kernel(kernel: Record, fro: Real, most: Real, be: Real, p: Real) -> None:
    """The complexity of block 1 is at most the bound: subdivision of mean lengths and covariances."""
    orders, rest = divmod(len(kernel.weights) - 2, 3)
    demand(rest == 0 and orders in _ORDERS, "a series of n orders has 3n + 2 terms")
    top = MP.exp(most**2 / 2)
    if most > num(1) / 8:
        at = 1 / most - MP.coth(most)
        top = min(top, MP.exp(-most * at) * (MP.cosh(most) + at * MP.sinh(most)))
    high, low = max(num(1), 1 / top + be * (top - 1)), 2 * MP.sqrt(be) - be
    al, em = (high + low) / 2, (high - low) / 2
    de = 2 * MP.tanh(most / 2) * max(1 - be, be * top - 1 / top)
    of_n, of_z = em / MP.sqrt(p), de / MP.sqrt(1 - p)
    demand(4 * fro < orders + 2, "the series does not end")
    single = (2 * fro) ** (orders + 1) / MP.factorial(orders + 1) / (1 - 2 * fro / (orders + 2)) / 2
    double = (4 * fro) ** (orders + 1) / MP.factorial(orders + 1) / (1 - 4 * fro / (orders + 2)) / 8
    rests = (al * single + be * double, of_n * single + of_z * single / 2)
    inverse = [MP.factorial(n) ** -1 for n in range(orders + 2)]
    powers = [fro**n for n in range(orders + 1)]
    shares = [1 / num(weight) for weight in kernel.weights]
    limit = num(kernel.bound) ** 2 / sum(map(num, kernel.weights))
    ratio = be / al

    def small(a: Real, b: Real, c: Real, d: Real) -> bool:
        if c > 1 - a**2:
            return True
        room = 1 - a**2
        d = min(d, room)
        q = [num(0), num(0)] + [room * ((1 + b) ** (j - 1) + (1 - a) ** (j - 1)) / 2 for j in range(2, orders + 2)]
        q4, q[2] = q[4], d
        q[3] = min(q[3], MP.sqrt(d * max(num(0), q4 - c**2)))
        z = [x * y for x, y in zip(q, inverse, strict=True)]
        terms = [b]
        for n in range(1, orders + 1):
            bilinear = sum((q[j + 1] * inverse[j] * z[n - j] for j in range(1, n - 1)), start=num(0))
            term = al * q[n + 1] * inverse[n] + be * bilinear
            if n == 3:
                bent = 9 * ratio**2 - 6 * ratio
                term = al / 6 * MP.sqrt(max(num(0), q4**2 + bent * (d if bent > 0 else c) ** 4))
            terms.append(powers[n] * term)
        terms.append(MP.sqrt(room) * rests[0])
        for n in range(1, orders + 1):
            terms.append(of_n * powers[n] * q[n + 1] * inverse[n])
            terms += [of_z * powers[n] * z[n]] if n > 1 else []
        terms.append(MP.sqrt(room) * rests[1])
        return sum(term**2 * share for term, share in zip(terms, shares, strict=True)) <= limit

    _subdivided(small, ((0.0, 1.0), (0.0, 1.0)), "the complexity of block 1")
