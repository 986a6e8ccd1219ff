"""What every layer says of itself: its fields, weights, widths and rows, its facts for proofs, and how it runs.

What every bound needs has no default answer: a layer that says too little cannot be made, or is refused where a bound
asks its facts. What only sharper statements ask has a default that claims nothing, and they are not used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.schema import check_fields

if TYPE_CHECKING:
    from boundcalc.layers.facts import Context, Facts
    from boundcalc.layers.forward import Arrays, Forward
    from boundcalc.setting.norms import Budget, Norms

TOKENS = 0
"""The width of a row that is no vector but a token."""

Role = Literal["matrix", "factor", "vector", "factor vector", "gain", "table", "rows", "scores", "values"]

_MATRIX = frozenset({"op", "fro", "two_one", "two_one_t", "one_one", "nuclear", "rank"})
_LENGTH = frozenset({"op", "fro", "two_one"})
_READ: dict[Role, frozenset[str]] = {
    "matrix": _MATRIX | {"distance"},
    "factor": _MATRIX,
    "vector": _LENGTH | {"distance"},
    "factor vector": _LENGTH,
    "gain": frozenset({"sup", "distance"}),
    "table": _MATRIX | {"row", "distance"},
    "rows": _LENGTH | {"row", "distance"},
    "scores": frozenset({"sup", "fro", "nuclear"}),
    "values": frozenset({"heads", "fro", "nuclear"}),
}
"""The limits of a budget that a bound can use, by what the weight is. "table": token rows, which may be covered as one
matrix as well; "factor": one of two whose product is what is covered, not its difference from a reference; "scores" and
"values": what heads look up."""


def place_named(kind: str, block: int | None = None, head: int | None = None) -> str:
    """The key of a budget: what `boundcalc.setting.norms.place_of` takes apart."""
    if block is None:
        return kind
    return f"{kind}[{block}]" if head is None else f"{kind}[{block},{head}]"


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
        keys = [key for factor in self.factors if (key := norms.place(factor.kind, self.block, head)) is not None]
        if mine is not None and keys:
            names = " and ".join(factor.kind for factor in self.factors if factor.role == "factor")
            where = "the layer without a number" if self.block is None else f"block {self.block}"
            raise InvalidSetting(
                f"norms of {mine} and of {keys[0]}: {self.kind} is the product of {names}; give budgets for the "
                f"product or for its factors, not for both ({where}{'' if head is None else f', head {head}'})"
            )
        return self.factors if keys else (self,)

    @property
    def limits(self) -> frozenset[str]:
        """The fields of a `Budget` that a bound can use for it."""
        return _READ[self.role]

    def usable(self, budget: Budget) -> Budget:
        """What a bound can use of a budget."""
        unread = {f.name: None for f in fields(budget) if f.name not in self.limits}
        part = None if budget.distance is None else replace(budget.distance, **({"distance": None} | unread))
        return replace(budget, **({"distance": part} | unread))


Widths = tuple[int | None, int | None]
"""The width of the rows that are read (None: any; `TOKENS`) and made (None: the same)."""


class Layer(ABC):
    """A layer. Subclasses are frozen dataclasses whose fields are numbers, words and other layers.

    Their annotations are checked: `Size`, `Positive`, ..., bool, Literal.

    Attributes:
        label: its name in JSON files and messages.
        noise_fields: fields that must be absent for G11 to be proved for it; None where it was not.
    """

    __slots__ = ()
    TAG: ClassVar[str] = "layer"
    KINDS: ClassVar[dict[str, type[Layer]]] = {}
    label: ClassVar[str]
    noise_fields: ClassVar[tuple[str, ...] | None] = None

    def __post_init__(self) -> None:
        check_fields(self, f"{self.label} ")
        problem = self.contradiction()
        if problem is not None:
            raise InvalidSetting(f"{self.label}: {problem}")

    # what it is

    def contradiction(self) -> str | None:
        """Why its fields do not fit together, or None."""
        return None

    def where(self) -> int | None:
        """The block its weights are filed under, if any."""
        return getattr(self, "block", None)

    @abstractmethod
    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        """All it trains, its inner layers' weights apart."""

    @abstractmethod
    def widths(self) -> Widths:
        """The width of the rows it reads and makes."""

    @abstractmethod
    def rows_before(self, rows: int, seq_len: int) -> int:
        """How many rows of its input matter when so many of its output do."""

    @property
    def branches(self) -> tuple[tuple[Layer, ...], ...]:
        """The rows of layers whose outputs on the same input it adds up; none for a primitive layer."""
        return ()

    def stored(self, seq_len: int) -> tuple[Weight, ...]:
        """All that a network stores of it: rounded arithmetic may read what its function does not depend on."""
        return self.weights(seq_len)

    def fixed(self, seq_len: int) -> tuple[tuple[Weight, float], ...]:
        """Arrays that it has and does not train, each with the length of its rows."""
        return ()

    def brief(self) -> str:
        """What it is, for messages about one network."""
        return f"{self.label} {getattr(self, 'name', '')}".rstrip()

    # what proofs know of it, in any number system

    def facts(self, at: Context) -> Facts:
        """Radius, Lipschitz factor and what must be covered, where it stands."""
        raise self._lacks("a bound", "its radius, Lipschitz factor and what must be covered (facts)")

    def noise(self) -> bool:
        """Whether G11 was proved for it with the values that its fields have."""
        fields = self.noise_fields
        return fields is not None and all(getattr(self, name) in (None, False, "none") for name in fields)

    # how it runs

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        """What it makes of rows (n, T, d), or of tokens (n, T), with NumPy or torch alike."""
        raise self._lacks("a forward pass", "what it computes (forward)")

    def _lacks(self, what: str, needs: str) -> Unsupported:
        return Unsupported(Refusal(what, f"layer {self.label!r}, whose class does not say it", needs))


class RowWise(Layer):
    """A primitive layer whose output rows are made of the same row of the input alone: a claim that laws try."""

    __slots__ = ()

    def rows_before(self, rows: int, seq_len: int) -> int:
        return rows


class EveryRow(RowWise):
    """One that does the same to every row, wherever it stands: a claim as well, which the laws try.

    It leaves rows as wide as they are, d where it has such a field.
    """

    __slots__ = ()

    def widths(self) -> Widths:
        width = getattr(self, "d", None)
        return width, width


class Weightless(EveryRow):
    """One that trains nothing."""

    __slots__ = ()

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        return ()


# -- layers by the names that files use

KINDS = Layer.KINDS
"""Every class of layers that a file can name, by its label."""
_AnyLayer = TypeVar("_AnyLayer", bound=Layer)


def register_layer(cls: type[_AnyLayer]) -> type[_AnyLayer]:
    """Make a class of layers known to files by its label."""
    if not is_dataclass(cls) or KINDS.get(cls.label, cls) is not cls:
        raise InvalidSetting(
            f"a layer is a frozen dataclass with a label of its own, got {cls.__name__} ({cls.label!r})"
        )
    KINDS[cls.label] = cls
    return cls


# -- layers of a network


def flat(layers: Iterable[Layer]) -> Iterator[Layer]:
    """All layers, those inside of others included (each after what holds it)."""
    for layer in layers:
        yield layer
        for branch in layer.branches:
            yield from flat(branch)


def of_class(layers: Iterable[Layer], cls: type[_AnyLayer]) -> Iterator[_AnyLayer]:
    """The layers of one class, those inside of others included."""
    return (layer for layer in flat(layers) if isinstance(layer, cls))


def weights_of(layers: Iterable[Layer], seq_len: int) -> Iterator[Weight]:
    """Every weight of some layers and of what is inside them, input to read-out."""
    for layer in flat(layers):
        yield from layer.weights(seq_len)


def widths_of(layers: Iterable[Layer]) -> Widths:
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


def unknown_to_noise(layers: Iterable[Layer]) -> str | None:
    """G11: the label of a layer, of those and of what is inside them, that it was not proved for; or None."""
    return next((repr(layer.label) for layer in flat(layers) if not layer.noise()), None)
