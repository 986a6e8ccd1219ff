"""Laws of layers: what a layer says of itself and what its rule claims, against the layer run on real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT, NumberSystem
from boundcalc.laws.report import Cases, Report, judge
from boundcalc.setting import Budget, Layer, Norms
from boundcalc.setting.layer import flat, weights_of
from boundcalc.setting.named import layer_from_json, layer_to_json
from boundcalc.statements.layers import LAYERS, facts
from boundcalc.statements.slots import Context, Facts, Slot
from boundcalc.statements.weights import Weights

Array = NDArray[np.float64]
Rule = Callable[[Any, Context], Facts]
"""What is claimed of a layer where it stands."""
Drawn = Mapping[Any, Array]
"""Trained arrays by kind, or by a tuple that begins with the kind: one for every array of the layer."""

_TRIES = 60
_ROOM = 1e-6


@dataclass(frozen=True)
class LayerExample:
    """A layer where it stands, and how to run it.

    Attributes:
        layer: the layer.
        norms: budgets of its weights.
        draw: weights within the budgets, from random numbers; extreme ones find mistakes soonest.
        run: the output rows of (weights, input rows).
        radius: largest length of an input row.
        seq_len: T, input rows.
        inputs: input rows, where they are not rows of the ball (tokens).
    """

    layer: Layer
    norms: Norms
    draw: Callable[[np.random.Generator], Drawn]
    run: Callable[[Drawn, Array], Array]
    radius: float = 1.0
    seq_len: int = 3
    inputs: Callable[[np.random.Generator], Array] | None = None

    def __str__(self) -> str:
        return f"{self.layer} at radius {self.radius:g}"

    def claims(self, rule: Rule, ns: NumberSystem = FLOAT) -> Facts:
        """What a rule says of it."""
        rows = self.seq_len
        return rule(self.layer, Context(Weights(ns, self.norms), ns.number(self.radius), rows, rows))

    def rows(self, rng: np.random.Generator) -> Array:
        """Input rows: tokens, or rows of the ball, often on its edge, opposite or equal."""
        if self.inputs is not None:
            return self.inputs(rng)
        width = self.layer.widths()[0] or 3
        x = rng.standard_normal((self.seq_len, width))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        kind = rng.integers(4)
        if kind == 1:
            x = x[:1] * rng.choice([-1.0, 1.0], (self.seq_len, 1))
        elif kind == 2:
            x = x * rng.random((self.seq_len, 1))
        elif kind == 3:
            x = np.eye(1, width).repeat(self.seq_len, axis=0) * rng.choice([-1.0, 1.0], (self.seq_len, 1))
        return self.radius * x


def _largest(x: Array) -> float:
    return float(np.linalg.norm(x, axis=-1).max())


def _runs(at: LayerExample) -> Iterator[tuple[np.random.Generator, Drawn, Array, Array]]:
    rng = np.random.default_rng(0)
    for _ in range(_TRIES):
        weights, x = at.draw(rng), at.rows(rng)
        yield rng, weights, x, np.atleast_2d(at.run(weights, x))


def _kind(key: Any) -> str:
    return key[0] if isinstance(key, tuple) else str(key)


def says_what_it_is(rule: Rule, at: LayerExample) -> str | None:
    """Widths, rows and weights are of the kind a composition needs, and a file can hold the layer."""
    del rule
    layer = at.layer
    if layer_from_json(layer_to_json(layer)) != layer:
        return "its JSON object is another layer"
    if any(not isinstance(each, Layer) for each in flat((layer,))):
        return "what is inside it is no layer"
    rows = [layer.rows_before(rows, at.seq_len) for rows in (1, at.seq_len)]
    if not all(isinstance(each, int) and 1 <= each <= at.seq_len for each in rows):
        return f"rows_before says {rows} of {at.seq_len}"
    return None


def trains_what_it_says(rule: Rule, at: LayerExample) -> str | None:
    """The arrays drawn are those it has: as many numbers, of the kinds it names."""
    del rule
    weights = list(weights_of((at.layer,), at.seq_len))
    drawn = at.draw(np.random.default_rng(0))
    kinds = {each.kind for weight in weights for each in weight.all}
    unknown = {_kind(key) for key in drawn} - kinds
    if unknown:
        return f"{sorted(unknown)[0]!r} is drawn, but it says to train {', '.join(sorted(kinds)) or 'nothing'}"
    whole = {_kind(key) for key in drawn}  # a product may be drawn as one matrix
    counted = sum(w.copies * math.prod(w.shape) if w.kind in whole else w.parameters for w in weights)
    there = sum(array.size for array in drawn.values())
    return None if counted == there else f"it counts {counted} parameters, {there} are drawn"


def is_drawn_within_its_budgets(rule: Rule, at: LayerExample) -> str | None:
    """What is drawn belongs to the class: else the other laws would be about another one."""
    del rule
    for _, weights, _, _ in _runs(at):
        for key, array in weights.items():
            kind, block, head = (*key, None, None)[:3] if isinstance(key, tuple) else (key, at.layer.where(), None)
            try:
                budget = at.norms.find(str(kind), block, head)
            except InvalidSetting:
                continue
            if (said := _beyond(array, budget)) is not None:
                return f"{key} {said}"
    return None


def _beyond(array: Array, budget: Budget) -> str | None:
    matrix = np.atleast_2d(array)
    sizes = {
        "op": float(np.linalg.norm(matrix, 2)),
        "fro": float(np.linalg.norm(matrix)),
        "two_one": float(np.linalg.norm(matrix, axis=0).sum()),
        "two_one_t": float(np.linalg.norm(matrix, axis=1).sum()),
        "one_one": float(np.abs(matrix).sum()),
        "sup": float(np.abs(matrix).max(initial=0)),
        "row": float(np.linalg.norm(matrix, axis=1).max(initial=0)),
    }
    for name, size in sizes.items():
        limit = getattr(budget, name)
        vector = array.ndim == 1 and name not in ("op", "fro", "sup")
        if limit is not None and not vector and size > limit * (1 + _ROOM):
            return f"has {name} {size:.6g}, its budget is {limit:g}"
    return None


def rows_stay_within_the_radius(rule: Rule, at: LayerExample) -> str | None:
    """No output row is longer than claimed."""
    claim = float(at.claims(rule).radius)
    worst = max(_largest(y) for _, _, _, y in _runs(at))
    return None if worst <= claim * (1 + _ROOM) else f"a row of length {worst:.6g}, claimed {claim:.6g}"


def errors_grow_by_the_lipschitz_factor_at_most(rule: Rule, at: LayerExample) -> str | None:
    """Inputs a little apart: outputs are no farther apart than claimed."""
    if at.inputs is not None:
        return None  # tokens have no neighbours
    claim = float(at.claims(rule).lipschitz)
    for rng, weights, x, y in _runs(at):
        for spread in (1e-6, 0.3):
            across = at.radius * rng.standard_normal(x.shape) / math.sqrt(x.shape[1])
            other = x + spread * (across if rng.random() < 0.6 else -x)  # or along the rows, where products change most
            lengths = np.linalg.norm(other, axis=1, keepdims=True)
            other *= np.minimum(1, at.radius / np.maximum(lengths, 1e-300))
            apart = _largest(other - x)
            moved = _largest(np.atleast_2d(at.run(weights, other)) - y)
            if apart > 0 and moved > claim * apart * (1 + _ROOM) + 1e-12:
                return f"an error of {apart:.3g} became {moved:.3g}: {moved / apart:.6g} times, claimed {claim:.6g}"
    return None


def weights_move_the_output_by_their_sensitivity_at_most(rule: Rule, at: LayerExample) -> str | None:
    """Every array has a slot; moved by eps on its points, it moves the output by sensitivity times eps, and by its cap."""
    slots = {slot.kind: slot for slot in at.claims(rule).slots}
    for rng, weights, x, y in _runs(at):
        kinds = {_kind(key) for key in weights}
        unread = kinds - set(slots)
        factors = {each.kind for weight in weights_of((at.layer,), at.seq_len) for each in weight.factors}
        if unread - factors:
            return f"{sorted(unread - factors)[0]!r} is trained, and no slot covers it"
        for kind in kinds & set(slots):
            slot, eps = slots[kind], 1e-6
            near = {key: _moved(rng, a, slot, eps) if _kind(key) == kind else a for key, a in weights.items()}
            moved = _largest(np.atleast_2d(at.run(near, x)) - y)
            limit = float(slot.sensitivity) * eps
            if slot.cap is not None:
                limit = min(limit, float(slot.cap))
            if moved > limit * (1 + 1e-3) + 1e-13:
                return f"{kind} moved by {eps:g} moves the output by {moved:.6g}, claimed {limit:.6g}"
    return None


def _moved(rng: np.random.Generator, array: Array, slot: Slot, eps: float) -> Array:
    """Another array within eps of one at every point of the slot's target."""
    target = max((t for member in slot.members for t in member.targets), key=lambda t: float(t.radius))
    reach = eps / float(target.radius)
    if target.kind in ("vector", "table"):
        step = rng.standard_normal(array.shape)
        return array + eps * step / np.maximum(np.linalg.norm(step, axis=-1, keepdims=True), 1e-300)
    if target.kind == "gain":
        return array + reach * rng.choice([-1.0, 1.0], array.shape)
    left, right = rng.standard_normal(array.shape[0]), rng.standard_normal(array.shape[1])
    return array + reach * np.outer(left / np.linalg.norm(left), right / np.linalg.norm(right))


def reads_only_the_rows_it_says(rule: Rule, at: LayerExample) -> str | None:
    """A layer that calls itself row-wise does not look at other rows: its covers would count too few points."""
    del rule
    if at.layer.rows_before(1, at.seq_len) > 1 or at.seq_len < 2:
        return None
    for _, weights, x, y in _runs(at):
        other = x.copy()
        other[:-1] = other[:-1][::-1] * (1.0 if at.inputs is not None else -0.5)
        if at.seq_len == 2 and at.inputs is not None:
            other[0] = other[1]
        moved = np.atleast_2d(at.run(weights, other))[-1] - y[-1]
        if float(np.abs(moved).max()) > 1e-12:
            return "the last row of the output moved with another row of the input, but rows_before(1, T) is 1"
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
    trains_what_it_says,
    is_drawn_within_its_budgets,
    rows_stay_within_the_radius,
    errors_grow_by_the_lipschitz_factor_at_most,
    weights_move_the_output_by_their_sensitivity_at_most,
    reads_only_the_rows_it_says,
    number_systems_agree,
)


def _refuses(rule: Rule, what: LayerExample | Callable[[], object]) -> str | None:
    """A place where the rule must not be used, or the making of a layer that must not be."""
    if isinstance(what, LayerExample):
        what.claims(rule)
    else:
        what()
    return None


def check_layer(
    name: str,
    cases: Cases[Rule, LayerExample] | None = None,
    *,
    rule: Rule = facts,
    expected_failures: Mapping[str, str] | None = None,
) -> Report:
    """Tries every law of layers, and of the rule that says their facts.

    Args:
        name: the label of the class of layers.
        cases: layers with budgets, weights and a way to run them; examples (or functions that make a layer) that must be
            refused; and rules that are false, such as half the radius. Those it was registered with, unless given.
        rule: what is claimed; the registered rule unless given.
        expected_failures: laws that are known not to hold, with the reason.

    Returns:
        What was tried, and every law that does not hold.
    """
    return judge("layer", name, rule, LAYERS.cases(name) if cases is None else cases, LAWS, _refuses, expected_failures)
