"""A6 where heads end: a value map and the output projection after it are one map of each head.

sum_h a_h X V_h W_O,h = sum_h a_h X (V_h W_O,h), in fewer numbers where heads are wide. Their errors then add up where those
of heads side by side add as squares (L8), so which of the two is less is for a search to find out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.system import Number
from boundcalc.setting import Attention, Budget, Linear
from boundcalc.setting.norms import place_named
from boundcalc.statements.product_norms import budget_of, product
from boundcalc.statements.slots import total

if TYPE_CHECKING:
    from boundcalc.statements.outputs import Outward


def before_map(heads: Attention, output: Linear, walk: Outward) -> Attention | None:
    """Heads whose value maps have an output projection in them; None where that makes no fewer numbers."""
    return _join(heads, output, walk) if _pays(heads, output, walk) else None


def _pays(heads: Attention, output: Linear, walk: Outward) -> bool:
    """Whether the products have fewer numbers, and names and offsets of their own."""
    if heads.groups != heads.heads:
        return False
    offsets = heads.v_bias or output.bias is not None
    if offsets and heads.normaliser.name != "softmax":  # else an offset of the output is none of the values
        return False
    own = [("W_V", heads.block), (output.kind, output.block)]
    own += [("b_V", heads.block)] if heads.v_bias else []
    own += [] if output.bias is None else [(output.bias, output.block)]
    apart = heads.heads * heads.d * heads.out + output.d_in * output.d_out
    return heads.heads * heads.d * output.d_out < apart and all(walk.places.alone(*place) for place in own)


def _join(heads: Attention, output: Linear, walk: Outward) -> Attention:
    ns, weights = INTERVAL, walk.weights
    after = weights.matrix(output.kind, output.block, None, output.d_in, output.d_out).whole
    each = range(heads.heads) if walk.weights.norms.headed else (None,)
    for head in each:
        value = weights.matrix("W_V", heads.block, head, heads.d, heads.out).whole
        walk.made[place_named("W_V", heads.block, head)] = budget_of(product(ns, value, after))
    offset = _offset(heads, output, after.op, walk)
    if offset is not None:
        share = offset / heads.heads  # the sum of all is what counts: each head may have an equal part
        for head in each:
            walk.made[place_named("b_V", heads.block, head)] = Budget(op=upper_float(share))
    return replace(heads, d_value=output.d_out, combine="sum", v_bias=offset is not None)


def _offset(heads: Attention, output: Linear, steep: Number, walk: Outward) -> Number | None:
    """The length of what is added to the sum of the heads, as weights sum to 1; None where nothing is."""
    ns, weights = INTERVAL, walk.weights
    parts: list[Number] = []
    if heads.v_bias:
        each = range(heads.heads) if walk.weights.norms.headed else (None,) * heads.heads
        sizes = [weights.vector("b_V", heads.block, head)[0] for head in each]
        side = ns.sqrt(total([size**2 for size in sizes])) if heads.combine == "concat" else total(sizes)
        parts.append(side * steep)
    if output.bias is not None:
        parts.append(weights.vector(output.bias, output.block)[0])
    return total(parts) if parts else None
