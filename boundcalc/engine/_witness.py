"""Open this to see which network a risk bound is about: a member of the class with margins on inputs of both labels.

A risk bound at a training error that was typed, not measured, supposes networks with margins above gamma on samples of
both labels (G0e). Both checkers refuse it where no such network can exist. Here one is built, in floats. That decides
what a printed risk means, not whether it is true, so no certificate depends on it.

All rows of an input are alike, and all scores are 0, so attention takes means of equal rows. Weights act on two
coordinates: the label is the sign of the first, or of their difference. `tests/laws/member.py` writes them as arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from boundcalc.base.errors import Refusal
from boundcalc.base.intervals import upper_float
from boundcalc.base.numbers import FLOAT
from boundcalc.layers.merged import is_product
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Budget,
    Embedding,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Pool,
    Setting,
    SoftCap,
)
from boundcalc.setting.norms import place_of
from boundcalc.statements.floors.base import Pattern
from boundcalc.statements.premise import margin_on_both_labels, no_member, supposes_a_margin

Row = tuple[float, float, float]
"""The first and the second coordinate of each copy, and each of all other entries."""
Shape = tuple[int, int, int, int]
"""The entries of a map of two coordinates, row by row."""

_INPUTS: Sequence[Shape] = ((1, 0, -1, 0), (1, -1, -1, 1), (1, 0, 0, 1))
"""The two inputs: opposite on one axis, or on two of different signs; or one axis each."""
_SHAPES: Sequence[Shape] = ((0, 0, 0, 0), (1, 0, 0, 0), (1, -1, 0, 0), *_INPUTS)
"""Maps: of the first coordinate or of the difference onto one axis or two of different signs; of both; and zero."""
_NOTHING: Row = (0.0, 0.0, 0.0)
_ROUNDING = 1e-10
_MEMORYLESS = (Linear, Hidden, Activation, Pool)
"""Layers that need not know how many copies of the coordinates a row has."""


class Entry(NamedTuple):
    """Non-zero entries of a weight: a map of two coordinates times a factor, where copies of them begin."""

    kind: str
    block: int | None
    shape: Shape
    factor: float
    starts: Sequence[int] = (0,)


class State(NamedTuple):
    """The rows that two inputs of different labels have behind some layers.

    Attributes:
        rows: a row of each input.
        width: entries of a row.
        start: which coordinates the inputs have.
        entries: the weights so far.
        starts: where copies of the coordinates begin.
        own_row: whether the row that will be read is still 0 in every input, unlike the others.
        alone: whether rows that are not read differ from the one that is.
    """

    rows: tuple[Row, Row]
    width: int
    start: Shape
    entries: tuple[Entry, ...] = ()
    starts: Sequence[int] = (0,)
    own_row: bool = False
    alone: bool = False

    def judged(self) -> tuple[str, float]:
        """How the label is written, and about the largest margin that a linear map of norm 1 makes of it.

        The margin is the distance of 0 from the segment between the row of one input and the other's times -1.
        """
        entries = [entry for row in self.rows for entry in row[:2]]
        largest = max(map(abs, entries))
        if not largest:
            return "zero", 0.0
        a, b, c, d = [entry / largest for entry in entries]
        x, y = -c - a, -d - b
        length = x * x + y * y
        share = min(1.0, max(0.0, -(a * x + b * y) / length)) if length > 0 else 0.0
        apart = math.hypot(a + share * x, b + share * y)
        kind = "axis" if b == d == 0 else "pair" if abs(a + b) + abs(c + d) <= 1e-12 * apart else "both"
        return kind, apart * largest * math.sqrt(len(self.starts))

    def scaled(self, factors: Sequence[float], mean: Sequence[float] = (0.0, 0.0)) -> State:
        """Rows less a number in every entry, times a factor."""
        rows = [[(x - m) * f for x in row] for row, f, m in zip(self.rows, factors, mean, strict=True)]
        return self._replace(rows=tuple((a, b if self.width > 1 else 0.0, rest) for a, b, rest in rows))

    def written(self, shape: Shape, factor: float, width: int, entry: Entry, starts: Sequence[int] = (0,)) -> State:
        """Behind a map of the two coordinates of every copy."""
        (a, b, c, d), factor = shape, factor * len(self.starts)
        rows = [(factor * (a * x + c * y), factor * (b * x + d * y), 0.0) for x, y, _ in self.rows]
        return self._replace(rows=(rows[0], rows[1]), width=width, entries=(*self.entries, entry), starts=starts)

    def shapes(self, width: int) -> Iterator[Shape]:
        """The maps of its coordinates into rows of a width."""
        for a, b, c, d in _SHAPES:
            if (self.width > 1 or not (c or d)) and (width > 1 or not (b or d)):
                yield a, b, c, d


def _best(states: Iterable[State]) -> list[State]:
    """Of every way to write the label the state with the largest margin."""
    best: dict[str, tuple[float, State]] = {}
    for state in states:
        if math.isfinite(sum(map(sum, state.rows))):
            kind, apart = state.judged()
            if kind not in best or apart > best[kind][0]:
                best[kind] = apart, state
    return [state for _, state in best.values()]


def _activated(name: str, x: float) -> float:
    """The image of a number."""
    match name:
        case "relu":
            return max(0.0, x)
        case "gelu":
            return x * math.erfc(-x / math.sqrt(2)) / 2
        case "gelu_tanh":
            return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) / 2
        case "silu" | "quick_gelu":
            return x / (1 + math.exp(min(700.0, -1.702 * x if name == "quick_gelu" else -x)))
        case "tanh":
            return math.tanh(x)
        case _:
            return x


def _entrywise(state: State, name: str) -> State:
    return state._replace(rows=tuple(tuple(_activated(name, x) for x in row) for row in state.rows))


@lru_cache(maxsize=1 << 12)
def _largest_factor(shape: Shape, copies: int, budget: Budget) -> float:
    """The largest factor within a budget of a map that reads so many copies of two coordinates."""
    a, b, c, d = shape
    if not any(shape):
        return 0.0
    factors: list[float] = []
    if budget.row is not None:
        factors.append(budget.row / max(math.hypot(a, b), math.hypot(c, d)))
    if any(getattr(budget, name) is not None for name in ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")):
        root = math.sqrt(copies)
        fro, columns = root * math.hypot(*shape), root * (math.hypot(a, c) + math.hypot(b, d))
        rows, ones, rank = math.hypot(a, b) + math.hypot(c, d), sum(map(abs, shape)), 1 if a * d == b * c else 2
        pattern = Pattern(fro if rank == 1 else root, fro, columns, copies * rows, copies * ones, rank)
        factors.append(pattern.scale(FLOAT, budget))
    return min(factors, default=0.0)


class _Builder:
    """Walks through the layers of a setting, and chooses weights on the way."""

    def __init__(self, setting: Setting) -> None:
        self.norms, self.seq_len = setting.norms, setting.architecture.seq_len

    def through(self, layers: Sequence[Layer], states: list[State]) -> list[State]:
        """What the inputs have become behind some layers."""
        for layer in layers:
            there = self._branches if layer.branches else self._layer
            states = _best(end for state in states for end in there(layer, state))
        return states

    def _branches(self, layer: Layer, state: State) -> list[State]:
        """A sum of branches; a row of its own is 0 before the first attention, whatever the others are."""
        nothing = state._replace(rows=(_NOTHING, _NOTHING))
        totals = [nothing._replace(own_row=False, alone=state.own_row or state.alone)]
        for branch in layer.branches:
            ends = self.through(branch, [nothing if state.own_row and not branch else state])
            totals = _best(
                _sum(total, end, len(state.entries)) for total in totals for end in ends if len(end.starts) == 1
            )
        return totals

    def _layer(self, layer: Layer, state: State) -> Iterator[State]:
        if len(state.starts) > 1 and not isinstance(layer, _MEMORYLESS):
            return
        match layer:
            case Embedding():
                yield from self._embedding(layer, state)
            case Linear():
                yield from self._map(state, layer.kind, layer.block, layer.d_out)
            case Hidden():
                for unit in self._map(state, layer.first, layer.block, layer.d_ff):
                    yield from self._map(_entrywise(unit, layer.activation), layer.last, layer.block, 1)
            case GatedFeedForward():
                yield from self._gated(layer, state)
            case Attention():
                yield from self._attention(layer, state)
            case LayerNorm():
                yield from self._normalised(layer, state)
            case Ball():
                lengths = [math.sqrt(_square(state, row)) for row in state.rows]
                yield state.scaled([layer.radius / max(layer.radius, length) for length in lengths])
            case Activation():
                yield _entrywise(state, layer.name)
            case SoftCap():
                rows = [[layer.cap * math.tanh(x / layer.cap) for x in row] for row in state.rows]
                yield state._replace(rows=tuple(map(tuple, rows)))
            case Pool():
                yield from () if state.alone and layer.how == "mean" else (state,)
            case _:
                return

    def _embedding(self, layer: Embedding, state: State) -> Iterator[State]:
        """Two tokens; positions are 0."""
        own = layer.own_row is not None
        if not layer.vocabulary:
            yield state._replace(own_row=own)
            return
        first = first_token(layer)
        if layer.vocabulary >= first + 2:
            tokens = State(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), 2, state.start, starts=(first,))
            yield from (end._replace(own_row=own) for end in self._map(tokens, "embedding", None, layer.d))

    def _factor(self, state: State, shape: Shape, kind: str, block: int | None, head: int | None = None) -> float:
        return _largest_factor(shape, len(state.starts), self.norms.find(kind, block, head))

    def _map(self, state: State, kind: str, block: int | None, width: int) -> Iterator[State]:
        for shape in state.shapes(width):
            factor = self._factor(state, shape, kind, block)
            yield state.written(shape, factor, width, Entry(kind, block, shape, factor, state.starts))

    def _gated(self, layer: GatedFeedForward, state: State) -> Iterator[State]:
        for shape in state.shapes(layer.d_ff):
            gate, unit = (self._factor(state, shape, kind, layer.block) for kind in ("W_1", "W_3"))
            gated = state.written(shape, gate, layer.d_ff, Entry("W_1", layer.block, shape, gate))
            both = state.written(shape, unit, layer.d_ff, Entry("W_3", layer.block, shape, unit))
            pairs = zip(_entrywise(gated, layer.activation).rows, both.rows, strict=True)
            rows = tuple(tuple(x * y for x, y in zip(*pair, strict=True)) for pair in pairs)
            both = both._replace(rows=rows, entries=(*gated.entries, both.entries[-1]))
            yield from self._map(both, "W_2", layer.block, layer.d)

    def _attention(self, layer: Attention, state: State) -> Iterator[State]:
        mass = 0.0 if state.alone else _mass(layer, self.seq_len, own_row=state.own_row)
        summed = layer.combine == "sum"
        heads = range(layer.heads) if self.norms.headed else [None]
        for shape in state.shapes(layer.out):
            factor = min(self._factor(state, shape, "W_V", layer.block, head) for head in heads)
            entry = Entry("W_V", layer.block, shape, factor)
            starts = (0,) if summed else range(0, layer.heads * layer.out, layer.out)
            factor *= mass * (layer.heads if summed else 1)
            yield state.written(shape, factor, layer.out * len(starts), entry, starts)._replace(own_row=False)

    def _normalised(self, layer: LayerNorm, state: State) -> Iterator[State]:
        gain = (self.norms.find(f"{layer.kind}.gain", layer.block).sup or 0.0) + layer.around_one if layer.gain else 1.0
        others = max(0, state.width - 2)
        means = [(a + b + others * rest) / state.width * layer.centred for a, b, rest in state.rows]
        squares = [_square(state, row) for row in state.rows]
        variances = [square / state.width - mean * mean for square, mean in zip(squares, means, strict=True)]
        if layer.variance_floor == 0 or min(variances) >= layer.variance_floor:
            yield state.scaled([gain / math.sqrt(max(0.0, variance) + layer.eps) for variance in variances], means)


def _square(state: State, row: Row) -> float:
    a, b, rest = row
    return a * a + b * b + max(0, state.width - 2) * rest * rest


def first_token(layer: Embedding) -> int:
    """Of two in a row that are not the token of the row that is read."""
    return layer.own_row + 1 if layer.own_row is not None and layer.own_row < 2 else 0


def _mass(layer: Attention, seq_len: int, *, own_row: bool) -> float:
    """What the weights of rows of one kind sum to where all scores are 0; 0 where they may not be."""
    rows, name = seq_len - own_row, layer.normaliser.name
    if name == "softmax":
        return rows / seq_len if not own_row or layer.offsets == "none" else 0.0
    if layer.causal and seq_len > 1:
        return 0.0
    return rows / (seq_len + 1) if name == "softmax1" else rows / (2 * seq_len) if name == "sigmoid" else 0.0


def _sum(total: State, end: State, shared: int) -> State:
    """Of two branches that begin with so many shared weights."""
    rows = [tuple(x + y for x, y in zip(*both, strict=True)) for both in zip(total.rows, end.rows, strict=True)]
    entries = total.entries + end.entries[shared:]
    return end._replace(rows=tuple(rows), entries=entries, own_row=False, alone=total.alone)


def _margin(state: State, classes: int) -> float:
    """The smaller margin of the two inputs."""
    (a, b, rest), (c, d, other) = state.rows
    if classes == 1:
        return max(min(a, -c), min(-a, c))
    return min(a - max(b, rest), d - max(c, other)) if classes > 2 else min(a - b, d - c)


def best_state(setting: Setting) -> tuple[State | None, float]:
    """The end of the network with the largest margin, and that margin, with room for the rounding of floats."""
    a = setting.architecture
    if any(is_product(place_of(key)[0]) for key in setting.norms.budgets):
        return None, 0.0
    width = a.stages[0].widths()[0]
    width = a.d if width is None else width
    starts: list[State] = []
    for shape in _INPUTS if width != 1 else _INPUTS[:1]:
        x = a.input_radius / math.hypot(*shape[:2])
        p, q, r, s = (x * entry for entry in shape)
        starts.append(State(((p, q, 0.0), (r, s, 0.0)), width, shape))
    try:
        ends = _Builder(setting).through(a.stages, starts)
    except OverflowError:
        return None, 0.0
    margins = [(state, _margin(state, a.classes) * (1 - _ROUNDING)) for state in ends]
    return max(((s, m) for s, m in margins if m > 0), key=lambda end: end[1], default=(None, 0.0))


def built_margin(setting: Setting) -> float:
    """The margin of a network of the class on two inputs of different labels, rounded down; 0 where none is built."""
    return best_state(setting)[1]


def no_witness(setting: Setting, *, measured: bool = False) -> Refusal | None:
    """Why a risk bound is not printed: no network of the class meets its premise, or none that does is known.

    Args:
        setting: its norms as the class has them, rounded and corrected for where they were measured.
        measured: whether the margin or the training error was read off a trained network, which then meets the premise.
    """
    if not supposes_a_margin(setting):
        return None
    largest = margin_on_both_labels(setting)
    refusal = no_member(setting, largest)
    if refusal is not None or measured:
        return refusal
    gamma, built = setting.sample.margin, built_margin(setting)
    if built > gamma:
        return None
    from boundcalc.base.rounding import at_least, at_most

    most = at_least(upper_float(largest))
    limit = f"the largest margin that a network is built with is {at_most(built)}" if built else "no network is built"
    return Refusal(
        f"a risk bound at training error {setting.sample.train_error:g}",
        f"gamma {gamma:g}, while {limit} and margins up to {most} are not excluded",
        "a network with a margin above gamma on inputs of both labels",
        f"Take a gamma below {at_most(built)}." if built else "",
    )
