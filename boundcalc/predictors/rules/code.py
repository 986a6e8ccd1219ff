"""The prefix code of rules on T bits, fixed before any data: which rules there are, what they answer, what they cost.

A message is a path in a tree whose branches have these probabilities, which sum to at most 1 at every fork:

- how many positions s the rule reads, 1/((s+1)(s+2)); which, 1/C(T, s);
- its answers: AND, OR, MAJ or XOR of the bits read, 1/8 each; the negation of one of these, 1/16 each; or a truth table,
  1/4, all 2^(2^s) tables alike;
- its domain, by the number of ones among the T - s other bits: within 4 sqrt(T) of the mean, 1/2; within 2, 5/2, 3, 7/2, 5,
  6 or 8 sqrt(T), or all inputs, 1/16 each;
- how many cubes are removed, k with 2^-(k+1); each is a pattern of the bits read (2^s alike), u other positions
  (1/((u+1)(u+2)), which: 1/C(T-s, u)) and, for u >= 1, their values: one value for all (1/4 each), or any (2^-(u+1)).

The rule answers where its domain does and no cube was removed. Names of functions are a convenience of this list: B of the
truth table is what the rule costs for somebody who knows no name.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb, isqrt
from typing import Any

import numpy as np
from flint import arb, fmpz

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import upper_float
from boundcalc.predictors.certificate import object_of
from boundcalc.predictors.data import Array

NAMES = ("AND", "OR", "MAJ", "XOR", "not AND", "not OR", "not MAJ", "not XOR")
TABLE = "table"
MAIN_WINDOW = 8
WINDOWS: tuple[int | None, ...] = (MAIN_WINDOW, 4, 5, 6, 7, 10, 12, 16, None)
"""Domains: half-multiples of sqrt(T) around the mean number of ones; None is all inputs."""
_MOST_READ = 16


@dataclass(frozen=True)
class Cube:
    """Inputs whose read bits show `pattern` and whose `positions` show `values`."""

    pattern: tuple[int, ...]
    positions: tuple[int, ...] = ()
    values: tuple[int, ...] = ()

    def contains(self, read: Array, x: Array) -> Array:
        """Which rows of x, with the read bits `read`, lie in it."""
        inside = (read == np.array(self.pattern, dtype=read.dtype)).all(1)
        return inside & (x[:, list(self.positions)] == np.array(self.values, dtype=x.dtype)).all(1)

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {"pattern": _text(self.pattern), "positions": list(self.positions), "values": _text(self.values)}

    @classmethod
    def from_json(cls, data: object) -> Cube:
        """Read strictly; `Rule` checks that it fits."""
        raw = object_of("a cube", data, ("pattern", "positions", "values"))
        found = cls(_bits("pattern", raw["pattern"]), _positions(raw["positions"]), _bits("values", raw["values"]))
        if len(found.positions) != len(found.values):
            raise CertificateError("a cube has as many values as positions")
        return found


@dataclass(frozen=True)
class Rule:
    """A partial function of T bits.

    Attributes:
        T: bits of an input.
        positions: the bits it reads, in rising order.
        table: its answer for each pattern, patterns read as binary numbers, the first position first.
        window: its domain, one of `WINDOWS`.
        removed: cubes on which it has no answer.
    """

    T: int
    positions: tuple[int, ...]
    table: tuple[int, ...]
    window: int | None = MAIN_WINDOW
    removed: tuple[Cube, ...] = ()

    def __post_init__(self) -> None:
        s = len(self.positions)
        if s > _MOST_READ or len(self.table) != 2**s:
            raise CertificateError(f"a rule that reads {s} bits has 2^{s} answers, got {len(self.table)}")
        if list(self.positions) != sorted(set(self.positions)) or any(not 0 <= t < self.T for t in self.positions):
            raise CertificateError(f"a rule reads positions 0 to {self.T - 1} in rising order, got {self.positions}")
        if self.window not in WINDOWS:
            raise CertificateError(f"no rule of the code has the window {self.window!r}: there are {WINDOWS}")
        for cube in self.removed:
            self.check_cube(cube)

    def check_cube(self, cube: Cube) -> None:
        """Refuse a cube that is none of this rule's."""
        others = set(cube.positions)
        if len(cube.pattern) != len(self.positions) or len(others) != len(cube.positions):
            raise CertificateError("a cube has one bit per position that its rule reads, and no position twice")
        if others & set(self.positions) or any(not 0 <= t < self.T for t in others):
            raise CertificateError("the other positions of a cube are inputs that its rule does not read")

    @property
    def ones(self) -> tuple[int, int]:
        """Least and largest number of ones among the bits not read, on its domain."""
        return window_bounds(self.T, len(self.positions), self.window)

    @property
    def patterns(self) -> tuple[tuple[int, ...], ...]:
        """All patterns of the bits read, in the order of the table."""
        return tuple(_pattern(k, len(self.positions)) for k in range(len(self.table)))

    @property
    def name(self) -> str | None:
        """The name of its function, where the code has one."""
        return next((name for name in NAMES if _named(name, len(self.positions)) == self.table), None)

    def probability(self, *, names: bool = True) -> Fraction:
        """Of its likeliest message; without names, of the one that spells the table."""
        s, others = len(self.positions), self.T - len(self.positions)
        kind = Fraction(1, 4 * 2 ** (2**s))
        if names and self.name is not None:
            kind = max(kind, Fraction(1, 16 if self.name.startswith("not ") else 8))
        found = _size(s) / comb(self.T, s) * kind * Fraction(1, 2 if self.window == MAIN_WINDOW else 16)
        found /= 2 ** (len(self.removed) + 1)
        for cube in self.removed:
            u = len(cube.positions)
            found *= Fraction(1, 2**s) * _size(u) / comb(others, u)
            if u:
                found *= max(Fraction(1, 4) if len(set(cube.values)) == 1 else Fraction(0), Fraction(1, 2 ** (u + 1)))
        return found

    def bits(self, *, names: bool = True) -> float:
        """B = -log2 of that, rounded up."""
        odds = self.probability(names=names)
        ratio = arb(fmpz(odds.denominator)) / arb(fmpz(odds.numerator))
        return max(0.0, upper_float(ratio.log() / arb.const_log2()))

    def answers(self, x: Array) -> Array:
        """1, 0, or -1 for no answer, for every row of bits."""
        if x.ndim != 2 or x.shape[1] != self.T or not bool(((x == 0) | (x == 1)).all()):
            raise CertificateError(f"the rule answers rows of {self.T} bits")
        read = x[:, list(self.positions)].astype(np.int64)
        index = read @ (2 ** np.arange(len(self.positions))[::-1]).astype(np.int64)
        found = np.array(self.table, dtype=np.int64)[index]
        low, high = self.ones
        ones = x.astype(np.int64).sum(1) - read.sum(1)
        silent = (ones < low) | (ones > high)
        for cube in self.removed:
            silent |= cube.contains(read, x)
        return np.where(silent, -1, found)

    def errors(self, x: Array, y: Array) -> int:
        """e_r: examples on which it answers something else, or nothing."""
        return int((self.answers(x) != y).sum())

    def __str__(self) -> str:
        """The function in words: "x3 & x17 & x90"."""
        bits = [f"x{t}" for t in self.positions]
        name = self.name
        if len(set(self.table)) == 1:
            return f"the constant {self.table[0]}"
        if name is None:
            return f"truth table {_text(self.table)} of {', '.join(bits)}"
        plain = name.removeprefix("not ")
        sign = {"AND": " & ", "OR": " | ", "XOR": " ^ "}.get(plain)
        text = f"majority of {', '.join(bits)}" if sign is None else sign.join(bits)
        return text if plain == name else f"not ({text})"

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "T": self.T,
            "positions": list(self.positions),
            "table": _text(self.table),
            "window": self.window,
            "removed": [cube.to_json() for cube in self.removed],
        }

    @classmethod
    def from_json(cls, data: object) -> Rule:
        """Read strictly."""
        raw = object_of("a rule", data, ("T", "positions", "table", "window", "removed"))
        if not isinstance(raw["T"], int) or isinstance(raw["T"], bool) or not 1 <= raw["T"] <= 10**6:
            raise CertificateError(f"T of a rule is a whole number from 1, got {raw['T']!r}")
        window = raw["window"]
        if window is not None and (not isinstance(window, int) or isinstance(window, bool)):
            raise CertificateError(f"the window of a rule is a whole number or null, got {window!r}")
        if not isinstance(raw["removed"], list):
            raise CertificateError("the removed cubes of a rule are a list")
        removed = tuple(Cube.from_json(cube) for cube in raw["removed"])
        return cls(raw["T"], _positions(raw["positions"]), _bits("table", raw["table"]), window, removed)


def window_bounds(T: int, s: int, window: int | None) -> tuple[int, int]:
    """All k in 0 .. T - s with |k - (T - s)/2| <= window sqrt(T) / 2, in whole numbers."""
    others = T - s
    if window is None:
        return 0, others
    reach = isqrt(window**2 * T)  # |2k - others| is whole, so at most the root rounded down
    low = max(0, -((reach - others) // 2))
    return low, min(others, (others + reach) // 2)


def _size(count: int) -> Fraction:
    return Fraction(1, (count + 1) * (count + 2))


def _pattern(index: int, s: int) -> tuple[int, ...]:
    return tuple(index >> (s - 1 - i) & 1 for i in range(s))


@cache
def _named(name: str, s: int) -> tuple[int, ...]:
    """The truth table of a name: AND of nothing is 1; OR, MAJ and XOR of nothing are 0."""
    plain = name.removeprefix("not ")
    ones = [sum(_pattern(k, s)) for k in range(2**s)]
    found = {
        "AND": [n == s for n in ones],
        "OR": [n > 0 for n in ones],
        "MAJ": [2 * n > s for n in ones],
        "XOR": [n % 2 == 1 for n in ones],
    }[plain]
    return tuple(int(value == (plain == name)) for value in found)


def _text(bits: tuple[int, ...]) -> str:
    return "".join(map(str, bits))


def _bits(name: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, str) or set(value) - {"0", "1"}:
        raise CertificateError(f"{name} is a text of bits, got {value!r}")
    return tuple(map(int, value))


def _positions(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or any(not isinstance(t, int) or isinstance(t, bool) for t in value):
        raise CertificateError(f"positions are a list of whole numbers, got {value!r}")
    return tuple(value)
