"""G0e: what a risk bound supposes of the training sample, and whether any network of the class can meet it.

A risk bound at a training error below 1 speaks of networks with a margin above gamma on some training sequence. Margins
that equal gamma count as errors (G0), so where no output reaches beyond gamma it speaks of no network at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from flint import arb

from boundcalc.base.errors import Refusal
from boundcalc.base.intervals import INTERVAL, certainly_le, lower_float, upper_float
from boundcalc.setting import Layer, Norms, Setting
from boundcalc.setting.layer import widths_of
from boundcalc.statements.layers import LAYERS, facts
from boundcalc.statements.slots import Context, End, largest_margin
from boundcalc.statements.weights import Weights

_ALMOST = 1 + arb("1e-30")
"""Margins that are equal but for the rounding of balls are equal: both checkers say so alike."""


def margin_of_class(setting: Setting) -> arb:
    """G0e for a setting: no network of its class has a larger margin on any input."""
    architecture = setting.architecture
    walk = _Reach(Weights(INTERVAL, _without_rank_zero(setting.norms)), architecture.seq_len, architecture.classes)
    walk.width = widths_of(architecture.stages)[0]
    return walk.margin(architecture.stages, INTERVAL.number(architecture.input_radius))


def _supposes_a_margin(setting: Setting) -> bool:
    """Whether a risk bound would suppose that some training margin exceeds gamma."""
    return setting.sample.lipschitz is None and setting.sample.train_error < 1


def no_member(setting: Setting) -> Refusal | None:
    """Why no network of the class meets the premise of a risk bound; None where it is not certain that none does."""
    if not _supposes_a_margin(setting):
        return None
    most, gamma = margin_of_class(setting), setting.sample.margin
    if not certainly_le(most, INTERVAL.number(gamma) * _ALMOST):
        return None
    from boundcalc.base.rounding import at_least, at_most  # for the words of a refusal alone

    least = lower_float(most)
    return Refusal(
        f"a risk bound at training error {setting.sample.train_error:g}",
        f"gamma {gamma:g}, while no network with these norms has a margin above {at_least(upper_float(most))}",
        "a margin above gamma",
        f"Take a gamma below {at_most(least)}, or larger norms." if least > 0 else "Take larger norms.",
    )


def _without_rank_zero(norms: Norms) -> Norms:
    """A matrix of rank 0 is zero, whatever else is allowed."""
    if all(budget.rank != 0 for budget in norms.budgets.values()):
        return norms
    budgets = {key: replace(each, op=0.0) if each.rank == 0 else each for key, each in norms.budgets.items()}
    return replace(norms, budgets=budgets)


class _Reach:
    """How long rows can be behind each layer: the radii of L, sharper where a layer shortens every row."""

    def __init__(self, weights: Weights, seq_len: int, classes: int) -> None:
        self.weights, self.seq_len, self.classes = weights, seq_len, classes
        self.width: int | None = None
        """Of the rows, where it is known."""

    def margin(self, layers: Sequence[Layer], radius: arb) -> arb:
        """The largest margin of a whole network's output."""
        if not layers:
            return largest_margin(INTERVAL, radius, self.classes)
        *before, last = layers
        rule = LAYERS.of(last)
        if rule is not None and rule.margin is not None:
            reach, margin = (partial(walk, before, radius) for walk in (self._through, self.margin))
            found = rule.margin(last, End(self.weights, self.classes, reach, margin))
            if found is not None:
                return found
        return largest_margin(INTERVAL, self._through(layers, radius), self.classes)

    def _through(self, layers: Sequence[Layer], radius: arb) -> arb:
        for layer in layers:
            if layer.branches:
                width, reaches = self.width, list[arb]()
                for branch in layer.branches:
                    self.width = width
                    reaches.append(self._through(branch, radius))
                radius = sum(reaches, start=arb(0))
            else:
                radius = self._behind(layer, radius)
            makes = layer.widths()[1]
            self.width = self.width if makes is None else makes
        return radius

    def _behind(self, layer: Layer, radius: arb) -> arb:
        rule, at = LAYERS.of(layer), Context(self.weights, radius, 1, self.seq_len)
        if rule is None or rule.reach is None:
            return facts(layer, at).radius
        return rule.reach(layer, at, self.width)
