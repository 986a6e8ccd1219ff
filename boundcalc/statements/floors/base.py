"""What constructions share: how large their weights may be, the value of a chain of blocks, and losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import ClassVar, NamedTuple

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.layers.merged import is_product
from boundcalc.setting import Budget, Setting
from boundcalc.setting.norms import place_of
from boundcalc.statements.comparison.network import of_plain_heads

_LEAST_BITS = 16
_KEPT = 1 << 10


def refusal(setting: Setting) -> str | None:
    """Why no construction is about a setting, or None."""
    a, norms = setting.architecture, setting.norms
    wanted = (
        (a.layers is None and (a.style == "edelman" or a.residual), "style edelman, or a style with residuals"),
        (a.normaliser.name == "softmax", "softmax"),
        (a.kv_heads in (None, a.heads), "heads with values of their own"),
        (setting.sample.lipschitz is None, "the ramp loss"),
        (not norms.measured and not setting.sample.measured, "norms and margins that are fixed before the data"),
        (all(budget.distance is None for budget in norms.budgets.values()), "norms that are not distances"),
        *(_of_residual if a.residual else _of_edelman)(setting),
    )
    missing = next((what for holds, what in wanted if not holds), None)
    return None if missing is None else f"floors are proved for {missing}"


def _of_edelman(setting: Setting) -> Iterator[tuple[bool, str]]:
    """What constructions A to E need."""
    a, keys = setting.architecture, setting.norms.budgets
    yield from of_plain_heads(setting)
    yield a.bits is None, "weights that are any real numbers"
    yield not any(place_of(key)[0] in ("W_Q", "W_K") for key in keys), "norms of W_QK"
    yield a.d >= 4 and a.seq_len >= 2, "a width of at least 4 and 2 rows"


def _of_residual(setting: Setting) -> Iterator[tuple[bool, str]]:
    """What construction N needs."""
    a, keys = setting.architecture, setting.norms.budgets
    yield max(a.vocabulary, a.d_patch) >= 2, "tokens or patches"
    yield a.positions != "fixed" and a.own_row is None, "positions that are learned or none, and no row of its own"
    yield a.variance_floor == 0, "a class without a floor of the variance"
    yield a.bits is None or a.bits >= _LEAST_BITS, f"weights of {_LEAST_BITS} bits or more"
    yield not any(is_product(place_of(key)[0]) for key in keys), "norms of single matrices"


@dataclass(frozen=True)
class Pattern:
    """Norms of a matrix of Frobenius norm `fro`, up to a factor: op, (2,1), its transpose's, (1,1), rank."""

    op: Number
    fro: Number
    two_one: Number
    two_one_t: Number
    one_one: Number
    rank: int

    def scale(self, ns: NumberSystem, budget: Budget) -> Number:
        """The largest factor within a budget."""
        factors: list[Number] = []
        for name in ("op", "fro", "two_one", "two_one_t", "one_one"):
            if (limit := getattr(budget, name)) is not None:
                factors.append(ns.number(limit) / getattr(self, name))
        if budget.rank is not None and budget.rank < self.rank:
            return ns.number(0)
        if budget.nuclear is not None:
            factors.append(ns.number(budget.nuclear) / (ns.sqrt(ns.number(self.rank)) * self.fro))
        return reduce(ns.minimum, factors)


class Room:
    """A setting in a number system: how large the weights of a construction may be."""

    def __init__(self, ns: NumberSystem, setting: Setting) -> None:
        a = setting.architecture
        self.ns, self.setting = ns, setting
        self.d, self.seq_len, self.depth, self.ball = a.d, a.seq_len, a.depth, a.normalisation == "ball"
        self.rank = a.d_head or a.d
        self.mean = a.readout == "mean"
        self.radius, self.gamma = ns.number(a.input_radius), ns.number(setting.sample.margin)
        self.temperature = ns.number(1.0 if a.normaliser.temperature is None else a.normaliser.temperature)

    @lru_cache(maxsize=_KEPT)  # noqa: B019 - rooms are small
    def budget(self, kind: str, block: int | None = None) -> Budget:
        """The budget of a matrix, of the first head where heads have their own."""
        return self.setting.norms.find(kind, block, 0 if kind in ("W_QK", "W_V") else None)

    @lru_cache(maxsize=_KEPT)  # noqa: B019 - as above
    def one(self, kind: str, block: int | None = None) -> Number:
        """The largest factor of a matrix with a single entry."""
        one = self.ns.number(1)
        return Pattern(one, one, one, one, one, 1).scale(self.ns, self.budget(kind, block))

    @lru_cache(maxsize=_KEPT)  # noqa: B019 - as above
    def scores(self, columns: int, entries: int, rows: int | None = None) -> Number:
        """The largest factor of k score columns of n entries +-1/(k sqrt(n)) in so many rows, over the temperature."""
        ns = self.ns
        if min(columns, rows or entries) > self.rank:
            return ns.number(0)
        k, n = ns.number(columns), ns.number(entries)
        fro, transposed = 1 / ns.sqrt(k), (rows or entries) / ns.sqrt(k * n)
        pattern = Pattern(fro, fro, ns.number(1), transposed, ns.sqrt(n), min(columns, rows or entries))
        return pattern.scale(ns, self.budget("W_QK", 0)) / self.temperature

    def column(self, one_one: Number) -> Number:
        """The largest factor of a value matrix of one unit column whose entries sum to `one_one`."""
        one = self.ns.number(1)
        return Pattern(one, one, one, one_one, one_one, 1).scale(self.ns, self.budget("W_V", 0))

    @cached_property
    def _later(self) -> list[tuple[Number, Number]]:
        return [(self.one("W_V", block), self.one("W_1", block)) for block in range(self.depth)]

    @cached_property
    def _readout(self) -> Number:
        return self.one("readout")

    def layer(self, block: int, z: Number, value: Number | None = None) -> Number:
        """What one channel of a block makes of the coordinate z of its pooled rows."""
        ns = self.ns
        first, second = self._later[block]
        x = (first if value is None else value) * ns.maximum(ns.number(0), z)
        x = second * (ns.minimum(ns.number(1), x) if self.ball else x)
        return ns.minimum(ns.number(1), x) if self.ball else x

    def chain(self, z: Number, value: Number) -> Number:
        """The output where all rows have coordinate z in the first block, and are equal."""
        y = self.layer(0, z, value)
        for block in range(1, self.depth):
            y = self.layer(block, y)
        return self._readout * y

    def rest(self, y: Number, start: int) -> Number:
        """The output where all rows are y e_1 before block `start`."""
        for block in range(start, self.depth):
            y = self.layer(block, y)
        return self._readout * y

    def worst(self, values: Sequence[Number], sign: int) -> Number:
        """The lowest value on cells of sign +1, the highest on those of sign -1."""
        return self.ns.minimum(*values) if sign > 0 else self.ns.maximum(*values)

    def ramp(self, output: Number) -> Number:
        """The loss of an output with label +1."""
        ns = self.ns
        return ns.minimum(ns.number(1), ns.maximum(ns.number(0), 1 - output / self.gamma))

    def steepness(self, value: Number) -> Number:
        """A Lipschitz constant of the output in the coordinate z of the first block."""
        product = value * self._later[0][1] * self._readout
        for first, second in self._later[1:]:
            product = product * first * second
        return product


class Curve(NamedTuple):
    """F2: members whose output on the two inputs of each pair is a function of one weight and of its negative."""

    pairs: int
    output: Callable[[Number], Number]
    slope: Number
    """A Lipschitz constant of the output."""
    radius: Number
    """Of the vector of weights."""


@dataclass(frozen=True)
class Construction(ABC):
    """Networks of a class that take a high or a low value on every cell, for every choice of signs.

    A subclass is a frozen dataclass of its free parameters, which come from an untrusted search.
    """

    TAG: ClassVar[str] = "name"
    KINDS: ClassVar[dict[str, type[Construction]]] = {}
    name: ClassVar[str]
    title: ClassVar[str]
    residual: ClassVar[bool] = False
    """Whether it is about styles with residuals, not about style edelman."""

    def unfit(self, room: Room) -> str | None:
        """Why it is not about a setting, or None."""
        if self.residual != room.setting.architecture.residual:
            style = "styles with residuals" if self.residual else "style edelman"
            return f"construction {self.name} is about {style}"
        return self.problem(room)

    @property
    def label(self) -> str:
        """Its name in files."""
        return self.name

    @abstractmethod
    def problem(self, room: Room) -> str | None:
        """Why the parameters do not fit a setting of its style, or None."""

    @abstractmethod
    def cells(self, room: Room) -> int:
        """N, inputs on which values are chosen freely."""

    @abstractmethod
    def output(self, room: Room, sign: int) -> Number:
        """A number below the output on cells of sign +1, above it on cells of sign -1."""

    def furthest(self, room: Room, sign: int) -> Number:
        """Above the output on cells of sign +1, below it on cells of sign -1."""
        return self.output(room, sign)

    def mirrored(self, room: Room) -> bool:
        """Whether every cell has a partner on which the sign counts as the other one: a coordinate is negated."""
        del room
        return True

    def sphere(self, room: Room) -> Curve | None:
        """Where its weights are any vector of some length, the outputs that they give."""
        del room
        return None


def whole(what: str, value: object, least: int, most: int) -> str | None:
    """What is wrong with a parameter that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        return f"{what} is a whole number from {least} to {most}, got {value!r}"
    return None


def share(what: str, value: object) -> str | None:
    """What is wrong with a parameter in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0 <= value <= 1:
        return f"{what} lies in [0, 1], got {value!r}"
    return None
