"""Laws of layers: what a layer says of itself and what its rule claims, against the layer run on real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT, NumberSystem
from boundcalc.base.schema import read, write
from boundcalc.checkpoints.forward import NUMPY
from boundcalc.layers.base import TOKENS, EveryRow, flat, weights_of
from boundcalc.layers.facts import Context, Facts, Kind, Slot, Target
from boundcalc.layers.forward import Fixed, Forward
from boundcalc.setting import Architecture, Layer, Norms, Sample, Setting
from boundcalc.setting.norms import place_of
from boundcalc.statements.network import Network
from boundcalc.statements.weights import Weights
from boundcalc.testing._drawing import Array, Dice, Key, apart, drawn, farthest, joined, projected
from boundcalc.testing._report import Cases, Report, judge

Rule = Callable[[Any, Context], Facts]
"""What is claimed of a layer where it stands."""
Drawn = Mapping[Key, Array]
"""Every array of the layer."""

_TRIES = 60
_STEP = 1e-6


@dataclass(frozen=True)
class Arrays:
    """Weights that were drawn, as the forward pass of layers asks for them."""

    weights: Drawn
    seq_len: int = 3

    def has(self, layer: Layer, kind: str) -> bool:
        """Whether it was drawn."""
        return any(key[:2] == (kind, layer.where()) for key in self.weights)

    def __call__(self, layer: Layer, kind: str) -> Array:
        """The array, or all of one kind; fixed rows lie along the first axis."""
        arrays = {key: array for key, array in self.weights.items() if key[:2] == (kind, layer.where())}
        if not arrays:
            rows, length = next((rows, length) for rows, length in layer.fixed(self.seq_len) if rows.kind == kind)
            return length * np.eye(1, rows.shape[1]).repeat(rows.shape[0], axis=0)
        several = any(copy is not None for _, _, copy in arrays)
        return np.stack(list(arrays.values())) if several else next(iter(arrays.values()))


@dataclass(frozen=True, eq=False)
class LayerExample:
    """A layer where it stands.

    Attributes:
        layer: the layer.
        norms: budgets of its weights.
        radius: largest length of an input row.
        seq_len: T, input rows.
        fixed: what its forward pass needs besides weights, such as rotations.
    """

    layer: Layer
    norms: Norms
    radius: float = 1.0
    seq_len: int = 3
    fixed: Fixed = field(default_factory=lambda: Fixed(row=-1))

    def __str__(self) -> str:
        return f"{self.layer} at radius {self.radius:g}"

    def claims(self, rule: Rule, ns: NumberSystem = FLOAT, rows: int | None = None) -> Facts:
        """What a rule says of it, where all rows of its output are used or so many."""
        count = self.seq_len if rows is None else rows
        return rule(self.layer, Context(Weights(ns, self.norms), ns.number(self.radius), count, self.seq_len))

    def output(self, weights: Drawn, x: Array) -> Array:
        """The rows it makes of rows, or of tokens."""
        return Forward(NUMPY, Arrays(weights, self.seq_len), self.fixed)((self.layer,), x[None])[0]

    @property
    def tokens(self) -> bool:
        """Whether it reads tokens, which have no neighbours."""
        return self.layer.widths()[0] == TOKENS

    def _inputs(self, dice: Dice) -> Any:
        if self.tokens:
            return dice.rng.integers(self.layer.weights(self.seq_len)[0].shape[0], size=self.seq_len)
        return dice.rows(self.seq_len, self.layer.widths()[0] or 3, self.radius)

    def runs(self, number: int = 60) -> Iterator[tuple[Dice, Drawn, Array, Array]]:
        """Weights, input rows and what the layer makes of them, often all along the same axes; with dice for more."""
        for index, (aligned, weights, x, y) in enumerate(self._drawn[:number]):
            yield Dice(np.random.default_rng((1, index)), aligned), weights, x, y

    @cached_property
    def _drawn(self) -> list[tuple[bool, Drawn, Array, Array]]:
        rng, draws = np.random.default_rng(0), list[tuple[bool, Drawn, Array, Array]]()
        for _ in range(_TRIES):
            dice = Dice(rng, aligned=bool(rng.random() < 0.4))
            weights = joined(self.layer, drawn(dice, self.layer, self.norms, self.seq_len), self.seq_len)
            x = self._inputs(dice)
            draws.append((dice.aligned, weights, x, self.output(weights, x)))
        return draws

    # what happens, which no claim changes

    @cached_property
    def longest(self) -> float:
        """The longest row that came out."""
        return max(_largest(y) for _, _, _, y in self.runs())

    @cached_property
    def stretched(self) -> tuple[float, float]:
        """The most that a difference of inputs grew by, but for rounding, and which difference."""
        worst = (0.0, 0.0)
        for dice, weights, x, y in self.runs():
            for spread in (_STEP, 0.3):
                across = self.radius * dice.rng.standard_normal(x.shape) / math.sqrt(x.shape[1])
                other = x + spread * (across if dice.rng.random() < 0.6 else -x)  # along the rows products change most
                other = projected(other, self.radius)
                if (moved := _largest(other - x)) > 0:
                    worst = max(worst, ((_largest(self.output(weights, other) - y) - 1e-12) / moved, moved))
        return worst


@lru_cache
def _moved(at: LayerExample, kind: str, target: Target) -> list[tuple[float, float]]:
    """How far the arrays of one kind moved on the points of a target, and how far the output moved with them.

    Each a little, and each to another of its class: its opposite, or what was drawn with other weights.
    """
    moves: list[tuple[float, float]] = []
    for (dice, weights, x, y), (_, others, _, _) in pairwise(at.runs()):
        mine = {key: array for key, array in weights.items() if key[0] == kind}
        near = {key: dice.near(array, target, _STEP) for key, array in mine.items()}
        moves.append((_STEP, _largest(at.output({**weights, **near}, x) - y)))
        for other in ({key: -array for key, array in mine.items()}, {key: others[key] for key in mine}):
            far = max(apart(array, other[key], target) for key, array in mine.items())
            moves.append((far, _largest(at.output({**weights, **other}, x) - y)))
    return moves


def _largest(x: Array) -> float:
    return float(np.linalg.norm(x, axis=-1).max())


@lru_cache
def _dimensions(at: LayerExample, kind: str, side: int) -> int:
    """How many dimensions the slopes of the last row by the first matrix of a kind span, on one side of it."""
    return max(_span(at, kind, side, weights, x) for _, weights, x, _ in at.runs(6))


def _span(at: LayerExample, kind: str, side: int, weights: Drawn, x: Array) -> int:
    key = next((key for key in weights if key[0] == kind), None)
    if key is None or weights[key].ndim != 2:
        return 0
    matrix, slopes = weights[key], list[Array]()
    step = 1e-4 * max(1.0, float(np.abs(matrix).max()))
    for place in np.ndindex(*matrix.shape):
        change = np.zeros_like(matrix)
        change[place] = step
        up, down = (at.output({**weights, key: matrix + sign * change}, x)[-1] for sign in (1, -1))
        slopes.append((up - down) / (2 * step))
    slope = np.array(slopes).reshape(*matrix.shape, -1).swapaxes(0, side)
    sizes = np.linalg.svd(slope.reshape(len(slope), -1), compute_uv=False)
    return int((sizes > 1e-4 * max(1e-2, sizes[0])).sum())


def says_what_it_is(rule: Rule, at: LayerExample) -> str | None:
    """Rows and weights are of the kind a composition needs, and a file can hold the layer."""
    del rule
    layer = at.layer
    if read(Layer, write(layer), "a layer") != layer:
        return "its JSON object is another layer"
    if any(not isinstance(item, Layer) for item in flat((layer,))):
        return "what is inside it is no layer"
    rows = [layer.rows_before(rows, at.seq_len) for rows in (1, at.seq_len)]
    if not all(isinstance(item, int) and 1 <= item <= at.seq_len for item in rows):
        return f"rows_before says {rows} of {at.seq_len}"
    return None


def rows_stay_within_the_radius(rule: Rule, at: LayerExample) -> str | None:
    """No output row is longer than claimed."""
    claim = float(at.claims(rule).radius)
    return None if at.longest <= claim * (1 + 1e-6) else f"a row of length {at.longest:.6g}, claimed {claim:.6g}"


def errors_grow_by_the_lipschitz_factor_at_most(rule: Rule, at: LayerExample) -> str | None:
    """Inputs a little apart: outputs are no farther apart than claimed."""
    if at.tokens:
        return None
    claim, (times, moved) = float(at.claims(rule).lipschitz), at.stretched
    return (
        None if times <= claim * (1 + 1e-6) else f"an error of {moved:.3g} grew {times:.6g} times, claimed {claim:.6g}"
    )


def weights_move_the_output_by_their_sensitivity_at_most(rule: Rule, at: LayerExample) -> str | None:
    """Every array has a slot; moved by eps on its points, it moves the output by sensitivity * eps or its cap."""
    slots = {slot.kind: slot for slot in at.claims(rule).slots}
    factors = {factor.kind for weight in weights_of((at.layer,), at.seq_len) for factor in weight.factors}
    kinds = {key[0] for _, weights, _, _ in at.runs(1) for key in weights}
    if unread := kinds - set(slots) - factors:
        return f"{min(unread)!r} is trained, and no slot covers it"
    for kind in sorted(kinds & set(slots)):
        slot = slots[kind]
        first = farthest(target for member in slot.members for target in member.targets)
        for eps, moved in _moved(at, kind, first):  # what is within eps where points are longest is so everywhere
            limit = _most(slot, eps)
            if moved > limit * (1 + 1e-3) + 1e-13:
                return f"{kind} moved by {eps:.3g} moves the output by {moved:.6g}, claimed {limit:.6g}"
    return None


def _most(slot: Slot, eps: float) -> float:
    """How far the output moves at most with maps that err by eps."""
    error = float(slot.sensitivity) * eps
    cap = math.inf if slot.cap is None else float(slot.cap)
    return cap * math.tanh(error / cap) if slot.saturates and cap else min(error, cap)


def reads_only_the_rows_it_says(rule: Rule, at: LayerExample) -> str | None:
    """A layer that calls itself row-wise does not look at other rows: its covers would count too few points."""
    del rule
    if at.layer.rows_before(1, at.seq_len) > 1 or at.seq_len < 2:
        return None
    for _, weights, x, y in at.runs():
        other = x.copy()
        other[:-1] = x[-1] if at.tokens else -0.5 * other[:-1][::-1]
        moved = at.output(weights, other)[-1] - y[-1]
        if float(np.abs(moved).max()) > 1e-12:
            return "the last row of the output moved with another row of the input, but rows_before(1, T) is 1"
    return None


def does_the_same_to_every_row(rule: Rule, at: LayerExample) -> str | None:
    """Where it says so: rows in another order come out in that order."""
    del rule
    for dice, weights, x, y in at.runs():
        order = dice.rng.permutation(len(x))
        if isinstance(at.layer, EveryRow) and not np.allclose(at.output(weights, x[order]), y[order], 1e-9, 1e-9):
            return "it says to do the same to every row, but rows in another order came out otherwise"
    return None


POINTS: Mapping[Kind, int] = {"map": 0, "query": 0, "key": 1}
"""Where the points stand that such a target has: before the matrix, or behind it."""


def maps_act_on_no_more_points_than_are_counted(rule: Rule, at: LayerExample) -> str | None:
    """Of a map x -> x W that one row of the output sees at n points, the slopes by W span no more than n dimensions."""
    for slot in at.claims(rule, rows=1).slots:
        for target in (target for member in slot.members for target in member.targets if target.kind in POINTS):
            points = target.points.count(1)
            if points < target.d and (seen := _dimensions(at, slot.kind, POINTS[target.kind])) > points:
                return f"{slot.kind} acts on {seen} points for one row of the output, counted as {points}"
    return None


def number_systems_agree(rule: Rule, at: LayerExample) -> str | None:
    """One rule in floats and in intervals."""
    plain, exact = at.claims(rule), at.claims(rule, INTERVAL)
    pairs = [("radius", plain.radius, exact.radius), ("Lipschitz factor", plain.lipschitz, exact.lipschitz)]
    pairs += [(a.kind, a.sensitivity, b.sensitivity) for a, b in zip(plain.slots, exact.slots, strict=True)]
    for name, a, b in pairs:
        if not bool(arb(float(a), 1e-9 * (1 + abs(float(a)))).overlaps(arb(b))):
            return f"{name}: {a} in floats, {b} in intervals"
    return None


LAWS = (
    says_what_it_is,
    number_systems_agree,
    rows_stay_within_the_radius,
    errors_grow_by_the_lipschitz_factor_at_most,
    weights_move_the_output_by_their_sensitivity_at_most,
    maps_act_on_no_more_points_than_are_counted,
    reads_only_the_rows_it_says,
    does_the_same_to_every_row,
)
"""Those about the layer alone are last: a false rule is seen before."""


def claimed(layer: Layer, at: Context) -> Facts:
    """What is claimed of a layer: its rule, or what composition says where it holds others."""
    return _composed(layer, at) if layer.branches else layer.facts(at)


def _composed(layer: Layer, at: Context) -> Facts:
    """A0 for a network of this layer alone, whose loss is its output: L8."""
    reads, makes = layer.widths()
    radius, classes = float(at.radius), makes or reads or 1
    stages = Architecture(layers=(layer,), seq_len=at.seq_len, input_radius=radius, classes=classes)
    network = Network(Setting(stages, at.weights.norms, Sample(lipschitz=1.0)), at.ns)
    slots = (
        Slot(place_of(piece.key)[0], piece.gain, piece.members, piece.cap, piece.saturates) for piece in network.pieces
    )
    return Facts(network.radius, network.amplification, tuple(slots), network.uses)


def _refuses(rule: Rule, what: LayerExample | Callable[[], object]) -> str | None:
    """A place where the rule must not be used, or the making of a layer that must not be."""
    if isinstance(what, LayerExample):
        what.claims(rule)
    else:
        what()
    return None


def check_layer(name: str, cases: Cases[Rule, LayerExample], *, rule: Rule = claimed) -> Report:
    """Tries every law of layers, and of the rule that says their facts.

    Args:
        name: the label of the class of layers.
        cases: layers with budgets, weights and a way to run them; examples (or functions that make a layer) that must
            be refused; and rules that are false, such as half the radius.
        rule: what is claimed; the registered rule, or that of composition, unless given.
    """
    return judge(f"layer {name}", rule, cases, LAWS, _refuses)
