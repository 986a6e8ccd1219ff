"""How one map is heard through noise, level after level: what it tells, and how much noise it gets (G14). Not trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import NamedTuple

from boundcalc.base.numbers import FLOAT, log_add
from boundcalc.engine.options import Item
from boundcalc.statements import channels
from boundcalc.statements.covers import LEMMAS, Params
from boundcalc.statements.covers.curve import Curve
from boundcalc.statements.covers.tuning import tuning
from boundcalc.statements.noises import NOISES
from boundcalc.statements.noises import Noise as Law
from boundcalc.statements.targets import Target

LARGEST = 300.0
"""Log of a budget over the size of noise whose square floats can hold, and that of its inverse."""
_MOST_EXPONENT = 30
_STRIDES = (4, 1)


class _Told(Curve):
    """What Gaussian noise tells of a map at most, by the log of budget over size: of one law."""

    def __init__(self, law: Law, d: int, k: int) -> None:
        super().__init__(d * k, lambda log_z: math.log(max(self.exactly(log_z, self.params(log_z)), 1e-9)))
        self._law = law
        self._sides = d, k
        self._tuned = tuning(LEMMAS[law.centres], d, k, 1) if law.names else None  # type: ignore[arg-type]

    def params(self, log_z: float) -> Params:
        """Near-optimal ones: those of centres reached through noise of that size."""
        if self._tuned is None:
            return {}
        least = sum(self._sides) + 1.0
        found = self._tuned.params(log_z - math.log(least) / 2)
        found = self._tuned.params(log_z - math.log(least + 2 * found["a"]) / 2)
        return {name: found[name] for name in self._law.names}

    def exactly(self, log_z: float, params: Params) -> float:
        """As the checker counts it."""
        return self._law.missed(FLOAT, math.exp(min(max(log_z, -LARGEST), LARGEST)), *self._sides, params)

    def nearly(self, log_z: float) -> float:
        """Off the curve, where there is one."""
        if self._tuned is None or log_z <= 0:
            return self.exactly(log_z, self.params(log_z))
        return math.exp(self.log_cost(log_z))


@lru_cache(maxsize=4096)
def _told(law: str, d: int, k: int) -> _Told:
    """One per law and shape."""
    return _Told(NOISES[law], d, k)


class Noise(NamedTuple):
    """Noise with the exponent a: log of its precision, and its excess."""

    a: float
    log_precision: float
    excess: float


@lru_cache(maxsize=65536)
def _noise(d: int, k: int, at: int) -> Noise:
    """Noises on the spectral ball of d x k, from uniform to nearly Gaussian: the exponents that centres try."""
    sides = channels.Shape(d, k, 1)
    a = 0.0 if at == 0 else (d + k + 1) / 128 * _POWERS[at - 1]
    return Noise(a, math.log(channels.precision(FLOAT, sides, a)), channels.excess(FLOAT, sides, a))


_POWERS = [math.sqrt(2) ** j for j in range(_MOST_EXPONENT)]
FIRST = 7
"""Which of them is tried first."""


class Said(NamedTuple):
    """What a member says at one level, seen one way: its noise, the law of its outputs so far, and what they tell."""

    target: int
    law: str
    params: Params
    told: float


class Map:
    """One member of an item, as channels see it: at least one law."""

    def __init__(self, weight: float, index: int, target: Target, log_gain: float, laws: Container[str]) -> None:
        self.weight = weight
        self.index = index
        self.copies = channels.shape(target).copies
        self._sides = channels.shape(target)[:2]
        self._laws = [
            (law.reach(target).log + log_gain, name, _told(name, *law.sides(target)))
            for name, law in NOISES.items()
            if name in laws and channels.refuses(law, target) is None and law.tells_little(target)
        ]
        self._slopes: dict[float, float] = {}  # chains through the same points ask again
        self._exact: dict[float, tuple[float, str, Params]] = {}
        self._chose: dict[tuple[float, ...], int] = {}
        self.farthest = max((reach for reach, _, _ in self._laws), default=math.inf)

    def noise(self, at: int) -> Noise:
        """One of the noises to choose from."""
        return _noise(*self._sides, at)

    def told(self, log_total: float) -> float:
        """The least that a law gives at a sum of precisions, nearly."""
        return min([told.nearly(reach + log_total / 2) for reach, _, told in self._laws])

    def slope(self, log_total: float) -> float:
        """How fast that grows with the log of the sum."""
        if log_total not in self._slopes:
            self._slopes[log_total] = (self.told(log_total + _STEP) - self.told(log_total)) / _STEP
        return self._slopes[log_total]

    def exactly(self, log_total: float) -> tuple[float, str, Params]:
        """What the least of them gives, as the checker counts it; by which law."""
        if log_total not in self._exact:
            _, reach, name, told = min(
                ((told.nearly(reach + log_total / 2), reach, name, told) for reach, name, told in self._laws),
                key=itemgetter(0),
            )
            params = told.params(reach + log_total / 2)
            self._exact[log_total] = told.exactly(reach + log_total / 2, params), name, params
        return self._exact[log_total]

    def said(self, log_shares: Sequence[float], weights: Sequence[float]) -> list[Said]:
        """What it says at falling shares; a nat of level j weighs weights[j]."""
        found: list[Said] = []
        log_total = -math.inf
        excess = 0.0
        for log_share, noise in zip(log_shares, self._chosen(log_shares, weights), strict=True):
            log_total = log_add(log_total, noise.log_precision - 2 * log_share)
            excess += self.copies * noise.excess
            told, law, params = self.exactly(log_total)
            found.append(Said(self.index, law, {"a": noise.a, **params}, self.weight * (told + excess)))
        return found

    def _chosen(self, log_shares: Sequence[float], weights: Sequence[float]) -> list[Noise]:
        """The noise of every level: less of it tells more, now and for all levels to come, but costs less entropy.

        All levels together tell told(total), which is taken as linear in the log of the total around where it is.
        """
        chosen: list[Noise] = []
        at = FIRST
        slopes: list[float] = []
        log_total = -math.inf
        for j, log_share in enumerate(log_shares):
            log_total = log_add(log_total, self.noise(FIRST).log_precision - 2 * log_share)
            later = weights[j + 1] if j + 1 < len(weights) else 0.0
            slopes.append(max(0.0, weights[j] - later) * self.slope(log_total))
        log_total = -math.inf
        for j, log_share in enumerate(log_shares):
            key = log_total, *log_shares[j : j + 2], weights[j], *slopes[j : j + 2]
            if key not in self._chose:
                cost = partial(self._cost, log_total, log_shares[j : j + 2], weights[j], slopes[j : j + 2])
                self._chose[key] = _least(cost, at, _MOST_EXPONENT)
            at = self._chose[key]
            chosen.append(self.noise(at))
            log_total = log_add(log_total, chosen[-1].log_precision - 2 * log_share)
        return chosen

    def _cost(
        self, log_total: float, log_shares: Sequence[float], weight: float, slopes: Sequence[float], at: int
    ) -> float:
        """What a noise costs at a level, and does to what is told there and at the next."""
        noise = self.noise(at)
        now = log_add(log_total, noise.log_precision - 2 * log_shares[0])
        value = weight * self.copies * noise.excess + slopes[0] * now
        if len(slopes) > 1:
            value += slopes[1] * log_add(now, self.noise(FIRST).log_precision - 2 * log_shares[1])
        return value


_STEP = 0.25
"""Over how much of a log of precision a slope is taken."""


def _least(cost: Callable[[int], float], start: int, last: int) -> int:
    """Where a cost is least, downhill from a start."""
    best, value = start, cost(start)
    for stride in _STRIDES:
        for way in (stride, -stride):
            while 0 <= best + way <= last and (other := cost(best + way)) < value:
                best, value = best + way, other
    return best


def maps_of(item: Item, laws: Container[str]) -> Sequence[Map] | None:
    """The members of an item as channels see them; None where some member has no such way."""
    found: list[Map] = []
    for log_multiplicity, options in item.members:
        seen = {option.index: option.target for option in options if channels.seen(option.target)}
        ways = [Map(math.exp(log_multiplicity), i, target, item.log_gain, laws) for i, target in seen.items()]
        if not ways or any(way.farthest == math.inf for way in ways):
            return None
        found.append(ways[0])
    return found
