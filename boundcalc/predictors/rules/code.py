"""The prefix code of rules on T bits, fixed before any data: which rules there are, what they answer, what they cost.

A message is a path in a tree of choices whose branches have the probabilities of docs/certificates.md (G15), at most 1
at every fork. Names of functions are a convenience of this list: tables and trees know none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, isqrt
from typing import Any

import numpy as np

from boundcalc.base.errors import CertificateError
from boundcalc.predictors._statements import bits_of
from boundcalc.predictors.data import Array

CODE = "rules on bits, version 2"
"""Names this code in certificates."""
Tree = int | tuple[int, "Tree", "Tree"]
"""An answer (0, 1, or -1 for none), or a position with the trees for its bit 0 and its bit 1."""
Fixed = Mapping[int, int]
"""Positions with their bits: the inputs that show them."""
NAMES = {
    "AND": lambda ones, s: ones == s,
    "OR": lambda ones, s: ones > 0,
    "MAJ": lambda ones, s: 2 * ones > s,
    "XOR": lambda ones, s: ones % 2 == 1,
}
"""Functions of the number of ones among s bits."""
MAIN_WINDOW = 8
_WINDOWS: tuple[int | None, ...] = (MAIN_WINDOW, 4, 5, 6, 7, 10, 12, 16, None)
"""Domains: half-multiples of sqrt(T) around T/2 ones; None is all inputs."""
_MOST_READ = 12
"""Positions of a rule that is also priced as a table."""
_MOST_DEPTH, _MOST_LEAVES = 64, 4096


@dataclass(frozen=True)
class Rule:
    """A partial function of T bits: a decision tree on a domain, one of `_WINDOWS`."""

    T: int
    tree: Any
    window: int | None = MAIN_WINDOW

    def __post_init__(self) -> None:
        object.__setattr__(self, "tree", _as_tree(self.tree))
        if not 1 <= self.T <= 10**6 or len(self.paths) > _MOST_LEAVES:
            raise CertificateError(f"a rule is of 1 to 10^6 bits and has at most {_MOST_LEAVES} leaves")
        if self.window not in _WINDOWS:
            raise CertificateError(f"no rule of the code has the window {self.window!r}: there are {_WINDOWS}")
        for path, answer in self.paths:
            if answer not in (-1, 0, 1) or any(not 0 <= t < self.T for t, _ in path):
                raise CertificateError(f"a rule reads positions 0 to {self.T - 1} and answers 0, 1 or -1 (nothing)")
            if len({t for t, _ in path}) < len(path):
                raise CertificateError("a decision tree reads no position twice on one path")

    @classmethod
    def of_table(
        cls, T: int, positions: tuple[int, ...], table: tuple[int, ...], window: int | None = MAIN_WINDOW
    ) -> Rule:
        """The rule of a truth table: patterns of the positions are binary numbers, the first position first."""
        return cls(T, _smallest_tree(positions, np.reshape(table, (2,) * len(positions)))[1], window)

    @cached_property
    def paths(self) -> tuple[tuple[tuple[tuple[int, int], ...], int], ...]:
        """Every leaf: the positions and bits that lead to it, and its answer."""
        return tuple(itertools.islice(_paths(self.tree, ()), _MOST_LEAVES + 1))

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions that the tree reads."""
        return tuple(sorted({t for path, _ in self.paths for t, _ in path}))

    @property
    def silent(self) -> int:
        """Leaves without an answer."""
        return sum(answer < 0 for _, answer in self.paths)

    @property
    def ones(self) -> tuple[int, int]:
        """Least and largest number k of ones among the T bits: |k - T/2| <= window sqrt(T) / 2."""
        if self.window is None:
            return 0, self.T
        reach = isqrt(self.window**2 * self.T)  # |2k - T| is whole, so at most the root rounded down
        return max(0, -((reach - self.T) // 2)), min(self.T, (self.T + reach) // 2)

    def answers_on(self, fixed: Fixed) -> set[int]:
        """What the tree answers on inputs that show these bits."""
        return {answer for path, answer in self.paths if all(fixed.get(t, c) == c for t, c in path)}

    def answers(self, x: Array) -> Array:
        """1, 0, or -1 for no answer, for every row of bits."""
        if x.ndim != 2 or x.shape[1] != self.T or not bool(((x == 0) | (x == 1)).all()):
            raise CertificateError(f"the rule answers rows of {self.T} bits")
        answers = np.full(len(x), -1)
        for path, answer in self.paths:
            answers[np.all([x[:, t] == c for t, c in path], axis=0) if path else slice(None)] = answer
        low, high = self.ones
        ones = x.astype(np.int64).sum(1)
        return np.where((ones < low) | (ones > high), -1, answers)

    def errors(self, x: Array, y: Array) -> int:
        """e_r: examples on which it answers something else, or nothing."""
        if y.shape != (len(x),) or not bool(((y == 0) | (y == 1)).all()):  # -1 would agree with no answer
            raise CertificateError("the labels that a rule is compared with are 0 or 1, one for each input")
        return int((self.answers(x) != y).sum())

    @cached_property
    def table(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The positions that its answers depend on and their truth table, where they are few.

        As if it answered all inputs.
        """
        filled = _filled(self.tree)
        read = sorted({t for path, _ in _paths(filled, ()) for t, _ in path})
        if filled == -1 or len(read) > _MOST_READ:
            return None
        cells = np.empty((2,) * len(read), dtype=np.int64)
        for path, answer in _paths(filled, ()):
            bits = dict(path)
            cells[tuple(bits.get(t, slice(None)) for t in read)] = answer
        for place in reversed(range(len(read))):
            low, high = np.moveaxis(cells, place, 0)
            if (low == high).all():
                del read[place]
                cells = low
        return tuple(read), tuple(cells.ravel().tolist())

    @property
    def name(self) -> str | None:
        """The name of its function, where the code has one."""
        if self.table is None:
            return None
        table, s = self.table[1], len(self.table[0])
        return next(
            (name for name, f in NAMES.items() if table == tuple(f(k.bit_count(), s) for k in range(2**s))), None
        )

    @cached_property
    def probabilities(self) -> dict[str, Fraction]:
        """Of its messages by their kind: tree, table, and the name of its function."""
        domain = Fraction(1, 2 if self.window == MAIN_WINDOW else 16)
        shares = {"tree": domain / 4 * _of_tree(self.tree, self.T)}
        if self.table is not None:
            read, answers = self.table
            by_name = domain * _size(len(read)) / comb(self.T, len(read)) * self._of_removed(read)
            shares["table"] = by_name / 4 / 2 ** len(answers)
            if self.name is not None:
                shares[self.name] = by_name / 8
        return shares

    def _of_removed(self, read: tuple[int, ...]) -> Fraction:
        """Of the removed cubes that the paths without an answer are; these leave bits that the table reads open."""
        total = Fraction(1, 2)
        for path, answer in self.paths:
            if answer < 0:
                values = [c for t, c in path if t not in read]
                open_, u = len(read) - (len(path) - len(values)), len(values)
                factor = Fraction(1, 2 * 2 ** len(read)) * _size(u) / comb(self.T - len(read), u)
                if u:
                    factor *= max(Fraction(int(len(set(values)) == 1), 4), Fraction(1, 2 ** (u + 1)))
                total *= factor ** (2**open_)
        return total

    def price(self, *, names: bool = True) -> tuple[str, float]:
        """The kind of its likeliest message and B, its -log2, rounded up; without names: of a tree or table."""
        kinds = {kind: p for kind, p in self.probabilities.items() if names or kind not in NAMES}
        kind = max(kinds, key=lambda kind: kinds[kind])
        return kind, bits_of(kinds[kind])

    def __str__(self) -> str:
        """The function in words: "x3 & x17 & x90"."""
        if self.table is None or (self.name is None and self.price()[0] == "tree"):
            return f"the decision tree {_words(self.tree)}"
        read, answers = self.table
        bits = [f"x{t}" for t in read]
        if len(set(answers)) == 1:
            return f"the constant {answers[0]}"
        if self.name is None:
            return f"the truth table {''.join(map(str, answers))} of {', '.join(bits)}"
        sign = {"AND": " & ", "OR": " | ", "XOR": " ^ "}.get(self.name)
        return f"the majority of {', '.join(bits)}" if sign is None else sign.join(bits)


def _paths(tree: Tree, path: tuple[tuple[int, int], ...]) -> Iterator[tuple[tuple[tuple[int, int], ...], int]]:
    if isinstance(tree, int):
        yield path, tree
    else:
        for bit in (0, 1):
            yield from _paths(tree[1 + bit], (*path, (tree[0], bit)))


def _filled(tree: Tree) -> Tree:
    """The tree with every missing answer taken from its sibling."""
    if isinstance(tree, int):
        return tree
    low, high = _filled(tree[1]), _filled(tree[2])
    return high if low in (-1, high) else low if high == -1 else (tree[0], low, high)


def _of_tree(tree: Tree, left: int) -> Fraction:
    """Its probability where `left` positions are not read yet."""
    if isinstance(tree, int):
        return Fraction(1, 2) * (Fraction(1, 16) if tree < 0 else Fraction(15, 32))
    return Fraction(1, 2 * left) * _of_tree(tree[1], left - 1) * _of_tree(tree[2], left - 1)


def _size(count: int) -> Fraction:
    return Fraction(1, (count + 1) * (count + 2))


def _smallest_tree(positions: tuple[int, ...], table: Array) -> tuple[int, Tree]:
    """Of trees that read one position after the other, one of fewest leaves; the table has an axis for each."""
    if (table == table.flat[0]).all():
        return 1, int(table.flat[0])
    splits: list[tuple[int, int, Tree]] = []
    for i, t in enumerate(positions):
        low, high = (_smallest_tree(positions[:i] + positions[i + 1 :], table.take(c, i)) for c in (0, 1))
        splits.append((low[0] + high[0], i, (t, low[1], high[1])))
    size, _, tree = min(splits, key=lambda split: split[:2])
    return size, tree


def _words(tree: Tree) -> str:
    if isinstance(tree, int):
        return "?" if tree < 0 else str(tree)
    return f"(x{tree[0]}: {_words(tree[2])}, else {_words(tree[1])})"


def _as_tree(data: object, depth: int = 0) -> Tree:
    """A tree of tuples from one of lists."""
    if isinstance(data, int) and not isinstance(data, bool):
        return data
    if not isinstance(data, list | tuple) or len(data) != 3 or not isinstance(data[0], int) or depth >= _MOST_DEPTH:
        raise CertificateError(f"a decision tree is an answer or [position, tree, tree], at most {_MOST_DEPTH} deep")
    return data[0] + 0, _as_tree(data[1], depth + 1), _as_tree(data[2], depth + 1)
