"""Laws of layers: what a layer says of itself and what its rule claims, against the layer run on real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps

import numpy as np
from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.schema import read, write
from boundcalc.checkpoints.layers import ACTIVATIONS
from boundcalc.layers.base import EveryRow, flat, weights_of
from boundcalc.layers.facts import Context, Facts, Slot
from boundcalc.setting import Activation, Architecture, Layer, Linear, Pool, Sample, Setting
from boundcalc.setting.norms import place_of
from boundcalc.statements.network import Network
from boundcalc.statements.targets import Kind
from boundcalc.testing.drawing import Array
from boundcalc.testing.layer_example import LayerExample, Rule
from boundcalc.testing.report import Cases, Law, Report, judge

_ROOM = 1e-6


def _whatever_is_claimed(law: Callable[[LayerExample], str | None]) -> Law[Rule, LayerExample]:
    """A law of the layer alone, tried once."""

    @wraps(law)
    def tried(rule: Rule, at: LayerExample) -> str | None:
        del rule
        return at.once(law.__name__, lambda: law(at))

    return tried


@_whatever_is_claimed
def says_what_it_is(at: LayerExample) -> str | None:
    """Widths, rows and weights are of the kind a composition needs, and a file can hold the layer."""
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
    return None if at.longest <= claim * (1 + _ROOM) else f"a row of length {at.longest:.6g}, claimed {claim:.6g}"


def errors_grow_by_the_lipschitz_factor_at_most(rule: Rule, at: LayerExample) -> str | None:
    """Inputs a little apart: outputs are no farther apart than claimed."""
    if at.inputs is not None:
        return None  # tokens have no neighbours
    claim, (times, moved) = float(at.claims(rule).lipschitz), at.stretched
    return (
        None if times <= claim * (1 + _ROOM) else f"an error of {moved:.3g} grew {times:.6g} times, claimed {claim:.6g}"
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
        for eps, moved in at.moved(kind, [target for member in slot.members for target in member.targets]):
            limit = _most(slot, eps)
            if moved > limit * (1 + 1e-3) + 1e-13:
                return f"{kind} moved by {eps:.3g} moves the output by {moved:.6g}, claimed {limit:.6g}"
    return None


def _most(slot: Slot, eps: float) -> float:
    """How far the output moves at most with maps that err by eps."""
    error = float(slot.sensitivity) * eps
    cap = math.inf if slot.cap is None else float(slot.cap)
    return cap * math.tanh(error / cap) if slot.saturates and cap else min(error, cap)


@_whatever_is_claimed
def reads_only_the_rows_it_says(at: LayerExample) -> str | None:
    """A layer that calls itself row-wise does not look at other rows: its covers would count too few points."""
    if at.layer.rows_before(1, at.seq_len) > 1 or at.seq_len < 2:
        return None
    for _, weights, x, y in at.runs():
        other = x.copy()
        other[:-1] = other[:-1][::-1] * (1.0 if at.inputs is not None else -0.5)
        if at.seq_len == 2 and at.inputs is not None:
            other[0] = other[1]
        moved = at.output(weights, other)[-1] - y[-1]
        if float(np.abs(moved).max()) > 1e-12:
            return "the last row of the output moved with another row of the input, but rows_before(1, T) is 1"
    return None


@_whatever_is_claimed
def is_what_sharper_statements_take_it_for(at: LayerExample) -> str | None:
    """The same at every row, a linear map, a pooling, an activation of every entry: where it says so."""
    for dice, weights, x, y in at.runs():
        order = dice.rng.permutation(len(x))
        if isinstance(at.layer, EveryRow) and _differ(at.output(weights, x[order]), y[order]):
            return "it says to do the same to every row, but rows in another order came out otherwise"
        for what, ways in _said(at.layer, {key[0]: array for key, array in weights.items()}, x):
            if all(_differ(way, y) for way in ways):
                return f"it says to make {what} of its input, and does not"
    return None


def _said(layer: Layer, weights: Mapping[str, Array], x: Array) -> Iterator[tuple[str, Sequence[Array]]]:
    """What a layer says that it makes of rows, each in every valid way."""
    if isinstance(layer, Linear):
        yield f"{layer.kind} times rows", [x @ weights[layer.kind] + weights.get(layer.bias or "", 0.0)]
    if isinstance(layer, Pool):
        yield f"one row ({layer.how})", [x.mean(0)[None]] if layer.how == "mean" else [row[None] for row in x]
    if isinstance(layer, Activation):
        yield f"{layer.name} of every entry", [ACTIVATIONS[layer.name](x)]


def _differ(a: Array, b: Array) -> bool:
    return a.shape != b.shape or float(np.abs(a - b).max()) > 1e-9 * (1 + float(np.abs(b).max()))


POINTS: Mapping[Kind, int] = {"map": 0, "query": 0, "key": 1}
"""Where the points stand that such a target has: before the matrix, or behind it."""


def maps_act_on_no_more_points_than_are_counted(rule: Rule, at: LayerExample) -> str | None:
    """Of a map x -> x W that one row of the output sees at n points, the slopes by W span no more than n dimensions."""
    for slot in at.claims(rule, rows=1).slots:
        for target in (target for member in slot.members for target in member.targets if target.kind in POINTS):
            points = target.points.count(1)
            if points < target.d and (seen := at.dimensions(slot.kind, POINTS[target.kind])) > points:
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
    rows_stay_within_the_radius,
    errors_grow_by_the_lipschitz_factor_at_most,
    weights_move_the_output_by_their_sensitivity_at_most,
    reads_only_the_rows_it_says,
    is_what_sharper_statements_take_it_for,
    maps_act_on_no_more_points_than_are_counted,
    number_systems_agree,
)


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
