"""Formulas over arrays, written down before they are computed.

What numbers of `ArraySystem` go through becomes a graph in which equal terms are one node. Only what a result needs is
then computed, block by block, in memory that stays in the cache; what varies along one axis alone once for that axis.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import FLOAT

BLOCK = 1 << 15
"""Points at once: few enough that intermediate arrays stay in the cache."""

_SAME_NAME = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "negative",
    "power",
    "square",
    "sqrt",
    "cbrt",
    "log",
    "log1p",
    "exp",
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (*_SAME_NAME, "expm1", "ceil", "minimum", "maximum")},
    "lgamma": lambda x, out: np.copyto(out, np.vectorize(math.lgamma)(x)),
}
_EITHER_WAY = frozenset(("add", "multiply", "minimum", "maximum"))
_PRODUCTS = frozenset(("multiply", "divide", "square", "negative"))
_UNCHANGED = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0, "power": 1.0}
"""What changes nothing as the second argument."""

Index = tuple[slice, ...]


class Varying:
    """A number that depends on arrays: an operation of a graph, not computed yet.

    A setting takes it as it takes a symbol; the extremes of the arrays were validated before.
    """

    __array_ufunc__ = None
    __slots__ = ("args", "graph", "index", "name", "shape")

    free_symbols = ("array",)
    is_positive = is_nonnegative = is_integer = True

    def __init__(self, graph: Graph, name: str, args: tuple[Any, ...], shape: tuple[int, ...]) -> None:
        self.graph, self.name, self.args, self.shape = graph, name, args, shape
        self.index = len(graph.nodes)

    @property
    def size(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)

    def __add__(self, other: Any) -> Any:
        return self.graph.node("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.graph.node("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.graph.node("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.graph.node("multiply", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.graph.node("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.graph.node("divide", other, self)

    def __neg__(self) -> Any:
        return self.graph.node("negative", self)

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, Varying):
            if exponent == 2:
                return self.graph.node("square", self)
            if exponent == 3:
                return self.graph.node("square", self) * self
            if exponent == 0.5:
                return self.graph.node("sqrt", self)
        return self.graph.node("power", self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return self.graph.node("power", base, self)

    def __lt__(self, other: Any) -> bool:
        return self.graph.decide(operator.lt, self, other)

    def __le__(self, other: Any) -> bool:
        return self.graph.decide(operator.le, self, other)

    def __gt__(self, other: Any) -> bool:
        return self.graph.decide(operator.gt, self, other)

    def __ge__(self, other: Any) -> bool:
        return self.graph.decide(operator.ge, self, other)

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, int | float | Varying):
            return self is other
        return self.graph.decide(operator.eq, self, other)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        return True  # a validated number is not 0


class Graph:
    """Operations on arrays that are broadcast against each other."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        """The arrays' common shape."""
        self.shape = shape
        self.nodes: list[Varying] = []
        self._known: dict[tuple[Any, ...], Varying] = {}
        self._arrays: dict[int, np.ndarray] = {}
        self._ends: dict[int, tuple[float, float]] = {}

    def array(self, values: np.ndarray) -> Varying:
        """The values at every point, of as many axes as the graph."""
        found = Varying(self, "array", (), values.shape)
        self.nodes.append(found)
        self._arrays[found.index] = values
        self._ends[found.index] = float(values.min()), float(values.max())
        return found

    def node(self, name: str, *args: Any) -> Any:
        """An operation; one that changes nothing, or that is known, is not made."""
        if len(args) == 2:
            first, second = args
            if name in _EITHER_WAY and not isinstance(first, Varying):
                args = first, second = second, first
            if name in _UNCHANGED and not isinstance(second, Varying) and second == _UNCHANGED[name]:
                return first
        names = [(True, arg.index) if isinstance(arg, Varying) else (False, float(arg)) for arg in args]
        key = (name, *(sorted(names) if name in _EITHER_WAY else names))
        if key not in self._known:
            shapes = [arg.shape for arg in args if isinstance(arg, Varying)]
            found = self._known[key] = Varying(self, name, args, np.broadcast_shapes(*shapes))
            self.nodes.append(found)
        return self._known[key]

    def cube_root(self, node: Varying) -> Any:
        """The cube root, of a product by the cube roots of its factors: those of powers are the same ones."""
        todo, found = [node], dict[int, Any]()
        while todo:
            at = todo[-1]
            inner = _varying(at) if at.name in _PRODUCTS else []
            missing = [arg for arg in inner if arg.index not in found]
            todo += missing
            if missing:
                continue
            todo.pop()
            if not inner:
                found[at.index] = self.node("cbrt", at)
                continue
            roots = (found[arg.index] if isinstance(arg, Varying) else float(np.cbrt(arg)) for arg in at.args)
            found[at.index] = self.node(at.name, *roots)
        return found[node.index]

    def decide(self, holds: Callable[[Any, Any], Any], one: Any, other: Any) -> bool:
        """What a comparison says of all points alike."""
        answers: set[bool] = set()
        if one.index in self._arrays and not isinstance(other, Varying):
            ends = self._ends[one.index]
            outside = other < ends[0] or other > ends[1]
            if outside or holds is not operator.eq:
                answers = {holds(end, other) for end in ends}
                if len(answers) == 1:
                    return answers.pop()
        for _, (a, b) in self.blocks(one, other):
            found = np.asarray(holds(a, b))
            answers |= {bool(found.all()), bool(found.any())}
        if len(answers) > 1:
            raise InvalidSetting("this setting cannot be swept in arrays: use sweep(..., bounds=['closed'])")
        return answers.pop()

    def blocks(self, *results: Any) -> Iterator[tuple[Index, list[Any]]]:
        """The values of some nodes, block by block, each valid until the next is asked for; with the block's place."""
        plan = _Plan(self, [each for each in results if isinstance(each, Varying)])
        with np.errstate(all="ignore"):
            for index in _places(self.shape, BLOCK):
                values = plan.run(index)
                yield index, [values[each.index] if isinstance(each, Varying) else each for each in results]

    def values_of(self, node: Varying) -> np.ndarray | None:
        """The array that a node is, if it is one."""
        return self._arrays.get(node.index)


class _Plan:
    """Which nodes some results need, in which order, and where each is kept."""

    def __init__(self, graph: Graph, results: Sequence[Varying]) -> None:
        needed = {node.index for node in results}
        for node in reversed(graph.nodes):
            if node.index in needed:
                needed.update(arg.index for arg in _varying(node))
        self._sizes = graph.shape
        self._whole: dict[int, np.ndarray] = {}
        """Arrays, and what has so few values that it is computed once."""
        self._steps: list[tuple[Varying, int]] = []
        """Nodes in order, and the memory each is written to."""
        last = {arg.index: node.index for node in graph.nodes if node.index in needed for arg in _varying(node)}
        kept = {node.index for node in results}
        place: dict[int, int] = {}
        free: list[int] = []
        few = min(BLOCK, math.prod(graph.shape) - 1)
        with np.errstate(all="ignore"):
            for node in graph.nodes:
                values = graph.values_of(node)
                if node.index not in needed or values is not None:
                    if values is not None:
                        self._whole[node.index] = values
                    continue
                if node.size <= few:
                    args = [self._whole[arg.index] if isinstance(arg, Varying) else arg for arg in node.args]
                    found = self._whole[node.index] = np.empty(node.shape)
                    _FUNCTIONS[node.name](*args, out=found)
                    continue
                for arg in {arg.index for arg in _varying(node)}:
                    if last[arg] == node.index and arg in place and arg not in kept:
                        free.append(place[arg])
                place[node.index] = free.pop() if free else len(set(place.values()))
                self._steps.append((node, place[node.index]))
        self._memory = [np.empty(BLOCK) for _ in range(1 + max(place.values(), default=-1))]
        self._made: tuple[tuple[int, ...], dict[int, np.ndarray]] | None = None

    def run(self, index: Index) -> dict[int, np.ndarray]:
        """The values of every node in a block."""
        lengths = tuple(at.stop - at.start for at in index)
        if self._made is None or self._made[0] != lengths:
            self._made = lengths, {node.index: self._room(node, at, lengths) for node, at in self._steps}
        values = dict(self._made[1])
        for at, array in self._whole.items():
            values[at] = array[tuple(i if n > 1 else slice(None) for i, n in zip(index, array.shape, strict=True))]
        for node, _ in self._steps:
            args = [values[arg.index] if isinstance(arg, Varying) else arg for arg in node.args]
            _FUNCTIONS[node.name](*args, out=values[node.index])
        return values

    def _room(self, node: Varying, at: int, lengths: tuple[int, ...]) -> np.ndarray:
        shape = [length if n > 1 else 1 for length, n in zip(lengths, node.shape, strict=True)]
        return self._memory[at][: math.prod(shape)].reshape(shape)


def _varying(node: Varying) -> list[Varying]:
    return [arg for arg in node.args if isinstance(arg, Varying)]


def _places(shape: tuple[int, ...], most: int) -> Iterator[Index]:
    """Blocks of so many points at most that make up a shape: the first axes are split first."""
    sizes = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    steps = [max(1, min(length, most // size)) for length, size in zip(shape, sizes, strict=True)]
    starts = [range(0, length, step) for length, step in zip(shape, steps, strict=True)]

    def inside(axis: int, so_far: Index) -> Iterator[Index]:
        if axis == len(shape):
            yield so_far
            return
        for start in starts[axis]:
            end = min(start + steps[axis], shape[axis])
            yield from inside(axis + 1, (*so_far, slice(start, end)))

    return inside(0, ())


def _of_arrays(name: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return x.graph.node(name, x) if isinstance(x, Varying) else float(_FUNCTIONS[name](x))

    return function


def _of_two(name: str) -> Callable[..., Any]:
    def function(a: Any, b: Any) -> Any:
        if isinstance(a, Varying):
            return a.graph.node(name, a, b)
        return b.graph.node(name, a, b) if isinstance(b, Varying) else float(_FUNCTIONS[name](a, b))

    return function


class ArraySystem:
    """Numbers that may vary over arrays."""

    name = "array"
    pi = math.pi
    log, log1p = staticmethod(_of_arrays("log")), staticmethod(_of_arrays("log1p"))
    exp, expm1 = staticmethod(_of_arrays("exp")), staticmethod(_of_arrays("expm1"))
    sqrt = staticmethod(_of_arrays("sqrt"))
    _least, _most = staticmethod(_of_two("minimum")), staticmethod(_of_two("maximum"))
    _ceil = staticmethod(_of_arrays("ceil"))

    @staticmethod
    def number(x: Any) -> Any:
        return x

    @classmethod
    def ceil(cls, x: Any) -> Any:
        return cls._ceil(x * (1 + 1e-12))

    @staticmethod
    def lgamma(x: Any) -> Any:
        return x.graph.node("lgamma", x) if isinstance(x, Varying) else math.lgamma(x)

    @staticmethod
    def lgamma_sum(x: Any, count: int) -> Any:
        if isinstance(x, Varying):
            return sum(ArraySystem.lgamma(x + i) for i in range(count))
        return FLOAT.lgamma_sum(x, count)

    @classmethod
    def minimum(cls, *xs: Any) -> Any:
        return reduce(cls._least, xs)

    @classmethod
    def maximum(cls, *xs: Any) -> Any:
        return reduce(cls._most, xs)

    @staticmethod
    def cube_root(x: Any) -> Any:
        """The cube root."""
        return x.graph.cube_root(x) if isinstance(x, Varying) else float(np.cbrt(x))
