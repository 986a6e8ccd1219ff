"""Functions of s hidden bits among T."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.functions import SparseFunction, from_table
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks.base import ALIASES, Risk, Shape, Task, register_builtin

_NAMED = {"conjunction": "AND", "disjunction": "OR", "parity": "PARITY", "majority": "MAJ"}


@register_builtin
@dataclass(frozen=True)
class BooleanTask(Task):
    """A Boolean function of s coordinates of a row of T bits.

    Attributes:
        T: bits per sequence.
        s: how many matter, for a function by name.
        function: "conjunction", "disjunction", "parity", "majority", a truth table ("00010111") or a formula
            ("x0 & ~x1 | x2"; its variables stand for the hidden coordinates, whatever their numbers).
        law: "balanced" (the label is a fair bit; given it, the s coordinates are uniform over the rows of the truth
            table with that value) or "natural" (all bits fair).
        noise: probability that a label is flipped.
        coordinates: which coordinates matter; unset, drawn anew in every trial.
    """

    kind: ClassVar[str] = "boolean"
    T: int = 64
    s: int | None = None
    function: str = "conjunction"
    law: str = "balanced"
    noise: float = 0.0
    coordinates: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "T", validate.size("T", self.T))
        validate.choice("law", self.law, ("balanced", "natural"))
        if not isinstance(self.function, str):
            raise InvalidSetting(
                f"function must be a name, a truth table or a formula in quotes, got {self.function!r}"
            )
        if not 0 <= validate.fraction("noise", self.noise, ends=True) <= 0.5:
            raise InvalidSetting(f"label noise must lie in [0, 1/2], got {self.noise:g}")
        if self.s is not None:
            object.__setattr__(self, "s", validate.size("s", self.s))
        if self.function in _NAMED and self.s is None:
            object.__setattr__(self, "s", 3)
        if self.s is not None and self.s > self.T:
            raise InvalidSetting(f"s = {self.s} coordinates cannot hide among T = {self.T}: choose s <= T")
        arity = self.table.arity
        largest = max(self.table.variables, default=0)
        if largest >= self.T:
            raise InvalidSetting(
                f"{self.function!r} reads bit x{largest}, but T = {self.T}: use bits up to x{self.T - 1} (which bits "
                "of a trial matter is drawn, unless coordinates say so)"
            )
        if self.s is None:
            object.__setattr__(self, "s", arity)
        elif self.s != arity:
            raise InvalidSetting(
                f"the function has {arity} variables but s = {self.s}: leave s out, or make them agree"
            )
        if self.law == "balanced" and self.table.constant:
            raise InvalidSetting("a constant function has no balanced law: use law 'natural'")
        if self.coordinates is not None:
            chosen = tuple(validate.size("coordinate", c, least=0) for c in self.coordinates)
            object.__setattr__(self, "coordinates", chosen)
            if len(set(chosen)) != arity or max(chosen) >= self.T:
                raise InvalidSetting(f"coordinates must be {arity} different numbers below T = {self.T}, got {chosen}")

    @cached_property
    def table(self) -> SparseFunction:
        """The function as a truth table."""
        if self.function in _NAMED:
            return parse(f"{_NAMED[self.function]}(0..{(self.s or 3) - 1})").tabulated()
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
        if self.coordinates is not None:
            return {"coordinates": list(self.coordinates)}
        return {"coordinates": [int(c) for c in source.permutation(self.T)[: self.table.arity]]}

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        where = world["coordinates"]
        x = source.bits(n, self.T)
        if self.law == "balanced":
            y = source.integers(2, n)
            u = source.uniform(n)
            ones, zeros = source.array(self.rows_of(1)), source.array(self.rows_of(0))
            rows = y * ones[_below(u, len(ones))] + (1 - y) * zeros[_below(u, len(zeros))]
            for i, coordinate in enumerate(where):
                x[:, coordinate] = (rows >> i) & 1
        else:
            rows = source.array([0] * n)
            for i, coordinate in enumerate(where):
                rows = rows + x[:, coordinate] * source.array([1 << i])  # a number alone would wrap at 256, as bits do
            y = source.array(self.table.table)[rows]
        if self.noise:
            flipped = source.uniform(n) < self.noise
            y = y ^ flipped * 1
        return x, y

    def bayes_risk(self) -> Risk:
        return Risk(self.noise)

    def to_json(self) -> dict[str, Any]:
        data = super().to_json()
        if self.coordinates is not None:
            data["coordinates"] = list(self.coordinates)
        return {**data, "T": self.T, "s": self.s, "function": self.function}


def _below(u: Any, count: int) -> Any:
    """Indices below `count` from uniforms; rounding up to 1 is harmless."""
    index = u * count
    index = index.long() if hasattr(index, "long") else index.astype("int64")
    return index % count


ALIASES.update({name: {"task": "boolean", "function": name} for name in _NAMED})
