"""Formulas of bits, read with Python's own parser; nothing is ever evaluated as code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.functions import SparseFunction, few

_MOST_CHARACTERS = 20_000
_RANGE = re.compile(r"[xX]?([0-9]{1,12})\s*\.\.\s*[xX]?([0-9]{1,12})")
_OPERATORS = {ast.BitAnd: "AND", ast.BitOr: "OR", ast.BitXor: "PARITY", ast.And: "AND", ast.Or: "OR"}
_NAMES = ("AND", "OR", "MAJ", "PARITY")


@dataclass(frozen=True, slots=True)
class Node:
    """Part of a formula: "var" (index), "const" (0 or 1), "NOT", or one of AND, OR, MAJ, PARITY of its parts."""

    kind: str
    index: int = 0
    parts: tuple[Node, ...] = ()


def parse(text: str) -> SparseFunction:
    """The function of a formula such as "x3 & ~x7 | x11", "MAJ(1, 5, 9)" or "PARITY(0..7) ^ x9".

    Bits are x0, x1, ...; operators by precedence: ~, &, ^, |, and then `not`, `and`, `or`, as in Python. AND, OR, MAJ
    and PARITY take bits by number, ranges a..b (both ends included) and formulas.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidSetting('the expression is empty; for instance "x3 & ~x7 | x11"')
    if len(text) > _MOST_CHARACTERS:
        raise InvalidSetting(f"an expression may have {_MOST_CHARACTERS} characters, got {len(text)}")
    try:
        node = _node(ast.parse(_RANGE.sub(r"span(\1, \2)", text.strip()), mode="eval").body)
        names = tuple(sorted(_variables(node)))
        if not names:
            raise InvalidSetting(
                f"the expression {text.strip()[:60]!r} names no bit: it is constant; write x0, x1, ..."
            )
        return _symmetric(node) or _tabulated(node, names)
    except InvalidSetting:
        raise
    except (RecursionError, MemoryError):
        raise InvalidSetting("the expression is nested too deeply: write AND, OR, MAJ or PARITY of lists") from None
    except (SyntaxError, ValueError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InvalidSetting(
            f"cannot read the expression {' '.join(text.split())[:60]!r}: {why}; write bits x0, x1, ..., ~ & ^ | and "
            f"brackets, or AND, OR, MAJ, PARITY of bits, as in MAJ(1, 5, x9) or PARITY(0..7)"
        ) from None


def _node(tree: ast.expr) -> Node:
    match tree:
        case ast.Name(name) if re.fullmatch("[xX][0-9]{1,12}", name):
            return Node("var", int(name[1:]))
        case ast.Constant(value) if value is not True and value is not False and value in (0, 1):
            return Node("const", int(value))
        case ast.UnaryOp(ast.Invert() | ast.Not(), operand):
            return Node("NOT", parts=(_node(operand),))
        case ast.BoolOp(op, values):
            return Node(_OPERATORS[type(op)], parts=tuple(map(_node, values)))
        case ast.BinOp(_, op, _) if type(op) in _OPERATORS:
            return Node(_OPERATORS[type(op)], parts=tuple(map(_node, _chain(tree, type(op)))))
        case ast.Call(ast.Name(name), args, []) if name.upper() in _NAMES and args:
            return Node(name.upper(), parts=tuple(part for argument in args for part in _argument(argument)))
    raise ValueError(f"{ast.unparse(tree)[:40]!r} is no formula of bits")


def _chain(tree: ast.expr, op: type[ast.operator]) -> list[ast.expr]:
    """The operands of a chain of one operator, such as a ^ b ^ c."""
    operands: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, op):
        operands.append(tree.right)
        tree = tree.left
    return [tree, *reversed(operands)]


def _argument(tree: ast.expr) -> Iterator[Node]:
    """A bit by number, a range, or a formula."""
    match tree:
        case ast.Constant(int(value)) if not isinstance(value, bool) and value >= 0:
            yield Node("var", value)
        case ast.Call(ast.Name("span"), [ast.Constant(int(first)), ast.Constant(int(last))], []):
            if not first <= last <= first + _MOST_CHARACTERS:
                raise ValueError(f"the range {first}..{last} is empty or far too long")
            yield from (Node("var", index) for index in range(first, last + 1))
        case _:
            yield _node(tree)


def _variables(node: Node) -> set[int]:
    if node.kind == "var":
        return {node.index}
    return set().union(*map(_variables, node.parts))


def _without_not(node: Node) -> tuple[Node, bool]:
    """A node without the negations in front of it, and whether they are odd in number."""
    negated = False
    while node.kind == "NOT":
        negated, node = not negated, node.parts[0]
    return node, negated


def _symmetric(node: Node) -> SparseFunction | None:
    """AND, OR, MAJ, PARITY of different literals, or its negation, without a table."""
    node, flipped = _without_not(node)
    literals = sorted((part.index, negated) for part, negated in map(_without_not, node.parts) if part.kind == "var")
    if node.kind not in _NAMES or len({index for index, _ in literals}) < len(node.parts):
        return None
    counts = np.arange(len(literals) + 1)
    profile = tuple(int(value) ^ flipped for value in _rule(node.kind, counts, len(literals)))
    return SparseFunction(tuple(i for i, _ in literals), (), profile, tuple(negated for _, negated in literals))


def _rule(kind: str, ones: np.ndarray, count: int) -> np.ndarray:
    """Whether a name holds of `count` parts of which `ones` are 1."""
    rules = {"AND": ones == count, "OR": ones > 0, "PARITY": ones % 2 > 0, "MAJ": 2 * ones > count}
    return rules[kind]


def _tabulated(node: Node, names: tuple[int, ...]) -> SparseFunction:
    few(len(names))
    rows = np.arange(1 << len(names))
    columns = {name: (rows >> i) & 1 for i, name in enumerate(names)}

    def values(part: Node) -> np.ndarray:
        if part.kind in ("var", "const"):
            return columns[part.index] if part.kind == "var" else np.full(rows.size, part.index)
        parts = [values(child) for child in part.parts]
        return 1 - parts[0] if part.kind == "NOT" else _rule(part.kind, np.sum(parts, axis=0), len(parts)).astype(int)

    return SparseFunction(names, tuple(int(value) for value in values(node)))
