"""Parameters for T13 and T14, chosen on a grid and kept. Any admissible ones are valid: nothing here is trusted.

Grids let the gamma functions of a matrix, which depend on its sides and a parameter only, be computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

from boundcalc.base.numbers import FLOAT
from boundcalc.statements.covers.curve import LAST, STEP, Curve
from boundcalc.statements.covers.noise import RANGES, drawn_cover

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROOT = math.sqrt(2)
_STRIDES = (4, 2, 1)
_MOST_MOVES = 60

_Place = tuple[int, ...]


class Tunable(Protocol):
    """What the search needs of a lemma."""

    names: tuple[str, ...]

    def missed(self, ns: object, y: float, d: int, k: int, params: Mapping[str, float], /) -> float: ...


class Tuning(Curve):
    """The best parameters of one lemma on matrices of one shape, by log y."""

    def __init__(self, lemma: Tunable, d: int, k: int) -> None:
        super().__init__(d * k, self._log_count)
        self._lemma = lemma
        self._sides = d, k
        self._t = min(0.25, 1 / (d * k))  # the part of eps that the net is given; near the best for all sizes
        self._names = [name for name in lemma.names if name != "t"]
        self._found: dict[int, _Place] = {}
        self._params: dict[int, Mapping[str, float]] = {}

    def params(self, log_y: float) -> Mapping[str, float]:
        """Near-optimal ones: those of the nearest node."""
        i = min(LAST, max(0, round(log_y / STEP)))
        if i not in self._params:
            self._params[i] = self._at(self._place(i))
        return self._params[i]

    def log_cost(self, log_y: float) -> float:
        """As of any curve; beyond the last node the net still grows."""
        found = super().log_cost(log_y)
        if log_y <= LAST * STEP:
            return found
        net = math.log(2 / self._t)
        return math.log(math.exp(found) + math.log((net + log_y) / (net + LAST * STEP)))

    def _log_count(self, log_y: float) -> float:
        y = math.exp(log_y)
        missed = self._missed(y / (1 - self._t), self.params(log_y))
        d, k = self._sides
        return math.log(drawn_cover(FLOAT, d * k, y, self._t, missed))

    def _missed(self, y: float, params: Mapping[str, float]) -> float:
        return self._lemma.missed(FLOAT, y, *self._sides, params)

    def _at(self, place: _Place) -> dict[str, float]:
        """The parameters at a place of the grid."""
        found = {name: values[j] for name, values, j in zip(self._names, self._grid, place, strict=True)}
        found["t"] = self._t
        return found

    @cached_property
    def _grid(self) -> list[list[float]]:
        """Powers of sqrt 2 in units of the sides, and a = 0 as the least a."""
        units = {"a": (sum(self._sides) + 1) / 128, "s": max(self._sides) / 1024, "r": 1 / 1024}
        return [
            [
                min(max(0.0 if name == "a" and j == 0 else units[name] * power, RANGES[name][0]), RANGES[name][1])
                for j, power in enumerate([1.0 / _ROOT, *_POWERS] if name == "a" else _POWERS)
            ]
            for name in self._names
        ]

    def _place(self, i: int) -> _Place:
        """By descent from between the places of two coarser nodes, so that what is found does not depend on who asks first."""
        i = min(i, _LAST_TUNED)
        if i not in self._found:
            near = i & -i  # how far the coarser nodes are
            if i and i + near <= _LAST_TUNED:
                sides = zip(self._place(i - near), self._place(i + near), strict=True)
                start, strides = tuple((low + high) // 2 for low, high in sides), _STRIDES[-1:]
            else:
                start, strides = self._place(i - near) if i else self._first(), _STRIDES
            self._found[i] = self._descend(math.exp(i * STEP) / (1 - self._t), start, strides)
        return self._found[i]

    def _first(self) -> _Place:
        return tuple({"a": 12, "s": 13, "r": 15}[name] for name in self._names)

    def _descend(self, y: float, place: _Place, strides: Sequence[int]) -> _Place:
        known: dict[_Place, float] = {}

        def cost(at: _Place) -> float:
            if at not in known:
                known[at] = self._missed(y, self._at(at))
            return known[at]

        best = cost(place)
        for stride in strides:
            for _ in range(_MOST_MOVES):
                least, other = min((cost(other), other) for other in _neighbours(place, stride))
                if least >= best:
                    break
                best, place = least, other
        return place


_LAST_TUNED = 24
"""From y = e^12 on the parameters stay: covers by volume are as good there, and little of a chain is."""
_HIGHEST = 60
_POWERS = [_ROOT**j for j in range(_HIGHEST + 1)]


def _neighbours(place: _Place, stride: int) -> Iterator[_Place]:
    for axis, j in enumerate(place):
        for moved in (j - stride, j + stride):
            if 0 <= moved <= _HIGHEST:
                yield (*place[:axis], moved, *place[axis + 1 :])
    if len(place) == 3:  # s and r together: heavier tails want a narrower body
        a, s, r = place
        for moved in (-stride, stride):
            if 0 <= s + moved <= _HIGHEST and 0 <= r + moved <= _HIGHEST:
                yield a, s + moved, r + moved


@lru_cache(maxsize=4096)
def tuning(lemma: Tunable, d: int, k: int) -> Tuning:
    """One per lemma and shape."""
    return Tuning(lemma, d, k)


class NoiseTuning(Tuning):
    """The same for noise (V): divergences instead of counts, and no net."""

    def __init__(self, lemma: Tunable, d: int, k: int) -> None:
        super().__init__(lemma, d, k)
        self._t = 0.0

    def log_cost(self, log_y: float) -> float:
        return Curve.log_cost(self, log_y)

    def _log_count(self, log_y: float) -> float:
        cost = self._missed(math.exp(log_y), self.params(log_y))
        return math.log(max(cost, _LEAST_COST))

    def _place(self, i: int) -> _Place:
        return super()._place(i) if self._names else ()

    def _at(self, place: _Place) -> dict[str, float]:
        found = super()._at(place)
        del found["t"]
        return found


_LEAST_COST = 1e-9


@lru_cache(maxsize=4096)
def noise_tuning(lemma: Tunable, d: int, k: int) -> NoiseTuning:
    """One per law and shape."""
    return NoiseTuning(lemma, d, k)
