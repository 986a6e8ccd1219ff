"""T and A5 in 50 digits: what covers of one map cost, and which norms follow from which."""

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

from . import centres
from .numbers import MP, Real, demand, log_ball, num, unknown, within
from .setting import Budget

LEAST = 1e-300  # stands for a budget of 0


class Sizes(namedtuple("_NORMS", "d k op fro two_one two_one_t one_one nuclear rank spectrum", defaults=[None])):
    """Every norm of a d x k matrix; `spectrum`: power and sum of a Schatten budget, if there is one."""

    @classmethod
    def of(cls, budget: Budget, d: int, k: int, rank: int | None = None) -> "Sizes":
        """A5, by going through its inequalities until nothing changes."""
        r = min(x for x in (d, k, rank, budget.rank) if x is not None) or 1
        names = ("op", "fro", "two_one", "two_one_t", "one_one")
        o, f, c, t, e = (MP.inf if (x := getattr(budget, name)) is None else num(x or LEAST) for name in names)
        p, total = (None, None) if budget.schatten is None else (num(x or LEAST) for x in budget.schatten)
        o = o if p is None else min(o, total ** (1 / p))
        for _ in range(20):
            before = (o, f, c, t, e)
            o = min(o, f)
            f = min(f, c, t, MP.sqrt(r) * o, MP.sqrt(o * c), MP.sqrt(o * t))
            f = f if p is None else min(f, MP.sqrt(o ** (2 - p) * total))
            c, t = min(c, e, MP.sqrt(k) * f), min(t, e, MP.sqrt(d) * f)
            e = min(e, MP.sqrt(d) * c, MP.sqrt(k) * t)
            if before == (o, f, c, t, e):
                break
        demand(o < MP.inf, "a budget sets no norm")
        nuclear = min(c, t, MP.sqrt(r) * f, r * o, nuclear_of(budget, o, r))
        return cls(d, k, o, f, c, t, e, nuclear, r, None if p is None else (p, total))


def nuclear_of(budget: Budget, op: Real, rank: int) -> Real:
    """What a Schatten sum says of the nuclear norm of a matrix."""
    if budget.schatten is None:
        return MP.inf
    p, total = num(budget.schatten[0]), num(budget.schatten[1] or LEAST)
    return op ** (1 - p) * total if p <= 1 else (rank ** (p - 1) * total) ** (1 / p)


class View(namedtuple("_VIEW", "kind radius points sizes cap extra most", defaults=[None] * 3)):
    """One way to see a class of maps.

    `kind`: map, score, query, key (S1, S2), vector (T8), gain (T9), table (T10), numbers, pooled (A7) or summed (V4). `radius`:
    largest norm of a point (of a score: the product of both). `points`: per sample, at most `cap`. `sizes`: the norms of what
    is covered; of vectors, gains and tables `op` is the one that counts. `extra`: what is added to the spread of noise, for
    noise of at most `most` at a point (V4).
    """

    @property
    def columns(self) -> int:
        """Columns of the matrix that is covered (of its transpose, from the key side)."""
        return self.sizes.d if self.kind == "key" else self.sizes.k

    def count(self, samples: int) -> int:
        """Points among so many samples."""
        return self.points * samples if self.cap is None else min(self.points * samples, self.cap)


def single(kind: str, size: int, norm: Real, radius: Real = 1) -> View:
    """An offset or a gain."""
    return View(kind, num(radius), 0, Sizes(1, size, norm, norm, norm, norm, norm, norm, 1), 1)


_MAPS, _TAIL = ("map", "query"), {"t": (0, 0.75)}
_LEMMAS: dict[str, tuple[tuple[str, ...], str, Mapping[str, tuple[float, float]]]] = {
    "T1": (("score", "map"), "fro", {}),
    "T2": (("map", "query", "key"), "two_one", {"rho": (1, 10)}),
    "Tpub": (("map", "score", "query", "key"), "two_one", {}),
    "T3": (_MAPS, "one_one", {"lam": (0, 200)}),
    "T4": (_MAPS, "op", {}),
    "T4r": (_MAPS, "op", _TAIL),
    "T4v": (_MAPS, "two_one", _TAIL),
    "T4f": (_MAPS, "fro", _TAIL),
    "T5": (_MAPS, "op", {"theta": (0, 0.999)}),
    "T6": (_MAPS, "op", {"t": (0, 0.999)}),
    "T8": (("vector",), "op", _TAIL),
    "T9": (("gain",), "op", {}),
    "T10": (("table",), "op", _TAIL),
    "T12": ((*_MAPS, "vector", "table"), "fro", centres.RANGES["T12"]),
    "T13": (_MAPS, "two_one", centres.RANGES["T13"]),
    "T14": (_MAPS, "nuclear", centres.RANGES["T14"]),
}
"""What a lemma covers, the norm that it limits, and the ranges of its parameters."""
REFINING = ("T4r", "T8", "T9", "T10")  # covers of a ball in the metric of the maps themselves
UNIFORM = frozenset(_LEMMAS) - {"T1", "T2", "Tpub"}


def _limited(lemma: str, view: View) -> Real:
    """The norm that a lemma limits, if it is about such a view."""
    if lemma not in _LEMMAS:
        raise unknown("lemma", lemma)
    kinds, name, _ = _LEMMAS[lemma]
    sizes, scalar = view.sizes, view.kind == "score" or view.columns == 1
    demand(view.kind in kinds, f"{lemma} is not for a {view.kind}")
    demand(lemma != "T1" or scalar, "T1 is for scalar functions")
    demand(lemma != "T5" or sizes.rank * (sizes.d + sizes.k) < sizes.d * sizes.k, "T5 needs a low rank")
    demand(lemma != "T6" or sizes.spectrum is not None, "T6 needs a Schatten budget")
    if view.kind == "key":
        name = "two_one_t"
    if (lemma == "Tpub" and scalar) or (lemma == "T12" and view.kind in _MAPS):
        name = "fro"
    return sizes.op if view.kind in ("vector", "table") else getattr(sizes, name)


def _integer_vectors(n: Real, s: Real) -> Real:
    """Log of the number of integer vectors of length n with l1 norm at most s, by the least of four closed bounds."""
    if s == 0:
        return num(0)
    n, s = num(n), num(s)
    plain = min(s * MP.log(2 * n + 1), n * MP.log(2 * s + 1))
    factorial = s * MP.log(s) - s + MP.log(2 * MP.pi * s) / 2 + 1 / (12 * s + 1)  # Robbins
    roots = s / 2 * MP.log((2 * n + 1) ** 2 + (s - 1) * (2 * s - 1) / 3) - factorial
    return min(plain, roots, n * MP.asinh(s / n) + s * MP.asinh(n / s))


def _centres(n: Real, x: Real, t: Real, excess: Real = 0) -> Real:
    """Random centres at tolerance x of the unit ball: log(1+z) <= log z + 1/z, z = (n log(1+2/(tx))+R) e^R (1+1/((1-t)x))^n."""
    net = n * MP.log(1 + 2 / (t * x)) + excess
    tail = n * MP.log(1 + 1 / ((1 - t) * x)) + excess
    return MP.log(net) + tail + MP.exp(-tail) / net


def _body(lemma: str, d: int, k: int) -> tuple[Real, Real]:
    """(lambda, R): the body lies in lambda times the spectral ball, and has so much more volume when blown up (log)."""
    q = min(d, k)
    if lemma == "T4v":
        scale, volume = MP.sqrt(k * q), k * (log_ball(d) + MP.loggamma(d + 1)) - MP.loggamma(d * k + 1)
    else:
        scale, volume = MP.sqrt(q), log_ball(d * k)
    return scale, d * k * MP.log(scale) + volume - centres.log_mass(d, k, 0)


def _factors(sizes: Sizes, y: Real, rank: Real, theta: Real) -> Real:
    """T5 at tolerance 1/y of the unit ball, random centres with t = 1/(2rd), 1/(2rk)."""
    if rank == 0:
        return num(0)
    n1, n2 = rank * sizes.d, rank * sizes.k
    t, u = 1 / (2 * num(n1)), 1 / (2 * num(n2))
    x1 = num(theta) / y
    x2 = (1 / y - x1) / (1 + (1 - t) * x1)
    return _centres(n1, x1, t) + _centres(n2, x2, u)


def _sparse_rounding(size: int, a: Real, lam: Real) -> Real:
    """T3, second form."""
    weights = 1 + 2 * MP.exp(-2 * lam) + 2 * MP.exp(-8 * lam / 3) / (1 - MP.exp(-lam))
    return lam * (a / 2 + 2) + size * MP.log(weights)


def _levels(view: View, n: int, a: Real, rho: Real) -> Real:
    """T2."""
    s = MP.ceil(rho * a) - 1
    if s == 0:
        return num(0)
    active = min(num(view.columns), s)
    coded = MP.log(rho / (rho - 1)) + MP.log(rho**2 * a / active)
    listed = MP.log(MP.ceil(2 + MP.log(a) / MP.log(rho)))
    return _integer_vectors(n * view.columns, s) + active * min(coded, listed)


def _schatten(view: View, eps: Real, t: Real) -> Real:
    """T6."""
    sizes = view.sizes
    p, total = sizes.spectrum or (num(1), num(0))  # `_limited` has asked
    y = view.radius * sizes.op / eps

    def kept(part: Real) -> Real:
        return min(num(sizes.rank), MP.ceil(total * (view.radius / (part * eps)) ** p) - 1)

    half = num(1) / 2
    drawn = _factors(sizes, (y - t) / (1 - t), kept(t), num(sizes.d / (sizes.d + sizes.k)))
    return min(drawn, kept(half) * (sizes.d + sizes.k) * MP.log(1 + 4 * (y - half) / half))


def cost(choice: Any, view: View, eps: Real, samples: int) -> Real:
    """The sharp cost of a choice at eps on so many samples."""
    lemma, n, sizes = choice.lemma, view.count(samples), view.sizes
    size, y = sizes.d * sizes.k, view.radius * _limited(lemma, view) / eps
    a = y**2
    if y <= 1 and lemma != "Tpub":
        return num(0)
    within(choice, _LEMMAS[lemma][2])
    if lemma == "Tpub":
        columns = 1 if view.kind == "score" else view.columns
        return 36 * a * MP.log(2 * MP.ceil(4 * y + 2) * n * columns + 1)
    given = num(next(iter(choice.params.values()), 0))
    if lemma in centres.RANGES:  # a table is covered row by row
        d, copies = (1, sizes.d) if view.kind in ("vector", "table") else (sizes.d, 1)
        return copies * centres.count(lemma, d, sizes.k, y, choice.params)
    if lemma == "T1":
        return _integer_vectors(n, MP.ceil(a) - 1)
    if lemma == "T2":
        return _levels(view, n, a, given)
    if lemma == "T3":
        return min(_integer_vectors(size, max(num(1), MP.ceil(a / 2))), _sparse_rounding(size, a, given))
    if lemma in ("T4", "T4r", "T8"):
        plain = size * MP.log(1 + 2 * y)
        return plain if lemma == "T4" else min(_centres(size, 1 / y, given), plain)
    if lemma in ("T4v", "T4f"):
        scale, excess = _body(lemma, sizes.d, sizes.k)
        return min(_centres(size, scale / y, given, excess), size * MP.log(1 + 2 * y / scale) + excess)
    if lemma == "T5":
        plain = sizes.rank * (sizes.d + sizes.k) * MP.log(1 + 4 * y)
        return min(_factors(sizes, y, sizes.rank, given), plain)
    if lemma == "T6":
        return _schatten(view, eps, given)
    if lemma == "T9":
        return sizes.k * MP.log(MP.ceil(y))
    return sizes.d * min(_centres(sizes.k, 1 / y, given), sizes.k * MP.log(1 + 2 * y))


def cost_at_every_scale(choice: Any, view: View, eps: Real, samples: int) -> Real:
    """A times the closed form at a = 1, which is at least the cost here and at every other scale."""
    lemma, n, sizes = choice.lemma, view.count(samples), view.sizes
    size, a = sizes.d * sizes.k, (view.radius * _limited(lemma, view) / eps) ** 2
    if lemma == "T1":
        return a * MP.log(2 * num(n) + 1)
    if lemma == "T2":
        wide = 2 * num(n) * view.columns + 1
        rho = 1 + 1 / MP.log(wide)
        return a * rho * MP.log(wide * rho**2 / (rho - 1))
    if lemma == "T3":
        return a * num(3) / 2 * MP.log(2 * size + 1)
    if lemma in ("T4", "T4r", "T8", "T10"):
        return a * size * MP.log(3)
    if lemma == "T9":
        return a * size * MP.log(2)
    if lemma == "T5":
        return a * sizes.rank * (sizes.d + sizes.k) * MP.log(5)
    demand(lemma in ("T4v", "T4f"), f"{lemma} at one scale says nothing about the others")
    scale, excess = _body(lemma, sizes.d, sizes.k)
    return a * (size * MP.log(1 + 2 / scale) + excess)
