"""G0e: what a risk bound supposes of the training sample, and whether any network of the class can meet it.

A risk bound at a training error below 1 speaks of networks with a margin above gamma on some training sequence. Margins
that equal gamma count as errors (G0), so where no output reaches beyond gamma it speaks of no network at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flint import arb

from boundcalc.base.errors import Refusal
from boundcalc.base.intervals import INTERVAL, certainly_le, lower_float, upper_float
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import (
    Activation,
    Attention,
    Experts,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Norms,
    Setting,
    SoftCap,
)
from boundcalc.setting.layer import widths_of
from boundcalc.statements.layers import facts
from boundcalc.statements.slots import Context
from boundcalc.statements.weights import Weights


def largest_margin(ns: NumberSystem, radius: Number, classes: int) -> Number:
    """G0e: the largest margin of an output no longer than `radius`: R, for K > 1 classes R sqrt(K/(K-1))."""
    if classes == 1:
        return radius
    return radius * ns.sqrt(ns.number(classes) / ns.number(classes - 1))


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
    if not certainly_le(most, INTERVAL.number(gamma)):
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
        last = layers[-1]
        cap = last.cap if isinstance(last, SoftCap) else 1.0 if last == Activation("tanh") else None
        if cap is not None:  # two logits that far apart stay farthest apart on both sides of 0
            sides = arb(cap) * min(self.classes, 2)
            return _bent(sides, self.margin(layers[:-1], radius))
        if self.classes == 1 or not isinstance(last, Linear):
            return largest_margin(INTERVAL, self._through(layers, radius), self.classes)
        before = self._through(layers[:-1], radius)
        norms = self.weights.matrix(last.kind, last.block, None, last.d_in, last.d_out).whole
        offset = self.weights.vector(last.bias, last.block)[0] if last.bias else arb(0)
        columns = INTERVAL.minimum(largest_margin(INTERVAL, norms.op, self.classes), norms.two_one)
        return before * columns + largest_margin(INTERVAL, offset, self.classes)

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
        sharper = _SHARPER.get(type(layer))
        return self._plain(layer, radius) if sharper is None else sharper(self, layer, radius)

    def _plain(self, layer: Layer, radius: arb) -> arb:
        return facts(layer, Context(self.weights, radius, 1, self.seq_len)).radius

    def _attended(self, layer: Attention, radius: arb) -> arb:
        return self._plain(layer, radius) * self._mass(layer, radius)

    def _gated(self, layer: GatedFeedForward | Experts, radius: arb) -> arb:
        """L9, L15: no entry of the first factor is longer than the image of its row's length."""
        sizes: dict[str, arb] = {}
        for weight in layer.weights(self.seq_len):
            place = weight.kind, weight.block, None
            vector = weight.role == "vector"
            sizes[weight.kind] = (
                self.weights.vector(*place)[0] if vector else self.weights.matrix(*place, *weight.shape).whole.op
            )
        zero = arb(0)
        first, third = (radius * sizes[f"W_{i}"] + sizes.get(f"b_{i}", zero) for i in (1, 3))
        return _entry(layer.activation, first) * third * sizes["W_2"] + sizes.get("b_2", zero)

    def _normalised(self, layer: LayerNorm, radius: arb) -> arb:
        """L5; a centred row of width 1 is zero."""
        d = arb(layer.d)
        reach = radius * (d / (radius**2 + d * arb(layer.eps))).sqrt() if layer.eps else d.sqrt()
        reach = arb(0) if layer.centred and layer.d == 1 else reach
        if layer.gain:
            gain = self.weights.gain(f"{layer.kind}.gain", layer.block)[0]
            reach = reach * (1 + gain if layer.around_one else gain)
        return reach + self.weights.vector(f"{layer.kind}.offset", layer.block)[0] if layer.offset else reach

    def _mass(self, layer: Attention, radius: arb) -> arb:
        """The largest part of 1 that weights sum to, where they never sum to 1: at the largest score everywhere."""
        name = layer.normaliser.name
        if name not in ("sigmoid", "softmax1"):
            return arb(1)
        each = range(layer.heads) if self.weights.norms.headed else [None]
        score = INTERVAL.maximum(*(self._score(layer, radius, head) for head in each))
        temperature = layer.normaliser.temperature
        if temperature is None:
            split = layer.qk == "split" and layer.d_head is not None
            temperature = arb(layer.d_head).sqrt() if split else arb(1)  # type: ignore[arg-type]
        count = 1 if name == "sigmoid" else self.seq_len
        return count / (count + (-score / temperature).exp())

    def _score(self, layer: Attention, b: arb, head: int | None) -> arb:
        """The largest score of a head."""
        weights, block = self.weights, layer.block
        if layer.qk == "fixed":
            return b * weights.matrix("q", block, head, layer.d, 1).whole.op
        if layer.qk == "split" and layer.d_head is not None:
            sizes = []
            for kind in ("Q", "K"):
                offset = weights.vector(f"b_{kind}", block, head)[0] if layer.qk_bias else arb(0)
                sizes.append(b * weights.matrix(f"W_{kind}", block, head, layer.d, layer.d_head).whole.op + offset)
            return sizes[0] * sizes[1]
        rows = (b**2 + 1).sqrt() if layer.qk_bias else b
        return rows**2 * weights.scores(layer.scores, head, layer.d_head).whole.op


_SHARPER: dict[type[Layer], Callable[[_Reach, Any, arb], arb]] = {
    Activation: lambda walk, layer, radius: _activated(layer.name, radius, walk.width),
    SoftCap: lambda _, layer, radius: _bent(layer.cap * arb(layer.d).sqrt(), radius),
    GatedFeedForward: _Reach._gated,
    Experts: _Reach._gated,
    LayerNorm: _Reach._normalised,
    Attention: _Reach._attended,
}
"""Layers that shorten every row beyond what their rule says; the rule is an upper bound for every other."""


def _bent(cap: arb, x: arb) -> arb:
    """The bend of a cap: cap tanh(x / cap).

    Of rows of width k no longer than b, tanh makes the longest of those with k equal entries, as tanh(sqrt(u))^2 is concave:
    sqrt(k) tanh(b / sqrt(k)).
    """
    return cap * (x / cap).tanh()


def _activated(name: str, b: arb, width: int | None) -> arb:
    """The longest image of a row no longer than b.

    s(x) = x g(|x|) with a rising g for x >= 0 and smaller for x < 0: at most b g(b), along an axis.
    """
    if name != "tanh":
        return _entry(name, b)
    return b if width is None else _bent(arb(width).sqrt(), b)


def _entry(name: str, b: arb) -> arb:
    """The largest image of a number no larger than b."""
    if name == "tanh":
        return b.tanh()
    if name == "gelu":
        return b * (1 + (b / arb(2).sqrt()).erf()) / 2
    if name == "gelu_tanh":
        return b * (1 + ((2 / arb.pi()).sqrt() * (b + arb("0.044715") * b**3)).tanh()) / 2
    if name in ("silu", "quick_gelu"):
        steep = arb("1.702") if name == "quick_gelu" else arb(1)
        return b / (1 + (-steep * b).exp())
    if name == "mish":
        small = (-b).exp()
        return b * (1 + 2 * small) / (1 + 2 * small + 2 * small**2)
    return b
