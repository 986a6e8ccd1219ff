"""G0e: how far attention reaches where its weights never sum to 1."""

from __future__ import annotations

from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.setting import Attention
from boundcalc.statements.layers.attention.heads import attention, head_groups
from boundcalc.statements.slots import Context, halved, total


def reach(layer: Attention, at: Context) -> arb:
    """The radius of the facts, times the largest mass of a row of weights."""
    return attention(layer, at).radius * _mass(layer, at)


def split(layer: Attention, at: Context) -> arb | None:
    """G0e: what heads put out is a mean of rows (or less) times their value maps; norms of heads add up."""
    if layer.v_bias or layer.normaliser.name not in ("softmax", "softmax1", "sigmoid"):
        return None
    found = [
        count * halved(at.ns, at.weights.matrix("W_V", layer.block, head, layer.d, layer.out).whole)
        for head, count in head_groups(layer, at)
    ]
    return at.radius * total(found)


def _mass(layer: Attention, at: Context) -> arb:
    """The largest part of 1 that weights sum to, where they never sum to 1: at the largest score everywhere."""
    name = layer.normaliser.name
    if name not in ("sigmoid", "softmax1"):
        return arb(1)
    each = range(layer.heads) if at.weights.norms.headed else [None]
    score = INTERVAL.maximum(*(_score(layer, at, head) for head in each))
    temperature = layer.normaliser.temperature
    if temperature is None:
        split = layer.qk == "split" and layer.d_head is not None
        temperature = arb(layer.d_head).sqrt() if split else arb(1)  # type: ignore[arg-type]
    count = 1 if name == "sigmoid" else at.seq_len
    return count / (count + (-score / temperature).exp())


def _score(layer: Attention, at: Context, head: int | None) -> arb:
    """The largest score of a head."""
    weights, block, b = at.weights, layer.block, at.radius
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
