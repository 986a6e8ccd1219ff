"""G0e: what a risk bound supposes of the training sample, and whether any network of the class can meet it.

A risk bound at a training error below 1 is about networks with a margin above gamma on some training sequence. Margins
that equal gamma count as errors (G0), so where no output reaches beyond gamma no network meets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from flint import arb

from boundcalc.base.errors import Refusal
from boundcalc.base.intervals import INTERVAL, certainly_le, lower_float, upper_float
from boundcalc.layers.base import widths_of
from boundcalc.layers.facts import Context, End, Facts, largest_margin
from boundcalc.setting import Layer, Norms, Setting
from boundcalc.statements.merge import merge_linear_maps
from boundcalc.statements.network import walk
from boundcalc.statements.weights import Weights

_ALMOST = 1 + arb("1e-30")
"""Margins that are equal but for the rounding of balls are equal: both checkers say so alike."""


def margin_of_class(setting: Setting, walks: Sequence[_Reach] | None = None) -> arb:
    """G0e for a setting: no network of its class has a larger margin on any input; `walks` are its own, where made."""
    return INTERVAL.minimum(*(walk.margin(walk.layers) for walk in walks or _walks(setting)))


def margin_on_both_labels(setting: Setting) -> arb:
    """G0e: no network of a setting's class has a larger margin on two inputs of different labels."""
    walks = _walks(setting)
    margins = [margin_of_class(setting, walks)]
    if setting.architecture.classes == 1:
        margins += [most for walk in walks if (most := walk.opposed()) is not None]
    return INTERVAL.minimum(*margins)


def _walks(setting: Setting) -> list[_Reach]:
    return [_Reach(larger) for larger in _classes(setting)]


def _classes(setting: Setting) -> list[Setting]:
    """The setting, and the one with maps that meet made one (A6, A7), whose class contains its class."""
    merged = merge_linear_maps(setting)
    return [setting] if merged is None else [setting, merged.setting]


def supposes_a_margin(setting: Setting) -> bool:
    """Whether a risk bound would suppose that some training margin exceeds gamma."""
    return setting.sample.lipschitz is None and setting.sample.train_error < 1


def no_member(setting: Setting, most: arb | None = None) -> Refusal | None:
    """Why no network of the class meets the premise of a risk bound; None where it is not certain that none does.

    `most`: the margin on both labels, where it was computed already.
    """
    if not supposes_a_margin(setting):
        return None
    most, gamma = margin_on_both_labels(setting) if most is None else most, setting.sample.margin
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
    budgets = {key: replace(limits, op=0.0) if limits.rank == 0 else limits for key, limits in norms.budgets.items()}
    return replace(norms, budgets=budgets)


class _Reach:
    """How long rows can be behind each layer: the radii of L, sharper where a layer shortens every row."""

    def __init__(self, setting: Setting) -> None:
        architecture = setting.architecture
        weights = Weights(INTERVAL, _without_rank_zero(setting.norms))
        self.layers, self.classes = architecture.stages, architecture.classes
        radius, width = INTERVAL.number(architecture.input_radius), widths_of(architecture.stages)[0]
        self.start = Context(weights, radius, 1, architecture.seq_len, width=width)

    def margin(self, layers: Sequence[Layer]) -> arb:
        """The largest margin of the output of some layers."""
        if layers:
            *before, last = layers
            reach, margin = partial(self.behind, before), partial(self.margin, before)
            most = last.margin(End(self.start.weights, self.classes, reach, margin))
            if most is not None:
                return most
        return largest_margin(INTERVAL, self.behind(layers), self.classes)

    def opposed(self) -> arb | None:
        """The largest margin on two inputs of different labels, where relu and maps without offsets end the network."""
        before, steep = list(self.layers), arb(1)
        while before and (step := before[-1].along(self.start)) is not None:
            before.pop()
            steep = steep * step
        if not before or not before[-1].positive():
            return None
        longest = self.behind(before) / arb(2).sqrt()
        before.pop()
        while before and before[-1].along(self.start) is not None and not before[-1].weights(self.start.seq_len):
            before.pop()
        halves = before[-1].split(replace(self.start, radius=self.behind(before[:-1]))) if before else None
        if halves is not None:
            longest = INTERVAL.minimum(longest, halves / arb(2).sqrt())
        return steep * longest

    def behind(self, layers: Sequence[Layer]) -> arb:
        """The longest row behind some layers."""
        return walk(layers, self.start, _reach)[1]


def _reach(layer: Layer, at: Context) -> Facts:
    """The sharper radius of a layer's output; an error of its input does not matter here."""
    return Facts(layer.reach(at), 0)
