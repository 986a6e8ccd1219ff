"""Norm budgets: how large the weights of each kind, block and head may be."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting import validate

JSON_NAMES = {
    "op": "op",
    "F": "fro",
    "21": "two_one",
    "21T": "two_one_t",
    "11": "one_one",
    "rank": "rank",
    "Sp": "schatten",
    "sup": "sup",
    "row": "row",
    "heads": "heads",
    "distance": "distance",
}
"""Names in norms files, beside the field names of `Budget`."""

SIZES = ("op", "fro", "two_one", "two_one_t", "one_one", "sup", "row", "heads")
"""The limits of a budget that are norms of the matrix itself."""

_NO_BUDGETS = 'norms: \'budgets\' must be an object like {"W_V": {"op": 1}}'
_ORDER = ("op", "fro", "two_one", "one_one")
_SYMBOL = {name: symbol for symbol, name in JSON_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Budget:
    """Upper limits on the norms of one matrix (or vector); unset ones follow from the others.

    Attributes:
        op: spectral norm (l2 norm of a vector).
        fro: Frobenius norm.
        two_one: sum over columns (of x -> xW) of the column's l2 norm.
        two_one_t: the same for the transpose.
        one_one: sum of absolute entries.
        rank: rank.
        schatten: (p, R): the p-th powers of the singular values sum to at most R.
        sup: largest absolute entry (gains).
        row: largest l2 norm of a row (tables).
        heads: root of the sum over heads of the square of the longest part of a row (tables of values that heads look up).
        distance: the budget of W - M, for a reference M fixed before the data.
    """

    op: float | None = None
    fro: float | None = None
    two_one: float | None = None
    two_one_t: float | None = None
    one_one: float | None = None
    rank: int | None = None
    schatten: tuple[float, float] | None = None
    sup: float | None = None
    row: float | None = None
    heads: float | None = None
    distance: Budget | None = None

    def __post_init__(self) -> None:
        for name in SIZES:
            if getattr(self, name) is not None:
                validate.positive(f"norm {_SYMBOL[name]}", getattr(self, name), zero=True)
        validate.set_size(self, "rank", least=0, optional=True)
        if self.schatten is not None:
            if not isinstance(self.schatten, tuple) or len(self.schatten) != 2:
                raise InvalidSetting(f"Sp is a pair (p, sum of p-th powers), got {validate.shown(self.schatten)}")
            p, total = self.schatten
            if not 0 < validate.positive("Schatten p", p) <= 2:
                raise InvalidSetting(f"Schatten p must lie in (0, 2], got {p!r}")
            validate.positive("Schatten sum", total, zero=True)
        given = [(name, getattr(self, name)) for name in _ORDER if getattr(self, name) is not None]
        for (small, low), (large, high) in itertools.pairwise(given):
            if (high < low) is True:  # of symbols it may not be known
                raise InvalidSetting(
                    f"norms contradict: {_SYMBOL[large]} = {high:g} is below {_SYMBOL[small]} = {low:g}, "
                    f"but |W|_{_SYMBOL[small]} <= |W|_{_SYMBOL[large]} for every matrix"
                )

    def map(self, f: Callable[[float], float], sums: Callable[[float, float], float] | None = None) -> Budget:
        """Every norm through f, of the distance too; a Schatten sum through sums(p, sum), or f; ranks are kept."""
        values: dict[str, Any] = {name: f(value) for name in SIZES if (value := getattr(self, name)) is not None}
        if self.schatten is not None:
            p, total = self.schatten
            values["schatten"] = (p, f(total) if sums is None else sums(p, total))
        if self.distance is not None:
            values["distance"] = self.distance.map(f, sums)
        return replace(self, **values)

    def join(self, other: Budget, f: Callable[[Any, Any], Any] = max) -> Budget:
        """Each limit that both set, through f; what either leaves open is open (as are Schatten sums of two powers).

        With `max` it is the least budget that fits whatever fits either.
        """
        values: dict[str, Any] = {}
        for name in (*SIZES, "rank"):
            mine, theirs = getattr(self, name), getattr(other, name)
            values[name] = None if mine is None or theirs is None else f(mine, theirs)
        if self.schatten is not None and other.schatten is not None and self.schatten[0] == other.schatten[0]:
            values["schatten"] = (self.schatten[0], f(self.schatten[1], other.schatten[1]))
        if self.distance is not None and other.distance is not None:
            values["distance"] = self.distance.join(other.distance, f)
        return Budget(**values)

    def to_json(self) -> dict[str, Any]:
        """The limits that are set."""
        out: dict[str, Any] = {}
        for symbol, name in JSON_NAMES.items():
            value = getattr(self, name)
            if value is not None:
                out[symbol] = value.to_json() if isinstance(value, Budget) else value
        return out

    @classmethod
    def from_json(cls, where: str, data: object) -> Budget:
        """The budget of a JSON object such as {"op": 2, "21": 5}."""
        raw = validate.known_keys(where, data, JSON_NAMES)
        values: dict[str, Any] = {JSON_NAMES[key]: value for key, value in raw.items()}
        if "distance" in values:
            values["distance"] = cls.from_json(f"{where}: distance", values["distance"])
        if "schatten" in values:
            pair = values["schatten"]
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise InvalidSetting(f"{where}: Sp is a pair [p, sum of p-th powers], got {validate.shown(pair)}")
            values["schatten"] = tuple(pair)
        try:
            return cls(**values)
        except InvalidSetting as error:
            raise InvalidSetting(f"{where}: {error}") from None


_KEY = re.compile(
    r"(?P<kind>[^\W\d]\w*(\.[^\W\d]\w*)?)(\[(?P<block>0|[1-9][0-9]{0,17})(,(?P<head>0|[1-9][0-9]{0,17}))?\])?"
)


def place_of(key: str) -> tuple[str, int | None, int | None]:
    """Kind, block and head of a norm's key.

    There is one way to write a place, so that two keys are two places: a key that is spelt otherwise would be looked up
    by nobody, and the knob C taken in its stead.
    """
    found = _KEY.fullmatch(key) if isinstance(key, str) else None
    if found is None:
        raise InvalidSetting(
            f"a norm's key is like W_V, W_V[3] or W_V[3,0], without spaces and leading zeros; got {validate.shown(key)}"
        )
    block, head = found["block"], found["head"]
    return found["kind"], None if block is None else int(block), None if head is None else int(head)


def place_named(kind: str, block: int | None = None, head: int | None = None) -> str:
    """The key of a budget: what `place_of` takes apart."""
    if block is None:
        return kind
    return f"{kind}[{block}]" if head is None else f"{kind}[{block},{head}]"


@dataclass(frozen=True)
class Norms:
    """Budgets by kind, block and head, and the knob C for all that is not given.

    Keys are "W_V" (every block), "W_V[3]" (block 3) and "W_V[3,0]" (its head 0); the most particular one
    counts. `C` sets the spectral and (2,1) norm of matrices, the token table's too, the sup norm of gains, the row
    norm of tables and the l2 norm of biases. `measured` budgets were read off trained weights, which a bound must pay for.
    `failure` is the chance that one of them is too small (norms found by random probes): delta pays for it.
    """

    C: float | None = None
    budgets: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    measured: bool = False
    failure: float = 0.0

    def __post_init__(self) -> None:
        if self.C is not None:
            validate.positive("C", self.C)
        if not isinstance(self.budgets, Mapping):
            raise InvalidSetting(_NO_BUDGETS)
        object.__setattr__(self, "budgets", dict(self.budgets))  # what was checked stays as it is
        validate.flag("measured", self.measured)
        if validate.positive("failure", self.failure, zero=True) >= 1 or (self.failure and not self.measured):
            raise InvalidSetting("a chance of failure is below 1, and goes with measured norms")
        for key, budget in self.budgets.items():
            place_of(key)
            if not isinstance(budget, Budget):
                raise InvalidSetting(f"norms of {key} must be a Budget, got {validate.shown(budget)}")

    def __repr__(self) -> str:
        from boundcalc.setting.brief import of_norms

        return f"Norms({of_norms(self)})"

    @cached_property
    def _knob(self) -> Budget:
        return Budget(op=self.C, two_one=self.C, sup=self.C, row=self.C, heads=self.C)

    @cached_property
    def headed(self) -> bool:
        """Whether any budget is given for a single head."""
        return any("," in key for key in self.budgets)

    def place(self, kind: str, block: int | None = None, head: int | None = None) -> str | None:
        """The key whose budget counts for one matrix: the most particular one; None where the knob does."""
        if block is not None:
            if head is not None and (key := f"{kind}[{block},{head}]") in self.budgets:
                return key
            if (key := f"{kind}[{block}]") in self.budgets:
                return key
        return kind if kind in self.budgets else None

    def find(self, kind: str, block: int | None = None, head: int | None = None) -> Budget:
        """The budget of one matrix."""
        key = self.place(kind, block, head)
        if key is not None:
            return self.budgets[key]
        if self.C is None:
            where = place_named(kind, block, head)
            raise InvalidSetting(
                f"no norm budget for {where}: set the knob C (--C 1), or give {kind} in the norms file"
            )
        return self._knob

    def scaled(self, factor: float) -> Norms:
        """Every budget times a factor (ranks kept), the knob too."""
        scaled = {
            key: budget.map(lambda x: x * factor, lambda p, total: total * factor**p)
            for key, budget in self.budgets.items()
        }
        return Norms(None if self.C is None else self.C * factor, scaled, self.measured, self.failure)

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a norms file."""
        out: dict[str, Any] = {}
        if self.C is not None:
            out["C"] = self.C
        if self.budgets:
            out["budgets"] = {key: budget.to_json() for key, budget in self.budgets.items()}
        if self.measured:
            out["measured"] = True
        if self.failure:
            out["failure"] = self.failure
        return out

    @classmethod
    def from_json(cls, data: object) -> Norms:
        """Norms from the JSON object of a norms file."""
        raw = validate.known_keys("norms", data, ["C", "budgets", "measured", "failure"])
        budgets = raw.get("budgets", {})
        if not isinstance(budgets, Mapping):
            raise InvalidSetting(_NO_BUDGETS)
        parsed = {str(key): Budget.from_json(f"norms of {key}", value) for key, value in budgets.items()}
        return cls(raw.get("C"), parsed, raw.get("measured", False), raw.get("failure", 0.0))
