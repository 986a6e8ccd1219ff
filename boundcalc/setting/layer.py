"""What every layer must say of itself: its weights, its widths, its inner layers, and which rows it reads.

What every bound needs has no default answer. A layer that says too little cannot be made, and whoever meets a class of
layers it has no rule for refuses it: a mixing layer taken for a row-wise one would give a false bound. What only sharper
statements ask is None where a layer does not say it, and they are not used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Literal, TypeVar

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.setting.norms import JSON_NAMES, Budget, Norms

TOKENS = 0
"""The width of a row that is no vector but a token."""

Role = Literal["matrix", "factor", "vector", "factor vector", "gain", "table", "rows", "scores", "values"]

_MATRIX = frozenset({"op", "fro", "two_one", "two_one_t", "one_one", "rank", "schatten"})
_LENGTH = frozenset({"op", "fro", "two_one"})
_READ: dict[Role, frozenset[str]] = {
    "matrix": _MATRIX | {"distance"},
    "factor": _MATRIX,
    "vector": _LENGTH | {"distance"},
    "factor vector": _LENGTH,
    "gain": frozenset({"sup", "distance"}),
    "table": _MATRIX | {"row", "distance"},
    "rows": _LENGTH | {"row", "distance"},
    "scores": frozenset({"sup", "fro", "schatten"}),
    "values": frozenset({"heads", "fro", "schatten"}),
}
"""The limits of a budget that a bound can use, by what the weight is. "table": token rows, which may be covered as one
matrix as well; "factor": one of two whose product is what is covered, not its difference from a reference; "scores" and
"values": what heads look up."""


@dataclass(frozen=True, slots=True)
class Weight:
    """Trained arrays of one kind in one layer: what a norm budget may be given for.

    Attributes:
        kind: its name in norms files.
        role: what it is to a bound.
        shape: of one array, as in x -> x W.
        block: the block it belongs to.
        heads: heads that may have budgets of their own; 0 where there are none.
        copies: how many arrays there are (grouped queries share keys and values).
        factors: weights whose product it is; a budget is given for the product or for factors, not for both.
    """

    kind: str
    role: Role
    shape: tuple[int, ...]
    block: int | None = None
    heads: int = 0
    copies: int = 1
    factors: tuple[Weight, ...] = ()

    @property
    def parameters(self) -> int:
        """How many numbers are trained; of a product those of its factors."""
        if self.factors:
            return sum(factor.parameters for factor in self.factors)
        return self.copies * math.prod(self.shape)

    @property
    def all(self) -> Iterator[Weight]:
        """Itself and its factors."""
        yield self
        yield from self.factors

    def read(self, norms: Norms, head: int | None = None) -> tuple[Weight, ...]:
        """What is looked up for one head (or for all alike): itself, or its factors where one of them has a budget."""
        mine = norms.place(self.kind, self.block, head)
        given = [key for factor in self.factors if (key := norms.place(factor.kind, self.block, head)) is not None]
        if mine is not None and given:
            names = " and ".join(factor.kind for factor in self.factors if factor.role == "factor")
            raise InvalidSetting(
                f"norms of {mine} and of {given[0]}: {self.kind} is the product of {names}; give budgets for the product "
                f"or for its factors, not for both ({_located(self.block, head)})"
            )
        return self.factors if given else (self,)

    @property
    def limits(self) -> frozenset[str]:
        """The fields of a `Budget` that a bound can use for it."""
        return _READ[self.role]

    def usable(self, budget: Budget) -> Budget:
        """What a bound can use of a budget."""
        unread = {name: None for name in JSON_NAMES.values() if name not in self.limits}
        part = None if budget.distance is None else replace(budget.distance, **({"distance": None} | unread))
        return replace(budget, **({"distance": part} | unread))

    def check(self, key: str, budget: Budget) -> None:
        """Refuses limits that no bound can use for such a weight: they would be ignored."""
        readable = self.limits
        for part, where in ((budget, ""), (budget.distance, "distance: ")):
            for symbol, name in JSON_NAMES.items():
                unread = name not in readable or (bool(where) and name == "distance")
                if unread and part is not None and getattr(part, name) is not None:
                    usable = ", ".join(word for word, field in JSON_NAMES.items() if field in readable)
                    raise InvalidSetting(
                        f"norms of {key}: {where}nothing reads {symbol!r} of {self.kind}, it would be ignored; "
                        f"what can be used is {usable}"
                    )


def _located(block: int | None, head: int | None) -> str:
    where = "the layer without a number" if block is None else f"block {block}"
    return where if head is None else f"{where}, head {head}"


class Layer(ABC):
    """A layer as data. Subclasses are frozen dataclasses whose fields are numbers, words and other layers.

    Attributes:
        label: its name in JSON files and messages.
        title: what it is called in derivations, where that is not its label.
    """

    __slots__ = ()
    TAG: ClassVar[str] = "layer"
    KINDS: ClassVar[Mapping[str, type[Layer]]] = {}
    label: ClassVar[str]
    title: ClassVar[str] = ""

    @abstractmethod
    def where(self) -> int | None:
        """The block its weights are filed under, if any."""

    @abstractmethod
    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        """All it trains, its inner layers' weights apart."""

    @abstractmethod
    def inner(self) -> tuple[Layer, ...]:
        """The layers it is made of, first to last; none for a primitive layer."""

    @abstractmethod
    def widths(self) -> tuple[int | None, int | None]:
        """The width of the rows it reads (None: any; `TOKENS`) and makes (None: the same)."""

    @abstractmethod
    def rows_before(self, rows: int, seq_len: int) -> int:
        """How many rows of its input matter when so many of its output do."""

    @property
    def branches(self) -> tuple[tuple[Layer, ...], ...]:
        """The rows of layers whose outputs on the same input it adds up; none for a primitive layer."""
        self._refuse_inner("branches")
        return ()

    def over(self, remade: Callable[[Sequence[Layer]], Sequence[Layer]]) -> Layer:
        """The same with every branch made anew; a primitive layer itself."""
        self._refuse_inner("over")
        del remade
        return self

    def fitted(self, has: Callable[[str], bool]) -> Layer:
        """The same with those of its offsets and gains of which there are arrays."""
        del has
        return self

    def stored(self, seq_len: int) -> tuple[Weight, ...]:
        """All that a network stores of it: rounded arithmetic may read what its function does not depend on."""
        return self.weights(seq_len)

    def fixed(self, seq_len: int) -> tuple[tuple[Weight, float], ...]:
        """Arrays that it has and does not train, each with the length of its rows."""
        del seq_len
        return ()

    def said(self) -> str:
        """What it is, for messages about one network."""
        name = getattr(self, "name", None)
        return f"{self.label} {name}" if name else self.label

    def _refuse_inner(self, method: str) -> None:
        if self.inner():
            what = f"layer {self.label!r}, which holds layers and does not say how they run ({method})"
            raise Unsupported(
                Refusal("a walk through the network", what, "a layer that says so, or one without inner layers")
            )


class RowWise(Layer):
    """A primitive layer each of whose output rows is made of that row of its input alone: a claim, which the laws try."""

    __slots__ = ()

    def inner(self) -> tuple[Layer, ...]:
        return ()

    def rows_before(self, rows: int, seq_len: int) -> int:
        return rows


class EveryRow(RowWise):
    """One that does the same to every row, wherever it stands: a claim as well, which the laws try."""

    __slots__ = ()


class Weightless(EveryRow):
    """One that trains nothing."""

    __slots__ = ()

    def where(self) -> int | None:
        return None

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        return ()


_AnyLayer = TypeVar("_AnyLayer", bound=Layer)
_Rule = TypeVar("_Rule")


class Rules(Generic[_Rule]):
    """What one interpreter does with each class of layers; a class without a rule is refused."""

    def __init__(self, what: str, rules: Mapping[type[Layer], _Rule]) -> None:
        """`what` needs the rules: "training"."""
        self._what = what
        self._rules = dict(rules)

    def __contains__(self, cls: type[Layer]) -> bool:
        return cls in self._rules

    def add(self, cls: type[Layer], rule: _Rule) -> None:
        """The rule of a further class; one class has one rule."""
        if cls in self._rules:
            raise InvalidSetting(f"{self._what} has a rule for layer {cls.label!r} already")
        self._rules[cls] = rule

    def of(self, layer: Layer) -> _Rule:
        """The rule of a layer's class."""
        rule = self._rules.get(type(layer))
        if rule is None:
            known = ", ".join(sorted(cls.label for cls in self._rules))
            raise Unsupported(
                Refusal(self._what, f"layer {layer.label!r}, which it has no rule for", f"one of {known}")
            )
        return rule


def flat(layers: Iterable[Layer]) -> Iterator[Layer]:
    """All layers, those inside of others included (each after what holds it)."""
    for layer in layers:
        yield layer
        yield from flat(layer.inner())


def of_class(layers: Iterable[Layer], cls: type[_AnyLayer]) -> Iterator[_AnyLayer]:
    """The layers of one class, those inside of others included."""
    return (layer for layer in flat(layers) if isinstance(layer, cls))


def weights_of(layers: Iterable[Layer], seq_len: int) -> Iterator[Weight]:
    """Every weight of some layers and of what is inside them, input to read-out."""
    for layer in flat(layers):
        yield from layer.weights(seq_len)


def widths_of(layers: Iterable[Layer]) -> tuple[int | None, int | None]:
    """The widths that layers read and make, one after the other; refuses layers that do not fit together."""
    start: int | None = None
    width: int | None = None
    for layer in layers:
        reads, makes = layer.widths()
        if reads is not None and width is not None and reads != width:
            gets = "tokens" if width == TOKENS else f"rows of width {width}"
            needs = "tokens, so it stands first" if reads == TOKENS else f"rows of width {reads}"
            raise InvalidSetting(f"layer {getattr(layer, 'kind', layer.label)!r} reads {needs}, but gets {gets}")
        if start is None and width is None:
            start = reads
        width = makes if makes is not None else reads if reads is not None else width
    return start, width


def rows_used(layers: Iterable[Layer], rows: int, seq_len: int) -> list[int]:
    """Rows of each layer's output that matter when so many of the last one's do."""
    used: list[int] = []
    for layer in reversed(tuple(layers)):
        used.append(rows)
        rows = layer.rows_before(rows, seq_len)
    return used[::-1]
