"""Laws of layers: what a layer says of itself and what its rule claims, against the layer run on real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
from boundcalc.layers.base import TOKENS, EveryRow, weights_of
from boundcalc.layers.facts import Context, Facts, Kind, Slot, Target
from boundcalc.layers.forward import Fixed, Forward
from boundcalc.setting import Architecture, Layer, Norms, Sample, Setting
from boundcalc.setting.norms import place_of
from boundcalc.statements.network import Network
from boundcalc.statements.weights import Weights
from boundcalc.testing._drawing import Array, Dice, Key, apart, drawn, farthest, joined, projected
from boundcalc.testing._judge import Cases, Complaint, judge

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

    @cached_property
    def runs(self) -> list[tuple[bool, Drawn, Array, Array]]:
        """Whether all lies along the same axes, weights, input rows, and what the layer makes of them."""
        rng, runs = np.random.default_rng(0), list[tuple[bool, Drawn, Array, Array]]()
        for _ in range(_TRIES):
            dice = Dice(rng, aligned=bool(rng.random() < 0.4))
            weights = joined(self.layer, drawn(dice, self.layer, self.norms, self.seq_len), self.seq_len)
            if self.tokens:
                x: Any = rng.integers(self.layer.weights(self.seq_len)[0].shape[0], size=self.seq_len)
            else:
                x = dice.rows(self.seq_len, self.layer.widths()[0] or 3, self.radius)
            runs.append((dice.aligned, weights, x, self.output(weights, x)))
        return runs


# -- what happens, which no claim changes


def _largest(x: Array) -> float:
    return float(np.linalg.norm(x, axis=-1).max())


@lru_cache
def _stretched(at: LayerExample) -> tuple[float, float]:
    """The most that a difference of inputs grew by, but for rounding, and which difference."""
    worst = (0.0, 0.0)
    for place, (_, weights, x, y) in enumerate(at.runs):
        rng = np.random.default_rng((1, place))
        for spread in (_STEP, 0.3):
            across = at.radius * rng.standard_normal(x.shape) / math.sqrt(x.shape[1])
            step = across if rng.random() < 0.6 else -x  # along the rows products change most
            other = projected(x + spread * step, at.radius)
            if (moved := _largest(other - x)) > 0:
                worst = max(worst, ((_largest(at.output(weights, other) - y) - 1e-12) / moved, moved))
    return worst


@lru_cache
def _moved(at: LayerExample, kind: str, target: Target) -> list[tuple[float, float]]:
    """How far the arrays of one kind moved on the points of a target, and how far the output moved with them.

    Each a little, and each to another of its class: its opposite, or what was drawn with other weights.
    """
    moves: list[tuple[float, float]] = []
    for place, ((aligned, weights, x, y), (_, others, _, _)) in enumerate(pairwise(at.runs)):
        dice = Dice(np.random.default_rng((1, place)), aligned)
        mine = {key: array for key, array in weights.items() if key[0] == kind}
        near = {key: dice.near(array, target, _STEP) for key, array in mine.items()}
        moves.append((_STEP, _largest(at.output({**weights, **near}, x) - y)))
        for other in ({key: -array for key, array in mine.items()}, {key: others[key] for key in mine}):
            far = max(apart(array, other[key], target) for key, array in mine.items())
            moves.append((far, _largest(at.output({**weights, **other}, x) - y)))
    return moves


@lru_cache
def _dimensions(at: LayerExample, kind: str, side: int) -> int:
    """How many dimensions the slopes of the last row by the first matrix of a kind span, on one side of it."""
    most = 0
    for _, weights, x, _ in at.runs[:6]:
        key = next((key for key in weights if key[0] == kind and weights[key].ndim == 2), None)
        if key is None:
            continue
        matrix = weights[key]
        step = 1e-4 * max(1.0, float(np.abs(matrix).max()))
        slope = np.empty((*matrix.shape, at.output(weights, x).shape[1]))
        for place in np.ndindex(*matrix.shape):
            change = np.zeros_like(matrix)
            change[place] = step
            up, down = (at.output({**weights, key: matrix + sign * change}, x)[-1] for sign in (1, -1))
            slope[place] = (up - down) / (2 * step)
        sizes = np.linalg.svd(slope.swapaxes(0, side).reshape(matrix.shape[side], -1), compute_uv=False)
        most = max(most, int((sizes > 1e-4 * max(1e-2, sizes[0])).sum()))
    return most


# -- the laws


def says_what_it_is(_: Rule, at: LayerExample) -> str | None:
    """A file can hold the layer, and rows are of the kind a composition needs."""
    if read(Layer, write(at.layer), "a layer") != at.layer:
        return "its JSON object is another layer"
    rows = [at.layer.rows_before(rows, at.seq_len) for rows in (1, at.seq_len)]
    fits = all(isinstance(item, int) and 1 <= item <= at.seq_len for item in rows)
    return None if fits else f"rows_before says {rows} of {at.seq_len}"


def rows_stay_within_the_radius(rule: Rule, at: LayerExample) -> str | None:
    """No output row is longer than claimed."""
    claim, longest = float(at.claims(rule).radius), max(_largest(y) for _, _, _, y in at.runs)
    return None if longest <= claim * (1 + 1e-6) else f"a row of length {longest:.6g}, claimed {claim:.6g}"


def errors_grow_by_the_lipschitz_factor_at_most(rule: Rule, at: LayerExample) -> str | None:
    """Inputs a little apart: outputs are no farther apart than claimed."""
    if at.tokens:
        return None
    claim, (times, moved) = float(at.claims(rule).lipschitz), _stretched(at)
    holds = times <= claim * (1 + 1e-6)
    return None if holds else f"an error of {moved:.3g} grew {times:.6g} times, claimed {claim:.6g}"


def weights_move_the_output_by_their_sensitivity_at_most(rule: Rule, at: LayerExample) -> str | None:
    """Every array has a slot; moved by eps on its points, it moves the output by sensitivity * eps or its cap."""
    slots = {slot.kind: slot for slot in at.claims(rule).slots}
    factors = {factor.kind for weight in weights_of((at.layer,), at.seq_len) for factor in weight.factors}
    kinds = {key[0] for key in at.runs[0][1]}
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


def reads_only_the_rows_it_says(_: Rule, at: LayerExample) -> str | None:
    """A layer that calls itself row-wise does not look at other rows: its covers would count too few points."""
    if at.layer.rows_before(1, at.seq_len) > 1 or at.seq_len < 2:
        return None
    for _aligned, weights, x, y in at.runs:
        other = x.copy()
        other[:-1] = x[-1] if at.tokens else -0.5 * other[:-1][::-1]
        if float(np.abs(at.output(weights, other)[-1] - y[-1]).max()) > 1e-12:
            return "the last row of the output moved with another row of the input, but rows_before(1, T) is 1"
    return None


def does_the_same_to_every_row(_: Rule, at: LayerExample) -> str | None:
    """Where it says so: rows in another order come out in that order."""
    rng = np.random.default_rng(1)
    for _aligned, weights, x, y in at.runs if isinstance(at.layer, EveryRow) else ():
        order = rng.permutation(len(x))
        if not np.allclose(at.output(weights, x[order]), y[order], 1e-9, 1e-9):
            return "it says to do the same to every row, but rows in another order came out otherwise"
    return None


POINTS: Mapping[Kind, int] = {"map": 0, "query": 0, "key": 1}
"""Where the points stand that such a target has: before the matrix, or behind it."""


def maps_act_on_no_more_points_than_are_counted(rule: Rule, at: LayerExample) -> str | None:
    """Of a map x -> x W that one row of the output sees at n points, the slopes by W span no more than n dimensions."""
    for slot in at.claims(rule, rows=1).slots:
        for target in (target for member in slot.members for target in member.targets if target.kind in POINTS):
            points = target.points.count(1)
            if points < target.d and (dimensions := _dimensions(at, slot.kind, POINTS[target.kind])) > points:
                return f"{slot.kind} acts on {dimensions} points for one row of the output, counted as {points}"
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
    """What is claimed of a layer: its rule, or where it holds others what composition says (L8).

    That is A0 for a network of this layer alone, whose loss is its output.
    """
    if not layer.branches:
        return layer.facts(at)
    reads, makes = layer.widths()
    radius, classes = float(at.radius), makes or reads or 1
    stages = Architecture(layers=(layer,), seq_len=at.seq_len, input_radius=radius, classes=classes)
    network = Network(Setting(stages, at.weights.norms, Sample(lipschitz=1.0)), at.ns)
    slots = (
        Slot(place_of(piece.key)[0], piece.gain, piece.members, piece.cap, piece.saturates) for piece in network.pieces
    )
    return Facts(network.radius, network.amplification, tuple(slots), network.uses)


def _refuses(rule: Rule, what: LayerExample | Callable[[], object]) -> None:
    """A place where the rule must not be used, or the making of a layer that must not be: either raises."""
    if isinstance(what, LayerExample):
        what.claims(rule)
    else:
        what()


def check_layer(cases: Cases, *, rule: Rule = claimed) -> list[Complaint]:
    """What is wrong with a class of layers, and with the rule that says their facts: every law is tried.

    Args:
        cases: layers with budgets, weights and a way to run them; examples (or functions that make a layer) that must
            be refused; and rules that are false, such as half the radius.
        rule: what is claimed; the registered rule, or that of composition, unless given.
    """
    return judge(rule, cases, LAWS, _refuses)
