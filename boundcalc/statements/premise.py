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
from boundcalc.statements.larger import joined
from boundcalc.statements.layers import LAYERS, facts
from boundcalc.statements.slots import Context, End, largest_margin
from boundcalc.statements.weights import Weights

_ALMOST = 1 + arb("1e-30")
"""Margins that are equal but for the rounding of balls are equal: both checkers say so alike."""


def margin_of_class(setting: Setting) -> arb:
    """G0e for a setting: no network of its class has a larger margin on any input."""
    walks = (_Reach(each) for each in _classes(setting))
    return INTERVAL.minimum(*(walk.margin(walk.stages, walk.radius) for walk in walks))


def margin_on_both_labels(setting: Setting) -> arb:
    """G0e: no network of a setting's class has a larger margin on two inputs of different labels."""
    found = [margin_of_class(setting)]
    if setting.architecture.classes == 1:
        found += [most for each in _classes(setting) if (most := _Reach(each).opposed()) is not None]
    return INTERVAL.minimum(*found)


def _classes(setting: Setting) -> list[Setting]:
    """The setting, and the one with maps that meet made one (A6, A7), whose class contains its class."""
    larger = joined(setting)
    return [setting] if isinstance(larger, Refusal) else [setting, larger]


def _supposes_a_margin(setting: Setting) -> bool:
    """Whether a risk bound would suppose that some training margin exceeds gamma."""
    return setting.sample.lipschitz is None and setting.sample.train_error < 1


def no_member(setting: Setting) -> Refusal | None:
    """Why no network of the class meets the premise of a risk bound; None where it is not certain that none does."""
    if not _supposes_a_margin(setting):
        return None
    most, gamma = margin_on_both_labels(setting), setting.sample.margin
    if not certainly_le(most, INTERVAL.number(gamma) * _ALMOST):
        return None
    from boundcalc.base.rounding import at_least, at_most  # for the words of a refusal alone

    least = lower_float(most)
    both = "" if setting.architecture.classes > 1 else " on inputs of both labels"
    return Refusal(
        f"a risk bound at training error {setting.sample.train_error:g}",
        f"gamma {gamma:g}, while no network with these norms has a margin above {at_least(upper_float(most))}{both}",
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

    def __init__(self, setting: Setting) -> None:
        architecture = setting.architecture
        self.weights = Weights(INTERVAL, _without_rank_zero(setting.norms))
        self.seq_len, self.classes = architecture.seq_len, architecture.classes
        self.stages, self.radius = architecture.stages, INTERVAL.number(architecture.input_radius)
        self.width: int | None = widths_of(architecture.stages)[0]
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

    def opposed(self) -> arb | None:
        """The largest margin on two inputs of different labels, where relu and maps without offsets end the network."""
        before, steep = list(self.stages), arb(1)
        while before and (step := self._along(before[-1])) is not None:
            before.pop()
            steep = steep * step
        rule = LAYERS.of(before[-1]) if before else None
        if rule is None or rule.positive is None or not rule.positive(before[-1]):
            return None
        longest = self._through(before, self.radius) / arb(2).sqrt()
        before.pop()
        while before and self._along(before[-1]) is not None and not before[-1].weights(self.seq_len):
            before.pop()
        rule = LAYERS.of(before[-1]) if before else None
        if rule is not None and rule.split is not None:
            self.width = widths_of(self.stages)[0]
            radius = self._through(before[:-1], self.radius)
            halves = rule.split(before[-1], Context(self.weights, radius, 1, self.seq_len))
            if halves is not None:
                longest = INTERVAL.minimum(longest, halves / arb(2).sqrt())
        return steep * longest

    def _along(self, layer: Layer) -> arb | None:
        rule = LAYERS.of(layer)
        if rule is None or rule.along is None:
            return None
        return rule.along(layer, Context(self.weights, self.radius, 1, self.seq_len))

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
