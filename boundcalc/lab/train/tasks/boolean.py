"""Functions of s hidden bits among T."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import ClosedShare, Size, check_fields
from boundcalc.lab.represent.functions import SparseFunction, from_table, parse
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks.base import FUNCTIONS, Shape, Task


@dataclass(frozen=True)
class BooleanTask(Task):
    """A Boolean function of s coordinates of a row of T bits; which ones is drawn anew in every trial.

    Attributes:
        T: bits per sequence.
        s: how many matter, for a function by name.
        function: "conjunction", "disjunction", "parity", "majority", a truth table ("00010111") or a formula
            ("x0 & ~x1 | x2"; its variables stand for the hidden coordinates, whatever their numbers).
        law: "balanced" (the label is a fair bit; given it, the s coordinates are uniform over the rows of the truth
            table with that value) or "natural" (all bits fair).
        noise: probability that a label is flipped.
    """

    kind: ClassVar[str] = "boolean"
    T: Size = 64
    s: Size | None = None
    function: str = "conjunction"
    law: Literal["balanced", "natural"] = "balanced"
    noise: ClosedShare = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.noise > 0.5:
            raise InvalidSetting(f"label noise must lie in [0, 1/2], got {self.noise:g}")
        if self.function in FUNCTIONS and self.s is None:
            object.__setattr__(self, "s", 3)
        if (self.s or 0) > self.T:
            raise InvalidSetting(f"s = {self.s} coordinates cannot hide among T = {self.T}: choose s <= T")
        largest = max(self.table.variables, default=0)
        if largest >= self.T:
            raise InvalidSetting(f"{self.function!r} reads bit x{largest}: use bits up to x{self.T - 1} (T = {self.T})")
        if self.s not in (None, self.table.arity):
            raise InvalidSetting(f"the function has {self.table.arity} variables but s = {self.s}: leave s out")
        object.__setattr__(self, "s", self.table.arity)
        if self.law == "balanced" and self.table.constant:
            raise InvalidSetting("a constant function has no balanced law: use law 'natural'")

    @cached_property
    def table(self) -> SparseFunction:
        """The function as a truth table."""
        if self.function in FUNCTIONS:
            return parse(f"{FUNCTIONS[self.function]}(0..{(self.s or 3) - 1})").tabulated()
        if self.function and set(self.function) <= {"0", "1"}:
            return from_table(self.function)
        return parse(self.function).tabulated()

    def rows_of(self, value: int) -> list[int]:
        """Rows of the truth table with a value."""
        return [row for row, bit in enumerate(self.table.table) if bit == value]

    @property
    def shape(self) -> Shape:
        return Shape("bits", self.T + 1, "binary")

    def world(self, source: Source) -> dict[str, Any]:
        return {"coordinates": [int(c) for c in source.permutation(self.T)[: self.table.arity]]}

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        where = world["coordinates"]
        x = source.bits(n, self.T)
        if self.law == "balanced":
            y = source.integers(2, n)
            u = source.uniform(n)
            tables = [source.array(self.rows_of(value)) for value in (0, 1)]
            zeros, ones = (table[(u * len(table)).long() % len(table)] for table in tables)
            rows = y * ones + (1 - y) * zeros
            for i, coordinate in enumerate(where):
                x[:, coordinate] = (rows >> i) & 1
        else:
            bits = (x[:, coordinate].long() << i for i, coordinate in enumerate(where))
            rows = sum(bits, start=source.array([0] * n))
            y = source.array(self.table.table)[rows]
        return x, y ^ (source.uniform(n) < self.noise) * 1 if self.noise else y

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "T": self.T, "s": self.s, "function": self.function}
