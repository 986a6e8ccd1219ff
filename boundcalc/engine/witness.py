"""Open this to see which network a risk bound is about: a member of the class with margins on inputs of both labels.

A risk bound at a training error that was typed, not measured, supposes networks with margins above gamma on samples of
both labels (G0e). Both checkers refuse it where no such network can exist. Here one is built. That decides what a
printed risk means, not whether it is true, so no certificate depends on it.

All rows of an input are alike, and all scores are 0, so attention takes means of equal rows. Weights act on two
coordinates: the label is the sign of the first, or of their difference. `tests/laws/member.py` writes them as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flint import arb

from boundcalc.base.errors import Refusal
from boundcalc.base.intervals import INTERVAL, lower_float, upper_float
from boundcalc.engine.states import INPUTS, SHAPES, SIZES, ZERO, Entry, Row, Shape, State, best, pattern_of
from boundcalc.layers.activation import largest_entry
from boundcalc.layers.products import is_product
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
    Norms,
    Pool,
    Setting,
    SoftCap,
)
from boundcalc.setting.norms import place_of
from boundcalc.statements.premise import margin_on_both_labels, no_member, supposes_a_margin


class Builder:
    """Walks through the layers of a setting, and chooses weights on the way."""

    def __init__(self, setting: Setting) -> None:
        self.norms, self.seq_len = setting.norms, setting.architecture.seq_len
        self.setting = setting
        self._factors: dict[tuple[int, Shape, int], arb] = {}

    def states(self) -> list[State]:
        """What the inputs have become behind the last layer."""
        if any(is_product(place_of(key)[0]) for key in self.norms.budgets):
            return []
        return self._through(self.setting.architecture.stages, self._inputs())

    def _inputs(self) -> list[State]:
        first = self.setting.architecture.stages[0]
        if isinstance(first, Embedding) and first.vocabulary:
            return []  # tokens have no rows yet
        width = first.widths()[0]
        width = self.setting.architecture.d if width is None else width
        radius = arb(self.setting.architecture.input_radius)
        states: list[State] = []
        for a, b, c, d in INPUTS if width > 1 else INPUTS[:1]:
            scale = radius / arb(a * a + b * b).sqrt()
            states.append(
                State(
                    ((a * scale, b * scale, ZERO), (c * scale, d * scale, ZERO)),
                    width,
                    min(width, 2),
                    start=(a, b, c, d),
                )
            )
        return states

    def _through(self, layers: Sequence[Layer], states: list[State]) -> list[State]:
        for layer in layers:
            if layer.branches:
                states = best(total for state in states for total in self._through_branches(layer, state))
            else:
                states = best(self._through_layer(layer, states))
        return states

    def _through_branches(self, layer: Layer, state: State) -> list[State]:
        """A sum of branches; a row of its own is 0 before the first attention, whatever the others are."""
        nothing = state._replace(rows=((ZERO,) * 3,) * 2)
        totals = [nothing._replace(own_row=False, alone=state.own_row or state.alone)]
        for branch in layer.branches:
            ends = self._through(branch, [nothing if state.own_row and not branch else state])
            totals = [_sum(total, end, state.last) for total in totals for end in ends if len(end.starts) == 1]
            totals = best(totals)
        return totals

    def _through_layer(self, layer: Layer, states: list[State]) -> Iterator[State]:
        match layer:
            case Embedding():
                yield from self._through_embedding(layer, states)
            case Linear():
                for state in states:
                    yield from self._through_map(state, layer.kind, layer.block, layer.d_out)
            case Hidden():
                for state in states:
                    for unit in self._through_map(state, layer.first, layer.block, layer.d_ff):
                        yield from self._through_map(_entrywise(unit, layer.activation), layer.last, layer.block, 1)
            case GatedFeedForward():
                for state in states:
                    yield from self._through_gated(layer, state)
            case Attention():
                for state in states:
                    yield from self._through_attention(layer, state)
            case LayerNorm():
                yield from (end for state in states if (end := self._through_normalisation(layer, state)) is not None)
            case Ball():
                for state in states:
                    lengths = [INTERVAL.maximum(arb(layer.radius), state.sums(row)[1].sqrt()) for row in state.rows]
                    scaled = [
                        tuple(x * layer.radius / length for x in row)
                        for row, length in zip(state.rows, lengths, strict=True)
                    ]
                    yield state._replace(rows=tuple(scaled))
            case Activation():
                yield from (_entrywise(state, layer.name) for state in states)
            case SoftCap():
                for state in states:
                    rows = [tuple(layer.cap * (x / layer.cap).tanh() for x in row) for row in state.rows]
                    yield state._replace(rows=tuple(rows))
            case Pool():
                yield from (state for state in states if not (state.alone and layer.how == "mean"))
            case _:
                return

    def _through_embedding(self, layer: Embedding, states: list[State]) -> Iterator[State]:
        """Two tokens; positions that are learned are 0, fixed ones are alike in all other entries."""
        if layer.vocabulary:
            first = first_token(layer)
            if layer.vocabulary < first + 2:
                return
            one = arb(1)
            tokens = State(((one, ZERO, ZERO), (ZERO, one, ZERO)), 2, 2, (first,))
            states = list(self._through_map(tokens, "embedding", None, layer.d))
        for state in states:
            own = state._replace(own_row=layer.own_row is not None)
            if layer.positions == "fixed" and state.others:
                rest = arb(layer.position_radius) / arb(state.others).sqrt()
                own = own._replace(rows=tuple((a, b, r + rest) for a, b, r in own.rows))
                yield from () if own.own_row else (own,)
            else:
                yield own

    def _through_map(self, state: State, kind: str, block: int | None, width: int) -> Iterator[State]:
        for shape in self._shapes(state, width):
            factor = self._factor(shape, len(state.starts), self.norms.find(kind, block))
            end = _written(state, shape, factor, width)
            yield end._replace(last=Entry(state.last, kind, block, None, shape, factor, state.starts))

    def _shapes(self, state: State, width: int) -> Iterator[Shape]:
        for a, b, c, d in SHAPES:
            if (state.size > 1 or not (c or d)) and (width > 1 or not (b or d)):
                yield a, b, c, d

    def _factor(self, shape: Shape, copies: int, budget: Budget) -> arb:
        """The largest factor of a map within its budget."""
        key = id(budget), shape, copies  # budgets live as long as the norms do
        if key not in self._factors:
            self._factors[key] = _largest_factor(shape, copies, budget) if any(shape) else ZERO
        return self._factors[key]

    def _through_gated(self, layer: GatedFeedForward, state: State) -> Iterator[State]:
        for shape in self._shapes(state, layer.d_ff):
            gate, value = (
                self._factor(shape, len(state.starts), self.norms.find(kind, layer.block)) for kind in ("W_1", "W_3")
            )
            first = _entrywise(_written(state, shape, gate, layer.d_ff), layer.activation)
            second = _written(state, shape, value, layer.d_ff)
            rows = [
                tuple(x * y for x, y in zip(*both, strict=True)) for both in zip(first.rows, second.rows, strict=True)
            ]
            last = Entry(state.last, "W_1", layer.block, None, shape, gate, state.starts)
            last = Entry(last, "W_3", layer.block, None, shape, value, state.starts)
            unit = first._replace(rows=tuple(rows), last=last)
            yield from self._through_map(unit, "W_2", layer.block, layer.d)

    def _through_attention(self, layer: Attention, state: State) -> Iterator[State]:
        mass = _mass(layer, self.seq_len, own_row=state.own_row)
        if state.alone or len(state.starts) > 1 or mass is None:
            mass = ZERO
        state = state._replace(own_row=False)
        for shape in self._shapes(state, layer.out):
            factors = [
                INTERVAL.minimum(*(self._factor(shape, 1, self.norms.find("W_V", layer.block, h)) for h in heads))
                for heads in _groups(layer, self.norms)
            ]
            if layer.combine == "sum":
                total = layer.heads * sum(factors, start=ZERO) / len(factors) * mass
                end = _written(state, shape, total, layer.out)
            else:
                factors = [INTERVAL.minimum(*factors)]
                starts = tuple(head * layer.out for head in range(layer.heads))
                end = _written(state, shape, factors[0] * mass, layer.heads * layer.out)
                end = end._replace(size=min(layer.out, 2), starts=starts)
            last = state.last
            for index, factor in enumerate(factors):
                last = Entry(last, "W_V", layer.block, index if len(factors) > 1 else None, shape, factor)
            yield end._replace(last=last)

    def _through_normalisation(self, layer: LayerNorm, state: State) -> State | None:
        gain = arb(1)
        if layer.gain:
            gain = arb(self.norms.find(f"{layer.kind}.gain", layer.block).sup or 0) + layer.around_one
        rows: list[Row] = []
        for row in state.rows:
            total, squares = state.sums(row)
            mean = total / state.width if layer.centred else ZERO
            variance = squares / state.width - mean * mean
            if layer.variance_floor > 0 and not variance >= layer.variance_floor:
                return None
            factor = gain / (INTERVAL.maximum(ZERO, variance) + layer.eps).sqrt()
            a, b, rest = ((x - mean) * factor for x in row)
            rows.append((a, b if state.size > 1 else ZERO, rest))
        return state._replace(rows=(rows[0], rows[1]))


def _largest_factor(shape: Shape, copies: int, budget: Budget) -> arb:
    a, b, c, d = shape
    factors: list[arb] = []
    if budget.row is not None:
        factors.append(arb(budget.row) / arb(max(a * a + b * b, c * c + d * d)).sqrt())
    if any(limit is not None for limit in (*(getattr(budget, name) for name in SIZES), budget.schatten)):
        factors.append(pattern_of(shape, copies).scale(INTERVAL, budget))
    return INTERVAL.minimum(*factors) if factors else ZERO


def _groups(layer: Attention, norms: Norms) -> list[list[int]]:
    """The heads that share one value matrix, whose budgets it fits all; one list for all where none has its own."""
    if not norms.headed:
        return [[0]]
    group = layer.heads // layer.groups
    return [list({g, *range(g * group, (g + 1) * group)}) for g in range(layer.groups)]


def first_token(layer: Embedding) -> int:
    """Of two in a row that are not the token of the row that is read."""
    return layer.own_row + 1 if layer.own_row is not None and layer.own_row < 2 else 0


def _mass(layer: Attention, seq_len: int, *, own_row: bool) -> arb | None:
    """What the weights of rows of one kind sum to where all scores are 0; None where they may not be."""
    rows, name = seq_len - own_row, layer.normaliser.name
    if name == "softmax":
        return arb(rows) / seq_len if own_row and layer.offsets == "none" else None if own_row else arb(1)
    if layer.causal and seq_len > 1:
        return None
    return arb(rows) / (seq_len + 1) if name == "softmax1" else arb(rows) / (2 * seq_len) if name == "sigmoid" else None


def _written(state: State, shape: Shape, factor: arb, width: int) -> State:
    """The rows behind a map of the two coordinates of every copy."""
    a, b, c, d = shape
    factor = factor * len(state.starts)
    first, second = ((factor * (a * x + c * y), factor * (b * x + d * y), ZERO) for x, y, _ in state.rows)
    return state._replace(rows=(first, second), width=width, size=min(width, 2), starts=(0,))


def _entrywise(state: State, name: str) -> State:
    return state._replace(rows=tuple(tuple(_activated(name, x) for x in row) for row in state.rows))


def _activated(name: str, x: arb) -> arb:
    if name == "relu":
        return INTERVAL.maximum(ZERO, x)
    if x >= 0 or name in ("tanh", "identity"):
        return largest_entry(name, x)
    if name == "mish":
        small = x.exp()
        return x * (small**2 + 2 * small) / (small**2 + 2 * small + 2)
    return largest_entry(name, -x) + x  # s(x) - s(-x) = x for GELU and SiLU


def chosen(last: Entry | None, before: Entry | None = None) -> Iterator[Entry]:
    """The weights up to the last one, back to the one before them."""
    while last is not None and last is not before:
        yield last
        last = last.before


def _sum(total: State, end: State, shared: Entry | None) -> State:
    """Of two branches that begin with the same weights."""
    rows = [tuple(x + y for x, y in zip(*both, strict=True)) for both in zip(total.rows, end.rows, strict=True)]
    last = total.last
    for entry in reversed(list(chosen(end.last, shared))):
        last = entry._replace(before=last)
    return end._replace(
        rows=tuple(rows),
        last=last,
        own_row=False,
        alone=total.alone,
    )


def _margin(state: State, classes: int) -> arb:
    """The smaller margin of the two inputs."""
    (a, b, rest), (c, d, other) = state.rows
    if classes == 1:
        return INTERVAL.maximum(INTERVAL.minimum(a, -c), INTERVAL.minimum(-a, c))
    wrong = ([b, rest], [c, other]) if classes > 2 else ([b], [c])
    return INTERVAL.minimum(a - INTERVAL.maximum(*wrong[0]), d - INTERVAL.maximum(*wrong[1]))


def best_state(setting: Setting) -> tuple[State | None, float]:
    """The end of the network with the largest margin, and that margin, rounded down."""
    classes = setting.architecture.classes
    ends = [(state, lower_float(_margin(state, classes))) for state in Builder(setting).states()]
    return max(((s, m) for s, m in ends if m > 0), key=lambda end: end[1], default=(None, 0.0))


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
