"""A6 in 50 digits: a setting with linear maps that meet made one."""

from collections.abc import Iterable
from typing import NamedTuple

from .covers import Sizes
from .layers import Layer, residual
from .network import walk_through
from .numbers import Real, demand, num
from .outputs import out_of_heads
from .products import Made, cornered, stacked, times, turned
from .setting import Setting, kind_and_block
from .tables import looked_up, read_out


def joined(setting: Setting) -> Setting:
    """The larger class; refuses one in which no maps meet."""
    larger = setting
    for step in (looked_up, read_out, _in_a_row, out_of_heads):
        larger = step(larger)
    demand(larger is not setting, "no maps meet")
    return larger


def _in_a_row(setting: Setting) -> Setting:
    """Maps that follow each other made one."""
    joining = _Joining(setting)
    stages = joining.through(setting.stages)
    return joining.made.setting(stages) if joining.made.budgets else setting


class _Pending(NamedTuple):
    """A linear map, its norms, its offset, whether it is a product, and what stands behind it."""

    map: Layer
    size: Sizes
    offset: Real | None
    product: bool
    held: list[Layer]


class _Joining:
    """One setting's maps made one wherever they follow each other, in branches too."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.walk = walk_through(setting)
        self.made = Made(setting)

    def through(self, layers: Iterable[Layer]) -> tuple[Layer, ...]:
        out: list[Layer] = []
        waits: _Pending | None = None
        for layer in layers:
            if waits is not None:
                if self._idle(layer):
                    waits.held.append(layer)
                    continue
                pools = [each for each in waits.held if each.label == "pool"]
                if layer.label == "linear" and self._one(waits, layer):
                    out.extend(pools)
                    waits = self._times(waits, layer)
                    continue
                if layer.label == "attention" and not pools and self._reads(waits, layer):
                    out.append(self._behind(waits, layer))
                    waits = None
                    continue
                out.extend(self._release(waits))
                waits = None
            if layer.label == "linear":
                size = self.walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)[0]
                offset = None if layer.bias is None else self.walk.offset(layer.bias, layer.block)[0]
                waits = _Pending(layer, size, offset, False, [])
            elif layer.label == "residual":
                out.append(residual(self.through(layer.branch), map(self.through, layer.beside), layer.skip))
            else:
                out.append(layer)
        return (*out, *([] if waits is None else self._release(waits)))

    def _release(self, waits: _Pending) -> list[Layer]:
        if waits.product:
            self.made.matrix(waits.map.kind, waits.map.block, None, waits.size)
            if waits.map.bias is not None and waits.offset is not None:
                self.made.length(waits.map.bias, waits.map.block, None, waits.offset)
        return [waits.map, *waits.held]

    def _idle(self, layer: Layer) -> bool:
        """Whether a layer does nothing, but for pooling."""
        if layer.label == "ball":
            radius = self.walk.at.get(id(layer))
            return radius is not None and radius <= num(layer.radius)
        return layer.label == "pool" or (layer.label == "activation" and layer.name == "identity")

    def _one(self, first: _Pending, second: Layer) -> bool:
        d, n, k = first.map.d_in, first.map.d_out, second.d_out
        if d * k >= d * n + n * k or not self.made.alone(second.kind, second.block):
            return False
        if second.bias is not None:
            return self.made.alone(second.bias, second.block)
        return first.offset is None or self.made.uses[f"b_{second.kind}", second.block] == 0

    def _times(self, first: _Pending, second: Layer) -> _Pending:
        size = self.walk.matrix(second.kind, second.block, None, second.d_in, second.d_out)[0]
        moved = first.offset is not None or second.bias is not None
        offset = (first.offset or num(0)) * size.op + self.walk.offset(second.bias, second.block)[0]
        both = second.but(d_in=first.map.d_in, bias=(second.bias or f"b_{second.kind}") if moved else None)
        return _Pending(both, times(first.size, size), offset if moved else None, True, [])

    def _reads(self, first: _Pending, layer: Layer) -> bool:
        factored = layer.qk == "joint" and layer.d_head is not None
        sides = ["W_Q", "W_K", *(["b_Q"] if layer.qk_bias else [])]
        if factored and {kind_and_block(key)[0] for key in self.setting.norms.budgets} & set(sides):
            return False
        if layer.qk != "split" and (first.offset is not None or layer.qk_bias) and not layer.keys_alone:
            return False
        if _numbers(layer, first.map.d_in) >= _numbers(layer, layer.d) + first.map.d_in * first.map.d_out:
            return False
        apart = sides + (["b_K"] if layer.qk_bias else [])
        kinds = {"joint": ["W_QK", *(sides if factored else [])], "split": apart, "fixed": ["q"]}[layer.qk]
        kinds += ["W_V", *(["b_V"] if layer.v_bias else [])]
        return all(self.made.alone(kind, layer.block) for kind in kinds)

    def _behind(self, first: _Pending, layer: Layer) -> Layer:
        a, c, walk, made, block = first.size, first.offset, self.walk, self.made, layer.block

        def side(kind: str, name: str, columns: int, offset: bool, head: int | None) -> None:
            own = walk.matrix(kind, block, head, layer.d, columns)[0]
            made.matrix(kind, block, head, times(a, own))
            if c is not None or offset:
                made.length(
                    name, block, head, (c or num(0)) * own.op + walk.offset(name if offset else None, block, head)[0]
                )

        for head in range(layer.heads) if self.setting.norms.headed else (None,):
            side("W_V", "b_V", layer.out, layer.v_bias, head)
            if layer.qk == "split":
                side("W_Q", "b_Q", layer.d_head, layer.qk_bias, head)
                side("W_K", "b_K", layer.d_head, layer.qk_bias, head)
            elif layer.qk == "fixed":
                made.matrix("q", block, head, times(a, walk.matrix("q", block, head, layer.d, 1)[0]))
            else:
                rows = layer.d + 1 if layer.qk_bias else layer.d
                score = walk.matrix("W_QK", block, head, rows, layer.d, layer.d_head)[0]
                left = stacked(a, c, layer.d) if c is not None else a
                left = cornered(left, sharp=c is None) if layer.qk_bias else left
                made.matrix("W_QK", block, head, times(times(left, score), turned(a)))
        biased = layer.qk_bias or (c is not None and layer.qk != "fixed")
        return layer.but(d=first.map.d_in, d_value=layer.out, qk_bias=biased, v_bias=layer.v_bias or c is not None)


def _numbers(layer: Layer, d: int) -> int:
    """How many numbers heads have on rows of width d."""
    width = layer.d_head or d
    values = layer.groups * d * layer.out
    if layer.qk == "split":
        return values + d * width * (layer.heads + layer.groups)
    return values + layer.heads * (d if layer.qk == "fixed" else min(d * d, 2 * d * width))
