"""The layers a Transformer is made of beside attention and feed-forward parts.

A matrix budget is found by its *kind* ("W_QK", "W_1", ...) and its block number, so a layer says
which kinds it has and the norms say how large they may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting import validate
from boundcalc.setting.layer import TOKENS, EveryRow, Layer, Role, RowWise, Weight, Weightless, of_class, widths_of
from boundcalc.setting.named import ours


@ours
@dataclass(frozen=True, slots=True)
class Linear(EveryRow):
    """x -> x W (+ b), applied to every row."""

    label: ClassVar[str] = "linear"
    title: ClassVar[str] = "linear map"

    kind: str
    d_in: int
    d_out: int
    bias: str | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        validate.word("kind", self.kind)
        for name in ("d_in", "d_out"):
            validate.set_size(self, name, f"{self.kind}: {name}")
        if self.bias is not None:
            validate.word(f"{self.kind}: bias", self.bias)
        validate.set_size(self, "block", f"{self.kind}: block", least=0, optional=True)

    @property
    def offset(self) -> str:
        """The name of the offset that it has or may get: b_1 of W_1."""
        return self.bias or f"b_{self.kind.removeprefix('W_')}"

    def fitted(self, has: Callable[[str], bool]) -> Layer:
        return replace(self, bias=self.offset if has(self.offset) else None)

    def said(self) -> str:
        return self.kind

    def where(self) -> int | None:
        return self.block

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        matrix = Weight(self.kind, "matrix", (self.d_in, self.d_out), self.block)
        return (matrix,) if self.bias is None else (matrix, Weight(self.bias, "vector", (self.d_out,), self.block))

    def widths(self) -> tuple[int | None, int | None]:
        return self.d_in, self.d_out


@ours
@dataclass(frozen=True, slots=True)
class Ball(Weightless):
    """Projection of every row onto the l2 ball."""

    label: ClassVar[str] = "ball"
    title: ClassVar[str] = "projection onto the ball"

    radius: float = 1.0

    def __post_init__(self) -> None:
        validate.positive("ball radius", self.radius)

    def widths(self) -> tuple[int | None, int | None]:
        return None, None


@ours
@dataclass(frozen=True, slots=True)
class SoftCap(Weightless):
    """x -> cap tanh(x / cap), entry by entry, on rows of width d."""

    label: ClassVar[str] = "softcap"
    title: ClassVar[str] = "soft cap"

    d: int
    cap: float

    def __post_init__(self) -> None:
        validate.set_size(self, "d", "softcap: d")
        validate.positive("cap", self.cap)

    def widths(self) -> tuple[int | None, int | None]:
        return self.d, self.d


@ours
@dataclass(frozen=True, slots=True)
class LayerNorm(EveryRow):
    """LayerNorm, or RMSNorm without centring, with a gain and perhaps an offset."""

    label: ClassVar[str] = "layernorm"
    title: ClassVar[str] = "normalisation"

    kind: str
    d: int
    eps: float = 1e-5
    centred: bool = True
    gain: bool = True
    offset: bool = False
    variance_floor: float = 0.0
    """Coordinate variance (mean square for RMSNorm) that the class guarantees for every admissible input."""
    block: int | None = None
    around_one: bool = False
    """The gain is 1 + w, and w is what is trained and has the budget."""

    def __post_init__(self) -> None:
        validate.word("kind", self.kind)
        validate.set_size(self, "d", f"{self.kind}: d")
        for name in ("centred", "gain", "offset", "around_one"):
            validate.flag(f"{self.kind}: {name}", getattr(self, name))
        validate.set_size(self, "block", f"{self.kind}: block", least=0, optional=True)
        validate.positive(f"{self.kind}: variance_floor", self.variance_floor, zero=True)
        validate.positive(f"{self.kind}: eps", self.eps, zero=self.variance_floor > 0)
        if self.around_one and not self.gain:
            raise InvalidSetting(f"{self.kind}: around_one says what the gain is, so it needs a gain")

    def fitted(self, has: Callable[[str], bool]) -> Layer:
        gain, offset = (has(f"{self.kind}.{part}") for part in ("gain", "offset"))
        return replace(self, gain=gain, offset=offset, around_one=self.around_one and gain)

    def said(self) -> str:
        return f"{'layernorm' if self.centred else 'rmsnorm'} (eps {self.eps:g})"

    def where(self) -> int | None:
        return self.block

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        gain = (Weight(f"{self.kind}.gain", "gain", (self.d,), self.block),) if self.gain else ()
        return (*gain, Weight(f"{self.kind}.offset", "vector", (self.d,), self.block)) if self.offset else gain

    def widths(self) -> tuple[int | None, int | None]:
        return self.d, self.d


@ours
@dataclass(frozen=True, slots=True)
class Embedding(RowWise):
    """Rows of a trained token table, plus fixed or learned positions (vocabulary 0: positions only).

    `segments`: rows of a further trained table, one of which is added to every row (BERT's token types); which one
    is part of the input. `own_row`: the token that the row of a [CLS] read-out shows in every example.
    """

    label: ClassVar[str] = "embedding"

    vocabulary: int
    d: int
    positions: Literal["none", "fixed", "learned"] = "none"
    position_radius: float = 0.0
    segments: int = 0
    own_row: int | None = None

    def __post_init__(self) -> None:
        validate.set_size(self, "vocabulary", least=0)
        validate.set_size(self, "segments", least=0)
        validate.set_size(self, "d")
        validate.set_size(self, "own_row", "embedding: own_row", least=0, optional=True)
        if self.own_row is not None and not self.own_row < self.vocabulary:
            raise InvalidSetting(f"own_row is one of the {self.vocabulary} tokens, numbered from 0: got {self.own_row}")
        validate.choice("positions", self.positions, ("none", "fixed", "learned"))
        if validate.positive("position radius", self.position_radius, zero=True) != 0 and self.positions != "fixed":
            raise InvalidSetting(
                f"position radius = {validate.shown(self.position_radius)} would change nothing: it is about fixed "
                f"positions, and the positions are {self.positions!r}"
            )

    def fixed(self, seq_len: int) -> tuple[tuple[Weight, float], ...]:
        rows = Weight("positions", "rows", (seq_len, self.d))
        return ((rows, self.position_radius),) if self.positions == "fixed" else ()

    def where(self) -> int | None:
        return None

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        tables: tuple[tuple[str, Role, int], ...] = (
            ("embedding", "table", self.vocabulary),
            ("positions", "rows", seq_len if self.positions == "learned" else 0),
            ("segments", "rows", self.segments),
        )
        return tuple(Weight(kind, role, (rows, self.d)) for kind, role, rows in tables if rows)

    def widths(self) -> tuple[int | None, int | None]:
        return TOKENS if self.vocabulary else self.d, self.d


@ours
@dataclass(frozen=True, slots=True)
class Pool(Layer):
    """From T rows to one: the [CLS] (or last) row, or the mean of all."""

    label: ClassVar[str] = "pool"

    how: Literal["cls", "mean"] = "cls"

    def __post_init__(self) -> None:
        validate.choice("pool", self.how, ("cls", "mean"))

    def where(self) -> int | None:
        return None

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        return ()

    def inner(self) -> tuple[Layer, ...]:
        return ()

    def widths(self) -> tuple[int | None, int | None]:
        return None, None

    def rows_before(self, rows: int, seq_len: int) -> int:
        return seq_len if self.how == "mean" else 1


@ours
@dataclass(frozen=True, slots=True)
class Residual(Layer):
    """X + f(X), or X + f(X) + g(X) + ... where several branches read the same rows.

    `beside`: the branches after the first. `skip`: whether X itself is added.
    """

    label: ClassVar[str] = "residual"

    branch: tuple[Layer, ...]
    beside: tuple[tuple[Layer, ...], ...] = ()
    skip: bool = True

    def __post_init__(self) -> None:
        validate.flag("residual: skip", self.skip)

    @property
    def branches(self) -> tuple[tuple[Layer, ...], ...]:
        """All that is added: X itself is what a branch of no layers makes of it."""
        return ((), self.branch, *self.beside) if self.skip else (self.branch, *self.beside)

    def over(self, remade: Callable[[Sequence[Layer]], Sequence[Layer]]) -> Layer:
        return replace(
            self, branch=tuple(remade(self.branch)), beside=tuple(tuple(remade(each)) for each in self.beside)
        )

    def said(self) -> str:
        return "an added residual"

    def where(self) -> int | None:
        return None

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        return ()

    def inner(self) -> tuple[Layer, ...]:
        return tuple(layer for branch in self.branches for layer in branch)

    def widths(self) -> tuple[int | None, int | None]:
        found = [widths_of(branch) for branch in self.branches]
        read = list(dict.fromkeys(reads for reads, _ in found if reads is not None))
        if len(read) > 1:
            raise InvalidSetting(f"branches of a residual read the same rows, but not of width {read[0]} and {read[1]}")
        same = any(reads is None and makes is None for reads, makes in found)  # X itself, or its entries changed
        made = list(dict.fromkeys([*(read if same else ()), *(makes for _, makes in found if makes is not None)]))
        if len(made) > 1:
            gets = "tokens" if made[0] == TOKENS else f"rows of width {made[0]}"
            raise InvalidSetting(f"a residual adds rows of width {made[1]} to {gets}")
        width = made[0] if made else None
        return (read[0] if read else width if same else None), width

    def rows_before(self, rows: int, seq_len: int) -> int:
        most = rows if self.skip else 1
        for branch in self.branches:
            inside = rows
            for layer in reversed(branch):
                inside = layer.rows_before(inside, seq_len)
            most = inside if inside >= most else most  # a symbolic T is known to be at least 1
        return most


def embeddings(layers: Iterable[Layer]) -> Iterator[Embedding]:
    """The layers that add tables to rows, those inside of others included, input to read-out."""
    return of_class(layers, Embedding)


def token_tables(layers: Iterable[Layer]) -> list[Embedding]:
    """Those of them that read tokens."""
    return [layer for layer in embeddings(layers) if layer.vocabulary]
