"""Floors in 50 digits: the values of constructions A to E and N, and F1 to F3 and R1 from them."""

import math
from bisect import bisect_left
from collections import namedtuple
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from ._certificate import STATEMENTS
from ._comparison import plain_heads
from ._numbers import MP, Real, demand, num
from ._setting import Budget, Setting, read_setting, trained
from ._strict import Record, read

FORMAT = "boundcalc-floor/1"
_CELLS = 500
_LINES = {
    "A": "n:size plus:index",
    "B": "n:size tilt:share",
    "C": "k:size n:size a:share plus:index",
    "D": "k:size n:size p:share a:share plus:index",
    "E": "k:size queries:size keys:size eta:share",
    "N": "n:size",
}
_MOST_EXACT = 400
_TOLERANCE = num("1e-12")

Confirmed = namedtuple("Confirmed", "value delta by")
"""The floor, the chance that a bound may fail, and how it was counted, which says what it is of."""


def derive_floor(data: Any) -> Confirmed:
    """The floor of a file's JSON value, which must be at least what it claims."""
    line = "format:text statements:index setting:object construction:object "
    line += "by:F1|F2|F3|F1-errors|F3-errors|R1 value:length"
    raw = read(line, "the floor", data)
    demand(raw.format == FORMAT and raw.statements == STATEMENTS, "it is a floor of another version")
    name = raw.construction.get("name")
    demand(name in _LINES, "it does not know the construction")
    parameters = read(_LINES[name], "construction", {k: v for k, v in raw.construction.items() if k != "name"})
    setting = read_setting("setting", raw.setting)
    value = max(num(0), _floor(_Class(setting), name, parameters, raw.by))
    demand(
        num(raw.value) <= value * (1 + _TOLERANCE), f"{raw.value:.12g} is claimed, the floor is {MP.nstr(value, 12)}"
    )
    return Confirmed(value, setting.sample.delta, raw.by)


class _Class:
    """How large the weights of a construction may be."""

    def __init__(self, setting: Setting) -> None:
        a, sample = setting.about, setting.sample
        demand(a.layers is None and a.normaliser.name == "softmax", "floors are about softmax heads")
        demand(a.kv_heads in (None, a.heads), "floors are about heads apart")
        fixed = not (setting.norms.measured or sample.measured) and sample.lipschitz is None
        demand(fixed, "floors are about norms fixed before the data and the ramp loss")
        near = any(budget.distance is not None for budget in setting.norms.budgets.values())
        demand(not near, "floors are not about distances")
        self.setting, self.about, self.ball = setting, a, a.normalisation == "ball"
        self.radius, self.gamma = num(a.input_radius), num(sample.margin)
        (self._residual if a.residual else self._plain)()

    def _residual(self) -> None:
        a, kinds = self.about, {key.partition("[")[0] for key in self.setting.norms.budgets}
        alike = max(a.vocabulary, a.d_patch) >= 2 and a.positions != "fixed" and a.own_row is None
        demand(alike, "floors of residual styles are about tokens or patches in rows that may all be alike")
        fits = a.variance_floor == 0 and (a.bits is None or a.bits >= 16)
        demand(fits, "floors are about no floor of the variance and weights of 16 bits or more")
        single = kinds <= {weight.kind for weight in trained(self.setting.stages)}
        demand(single, "floors are about norms of single matrices")

    def _plain(self) -> None:
        a, kinds = self.about, {key.partition("[")[0] for key in self.setting.norms.budgets}
        demand(plain_heads(a), "floors are about relu networks of softmax heads on vectors")
        demand(a.bits is None and a.d >= 4 and a.seq_len >= 2, "floors are about any real weights, and not too few")
        demand(not kinds & {"W_Q", "W_K"}, "floors are about norms of W_QK")
        self.tau = num(a.normaliser.temperature or 1)
        self.one = [(self.scale("W_V", block), self.scale("W_1", block)) for block in range(a.depth)]
        self.readout = self.scale("readout", None)

    def scale(self, kind: str, block: int | None, fro: Real = 1, rank: int = 1, **others: Real) -> Real:
        """The largest factor of a matrix with these norms (1 if not given), the spectral at most the Frobenius norm."""
        norms = self.setting.norms
        key = norms.place(kind, block, 0 if kind in ("W_QK", "W_V") else None)
        knob = Budget(op=norms.C, two_one=norms.C, row=norms.C)
        budget = knob if key is None else norms.budgets[key]
        sizes = {"op": fro, "fro": fro, "two_one": 1, "two_one_t": 1, "one_one": 1} | others
        if kind == "embedding" and budget.row is not None:
            sizes["row"] = num(1)
        factors = [
            num(getattr(budget, name)) / size for name, size in sizes.items() if getattr(budget, name) is not None
        ]
        if budget.rank is not None and budget.rank < rank:
            return num(0)
        if budget.nuclear is not None:
            factors.append(num(budget.nuclear) / (MP.sqrt(rank) * fro))
        return min(factors)

    def scores(self, k: int, n: int, rows: int | None = None) -> Real:
        """The factor of k score columns of n entries 1/(k sqrt(n)) in so many rows."""
        rows = rows or n
        rank = min(k, rows)
        if rank > (self.about.d_head or self.about.d):
            return num(0)
        others = {"two_one_t": rows / MP.sqrt(num(k) * n), "one_one": MP.sqrt(n)}
        return self.scale("W_QK", 0, 1 / MP.sqrt(k), rank, **others) / self.tau

    def column(self, entries: Real) -> Real:
        """The factor of a unit value column whose entries sum to so much."""
        return self.scale("W_V", 0, two_one_t=entries, one_one=entries)

    def layer(self, block: int, z: Real, value: Real | None = None) -> Real:
        """One channel of a block."""
        cut = (lambda x: min(num(1), x)) if self.ball else (lambda x: x)
        first, second = self.one[block]
        return cut(second * cut((first if value is None else value) * max(num(0), z)))

    def rest(self, y: Real, block: int) -> Real:
        """The output from rows y e_1 before a block."""
        for later in range(block, self.about.depth):
            y = self.layer(later, y)
        return self.readout * y

    def chain(self, z: Real, value: Real) -> Real:
        """The output where every row has the coordinate z."""
        return self.rest(self.layer(0, z, value), 1)


def _stored(c: _Class, factor: Real) -> Real:
    """The power of two below a weight, where weights are of so many bits."""
    powers = (num(2) ** e for e in range(15, -15, -1))
    return factor if c.about.bits is None else next((power for power in powers if power <= factor), num(0))


def _n(c: _Class, n: int) -> Real:
    """N: what the read-out makes of rows (x, y, ..., y), from which every norm, value map and output map follows."""
    a, d, root = c.about, c.about.d, MP.sqrt(n)
    demand(2 <= n <= (a.vocabulary or a.d_patch), "there are not so many tokens or directions")
    first = "embedding" if a.vocabulary else "W_patch"
    entry = _stored(c, c.scale(first, None, root, two_one=root, two_one_t=num(n), one_one=num(n)))
    x, y = entry * (1 if a.vocabulary else c.radius), num(0)

    def single(kind: str, block: int | None = None) -> Real:
        return _stored(c, c.scale(kind, block))

    def normed(kind: str, block: int | None, x: Real, y: Real) -> tuple[Real, Real]:
        if a.normalisation == "none":
            return x, y
        if a.normalisation == "ball":
            long = max(num(1), MP.sqrt(x**2 + (d - 1) * y**2))
            return x / long, y / long
        if a.normalisation == "layernorm":
            x, y = (x - y) * (1 - num(1) / d), (y - x) / d
        norms, gain = c.setting.norms, f"{kind}.gain"
        key = norms.place(gain, block)
        most = norms.C if key is None else norms.budgets[key].sup
        scale = _stored(c, num(most or 0)) / MP.sqrt((x**2 + (d - 1) * y**2) / d + num(a.eps))
        return x * scale, y * scale

    if a.embedding_norm:
        x, y = normed("norm_embedding", None, x, y)
    for block in range(a.depth):
        seen = normed("norm_attention", block, x, y)[0] if a.style == "pre" else x
        x += seen * single("W_V", block) * single("W_O", block)
        if a.style == "post":
            x, y = normed("norm_ffn", block, *normed("norm_attention", block, x, y))
    if a.style == "pre":
        x, y = normed("norm_final", None, x, y)
    if a.pooler:
        x = MP.tanh(x * single("W_pool"))
    return x * single("readout")


def _mean(plus: Real, minus: Real, beside: int, s: Real, weight: Real | int = 1) -> Real:
    up, down = plus * MP.exp(s), minus * MP.exp(-s)
    return (up - weight * down) / (up + down + beside)


def _column(c: _Class, a: Real, k: int) -> tuple[Real, Real]:
    b = MP.sqrt(1 - a**2)
    length = MP.sqrt(a**2 / k + b**2)
    return length, c.column((a + b) / length)


def _first(c: _Class, plus: int) -> tuple[int, int]:
    """Rows with either sign next to the first row, which alone is read."""
    demand(c.about.depth == 1 and c.about.readout == "cls", "this construction is of one block read at its first row")
    demand(plus < c.about.seq_len, "more rows than there are")
    return plus, c.about.seq_len - 1 - plus


def _a(c: _Class, at: Record) -> tuple[int, Callable[[Real], Real], Real]:
    plus, minus = _first(c, at.plus)
    demand(2 <= at.n <= c.about.d - 1, "n directions do not fit")
    reach = c.scores(1, at.n) * c.radius**2
    return at.n, lambda w: c.chain(c.radius * _mean(num(plus), num(minus), 1, w), c.one[0][0]), reach


def _b(c: _Class, at: Record) -> tuple[int, Callable[[Real], Real], Real]:
    demand(2 <= at.n <= c.about.d - 1, "n directions do not fit")
    tilt = num(at.tilt)
    across = MP.sqrt(1 - tilt**2)
    value = c.column(tilt + across * MP.sqrt(at.n))
    return at.n, lambda w: c.chain(c.radius * (tilt**2 + across**2 * w), value), num(1)


def _output(c: _Class, name: str, at: Record, sign: int, far: int = 1) -> tuple[int, Real]:
    """N, and below the output on cells of sign +1, above it on those of sign -1 (far = -1: the other way around)."""
    a, d, rows, r = c.about, c.about.d, c.about.seq_len, c.radius
    demand((name == "N") == a.residual, "this construction is about another style")
    if name == "N":
        return at.n, sign * _n(c, at.n)
    if name in ("A", "B"):
        n, curve, reach = (_a if name == "A" else _b)(c, at)
        return n, curve(sign * reach / MP.sqrt(n))
    if name == "E":
        demand(a.depth >= 2 and at.k <= d - 1 and at.queries + 2 * at.keys == rows, "E is of two blocks or more")
        n, half = d - 2, MP.sqrt(num(1) / 2)
        s = half * c.scores(at.k, n, n + 1) * r**2 / (at.k * MP.sqrt(n))
        eta, keys = num(at.eta), num(at.keys)
        of_queries = r * half * _mean(keys, keys, at.queries, sign * s, eta)
        ends = [r * half * keys * (1 - eta) / (2 * keys + at.queries * MP.exp(way * s)) for way in (1, -1)]
        of_keys = min(ends) if sign * far > 0 else max(ends)
        both = at.queries * c.layer(0, of_queries) + 2 * keys * c.layer(0, of_keys)
        return at.k * n, c.rest(c.layer(1, both / rows), 2)
    demand(at.k + at.n + 1 <= d, "keys and queries do not fit")
    length, value = _column(c, num(at.a), at.k)
    s = num(at.a) * c.scores(at.k, at.n) * r**2 / (at.k * MP.sqrt(at.n))
    if name == "C":
        plus, minus = _first(c, at.plus)
        return at.k * at.n, c.chain(r * length * _mean(num(plus), num(minus), 1, sign * s), value)
    demand(at.plus <= rows, "more rows than there are")
    p = num(at.p)
    q = MP.sqrt(1 - p**2)
    g = _mean(num(at.plus), num(rows - at.plus), 0, sign * p * q * s)
    return at.k * at.n, c.chain(r * q * length * g, value)


def _floor(c: _Class, name: str, at: Record, by: str) -> Real:
    sample = c.setting.sample
    m, delta = sample.n_train, num(sample.delta)

    def ramp(output: Real) -> Real:
        return min(num(1), max(num(0), 1 - output / c.gamma))

    if by == "F2":
        demand(name in ("A", "B") and not c.about.residual, "F2 is about A and B")
        demand(at.n >= 4 and at.n % 2 == 0, "F2 is about even numbers of pairs")
        if name == "A":
            norms = c.setting.norms
            key = norms.place("W_QK", 0, 0)
            own = None if key is None else norms.budgets[key]
            demand(own is None or own.two_one_t is None is own.one_one, "F2 is about norms of columns")
        n, curve, radius = (_a if name == "A" else _b)(c, at)
        slope = _steepness(c, name, at) * radius
        return _sphere(n, lambda t: (ramp(curve(-radius * t)) - ramp(curve(radius * t))) / 2, slope, m, delta)
    cells, high = _output(c, name, at, 1)
    low = _output(c, name, at, -1)[1]
    demand(cells > 1, "one cell gives no floor")
    demand(by in ("F1", "F3") or (low <= 0 and high >= c.gamma), "members do not err where they should")
    if by == "R1":
        demand(high > c.gamma, "members have no margin above gamma")
        return _unseen(cells - 1, m, delta)
    drop = ramp(low) - ramp(high)
    if by.startswith("F3"):
        demand(not c.about.vocabulary, "F3 is about inputs that can be negated")
        ends = [ramp(_output(c, name, at, sign, -1)[1]) for sign in (1, -1)]
        return _opposite(cells, drop, max(ramp(high) - ends[0], ends[1] - ramp(low)), m, delta)
    v = m // cells + 1
    log = MP.loggamma(m + 1) - MP.loggamma(v + 1) - MP.loggamma(m - v + 1) - v * MP.log(cells)
    deviation = 2 * v * MP.exp(log + (m - v + 1) * MP.log1p(-num(1) / cells)) / m
    tail = min(MP.sqrt(delta / (1 - delta)) / 2, MP.sqrt(-MP.log1p(-delta) / 2))  # F0, of a supremum moved by drop/m
    return drop * (cells * deviation / 2 - tail / MP.sqrt(m))


def _steepness(c: _Class, name: str, at: Record) -> Real:
    """A Lipschitz constant of the loss in the coordinate w."""
    value = c.one[0][0] if name == "A" else c.column(num(at.tilt) + MP.sqrt(1 - num(at.tilt) ** 2) * MP.sqrt(at.n))
    steep = value * c.one[0][1] * c.readout * c.radius / c.gamma
    for first, second in c.one[1:]:
        steep *= first * second
    return steep if name == "A" else steep * (1 - num(at.tilt) ** 2)


def _opposite(n: int, drop: Real, loose: Real, m: int, delta: Real) -> Real:
    """F3."""
    mean, variance = num(m) / n, (1 - 2 / MP.pi) * m - num(2 * n) / 5
    demand(variance > 0, "F3 is about fewer pairs")
    spread = n + MP.sqrt(2 * n * (1 / num(0.01) - 1))
    fourth = (3 - 4 / MP.pi - 12 / MP.pi**2) * mean * (m + spread) + num(m) / 2
    chance = (delta / (1 - num(0.01)) + num(0.56) * MP.sqrt(fourth) / variance) * (1 + num(1e-9))

    def rarer(z: Real) -> bool:
        mills = MP.pi / ((MP.pi - 1) * z + MP.sqrt(z**2 + 2 * MP.pi))
        return MP.npdf(z) * mills <= chance

    levels = [num(k) / 32 for k in range(128)]
    above = bisect_left(levels, True, key=rarer)
    demand(above > 0, "F3 is about more pairs")
    lengths = MP.sqrt(2 / MP.pi) * mean / MP.sqrt(mean + num(2) / 3) * (n - spread / (2 * mean + num(4) / 3))
    return (drop * (lengths + levels[above - 1] * MP.sqrt(variance)) - loose * MP.sqrt(m * spread)) / (2 * m)


def _sphere(n: int, odd: Callable[[Real], Real], slope: Real, m: int, delta: Real) -> Real:
    """F2."""
    mean, few, rest = num(m) / n, num(0), num(n - 3) / 2
    most = 2 * MP.exp(MP.loggamma(num(n) / 2) - MP.loggamma(num(n - 1) / 2)) / MP.sqrt(MP.pi)
    step = min(num("0.99"), 6 / MP.sqrt(n)) / _CELLS
    grid = [k * step for k in range(_CELLS + 1)] + [num(1)]
    short, bent, even = few, few, few
    for low, t in pairwise(grid):
        bend, mass = slope * t - odd(t), most * (1 - low**2) ** rest * (t - low)
        short, bent, even = short + t * bend * mass, bent + (t * bend) ** 2 * mass, even + bend**2 * mass
    main = MP.sqrt(mean) * max(num(0), 1 - (1 - num(1) / n) / (2 * mean)) * max(num(0), slope - n * short)
    bent *= n
    best = num(0)
    for above in ("1", "1.2", "1.4", "1.6"):
        a = MP.sqrt(n) + num(above) / MP.sqrt(2)
        room, spread = main - 3 * a / 8, mean * bent + num(1) / 4
        long = MP.gammainc(num(n) / 2, a**2 / 2, 2 * a**2, regularized=True)
        fails = 1 - spread / (spread + room**2) - delta * (1 + num("1e-9")) / long
        if room > 0 and fails > 0:
            variance = a**2 * mean * bent + (a / 2 + MP.sqrt(m * even)) ** 2
            less = MP.sqrt(variance * (1 / fails - 1)) + a**2 / 8 + min(num(n), 2 * slope * MP.sqrt(n))
            best = max(best, (a * main - less) / m)
    return best


def _unseen(rare: int, m: int, delta: Real) -> Real:
    """R1: the chance of cells that a sample misses; exactly, or of many cells by their mean and variance."""
    best = num(0)
    for tenth in range(3, 20) if rare <= _MOST_EXACT else (10,):
        chance = num(tenth) / (10 * m)
        if rare * tenth >= 10 * m:
            continue
        if rare > _MOST_EXACT:
            mean = rare * MP.exp(m * MP.log1p(-chance))
            return chance * (mean - MP.sqrt(mean * delta / (1 - delta)))
        with MP.workprec(2 * rare + 128):
            missed = [math.comb(rare, j) * MP.exp(m * MP.log1p(-j * chance)) for j in range(rare + 1)]

            def exceeds_delta(r: int, missed: Sequence[Real] = missed) -> bool:
                terms = [(-1) ** (j - r) * math.comb(j - 1, r - 1) * missed[j] for j in range(r, rare + 1)]
                return sum(terms) > delta

            unseen = bisect_left(range(1, rare + 1), True, key=lambda r: not exceeds_delta(r))
        best = max(best, unseen * chance)
    return best
