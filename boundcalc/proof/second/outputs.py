"""A6 where heads end, in 50 digits: value maps and the map behind their outputs made one."""

from collections.abc import Iterable

from .layers import Layer, residual
from .network import walk_through
from .numbers import MP, num
from .products import Made, times
from .setting import Setting


def out_of_heads(setting: Setting) -> Setting:
    """Output projections in the value maps, where that leaves fewer numbers; else the same."""
    made, walk = Made(setting), walk_through(setting)

    def one(heads: Layer, after: Layer) -> bool:
        offsets = [("b_V" if heads.v_bias else None, heads.block), (after.bias, after.block)]
        if (heads.v_bias or after.bias is not None) and heads.normaliser.name != "softmax":
            return False
        before = heads.heads * heads.d * heads.out + after.d_in * after.d_out
        fewer = heads.groups == heads.heads and before > heads.heads * heads.d * after.d_out
        return fewer and all(made.alone(*at) for at in [("W_V", heads.block), (after.kind, after.block), *offsets])

    def join(heads: Layer, after: Layer) -> Layer:
        own = list(range(heads.heads)) if setting.norms.headed else [None]
        w_o = walk.matrix(after.kind, after.block, None, after.d_in, after.d_out)[0]
        for head in own:
            value = walk.matrix("W_V", heads.block, head, heads.d, heads.out)[0]
            made.matrix("W_V", heads.block, head, times(value, w_o))
        moved = heads.v_bias or after.bias is not None
        if moved:
            each = [walk.offset("b_V" if heads.v_bias else None, heads.block, head)[0] for head in own]
            each = each if len(own) == heads.heads else each * heads.heads
            side = MP.sqrt(sum(size**2 for size in each)) if heads.combine == "concat" else sum(each, start=num(0))
            added = side * w_o.op + walk.offset(after.bias, after.block)[0]
            for head in own:
                made.length("b_V", heads.block, head, added / heads.heads)
        return heads.but(d_value=after.d_out, combine="sum", v_bias=moved)

    def through(layers: Iterable[Layer]) -> tuple[Layer, ...]:
        out: list[Layer] = []
        for layer in layers:
            behind = layer.label == "linear" and bool(out) and out[-1].label == "attention"
            if layer.label == "residual":
                out.append(residual(through(layer.branch), map(through, layer.beside), layer.skip))
            elif behind and one(out[-1], layer):
                out[-1] = join(out[-1], layer)
            else:
                out.append(layer)
        return tuple(out)

    stages = through(setting.stages)
    return made.setting(stages) if made.budgets else setting
