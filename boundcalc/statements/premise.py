"""G0e: what a risk bound supposes of the training sample, and whether any network of the class can meet it.

A risk bound at a training error below 1 is about networks with a margin above gamma on some training sequence. Margins
that equal gamma count as errors (G0), so where no output reaches beyond gamma no network meets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from flint import arb

from boundcalc.base.errors import Refusal
from boundcalc.base.intervals import INTERVAL, certainly_le, lower_float, upper_float
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.layers.facts import Context
from boundcalc.setting import Activation, Attention, Ball, Linear, Pool, Setting
from boundcalc.statements.merge import merge_linear_maps
from boundcalc.statements.network import Visit, walk
from boundcalc.statements.weights import Weights

_ALMOST = 1 + arb("1e-30")
"""Margins that are equal but for the rounding of balls are equal: both checkers say so alike."""
_MEANS = ("softmax", "softmax1", "sigmoid")
"""Normalisers whose weights make a mean of rows, or less."""


def _margin_of_class(setting: Setting) -> arb:
    """G0e for a setting: no network of its class has a larger margin on any input."""
    return INTERVAL.minimum(*(next(_margins(larger)) for larger in _classes(setting)))


def margin_on_both_labels(setting: Setting) -> arb:
    """G0e: no network of a setting's class has a larger margin on two inputs of different labels."""
    return INTERVAL.minimum(*(most for larger in _classes(setting) for most in _margins(larger)))


def _classes(setting: Setting) -> list[Setting]:
    """The setting, and the one with maps that meet made one (A6, A7), whose class contains its class."""
    merged = merge_linear_maps(setting)
    return [setting] if merged is None else [setting, merged.setting]


def largest_margin(ns: NumberSystem, radius: Number, classes: int) -> Number:
    """G0e: the largest margin of an output no longer than `radius`: R, for K > 1 classes R sqrt(K/(K-1))."""
    return radius if classes == 1 else radius * ns.sqrt(ns.number(classes) / ns.number(classes - 1))


def _margins(setting: Setting) -> Iterator[arb]:
    """G0e: M, then M_2 by the radius of the ReLU that ends the network, and by the maps before it."""
    a, weights = setting.architecture, Weights(INTERVAL, setting.norms)
    steps, radius = walk(a.stages, Context(weights, INTERVAL.number(a.input_radius), 1, a.seq_len))
    yield largest_margin(INTERVAL, radius, a.classes)
    before: Iterator[Visit] = takewhile(lambda step: isinstance(step, Visit), reversed(steps))  # type: ignore[assignment]
    steep, step = 1 / arb(2).sqrt(), next(before, None)
    while step is not None and _keeps_labels(step):
        steep, step = steep * step.facts.lipschitz, next(before, None)
    if a.classes > 1 or step is None or step.layer != Activation("relu"):
        return
    yield steep * step.facts.radius
    step = next((step for step in before if not isinstance(step.layer, Ball | Pool)), None)
    if step is not None and (halves := _halves(step)):
        yield steep * step.at.radius * sum(halves)


def _keeps_labels(step: Visit) -> bool:
    """Whether output rows are means of rows rho x A with 0 < rho <= 1; an offset would add to both labels."""
    return isinstance(step.layer, Ball | Pool) or (isinstance(step.layer, Linear) and step.layer.bias is None)


def _halves(step: Visit) -> list[Number]:
    """The largest (|W_+| |W_-|)^(1/2) where columns are shared out, of maps whose images of rows a layer adds up.

    |W|_F / sqrt 2, or |W|_(2,1) / 2; no maps where the layer does anything else.
    """
    layer, weights = step.layer, step.at.weights
    heads: Sequence[int | None] = (None,)
    if isinstance(layer, Linear) and layer.bias is None:
        kind, d, k = layer.kind, layer.d_in, layer.d_out
    elif isinstance(layer, Attention) and not layer.v_bias and layer.normaliser.name in _MEANS:
        kind, d, k = "W_V", layer.d, layer.out
        heads = range(layer.heads) if weights.norms.headed else [None] * layer.heads
    else:
        return []
    norms = [weights.matrix(kind, layer.block, head, d, k).whole for head in heads]
    return [INTERVAL.minimum(norm.fro / arb(2).sqrt(), norm.two_one / 2) for norm in norms]


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
