"""Boolean functions of a few bits: tables, symmetric functions, their true support and their structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from boundcalc.base.errors import InvalidSetting

_MOST_TABLE = 16
"""Variables of a truth table: it has 2^s rows."""


@dataclass(frozen=True)
class SparseFunction:
    """A function of s named bits.

    Attributes:
        variables: which bits of the sequence it reads, counted from 0; variable i of the function is bit variables[i].
        table: 2^s values; entry k is the value where variable i is bit i of k (variable 0 the lowest). Empty for
            symmetric functions, which need no table.
        profile: s + 1 values: entry h is the value where h literals are true.
        negated: for symmetric functions, whether the literal of variable i is its negation.
    """

    variables: tuple[int, ...]
    table: tuple[int, ...] = ()
    profile: tuple[int, ...] = ()
    negated: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        s = len(self.variables)
        if len(set(self.variables)) != s or any(v < 0 for v in self.variables):
            raise InvalidSetting(f"variables must be different numbers from 0 on, got {list(self.variables)}")
        if self.table and len(self.table) != 1 << s:
            raise InvalidSetting(f"a truth table of {s} variables has {1 << s} entries, got {len(self.table)}")
        if not self.table and (len(self.profile) != s + 1 or len(self.negated) != s):
            raise InvalidSetting(f"a symmetric function of {s} variables has {s + 1} values, got {len(self.profile)}")

    @property
    def arity(self) -> int:
        """S."""
        return len(self.variables)

    @property
    def constant(self) -> bool:
        """Whether it has one value only."""
        return len(set(self.table or self.profile)) == 1

    def values(self, bits: np.ndarray) -> np.ndarray:
        """Values 0 and 1 on sequences of bits (n, T)."""
        chosen = np.asarray(bits)[..., list(self.variables)].astype(np.int64)
        if self.table:
            rows = chosen @ (1 << np.arange(self.arity, dtype=np.int64))
            return np.asarray(self.table, dtype=np.int64)[rows]
        literals = chosen ^ np.asarray(self.negated, dtype=np.int64)
        return np.asarray(self.profile, dtype=np.int64)[literals.sum(-1)]

    def tabulated(self) -> SparseFunction:
        """The same by its truth table."""
        if self.table:
            return self
        few(self.arity)
        rows = (np.arange(1 << self.arity)[:, None] >> np.arange(self.arity)) & 1
        plain = SparseFunction(tuple(range(self.arity)), (), self.profile, self.negated)
        return SparseFunction(self.variables, tuple(int(v) for v in plain.values(rows)))

    def minimised(self) -> SparseFunction:
        """The same function of the bits it depends on (a symmetric function depends on all, or on none)."""
        if not self.table:
            return SparseFunction((), (self.profile[0],)) if self.constant else self
        table = np.asarray(self.table)
        keep = [i for i in range(self.arity) if _depends(table, i)]
        rows = np.zeros(1 << len(keep), dtype=np.int64)
        for new, old in enumerate(keep):
            rows |= ((np.arange(rows.size) >> new) & 1) << old
        return SparseFunction(tuple(self.variables[i] for i in keep), tuple(int(v) for v in table[rows]))

    @cached_property
    def symmetric(self) -> SparseFunction | None:
        """The same function by its profile, if it is symmetric, perhaps after negating inputs.

        If f is symmetric in literals l_0, ..., l_(s-1) then, for each i, swapping x_0 with l_i (relative to l_0) leaves
        f as it is. That fixes every sign but those for which both swaps do; these are tried in turn.
        """
        if not self.table:
            return self
        if self.arity == 0:
            return None
        table = np.asarray(self.table)
        options = [[0], *(_swaps(table, i) for i in range(1, self.arity))]
        if not all(options):
            return None
        free = [i for i, signs in enumerate(options) if len(signs) > 1]
        # Where both swaps leave f alone for x_i and for x_j, f depends on them through a parity, which takes any signs,
        # so one try suffices; the others are tried anyway while they are few.
        for choice in range(1 << min(len(free), 4)):
            signs = [row[0] for row in options]
            for place, i in enumerate(free[:4]):
                signs[i] = (choice >> place) & 1
            profile = _profile(table, signs)
            if profile is not None:
                return SparseFunction(self.variables, (), profile, tuple(bool(b) for b in signs))._plainest()
        return None

    def _plainest(self) -> SparseFunction:
        """Negating every literal reverses the profile: take fewer negations."""
        if 2 * sum(self.negated) <= self.arity:
            return self
        return SparseFunction(self.variables, (), self.profile[::-1], tuple(not b for b in self.negated))

    @property
    def changes(self) -> int:
        """How often the profile changes as literals become true (1: monotone, a threshold)."""
        return sum(a != b for a, b in zip(self.profile, self.profile[1:], strict=False))

    @property
    def structure(self) -> str:
        """What it is: "monotone symmetric", "symmetric" or "general", "after negating inputs" if it takes that."""
        profile = self.symmetric
        if profile is None:
            return "general"
        name = "monotone symmetric" if profile.changes == 1 else "symmetric"
        return f"{name} after negating inputs" if any(profile.negated) else name

    def describe(self) -> str:
        """One line."""
        profile = self.symmetric
        if profile is not None:
            signs = ", ".join(f"{'~' * neg}x{v}" for v, neg in zip(profile.variables, profile.negated, strict=True))
            where = [str(h) for h, value in enumerate(profile.profile) if value]
            return f"1 iff the number of true ones among {signs} is {' or '.join(where)}"
        digits = "".join(str(v) for v in self.table)
        return f"table {digits} on {', '.join(f'x{v}' for v in self.variables)}"


def from_table(text: str) -> SparseFunction:
    """A truth table written as 2^s digits 0 and 1; the entry of the all-zero row first, variable 0 changing fastest."""
    digits = text.replace(" ", "").replace("_", "")
    size = len(digits)
    if size < 2 or size & (size - 1) or set(digits) - {"0", "1"}:
        raise InvalidSetting(
            f"a truth table is 2, 4, 8, ... digits 0 and 1, got {text[:40]!r} ({size} characters); for instance 0110 "
            "is XOR"
        )
    s = size.bit_length() - 1
    few(s)
    return SparseFunction(tuple(range(s)), tuple(int(c) for c in digits))


def few(s: int) -> None:
    """Refuse tables that are too long."""
    if s > _MOST_TABLE:
        raise InvalidSetting(
            f"s = {s} is too large for a truth table of 2^s rows (at most {_MOST_TABLE} variables); "
            f"AND, OR, MAJ and PARITY of any number of bits or negated bits need no table"
        )


def _depends(table: np.ndarray, i: int) -> bool:
    rows = np.arange(table.size)
    return bool((table != table[rows ^ (1 << i)]).any())


def _swaps(table: np.ndarray, i: int) -> list[int]:
    """Signs b for which f(x_0 := x_i^b, x_i := x_0^b) = f."""
    rows = np.arange(table.size)
    first, other = rows & 1, (rows >> i) & 1
    rest = rows & ~(1 | (1 << i))
    return [b for b in (0, 1) if (table == table[rest | (other ^ b) | ((first ^ b) << i)]).all()]


def _profile(table: np.ndarray, signs: Sequence[int]) -> tuple[int, ...] | None:
    rows = np.arange(table.size) ^ sum(b << i for i, b in enumerate(signs))
    s = len(signs)
    weight = sum(((rows >> i) & 1) for i in range(s))
    profile: list[int] = []
    for h in range(s + 1):
        answers = set(table[weight == h].tolist())
        if len(answers) > 1:
            return None
        profile.append(int(answers.pop()))
    return tuple(profile)
