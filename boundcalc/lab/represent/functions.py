"""Boolean functions of a few bits: truth tables, symmetric functions, and formulas, read with Python's own parser.

Nothing is ever evaluated as code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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
        """The number s of variables."""
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
        _few(self.arity)
        rows = (np.arange(1 << self.arity)[:, None] >> np.arange(self.arity)) & 1
        plain = SparseFunction(tuple(range(self.arity)), (), self.profile, self.negated)
        return SparseFunction(self.variables, tuple(int(v) for v in plain.values(rows)))

    def minimised(self) -> SparseFunction:
        """The same function of the bits it depends on (a symmetric function depends on all, or on none)."""
        if not self.table:
            return SparseFunction((), (self.profile[0],)) if self.constant else self
        table = np.asarray(self.table)
        every = np.arange(table.size)
        keep = [i for i in range(self.arity) if (table != table[every ^ (1 << i)]).any()]
        rows = np.zeros(1 << len(keep), dtype=np.int64)
        for new, old in enumerate(keep):
            rows |= ((np.arange(rows.size) >> new) & 1) << old
        return SparseFunction(tuple(self.variables[i] for i in keep), tuple(int(v) for v in table[rows]))

    @cached_property
    def symmetric(self) -> SparseFunction | None:
        """The same function by its profile, if it is symmetric, perhaps after negating inputs.

        If f is symmetric in literals l_0, ..., l_(s-1) then, for each i, swapping x_0 with l_i (relative to l_0) leaves
        f as it is. Such swaps generate all permutations, so signs that pass them all suffice. Where both signs of l_i
        pass, f is a parity, which takes any.
        """
        if not self.table:
            return self
        if self.arity == 0:
            return None
        table, rows, signs = np.asarray(self.table), np.arange(len(self.table)), [False]
        for i in range(1, self.arity):
            first, other, rest = rows & 1, (rows >> i) & 1, rows & ~(1 | (1 << i))
            fitting = [b for b in (0, 1) if (table == table[rest | (other ^ b) | ((first ^ b) << i)]).all()]
            if not fitting:
                return None
            signs.append(bool(fitting[0]))
        flipped = sum(b << i for i, b in enumerate(signs))
        profile = tuple(self.table[((1 << h) - 1) ^ flipped] for h in range(self.arity + 1))
        if 2 * sum(signs) > self.arity:  # negating every literal reverses the profile: take fewer negations
            profile, signs = profile[::-1], [not b for b in signs]
        return SparseFunction(self.variables, (), profile, tuple(signs))

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
    _few(s)
    return SparseFunction(tuple(range(s)), tuple(int(c) for c in digits))


def _few(s: int) -> None:
    """Refuse tables that are too long."""
    if s > _MOST_TABLE:
        raise InvalidSetting(
            f"s = {s} is too large for a truth table of 2^s rows (at most {_MOST_TABLE} variables); "
            f"AND, OR, MAJ and PARITY of any number of bits or negated bits need no table"
        )


# -- formulas

_MOST_CHARACTERS = 20_000
_RANGE = re.compile(r"[xX]?([0-9]{1,12})\s*\.\.\s*[xX]?([0-9]{1,12})")
_OPERATORS = {ast.BitAnd: "AND", ast.BitOr: "OR", ast.BitXor: "PARITY", ast.And: "AND", ast.Or: "OR"}
_NAMES = ("AND", "OR", "MAJ", "PARITY")


@dataclass(frozen=True, slots=True)
class _Node:
    """Part of a formula: "var" (index), "const" (0 or 1), "NOT", or one of AND, OR, MAJ, PARITY of its parts."""

    kind: str
    index: int = 0
    parts: tuple[_Node, ...] = ()


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


def _node(tree: ast.expr) -> _Node:
    match tree:
        case ast.Name(name) if re.fullmatch("[xX][0-9]{1,12}", name):
            return _Node("var", int(name[1:]))
        case ast.Constant(value) if value is not True and value is not False and value in (0, 1):
            return _Node("const", int(value))
        case ast.UnaryOp(ast.Invert() | ast.Not(), operand):
            return _Node("NOT", parts=(_node(operand),))
        case ast.BoolOp(op, values):
            return _Node(_OPERATORS[type(op)], parts=tuple(map(_node, values)))
        case ast.BinOp(_, op, _) if type(op) in _OPERATORS:
            return _Node(_OPERATORS[type(op)], parts=tuple(map(_node, _chain(tree, type(op)))))
        case ast.Call(ast.Name(name), args, []) if name.upper() in _NAMES and args:
            return _Node(name.upper(), parts=tuple(part for argument in args for part in _argument(argument)))
    raise ValueError(f"{ast.unparse(tree)[:40]!r} is no formula of bits")


def _chain(tree: ast.expr, op: type[ast.operator]) -> list[ast.expr]:
    """The operands of a chain of one operator, such as a ^ b ^ c."""
    operands: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, op):
        operands.append(tree.right)
        tree = tree.left
    return [tree, *reversed(operands)]


def _argument(tree: ast.expr) -> Iterator[_Node]:
    """A bit by number, a range, or a formula."""
    match tree:
        case ast.Constant(int(value)) if not isinstance(value, bool) and value >= 0:
            yield _Node("var", value)
        case ast.Call(ast.Name("span"), [ast.Constant(int(first)), ast.Constant(int(last))], []):
            if not first <= last <= first + _MOST_CHARACTERS:
                raise ValueError(f"the range {first}..{last} is empty or far too long")
            yield from (_Node("var", index) for index in range(first, last + 1))
        case _:
            yield _node(tree)


def _variables(node: _Node) -> set[int]:
    if node.kind == "var":
        return {node.index}
    return set().union(*map(_variables, node.parts))


def _without_not(node: _Node) -> tuple[_Node, bool]:
    """A node without the negations in front of it, and whether they are odd in number."""
    negated = False
    while node.kind == "NOT":
        negated, node = not negated, node.parts[0]
    return node, negated


def _symmetric(node: _Node) -> SparseFunction | None:
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


def _tabulated(node: _Node, names: tuple[int, ...]) -> SparseFunction:
    _few(len(names))
    rows = np.arange(1 << len(names))
    columns = {name: (rows >> i) & 1 for i, name in enumerate(names)}

    def values(part: _Node) -> np.ndarray:
        if part.kind in ("var", "const"):
            return columns[part.index] if part.kind == "var" else np.full(rows.size, part.index)
        parts = [values(child) for child in part.parts]
        return 1 - parts[0] if part.kind == "NOT" else _rule(part.kind, np.sum(parts, axis=0), len(parts)).astype(int)

    return SparseFunction(names, tuple(int(value) for value in values(node)))
