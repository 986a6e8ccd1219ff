"""A6 in 50 digits: a setting with linear maps that meet made one."""

from collections.abc import Iterable

from .covers import Sizes
from .layers import Layer, residual
from .network import walk_through
from .numbers import MP, Real, demand, num
from .products import Made, cornered, stacked, times, turned
from .setting import Setting, kind_and_block
from .tables import looked_up, read_out


def joined(setting: Setting) -> Setting:
    """The larger class; refuses one in which no maps meet."""
    larger = setting
    for step in (looked_up, read_out, lambda given: _Joining(given).joined(), _out_of_heads):
        larger = step(larger)
    demand(larger is not setting, "no maps meet")
    return larger


class _Joining:
    """One setting's maps made one wherever they follow each other, in branches too."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.walk, self.made = setting, walk_through(setting), Made(setting)
        self.products: dict[int, tuple[Layer, Sizes, Real | None]] = {}

    def joined(self) -> Setting:
        """The setting with every two maps that meet made one."""
        stages = self.through(self.setting.stages)
        return self.made.setting(stages) if self.made.budgets else self.setting

    def through(self, layers: Iterable[Layer]) -> tuple[Layer, ...]:
        out: list[Layer] = []
        for layer in layers:
            i = next((i for i in range(len(out), 0, -1) if not self._idle(out[i - 1])), 0)
            pools = [each for each in out[i:] if each.label == "pool"]
            before = out[i - 1] if i and out[i - 1].label == "linear" else None
            if layer.label == "residual":
                out.append(residual(self.through(layer.branch), map(self.through, layer.beside), layer.skip))
            elif before is not None and layer.label == "linear" and self._one(before, layer):
                out[i - 1 :] = [*pools, self._times(before, layer)]
            elif before is not None and layer.label == "attention" and not pools and self._reads(before, layer):
                out[i - 1 :] = [self._behind(before, layer)]
            else:
                out.append(layer)
        return tuple(out)

    def _of(self, layer: Layer) -> tuple[Sizes, Real | None]:
        """Norms of a linear map, which may be a product, and the length of its offset."""
        if id(layer) in self.products:
            return self.products[id(layer)][1:]
        size = self.walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)[0]
        return size, None if layer.bias is None else self.walk.offset(layer.bias, layer.block)[0]

    def _idle(self, layer: Layer) -> bool:
        """Whether a layer does nothing, but for pooling."""
        if layer.label == "ball":
            radius = self.walk.at.get(id(layer))
            return radius is not None and radius <= num(layer.radius)
        return layer.label == "pool" or (layer.label == "activation" and layer.name == "identity")

    def _one(self, first: Layer, second: Layer) -> bool:
        d, n, k = first.d_in, first.d_out, second.d_out
        if d * k >= d * n + n * k or not self.made.alone(second.kind, second.block):
            return False
        if second.bias is not None:
            return self.made.alone(second.bias, second.block)
        return first.bias is None or self.made.uses[f"b_{second.kind}", second.block] == 0

    def _times(self, first: Layer, second: Layer) -> Layer:
        (a, c), (b, e) = self._of(first), self._of(second)
        name = (second.bias or f"b_{second.kind}") if c is not None or e is not None else None
        both, size = second.but(d_in=first.d_in, bias=name), times(a, b)
        self.made.put(second.kind, second.block, None, size)
        offset = None if name is None else (c or num(0)) * b.op + (e or num(0))
        if name is not None:
            self.made.put(name, second.block, None, offset)
        self.products[id(both)] = (both, size, offset)
        return both

    def _reads(self, first: Layer, layer: Layer) -> bool:
        factored = layer.qk == "joint" and layer.d_head is not None
        sides = ["W_Q", "W_K", *(["b_Q"] if layer.qk_bias else [])]
        if factored and {kind_and_block(key)[0] for key in self.setting.norms.budgets} & set(sides):
            return False
        if layer.qk != "split" and (first.bias is not None or layer.qk_bias) and not layer.keys_alone:
            return False
        if _numbers(layer, first.d_in) >= _numbers(layer, layer.d) + first.d_in * first.d_out:
            return False
        apart = sides + (["b_K"] if layer.qk_bias else [])
        kinds = {"joint": ["W_QK", *(sides if factored else [])], "split": apart, "fixed": ["q"]}[layer.qk]
        kinds += ["W_V", *(["b_V"] if layer.v_bias else [])]
        return all(self.made.alone(kind, layer.block) for kind in kinds)

    def _behind(self, first: Layer, layer: Layer) -> Layer:
        (a, c), walk, made, block = self._of(first), self.walk, self.made, layer.block

        def side(kind: str, name: str, columns: int, offset: bool, head: int | None) -> None:
            own = walk.matrix(kind, block, head, layer.d, columns)[0]
            made.put(kind, block, head, times(a, own))
            if c is not None or offset:
                added = walk.offset(name if offset else None, block, head)[0]
                made.put(name, block, head, (c or num(0)) * own.op + added)

        for head in range(layer.heads) if self.setting.norms.headed else (None,):
            side("W_V", "b_V", layer.out, layer.v_bias, head)
            if layer.qk == "split":
                side("W_Q", "b_Q", layer.d_head, layer.qk_bias, head)
                side("W_K", "b_K", layer.d_head, layer.qk_bias, head)
            elif layer.qk == "fixed":
                made.put("q", block, head, times(a, walk.matrix("q", block, head, layer.d, 1)[0]))
            else:
                rows = layer.d + 1 if layer.qk_bias else layer.d
                score = walk.matrix("W_QK", block, head, rows, layer.d, layer.d_head)[0]
                left = stacked(a, c, layer.d) if c is not None else a
                left = cornered(left, sharp=c is None) if layer.qk_bias else left
                made.put("W_QK", block, head, times(times(left, score), turned(a)))
        biased = layer.qk_bias or (c is not None and layer.qk != "fixed")
        return layer.but(d=first.d_in, d_value=layer.out, qk_bias=biased, v_bias=layer.v_bias or c is not None)


def _numbers(layer: Layer, d: int) -> int:
    """How many numbers heads have on rows of width d."""
    width = layer.d_head or d
    values = layer.groups * d * layer.out
    if layer.qk == "split":
        return values + d * width * (layer.heads + layer.groups)
    return values + layer.heads * (d if layer.qk == "fixed" else min(d * d, 2 * d * width))


def _out_of_heads(setting: Setting) -> Setting:
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
            made.put("W_V", heads.block, head, times(value, w_o))
        moved = heads.v_bias or after.bias is not None
        if moved:
            each = [walk.offset("b_V" if heads.v_bias else None, heads.block, head)[0] for head in own]
            each = each if len(own) == heads.heads else each * heads.heads
            side = MP.sqrt(sum(size**2 for size in each)) if heads.combine == "concat" else sum(each, start=num(0))
            added = side * w_o.op + walk.offset(after.bias, after.block)[0]
            for head in own:
                made.put("b_V", heads.block, head, added / heads.heads)
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
