"""Norm budgets: how large the weights of each kind, block and head may be."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import Count, Described, Length, Positive, check_fields, declare
from boundcalc.layers.base import place_named as place_named

SIZES = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear", "sup", "row", "heads")
"""The limits of a budget that are norms of the matrix itself."""

_ORDER = ("op", "fro", "two_one", "one_one")


def _limit(symbol: str) -> Any:
    """A limit that may be open, with its name in norms files."""
    return field(default=None, metadata={"json": symbol})


@dataclass(frozen=True, slots=True)
class Budget:
    """Upper limits on the norms of one matrix (or vector); unset ones follow from the others.

    Attributes:
        op: spectral norm (l2 norm of a vector).
        fro: Frobenius norm.
        two_one: sum over columns (of x -> xW) of the column's l2 norm.
        two_one_t: the same for the transpose.
        one_one: sum of absolute entries.
        nuclear: sum of the singular values.
        rank: rank.
        sup: largest absolute entry (gains).
        row: largest l2 norm of a row (tables).
        heads: root of the sum over heads of the square of the longest part of a row (tables of values that heads look
            up).
        distance: the budget of W - M, for a reference M fixed before the data.
    """

    op: Length | None = _limit("op")
    fro: Length | None = _limit("F")
    two_one: Length | None = _limit("21")
    two_one_t: Length | None = _limit("21T")
    one_one: Length | None = _limit("11")
    nuclear: Length | None = _limit("nuclear")
    rank: Count | None = _limit("rank")
    sup: Length | None = _limit("sup")
    row: Length | None = _limit("row")
    heads: Length | None = _limit("heads")
    distance: Budget | None = field(default=None, metadata={"json": "distance"})

    def __post_init__(self) -> None:
        check_fields(self, "norm ")
        limits = [(name, getattr(self, name)) for name in _ORDER if getattr(self, name) is not None]
        for (small, low), (large, high) in itertools.pairwise(limits):
            if (high < low) is True:  # of symbols it may not be known
                raise InvalidSetting(
                    f"norms contradict: {_SYMBOL[large]} = {high:g} is below {_SYMBOL[small]} = {low:g}, "
                    f"but |W|_{_SYMBOL[small]} <= |W|_{_SYMBOL[large]} for every matrix"
                )

    def map(self, f: Callable[[float], float]) -> Budget:
        """Every norm through f, of the distance too; ranks are kept."""
        values: dict[str, Any] = {name: f(value) for name in SIZES if (value := getattr(self, name)) is not None}
        return replace(self, **values, distance=self.distance and self.distance.map(f))

    def join(self, other: Budget) -> Budget:
        """The least budget that fits whatever fits either: what either leaves open is open."""
        values: dict[str, Any] = {}
        for name in (*SIZES, "rank"):
            pair = getattr(self, name), getattr(other, name)
            values[name] = None if None in pair else max(pair)
        near = self.distance is not None and other.distance is not None and self.distance.join(other.distance)
        return Budget(**values, distance=near or None)

    def left_out(self) -> list[str]:
        """The limits that are open: a file gives the others."""
        return [name for name in JSON_NAMES.values() if getattr(self, name) is None]


JSON_NAMES: Mapping[str, str] = {f.metadata["json"]: f.name for f in fields(Budget)}
"""Fields of `Budget` by their names in norms files."""
_SYMBOL = {name: symbol for symbol, name in JSON_NAMES.items()}

_KEY = re.compile(
    r"(?P<kind>[^\W\d]\w*(\.[^\W\d]\w*)?)(\[(?P<block>0|[1-9][0-9]{0,17})(,(?P<head>0|[1-9][0-9]{0,17}))?\])?"
)


def place_of(key: str) -> tuple[str, int | None, int | None]:
    """Kind, block and head of a norm's key.

    There is one way to write a place, so that two keys are two places.
    A key that is spelt otherwise would never be looked up, and the knob C be used instead.
    """
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    if match is None:
        raise InvalidSetting(
            f"a norm's key is like W_V, W_V[3] or W_V[3,0], without spaces and leading zeros; got {validate.shown(key)}"
        )
    block, head = match["block"], match["head"]
    return match["kind"], None if block is None else int(block), None if head is None else int(head)


@dataclass(frozen=True, repr=False)
class Norms(Described):
    """Norm budgets by kind, block and head; C is the default of every budget that is not set.

    Keys are "W_V" (every block), "W_V[3]" (block 3) and "W_V[3,0]" (its head 0); the most specific one
    counts. `C` sets the spectral and (2,1) norm of matrices, the token table's too, the sup norm of gains, the row
    norm of tables and the l2 norm of biases. `measured` budgets were read off trained weights; bounds are corrected for
    that. `failure` is the chance that one of them is too small (norms found by random probes); it is a part of delta.
    """

    C: Positive | None = declare(
        None,
        "norm budget: bounds the spectral and the $(2,1)$ norm of every matrix",
        latex="C",
        help="Default for every norm budget not set individually.",
        typical=(1.0, 3.0),
    )
    budgets: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    measured: bool = declare(False, "whether the budgets were read off trained weights")
    failure: Length = declare(0.0, "chance that a measured budget is too small")

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "budgets", dict(self.budgets))  # what was checked stays as it is
        if self.failure >= 1 or (self.failure and not self.measured):
            raise InvalidSetting("a chance of failure is below 1, and goes with measured norms")
        for key in self.budgets:
            place_of(key)

    @cached_property
    def _knob(self) -> Budget:
        return Budget(op=self.C, two_one=self.C, sup=self.C, row=self.C, heads=self.C)

    @cached_property
    def headed(self) -> bool:
        """Whether any budget is given for a single head."""
        return any("," in key for key in self.budgets)

    def place(self, kind: str, block: int | None = None, head: int | None = None) -> str | None:
        """The key whose budget counts for one matrix: the most particular one; None where the knob does."""
        places = (place_named(kind, block, head), place_named(kind, block), kind)
        return next((place for place in places if place in self.budgets), None)

    def find(self, kind: str, block: int | None = None, head: int | None = None) -> Budget:
        """The budget of one matrix."""
        key = self.place(kind, block, head)
        if key is None and self.C is None:
            raise InvalidSetting(f"no norm budget for {place_named(kind, block, head)}: set the default C (--C 1)")
        return self._knob if key is None else self.budgets[key]

    def scaled(self, factor: float) -> Norms:
        """Every budget times a factor (ranks kept), the knob too."""
        scaled = {key: budget.map(lambda x: x * factor) for key, budget in self.budgets.items()}
        return Norms(None if self.C is None else self.C * factor, scaled, self.measured, self.failure)
