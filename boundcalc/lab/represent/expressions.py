"""Formulas over bits, read by a small parser; nothing is ever evaluated as code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.functions import SparseFunction, few

_MOST_CHARACTERS = 20_000
_MOST_NESTING = 100
_TOKEN = re.compile(r"\s*(?:(?P<var>[xX]\d+)|(?P<int>\d+)|(?P<dots>\.\.)|(?P<word>[A-Za-z_]+)|(?P<op>[~!&|^(),]))")
_INFIX = {"|": "OR", "^": "PARITY", "&": "AND"}
_WORDS = {"or": "|", "xor": "^", "and": "&"}
_NAMES = ("AND", "OR", "MAJ", "PARITY")


@dataclass(frozen=True, slots=True)
class Node:
    """Part of a formula: "var" (index), "const" (0 or 1), "NOT", or one of `_NAMES` over its arguments."""

    kind: str
    index: int = 0
    parts: tuple[Node, ...] = ()


def parse(text: str) -> SparseFunction:
    """The function of a formula such as "x3 & ~x7 | x11", "MAJ(1, 5, 9)" or "PARITY(0..7) ^ x9".

    Bits are x0, x1, ...; operators by precedence: ~ (or !, not), & (and), ^ (xor), | (or). AND, OR, MAJ and PARITY take
    bits by number, ranges a..b (both ends included) and formulas.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidSetting('the expression is empty; for instance "x3 & ~x7 | x11"')
    if len(text) > _MOST_CHARACTERS:
        raise InvalidSetting(f"an expression may have {_MOST_CHARACTERS} characters, got {len(text)}")
    node = _Parser(text).whole()
    names = tuple(sorted(_variables(node)))
    if not names:
        raise InvalidSetting(f"the expression {text.strip()[:60]!r} names no bit: it is constant; write x0, x1, ...")
    return _symmetric(node) or _tabulated(node, names)


def _variables(node: Node) -> set[int]:
    if node.kind == "var":
        return {node.index}
    return set().union(*(_variables(part) for part in node.parts))


def _literal(node: Node) -> tuple[int, bool] | None:
    """(bit, whether negated) of a bit or a negated one."""
    negated = False
    while node.kind == "NOT":
        negated, node = not negated, node.parts[0]
    return (node.index, negated) if node.kind == "var" else None


def _symmetric(node: Node) -> SparseFunction | None:
    """AND, OR, MAJ, PARITY of different literals, or its negation, without a table."""
    flipped = False
    while node.kind == "NOT":
        flipped, node = not flipped, node.parts[0]
    if node.kind not in _NAMES:
        return None
    literals = [_literal(part) for part in node.parts]
    found = [literal for literal in literals if literal is not None]
    if len(found) < len(literals) or len({index for index, _ in found}) < len(found):
        return None
    found.sort()
    profile = tuple(int(_rule(node.kind, h, len(found))) ^ flipped for h in range(len(found) + 1))
    return SparseFunction(tuple(i for i, _ in found), (), profile, tuple(b for _, b in found))


def _rule(kind: str, ones: Any, count: int) -> Any:
    """Whether a name holds of so many parts of which so many are 1; numbers, or arrays of them."""
    if kind == "AND":
        return ones == count
    if kind == "OR":
        return ones > 0
    return ones % 2 > 0 if kind == "PARITY" else 2 * ones > count


def _tabulated(node: Node, names: Sequence[int]) -> SparseFunction:
    few(len(names))
    rows = np.arange(1 << len(names))
    columns = {name: ((rows >> i) & 1).astype(np.int64) for i, name in enumerate(names)}
    return SparseFunction(tuple(names), tuple(int(v) for v in _evaluate(node, columns, rows.size)))


def _evaluate(node: Node, columns: dict[int, np.ndarray], size: int) -> np.ndarray:
    if node.kind == "var":
        return columns[node.index]
    if node.kind == "const":
        return np.full(size, node.index, dtype=np.int64)
    parts = [_evaluate(part, columns, size) for part in node.parts]
    if node.kind == "NOT":
        return 1 - parts[0]
    return _rule(node.kind, np.sum(parts, axis=0), len(parts)).astype(np.int64)


class _Parser:
    """Recursive descent: | below ^ below & below ~."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                self.wrong(at + len(text[at:]) - len(text[at:].lstrip()), "this character has no meaning here")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            at = match.end()
        self.next = 0
        self.nesting = 0

    def wrong(self, at: int, why: str) -> NoReturn:
        """Point at a place and say what is read there."""
        near = self.text[max(0, at - 20) : at + 20].strip()
        raise InvalidSetting(
            f"cannot read the expression at character {at + 1} (near {near!r}): {why}; write bits x0, x1, ..., "
            f"~ & ^ | and brackets, or AND, OR, MAJ, PARITY of bits, as in MAJ(1, 5, x9) or PARITY(0..7)"
        )

    def peek(self) -> tuple[str, str]:
        """Kind and text of the next token; ("end", "") at the end."""
        if self.next >= len(self.tokens):
            return "end", ""
        kind, text, _ = self.tokens[self.next]
        return kind, text

    def take(self) -> tuple[str, str, int]:
        """The next token, consumed."""
        if self.next >= len(self.tokens):
            self.wrong(len(self.text.rstrip()), "it ends too early")
        self.next += 1
        return self.tokens[self.next - 1]

    def whole(self) -> Node:
        """The whole text."""
        node = self.chain(0)
        if self.next < len(self.tokens):
            _, text, at = self.tokens[self.next]
            self.wrong(at, f"an operator is missing before {text!r}")
        return node

    def infix(self) -> str:
        """The operator that stands next, words included; "" for none."""
        kind, text = self.peek()
        if kind == "word":
            return _WORDS.get(text.lower(), "")
        return text if kind == "op" else ""

    def chain(self, level: int) -> Node:
        """A chain of one operator, as one node."""
        symbols = tuple(_INFIX)
        if level == len(symbols):
            return self.atom()
        parts = [self.chain(level + 1)]
        while self.infix() == symbols[level]:
            self.take()
            parts.append(self.chain(level + 1))
        return parts[0] if len(parts) == 1 else Node(_INFIX[symbols[level]], parts=tuple(parts))

    def atom(self) -> Node:
        """A bit, a constant, a negation, a bracket, or a name with its list."""
        kind, text, at = self.take()
        self.nesting += 1
        if self.nesting > _MOST_NESTING:
            self.wrong(at, f"brackets and negations are nested more than {_MOST_NESTING} deep")
        node = self._atom(kind, text, at)
        self.nesting -= 1
        return node

    def _atom(self, kind: str, text: str, at: int) -> Node:
        if kind == "var":
            return Node("var", self.number(text[1:], at))
        if kind == "int":
            if text in ("0", "1"):
                return Node("const", int(text))
            self.wrong(at, f"{text} is no bit here: write x{text}")
        if text in ("~", "!") or text.lower() == "not":
            return Node("NOT", parts=(self.atom(),))
        if text == "(":
            node = self.chain(0)
            self.expect(")")
            return node
        if kind == "word":
            if text.upper() not in _NAMES:
                self.wrong(at, f"{text!r} is no name known here")
            return self.call(text.upper())
        self.wrong(at, f"{text!r} stands where a bit should")

    def number(self, digits: str, at: int) -> int:
        """An index of at most twelve digits."""
        if len(digits) > 12:
            self.wrong(at, "no sequence has so many bits")
        return int(digits)

    def call(self, name: str) -> Node:
        """The list of a name."""
        self.expect("(")
        parts = self.argument()
        while self.peek()[1] == ",":
            self.take()
            parts += self.argument()
        self.expect(")")
        return Node(name, parts=tuple(parts))

    def argument(self) -> list[Node]:
        """A bit by number, a range a..b or xa..xb, or a formula."""
        kind, text = self.peek()
        after = self.tokens[self.next + 1][0] if self.next + 1 < len(self.tokens) else ""
        if kind not in ("int", "var") or (kind == "var" and after != "dots"):
            return [self.chain(0)]
        _, _, at = self.take()
        first = self.number(text.lstrip("xX"), at)
        if after != "dots":
            return [Node("var", first)]
        self.take()
        kind, text, at = self.take()
        if kind not in ("int", "var"):
            self.wrong(at, "a range is written a..b, as in 0..7")
        last = self.number(text.lstrip("xX"), at)
        if not first <= last <= first + _MOST_CHARACTERS:
            self.wrong(at, f"the range {first}..{last} is empty or far too long")
        return [Node("var", i) for i in range(first, last + 1)]

    def expect(self, symbol: str) -> None:
        """Read one given symbol."""
        _, text, at = self.take()
        if text != symbol:
            self.wrong(at, f"expected {symbol!r}, got {text!r}")
