"""T and A5 in 50 digits: what covers of one map cost, and which norms follow from which."""

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

from . import _centres as centres
from ._numbers import MP, Real, demand, num, unknown, within
from ._setting import Budget

LEAST = 1e-300  # stands for a budget of 0


class Sizes(namedtuple("_NORMS", "d k op fro two_one two_one_t one_one nuclear rank")):
    """Every norm of a d x k matrix."""

    @classmethod
    def of(cls, budget: Budget, d: int, k: int, rank: int | None = None) -> "Sizes":
        """A5, by going through its inequalities until nothing changes."""
        r = min(x for x in (d, k, rank, budget.rank) if x is not None) or 1
        names = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")
        o, f, c, t, e, n = (MP.inf if (x := getattr(budget, name)) is None else num(x or LEAST) for name in names)
        for _ in range(20):
            before = (o, f, c, t, e, n)
            o = min(o, f)
            f = min(f, c, t, n, MP.sqrt(r) * o, MP.sqrt(o * c), MP.sqrt(o * t), MP.sqrt(o * n))
            c, t = min(c, e, MP.sqrt(k) * f), min(t, e, MP.sqrt(d) * f)
            e = min(e, MP.sqrt(d) * c, MP.sqrt(k) * t)
            n = min(n, c, t, MP.sqrt(r) * f, r * o)
            if before == (o, f, c, t, e, n):
                break
        demand(o < MP.inf, "a budget sets no norm")
        return cls(d, k, o, f, c, t, e, n, r)


class View(namedtuple("_VIEW", "kind radius points sizes cap extra most", defaults=[None] * 3)):
    """One way to see a class of maps.

    `kind`: map, score, query, key (S1, S2), vector (T8), gain (T9), table (T10), numbers, pooled (A7) or summed (V4).
    `radius`: largest norm of a point (of a score: the product of both). `points`: per sample, at most `cap`. `sizes`:
    the norms of what is covered; of vectors, gains and tables `op` is the one that counts. `extra`: what is added to
    the spread of noise, for noise of at most `most` at a point (V4).
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
    "T2": (("map", "query", "key"), "two_one", {}),
    "Tpub": (("map", "score", "query", "key"), "two_one", {}),
    "T3": (_MAPS, "one_one", {}),
    "T4": (_MAPS, "op", _TAIL),
    "T5": (_MAPS, "op", {}),
    "T8": (("vector",), "op", _TAIL),
    "T9": (("gain",), "op", {}),
    "T10": (("table",), "op", _TAIL),
    "T13": (_MAPS, "two_one", centres.RANGES),
    "T14": (_MAPS, "nuclear", centres.RANGES),
}
"""What a lemma covers, the norm that it limits, and the ranges of its parameters."""
REFINING = ("T4", "T8", "T9", "T10")  # covers of a ball in the metric of the maps themselves
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
    if view.kind == "key":
        name = "two_one_t"
    return getattr(sizes, "fro" if lemma == "Tpub" and scalar else name)


def _centres(n: Real, x: Real, t: Real) -> Real:
    """Random centres at tolerance x of the unit ball: log(1+z) <= log z + 1/z, z = n log(1+2/(tx)) (1+1/((1-t)x))^n."""
    net, tail = n * MP.log(1 + 2 / (t * x)), n * MP.log(1 + 1 / ((1 - t) * x))
    return MP.log(net) + tail + MP.exp(-tail) / net


def cost(choice: Any, view: View, eps: Real, samples: int) -> Real:
    """The sharp cost of a choice at eps on so many samples."""
    lemma, sizes = choice.lemma, view.sizes
    y = view.radius * _limited(lemma, view) / eps
    if y <= 1 and lemma != "Tpub":
        return num(0)
    within(choice, _LEMMAS[lemma][2])
    if lemma == "Tpub":
        columns = 1 if view.kind == "score" else view.columns
        return 36 * y**2 * MP.log(2 * MP.ceil(4 * y + 2) * view.count(samples) * columns + 1)
    if lemma in ("T13", "T14"):
        return centres.count(lemma, sizes.d, sizes.k, y, choice.params)
    if lemma == "T9":
        return sizes.k * MP.log(MP.ceil(y))
    plain = _closed(lemma, view, y, samples)
    if lemma in REFINING:
        copies, size = (sizes.d, sizes.k) if lemma == "T10" else (1, sizes.d * sizes.k)
        return min(copies * _centres(size, 1 / y, num(choice.params["t"])), plain)
    return plain


def _closed(lemma: str, view: View, y: Real, samples: int) -> Real:
    """The cost in closed form."""
    sizes, n = view.sizes, num(view.count(samples))
    size = sizes.d * sizes.k
    if lemma == "T1":
        return y**2 * MP.log(2 * n + 1)
    if lemma == "T2":
        wide = 2 * n * view.columns + 1
        rho = 1 + 1 / MP.log(wide)
        return y**2 * rho * MP.log(wide * rho**2 / (rho - 1))
    if lemma == "T3":
        return (y**2 / 2 + 1) * MP.log(2 * size + 1)
    if lemma == "T9":
        return size * MP.log(1 + y)
    if lemma == "T5":
        return sizes.rank * (sizes.d + sizes.k) * MP.log(1 + 4 * y)
    demand(lemma in REFINING, f"{lemma} at one scale is no cover at the others")
    return size * MP.log(1 + 2 * y)


def cost_at_every_scale(choice: Any, view: View, eps: Real, samples: int) -> Real:
    """A times the closed form at a = 1, which is at least the cost here and at every other scale."""
    y = view.radius * _limited(choice.lemma, view) / eps
    return y**2 * _closed(choice.lemma, view, num(1), samples)
