"""A6 where heads end: a value map and the output projection after it are one map of each head.

sum_h a_h X V_h W_O,h = sum_h a_h X (V_h W_O,h), in fewer numbers where heads are wide. Their errors then add up where those
of heads side by side add as squares (L8), so which of the two is less is for a search to find out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.system import Number
from boundcalc.setting import Attention, Budget, Layer, Linear, Setting
from boundcalc.setting.norms import place_named
from boundcalc.statements.meet import Places, budget_of
from boundcalc.statements.meet_attention import product
from boundcalc.statements.products import changed
from boundcalc.statements.slots import total
from boundcalc.statements.weights import Weights


def out_of_heads(setting: Setting) -> Setting | None:
    """The setting with output projections taken into the value maps; None where that makes no fewer numbers."""
    walk = _Walk(setting)
    layers = walk.through(setting.architecture.stages)
    return changed(setting, layers, walk.made) if walk.made else None


class _Walk:
    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.made: dict[str, Budget] = {}
        given = setting.architecture
        self.weights = Weights(INTERVAL, setting.norms)
        self.places = Places(given)

    def through(self, layers: Sequence[Layer]) -> tuple[Layer, ...]:
        found: list[Layer] = []
        for layer in layers:
            before = found[-1] if found else None
            if layer.branches:
                found.append(layer.over(self.through))
            elif isinstance(before, Attention) and isinstance(layer, Linear) and self._pays(before, layer):
                found[-1] = self._join(before, layer)
            else:
                found.append(layer)
        return tuple(found)

    def _pays(self, heads: Attention, output: Linear) -> bool:
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
        return heads.heads * heads.d * output.d_out < apart and all(self.places.alone(*place) for place in own)

    def _join(self, heads: Attention, output: Linear) -> Attention:
        ns, weights = INTERVAL, self.weights
        after = weights.matrix(output.kind, output.block, None, output.d_in, output.d_out).whole
        each = range(heads.heads) if self.setting.norms.headed else (None,)
        for head in each:
            value = weights.matrix("W_V", heads.block, head, heads.d, heads.out).whole
            self.made[place_named("W_V", heads.block, head)] = budget_of(product(ns, value, after))
        offset = self._offset(heads, output, after.op)
        if offset is not None:
            share = offset / heads.heads  # the sum of all is what counts: each head may have an equal part
            for head in each:
                self.made[place_named("b_V", heads.block, head)] = Budget(op=upper_float(share))
        return replace(heads, d_value=output.d_out, combine="sum", v_bias=offset is not None)

    def _offset(self, heads: Attention, output: Linear, steep: Number) -> Number | None:
        """The length of what is added to the sum of the heads, as weights sum to 1; None where nothing is."""
        ns, weights = INTERVAL, self.weights
        parts: list[Number] = []
        if heads.v_bias:
            each = range(heads.heads) if self.setting.norms.headed else (None,) * heads.heads
            sizes = [weights.vector("b_V", heads.block, head)[0] for head in each]
            side = ns.sqrt(total([size**2 for size in sizes])) if heads.combine == "concat" else total(sizes)
            parts.append(side * steep)
        if output.bias is not None:
            parts.append(weights.vector(output.bias, output.block)[0])
        return total(parts) if parts else None
