"""A6 in 50 digits: a setting with linear maps that meet made one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from boundcalc.proof.second.covers import Sizes
from boundcalc.proof.second.network import Walk
from boundcalc.proof.second.numbers import Real, demand, grown, num
from boundcalc.proof.second.tables import looked_up, read_out
from boundcalc.setting import Activation, Architecture, Attention, Ball, Budget, Layer, Linear, Pool, Setting
from boundcalc.setting.accounting import lookups
from boundcalc.setting.layer import weights_of
from boundcalc.setting.norms import place_of


class _Radii(Walk):
    """A walk that remembers the radius at which each layer is reached."""

    def __post_init__(self) -> None:
        self.at: dict[int, Real] = {}
        super().__post_init__()

    def _layer(self, layer: Layer, rows: int) -> None:
        self.at[id(layer)] = max(self.radius, self.at.get(id(layer), self.radius))
        super()._layer(layer, rows)


def times(a: Sizes, b: Sizes) -> Sizes:
    """Norms of AB."""
    return Sizes(
        a.d,
        b.k,
        a.op * b.op,
        min(a.op * b.fro, a.fro * b.op),
        a.op * b.two_one,
        a.two_one_t * b.op,
        a.one_one * b.one_one,
        min(a.op * b.nuclear, a.nuclear * b.op, a.fro * b.fro),
        min(a.rank, b.rank),
    )


def turned(a: Sizes) -> Sizes:
    """Norms of A'."""
    return replace(a, d=a.k, k=a.d, two_one=a.two_one_t, two_one_t=a.two_one)


def _budget(a: Sizes) -> Budget:
    op = grown(a.op)
    fro = max(op, grown(a.fro))
    sides = (max(fro, grown(size)) for size in (a.two_one, a.two_one_t))
    return Budget(op, fro, *sides, rank=a.rank, schatten=(1.0, max(fro, grown(a.nuclear))))


def joined(setting: Setting) -> Setting:
    """The larger class; fails an assertion where no maps meet."""
    larger = setting
    for step in (looked_up, read_out, _in_a_row):
        larger = step(larger)
    demand(larger is not setting, "no maps meet")
    return larger


def _in_a_row(setting: Setting) -> Setting:
    """Maps that follow each other made one."""
    given, norms = setting.architecture, setting.norms
    walk = _Radii(setting, None, 1)
    made: dict[tuple[str, int | None], dict[str, Budget]] = {}
    count = Counter((w.kind, w.block) for weight in weights_of(given.stages, given.seq_len) for w in weight.all)

    def alone(kind: str, block: int | None) -> bool:
        same = sum(number for (other, _), number in count.items() if other == kind)
        return count[kind, block] == 1 and (block is not None or same == 1)

    def write(kind: str, block: int | None, head: int | None, sizes: Sizes) -> None:
        inside = f"{block}" if head is None else f"{block},{head}"
        made.setdefault((kind, block), {})[kind if block is None else f"{kind}[{inside}]"] = _budget(sizes)

    factors = any(place_of(key)[0] in ("W_Q", "W_K") for key in norms.budgets)

    def plain(layer: Attention) -> bool:
        if layer.qk != "joint" or layer.qk_bias or layer.v_bias or factors:
            return False
        return alone("W_QK", layer.block) and alone("W_V", layer.block)

    layers: list[Layer] = []
    waits: tuple[Linear, Sizes, bool] | None = None
    held: list[Layer] = []

    def release() -> None:
        nonlocal waits
        if waits is not None:
            if waits[2]:
                write(waits[0].kind, waits[0].block, None, waits[1])
            layers.append(waits[0])
            layers.extend(held)
        waits = None
        held.clear()

    for layer in given.stages:
        radius = walk.at.get(id(layer))
        if waits is not None:
            still = isinstance(layer, Ball) and radius is not None and radius <= num(layer.radius)
            if still or isinstance(layer, Pool) or (isinstance(layer, Activation) and layer.name == "identity"):
                held.append(layer)
                continue
            first, size, _ = waits
            pools = [each for each in held if isinstance(each, Pool)]
            if isinstance(layer, Linear) and alone(layer.kind, layer.block):
                whole = walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)[0]
                layers.extend(pools)
                held.clear()
                waits = replace(layer, d_in=first.d_in), times(size, whole), True
                if layer.bias is not None:
                    release()
                continue
            if isinstance(layer, Attention) and plain(layer) and not pools:
                for head in range(layer.heads) if norms.headed else (None,):
                    score = walk.matrix("W_QK", layer.block, head, layer.d, layer.d, layer.d_head)[0]
                    value = walk.matrix("W_V", layer.block, head, layer.d, layer.out)[0]
                    write("W_QK", layer.block, head, times(times(size, score), turned(size)))
                    write("W_V", layer.block, head, times(size, value))
                layers.append(replace(layer, d=first.d_in, d_value=layer.out))
                waits = None
                held.clear()
                continue
            release()
        if isinstance(layer, Linear) and layer.bias is None:
            waits = layer, walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)[0], False
        else:
            layers.append(layer)
    release()
    if not made:
        return setting
    stages = tuple(layers)
    weights = list(weights_of(stages, given.seq_len))
    kinds = {each.kind for weight in weights for each in weight.all}
    kept = {k: b for k, b in norms.budgets.items() if (at := place_of(k))[0] in kinds and at[:2] not in made}
    new = replace(norms, budgets={**kept, **{key: budget for parts in made.values() for key, budget in parts.items()}})
    read = {key for _, key in lookups(new, weights)}
    new = replace(new, budgets={key: budget for key, budget in new.budgets.items() if key in read})
    larger = Architecture(seq_len=given.seq_len, classes=given.classes, input_radius=given.input_radius, layers=stages)
    return Setting(larger, new, setting.sample)
