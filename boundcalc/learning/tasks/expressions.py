"""Boolean functions of a few variables, from words, formulas or truth tables. Nothing is ever evaluated as code."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boundcalc.errors import InvalidSetting

MOST_VARIABLES = 16
_TOKEN = re.compile(r"\s*(?:(?P<var>x\d+)|(?P<word>[A-Za-z]+)|(?P<op>[~!&|^(),])|(?P<bit>[01]))")

_WORDS: dict[str, Callable[[Sequence[int]], int]] = {
    "AND": lambda bits: int(all(bits)),
    "OR": lambda bits: int(any(bits)),
    "PARITY": lambda bits: sum(bits) % 2,
    "MAJ": lambda bits: int(2 * sum(bits) > len(bits)),
}

Node = Callable[[dict[int, int]], int]


@dataclass(frozen=True, slots=True)
class BooleanFunction:
    """A truth table: entry k is the value where variable i is bit i of k (variable 0 the lowest)."""

    table: tuple[int, ...]

    @property
    def arity(self) -> int:
        """How many variables."""
        return len(self.table).bit_length() - 1

    @property
    def ones(self) -> list[int]:
        """Rows of value 1."""
        return [k for k, value in enumerate(self.table) if value]

    @property
    def zeros(self) -> list[int]:
        """Rows of value 0."""
        return [k for k, value in enumerate(self.table) if not value]

    def depends_on(self, variable: int) -> bool:
        """Whether flipping a variable ever matters."""
        return any(value != self.table[k ^ (1 << variable)] for k, value in enumerate(self.table))

    def reduced(self) -> BooleanFunction:
        """The same function of the variables it depends on."""
        keep = [v for v in range(self.arity) if self.depends_on(v)]
        return BooleanFunction(
            tuple(self.table[sum(((k >> i) & 1) << v for i, v in enumerate(keep))] for k in range(1 << len(keep)))
        )

    def arrangements(self) -> int:
        """How many different functions come from renaming the variables among themselves."""
        if self.arity > 6:
            by_weight = {(k.bit_count(), value) for k, value in enumerate(self.table)}
            return 1 if len(by_weight) == self.arity + 1 else math.factorial(self.arity)
        seen = {
            tuple(self.table[sum(((k >> i) & 1) << v for i, v in enumerate(order))] for k in range(len(self.table)))
            for order in itertools.permutations(range(self.arity))
        }
        return len(seen)


def named(word: str, arity: int) -> BooleanFunction:
    """AND, OR, PARITY or MAJ of so many variables."""
    _few(arity)
    rule = _WORDS[word]
    return BooleanFunction(tuple(rule([(k >> i) & 1 for i in range(arity)]) for k in range(1 << arity)))


def from_table(text: str) -> BooleanFunction:
    """A truth table written as 2^s digits 0 and 1, the entry of the all-zero row first."""
    size = len(text)
    if size < 2 or size & (size - 1) or set(text) - {"0", "1"}:
        raise InvalidSetting(f"a truth table is 2, 4, 8, ... digits 0 and 1, got {text[:40]!r}")
    _few(size.bit_length() - 1)
    return BooleanFunction(tuple(int(c) for c in text))


def from_expression(text: str) -> tuple[BooleanFunction, tuple[int, ...]]:
    """A formula such as "x3 & ~x7 | x11" or "MAJ(x0, x1, x2)": its table, and which variables it names, in order."""
    node, names = _Parser(text).whole()
    variables = tuple(sorted(names))
    if not variables:
        raise InvalidSetting(f"the expression {text!r} names no variable: write x0, x1, ...")
    _few(len(variables))
    rows = range(1 << len(variables))
    return BooleanFunction(tuple(node({v: (k >> i) & 1 for i, v in enumerate(variables)}) for k in rows)), variables


def _few(arity: int) -> None:
    if not 1 <= arity <= MOST_VARIABLES:
        raise InvalidSetting(f"s must lie between 1 and {MOST_VARIABLES} (a table has 2^s rows), got {arity}")


class _Parser:
    """Recursive descent: | below ^ below & below ~."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.wrong(at)
            self.tokens.append((str(match.lastgroup), match.group(match.lastgroup or 0), match.start()))
            at = match.end()
        self.next = 0
        self.depth = 0
        self.names: set[int] = set()

    def wrong(self, at: int) -> InvalidSetting:
        """The error that points at a place."""
        return InvalidSetting(
            f"cannot read {self.text[:60]!r} at character {at + 1}: expected variables x0, x1, ..., ~, &, ^, | and "
            f"brackets, or AND, OR, MAJ, PARITY of a list"
        )

    def peek(self) -> str:
        """The next symbol, or nothing at the end."""
        return self.tokens[self.next][1] if self.next < len(self.tokens) else ""

    def take(self) -> tuple[str, str, int]:
        """Read a token."""
        if self.next >= len(self.tokens):
            raise self.wrong(len(self.text))
        self.next += 1
        return self.tokens[self.next - 1]

    def whole(self) -> tuple[Node, set[int]]:
        """The whole text."""
        node = self.level(0)
        if self.next < len(self.tokens):
            raise self.wrong(self.tokens[self.next][2])
        return node, self.names

    def level(self, precedence: int) -> Node:
        """A chain of one operator."""
        symbols = ("|", "^", "&")
        if precedence == len(symbols):
            return self.atom()
        parts = [self.level(precedence + 1)]
        while self.peek() == symbols[precedence]:
            self.take()
            parts.append(self.level(precedence + 1))
        if len(parts) == 1:
            return parts[0]
        rule = _WORDS[("OR", "PARITY", "AND")[precedence]]
        return lambda bits: rule([part(bits) for part in parts])

    def atom(self) -> Node:
        """A variable, a constant, a negation, a bracket or a word with its list."""
        kind, text, at = self.take()
        self.depth += 1
        if self.depth > 100:
            raise InvalidSetting("the expression is nested more than 100 deep")
        try:
            if kind == "var":
                name = int(text[1:])
                self.names.add(name)
                return lambda bits: bits[name]
            if kind == "bit":
                value = int(text)
                return lambda bits: value
            if text in ("~", "!"):
                inner = self.atom()
                return lambda bits: 1 - inner(bits)
            if text == "(":
                inner = self.level(0)
                self.expect(")")
                return inner
            if kind == "word" and text.upper() in _WORDS:
                return self.call(_WORDS[text.upper()])
            raise self.wrong(at)
        finally:
            self.depth -= 1

    def call(self, rule: Callable[[Sequence[int]], int]) -> Node:
        """The list of a word."""
        self.expect("(")
        parts = [self.level(0)]
        while self.peek() == ",":
            self.take()
            parts.append(self.level(0))
        self.expect(")")
        return lambda bits: rule([part(bits) for part in parts])

    def expect(self, symbol: str) -> None:
        """Read one given symbol."""
        _, text, at = self.take()
        if text != symbol:
            raise self.wrong(at)
