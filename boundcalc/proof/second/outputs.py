"""A6 in 50 digits: norms of products, the setting that is made of them, and heads whose outputs a map follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from boundcalc.proof.second.covers import Sizes
from boundcalc.proof.second.network import Walk
from boundcalc.proof.second.numbers import MP, Real, grown, num
from boundcalc.setting import Architecture, Attention, Budget, Layer, Linear, Residual, Setting
from boundcalc.setting.accounting import lookups
from boundcalc.setting.layer import weights_of
from boundcalc.setting.norms import place_of


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


def budget(a: Sizes) -> Budget:
    """The budget of norms, rounded up and in order."""
    op = grown(a.op)
    fro = max(op, grown(a.fro))
    sides = (max(fro, grown(size)) for size in (a.two_one, a.two_one_t))
    return Budget(op, fro, *sides, rank=a.rank, schatten=(1.0, max(fro, grown(a.nuclear))))


def stacked(a: Sizes, row: Real, width: int) -> Sizes:
    """Norms of [A; c], |c| = row, of so many columns."""
    entries = MP.sqrt(width) * row
    return Sizes(
        a.d + 1,
        a.k,
        MP.sqrt(a.op**2 + row**2),
        MP.sqrt(a.fro**2 + row**2),
        a.two_one + entries,
        a.two_one_t + row,
        a.one_one + entries,
        a.nuclear + row,
        a.rank + 1,
    )


def cornered(a: Sizes, *, sharp: bool) -> Sizes:
    """Norms of A with a column more, that of a 1 in the last row: in a row of its own (`sharp`), or in that of an offset."""
    op = max(a.op, num(1)) if sharp else MP.sqrt(a.op**2 + 1)
    rows, rank = a.d + int(sharp), a.rank + int(sharp)
    fro, columns, both, entries, nuclear = (
        MP.sqrt(a.fro**2 + 1),
        a.two_one + 1,
        a.two_one_t + 1,
        a.one_one + 1,
        a.nuclear + 1,
    )
    return Sizes(rows, a.k + 1, op, fro, columns, both, entries, nuclear, rank)


def count_of(layer: Attention, d: int) -> int:
    """How many numbers heads have on rows of width d."""
    width = layer.d_head or d
    values = layer.groups * d * layer.out
    if layer.qk == "split":
        return values + d * width * (layer.heads + layer.groups)
    return values + layer.heads * (d if layer.qk == "fixed" else min(d * d, 2 * d * width))


class Made:
    """Budgets of products in a setting."""

    def __init__(self, setting: Setting) -> None:
        self.given = setting
        layers, seq_len = setting.architecture.stages, setting.architecture.seq_len
        self.uses = Counter((w.kind, w.block) for weight in weights_of(layers, seq_len) for w in weight.all)
        self.budgets: dict[str, Budget] = {}
        self._places: set[tuple[str, int | None]] = set()

    def alone(self, kind: str, block: int | None) -> bool:
        """Whether a place of the norms is that of one layer."""
        same = sum(number for (other, _), number in self.uses.items() if other == kind)
        return self.uses[kind, block] == 1 and (block is not None or same == 1)

    def matrix(self, kind: str, block: int | None, head: int | None, size: Sizes) -> None:
        """A product's budget."""
        self._write(kind, block, head, budget(size))

    def length(self, kind: str, block: int | None, head: int | None, size: Real) -> None:
        """An offset's budget."""
        self._write(kind, block, head, Budget(op=grown(size)))

    def _write(self, kind: str, block: int | None, head: int | None, made: Budget) -> None:
        inside = f"{block}" if head is None else f"{block},{head}"
        self.budgets[kind if block is None else f"{kind}[{inside}]"] = made
        self._places.add((kind, block))

    def setting(self, stages: tuple[Layer, ...]) -> Setting:
        """The setting of other layers: what was made, and of what was given all that is still read."""
        given, norms = self.given.architecture, self.given.norms
        weights = list(weights_of(stages, given.seq_len))
        kinds = {each.kind for weight in weights for each in weight.all}
        parts = {key: place_of(key) for key in norms.budgets}
        kept = {k: norms.budgets[k] for k, at in parts.items() if at[0] in kinds and at[:2] not in self._places}
        new = replace(norms, budgets={**kept, **self.budgets})
        read = {key for _, key in lookups(new, weights)}
        new = replace(new, budgets={key: size for key, size in new.budgets.items() if key in read})
        larger = Architecture(
            seq_len=given.seq_len, classes=given.classes, input_radius=given.input_radius, layers=stages
        )
        return Setting(larger, new, self.given.sample)


def out_of_heads(setting: Setting) -> Setting:
    """Output projections in the value maps, where that leaves fewer numbers; else the same."""
    made, walk = Made(setting), Walk(setting, None, 1)

    def one(heads: Attention, after: Linear) -> bool:
        places = [("W_V", heads.block), (after.kind, after.block)]
        if heads.v_bias:
            places.append(("b_V", heads.block))
        if after.bias is not None:
            places.append((after.bias, after.block))
        if len(places) > 2 and heads.normaliser.name != "softmax":
            return False
        before = heads.heads * heads.d * heads.out + after.d_in * after.d_out
        fewer = before > heads.heads * heads.d * after.d_out
        return heads.groups == heads.heads and fewer and all(made.alone(*place) for place in places)

    def join(heads: Attention, after: Linear) -> Attention:
        own = list(range(heads.heads)) if setting.norms.headed else [None]
        w_o = walk.matrix(after.kind, after.block, None, after.d_in, after.d_out)[0]
        for head in own:
            value = walk.matrix("W_V", heads.block, head, heads.d, heads.out)[0]
            made.matrix("W_V", heads.block, head, times(value, w_o))
        if not heads.v_bias and after.bias is None:
            return replace(heads, d_value=after.d_out, combine="sum")
        added = num(0) if after.bias is None else walk.offset(after.bias, after.block)[0]
        if heads.v_bias:
            each = [walk.offset("b_V", heads.block, head)[0] for head in own]
            each = each if len(own) == heads.heads else each * heads.heads
            squares = sum((size**2 for size in each), start=num(0))
            added += (MP.sqrt(squares) if heads.combine == "concat" else sum(each, start=num(0))) * w_o.op
        for head in own:
            made.length("b_V", heads.block, head, added / heads.heads)
        return replace(heads, d_value=after.d_out, combine="sum", v_bias=True)

    def through(layers: Iterable[Layer]) -> tuple[Layer, ...]:
        out: list[Layer] = []
        for layer in layers:
            if isinstance(layer, Residual):
                out.append(Residual(through(layer.branch), tuple(map(through, layer.beside)), layer.skip))
            elif isinstance(layer, Linear) and out and isinstance(out[-1], Attention) and one(out[-1], layer):
                out[-1] = join(out[-1], layer)
            else:
                out.append(layer)
        return tuple(out)

    stages = through(setting.architecture.stages)
    return made.setting(stages) if made.budgets else setting
