"""A6 in 50 digits: a setting with linear maps that meet made one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from boundcalc.proof.second.covers import Sizes
from boundcalc.proof.second.network import Walk
from boundcalc.proof.second.numbers import Real, demand, num
from boundcalc.proof.second.outputs import Made, cornered, count_of, out_of_heads, stacked, times, turned
from boundcalc.proof.second.tables import looked_up, read_out
from boundcalc.setting import Activation, Attention, Ball, Layer, Linear, Pool, Residual, Setting
from boundcalc.setting.norms import place_of


class _Radii(Walk):
    """A walk that remembers the radius at which each layer is reached."""

    def __post_init__(self) -> None:
        self.at: dict[int, Real] = {}
        super().__post_init__()

    def _layer(self, layer: Layer, rows: int) -> None:
        self.at[id(layer)] = max(self.radius, self.at.get(id(layer), self.radius))
        super()._layer(layer, rows)


def joined(setting: Setting) -> Setting:
    """The larger class; fails an assertion where no maps meet."""
    larger = setting
    for step in (looked_up, read_out, _in_a_row, out_of_heads):
        larger = step(larger)
    demand(larger is not setting, "no maps meet")
    return larger


@dataclass
class _Pending:
    """A linear map and what stands behind it: its norms, its offset, whether it is a product."""

    map: Linear
    size: Sizes
    offset: Real | None
    product: bool
    held: list[Layer] = field(default_factory=list)


class _Joining:
    """One setting's maps made one wherever they follow each other, in branches too."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.walk = _Radii(setting, None, 1)
        self.made = Made(setting)

    def list(self, layers: Iterable[Layer]) -> tuple[Layer, ...]:
        out: list[Layer] = []
        waits: _Pending | None = None

        def release() -> None:
            if waits is not None:
                if waits.product:
                    self.made.matrix(waits.map.kind, waits.map.block, None, waits.size)
                    if waits.map.bias is not None and waits.offset is not None:
                        self.made.length(waits.map.bias, waits.map.block, None, waits.offset)
                out.extend((waits.map, *waits.held))

        for layer in layers:
            if waits is not None:
                if self._idle(layer):
                    waits.held.append(layer)
                    continue
                pools = [each for each in waits.held if isinstance(each, Pool)]
                if isinstance(layer, Linear) and self._one(waits, layer):
                    out.extend(pools)
                    waits = self._times(waits, layer)
                    continue
                if isinstance(layer, Attention) and not pools and self._reads(waits, layer):
                    out.append(self._behind(waits, layer))
                    waits = None
                    continue
                release()
                waits = None
            if isinstance(layer, Linear):
                size = self.walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)[0]
                offset = None if layer.bias is None else self.walk.offset(layer.bias, layer.block)[0]
                waits = _Pending(layer, size, offset, False)
            elif isinstance(layer, Residual):
                out.append(
                    Residual(self.list(layer.branch), tuple(self.list(each) for each in layer.beside), layer.skip)
                )
            else:
                out.append(layer)
        release()
        return tuple(out)

    def _idle(self, layer: Layer) -> bool:
        """Whether a layer does nothing, but for pooling."""
        if isinstance(layer, Ball):
            radius = self.walk.at.get(id(layer))
            return radius is not None and radius <= num(layer.radius)
        return isinstance(layer, Pool) or (isinstance(layer, Activation) and layer.name == "identity")

    def _one(self, first: _Pending, second: Linear) -> bool:
        d, n, k = first.map.d_in, first.map.d_out, second.d_out
        if d * k >= d * n + n * k or not self.made.alone(second.kind, second.block):
            return False
        if second.bias is not None:
            return self.made.alone(second.bias, second.block)
        return first.offset is None or self.made.uses[f"b_{second.kind}", second.block] == 0

    def _times(self, first: _Pending, second: Linear) -> _Pending:
        size = self.walk.matrix(second.kind, second.block, None, second.d_in, second.d_out)[0]
        offset: Real | None = None
        if first.offset is not None or second.bias is not None:
            offset = num(0) if first.offset is None else first.offset * size.op
            offset += num(0) if second.bias is None else self.walk.offset(second.bias, second.block)[0]
        name = None if offset is None else second.bias or f"b_{second.kind}"
        return _Pending(replace(second, d_in=first.map.d_in, bias=name), times(first.size, size), offset, True)

    def _reads(self, first: _Pending, layer: Attention) -> bool:
        budgets = {place_of(key)[0] for key in self.setting.norms.budgets}
        moved = first.offset is not None
        if layer.qk == "joint" and layer.d_head is not None:
            factors = {"W_Q", "W_K"} | ({"b_Q"} if layer.qk_bias else set())
            if budgets & factors:
                return False
        drops = layer.normaliser.name == "softmax" and layer.cap is None  # what a query adds to all its scores
        if layer.qk != "split" and (moved or layer.qk_bias) and not drops:
            return False
        if count_of(layer, first.map.d_in) >= count_of(layer, layer.d) + first.map.d_in * first.map.d_out:
            return False
        kinds = {"joint": ["W_QK"], "split": ["W_Q", "W_K"], "fixed": ["q"]}[layer.qk]
        if layer.qk == "split" and layer.qk_bias:
            kinds += ["b_Q", "b_K"]
        if layer.v_bias:
            kinds += ["b_V"]
        if layer.qk == "joint" and layer.d_head is not None:
            kinds += ["W_Q", "W_K"]
            kinds += ["b_Q"] if layer.qk_bias else []
        return all(self.made.alone(kind, layer.block) for kind in (*kinds, "W_V"))

    def _behind(self, first: _Pending, layer: Attention) -> Attention:
        a, c, walk, block = first.size, first.offset, self.walk, layer.block

        def side(kind: str, name: str, columns: int, offset: bool, head: int | None) -> None:
            own = walk.matrix(kind, block, head, layer.d, columns)[0]
            self.made.matrix(kind, block, head, times(a, own))
            if c is not None or offset:
                length = num(0) if c is None else c * own.op
                length += walk.offset(name, block, head)[0] if offset else num(0)
                self.made.length(name, block, head, length)

        for head in range(layer.heads) if self.setting.norms.headed else (None,):
            side("W_V", "b_V", layer.out, layer.v_bias, head)
            if layer.qk == "split":
                side("W_Q", "b_Q", layer.d_head or 1, layer.qk_bias, head)
                side("W_K", "b_K", layer.d_head or 1, layer.qk_bias, head)
            elif layer.qk == "fixed":
                self.made.matrix("q", block, head, times(a, walk.matrix("q", block, head, layer.d, 1)[0]))
            else:
                rows = layer.d + 1 if layer.qk_bias else layer.d
                score = walk.matrix("W_QK", block, head, rows, layer.d, layer.d_head)[0]
                left = stacked(a, c, layer.d) if c is not None else a
                if layer.qk_bias:
                    left = cornered(left, sharp=c is None)
                self.made.matrix("W_QK", block, head, times(times(left, score), turned(a)))
        biased = layer.qk_bias or (c is not None and layer.qk != "fixed")
        return replace(layer, d=first.map.d_in, d_value=layer.out, qk_bias=biased, v_bias=layer.v_bias or c is not None)


def _in_a_row(setting: Setting) -> Setting:
    """Maps that follow each other made one."""
    joining = _Joining(setting)
    stages = joining.list(setting.architecture.stages)
    return joining.made.setting(stages) if joining.made.budgets else setting
