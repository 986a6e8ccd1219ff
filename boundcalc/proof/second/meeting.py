"""A6 and A7 in 50 digits: the larger class with maps that meet made one."""

from collections.abc import Callable, Iterable
from typing import Any

from .attention import joint_scores
from .covers import Sizes
from .layers import Layer, linear, residual
from .numbers import MP, Real, demand, grown, num
from .rules import walk_through
from .setting import (
    Budget,
    Setting,
    kind_and_block,
    looks_up,
    placed,
    products,
    read_places,
    reads_out,
    used,
    weights_of,
)


def joined(setting: Setting) -> Setting:
    """The larger class; refuses one in which no maps meet."""
    larger = setting
    for step in (
        looked_up,
        read_out,
        lambda about: (pairs := _Joining(about)).setting(_rewritten(about.stages, pairs.meets)),
        _out_of_heads,
    ):
        larger = step(larger)
    demand(larger is not setting, "no maps meet")
    return larger


def _times(a: Sizes, b: Sizes) -> Sizes:
    """Norms of AB."""
    fro, nuclear = min(a.op * b.fro, a.fro * b.op), min(a.op * b.nuclear, a.nuclear * b.op, a.fro * b.fro)
    sides = a.op * b.two_one, a.two_one_t * b.op, a.one_one * b.one_one
    return Sizes(a.d, b.k, a.op * b.op, fro, *sides, nuclear, min(a.rank, b.rank))


def _turned(a: Sizes) -> Sizes:
    """Norms of A'."""
    return a._replace(d=a.k, k=a.d, two_one=a.two_one_t, two_one_t=a.two_one)


def _rounded(a: Sizes) -> Budget:
    """The budget of norms, rounded up and in order."""
    op = grown(a.op)
    fro = max(op, grown(a.fro))
    sides = (max(fro, grown(size)) for size in (a.two_one, a.two_one_t))
    return Budget(op, fro, *sides, rank=a.rank, schatten=(1.0, max(fro, grown(a.nuclear))))


def _stacked(a: Sizes, row: Real, width: int) -> Sizes:
    """Norms of [A; c], |c| = row, of so many columns."""
    entries, op, fro = MP.sqrt(width) * row, MP.sqrt(a.op**2 + row**2), MP.sqrt(a.fro**2 + row**2)
    sides = a.two_one + entries, a.two_one_t + row, a.one_one + entries
    return Sizes(a.d + 1, a.k, op, fro, *sides, a.nuclear + row, a.rank + 1)


def _cornered(a: Sizes, *, sharp: bool) -> Sizes:
    """Norms of A with a column more, of a 1 in the last row: in a row of its own (`sharp`), or in an offset's."""
    op = max(a.op, num(1)) if sharp else MP.sqrt(a.op**2 + 1)
    sides = a.two_one + 1, a.two_one_t + 1, a.one_one + 1
    more = int(sharp)
    return Sizes(a.d + more, a.k + 1, op, MP.sqrt(a.fro**2 + 1), *sides, a.nuclear + 1, a.rank + more)


class _Made:
    """Budgets of products in a setting."""

    def __init__(self, setting: Setting) -> None:
        self.given, self.walk = setting, walk_through(setting)
        self.uses = used(setting)
        self.budgets: dict[str, Budget] = {}

    def alone(self, kind: str | None, block: int | None) -> bool:
        """Whether a place of the norms, if there is one, is that of one layer."""
        same = sum(number for (other, _), number in self.uses.items() if other == kind)
        return kind is None or (self.uses[kind, block] == 1 and (block is not None or same == 1))

    def norms(self, layer: Layer) -> Sizes:
        """Of the matrix of a linear map."""
        return self.walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)[0]

    def length(self, kind: str | None, block: int | None, head: int | None = None) -> Real:
        """Of an offset; 0 where there is none."""
        return self.walk.offset(kind, block, head)[0]

    def put(self, kind: str, block: int | None, head: int | None, size: Any) -> None:
        """The budget of a product, by its norms, or of an offset, by its length."""
        budget = _rounded(size) if isinstance(size, Sizes) else Budget(op=grown(size))
        self.budgets[placed(kind, block, head)] = budget

    def put_least(self, kind: str, block: int | None, name: str, most: Real) -> None:
        """What follows of one norm of a product, or what is given of it if that is less, and all else that is given."""
        budget = self.walk.budget(kind, block) or Budget()
        own = getattr(budget, name)
        least = grown(most) if own is None else min(own, grown(most))
        self.budgets[placed(kind, block)] = budget._replace(**{name: least})

    def setting(self, stages: tuple[Layer, ...]) -> Setting:
        """The setting of other layers: what was made, and of what was given all that is still read."""
        if not self.budgets:
            return self.given
        norms, places = self.given.norms, {kind_and_block(key) for key in self.budgets}
        kept = {key: size for key, size in norms.budgets.items() if kind_and_block(key) not in places}
        new = norms._replace(budgets={**kept, **self.budgets})
        read = {key for _, key in read_places(new, weights_of(stages))}
        read |= {new.place(weight.kind, weight.block) for weight in products(stages)}
        new = new._replace(budgets={key: size for key, size in new.budgets.items() if key in read})
        return self.given._replace(stages=stages, norms=new)


def _rewritten(layers: Iterable[Layer], meets: Callable[[list[Layer], Layer], bool]) -> tuple[Layer, ...]:
    """Layers one by one, those in branches too: each meets what is before it, which is changed then, or is added."""
    out: list[Layer] = []
    for layer in layers:
        if layer.label == "residual":
            first, *beside = (_rewritten(branch, meets) for branch in (layer.branch, *layer.beside))
            out.append(residual(first, beside, layer.skip))
        elif not meets(out, layer):
            out.append(layer)
    return tuple(out)


_ROW_MAPS = {"W_QK", "W_Q", "W_K", "W_V", "q", "b_Q", "b_K", "b_V"}
"""What attention multiplies its rows with, or adds to the products."""


class _Joining(_Made):
    """One setting's maps made one wherever they follow each other, in branches too."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.products: dict[int, tuple[Layer, Sizes, Real | None]] = {}

    def meets(self, out: list[Layer], layer: Layer) -> bool:
        """Whether a layer is made one with the map before it, which is changed then."""
        i = next((i for i in range(len(out), 0, -1) if not self._idle(out[i - 1])), 0)
        pools = [pool for pool in out[i:] if pool.label == "pool"]
        before = out[i - 1] if i and out[i - 1].label == "linear" else None
        if before is not None and layer.label == "linear" and self._one(before, layer):
            out[i - 1 :] = [*pools, self._times(before, layer)]
        elif before is not None and layer.label == "attention" and not pools and self._reads(before, layer):
            out[i - 1 :] = [self._behind(before, layer)]
        else:
            return False
        return True

    def _of(self, layer: Layer) -> tuple[Sizes, Real | None]:
        """Norms of a linear map, which may be a product, and the length of its offset."""
        if id(layer) in self.products:
            return self.products[id(layer)][1:]
        return self.norms(layer), None if layer.bias is None else self.length(layer.bias, layer.block)

    def _idle(self, layer: Layer) -> bool:
        """Whether a layer does nothing, but for pooling."""
        if layer.label == "ball":
            radius = self.walk.at.get(id(layer))
            return radius is not None and radius <= num(layer.radius)
        return layer.label == "pool" or (layer.label == "activation" and layer.name == "identity")

    def _one(self, first: Layer, second: Layer) -> bool:
        d, n, k = first.d_in, first.d_out, second.d_out
        if d * k >= d * n + n * k or not self.alone(second.kind, second.block):
            return False
        if second.bias is not None:
            return self.alone(second.bias, second.block)
        return first.bias is None or self.uses[f"b_{second.kind}", second.block] == 0

    def _times(self, first: Layer, second: Layer) -> Layer:
        (a, c), (b, e) = self._of(first), self._of(second)
        name = (second.bias or f"b_{second.kind}") if c is not None or e is not None else None
        both, size = second.but(d_in=first.d_in, bias=name), _times(a, b)
        self.put(second.kind, second.block, None, size)
        offset = None if name is None else (c or num(0)) * b.op + (e or num(0))
        if name is not None:
            self.put(name, second.block, None, offset)
        self.products[id(both)] = (both, size, offset)
        return both

    def _reads(self, first: Layer, layer: Layer) -> bool:
        own = list(weights_of((layer,)))
        factors = {factor.kind for weight in own for factor in weight.factors}
        if factors & {kind_and_block(key)[0] for key in self.given.norms.budgets}:
            return False
        if layer.qk != "split" and (first.bias is not None or layer.qk_bias) and not layer.keys_alone:
            return False
        if _numbers(layer, first.d_in) >= _numbers(layer, layer.d) + first.d_in * first.d_out:
            return False
        return all(self.alone(kind, layer.block) for kind in _ROW_MAPS & ({weight.kind for weight in own} | factors))

    def _behind(self, first: Layer, layer: Layer) -> Layer:
        (a, c), walk, block = self._of(first), self.walk, layer.block

        def side(kind: str, name: str, columns: int, offset: bool, head: int | None) -> None:
            own = walk.matrix(kind, block, head, layer.d, columns)[0]
            self.put(kind, block, head, _times(a, own))
            if c is not None or offset:
                added = self.length(name if offset else None, block, head)
                self.put(name, block, head, (c or num(0)) * own.op + added)

        for head in range(layer.heads) if self.given.norms.headed else (None,):
            side("W_V", "b_V", layer.out, layer.v_bias, head)
            if layer.qk == "split":
                side("W_Q", "b_Q", layer.d_head, layer.qk_bias, head)
                side("W_K", "b_K", layer.d_head, layer.qk_bias, head)
            elif layer.qk == "fixed":
                self.put("q", block, head, _times(a, walk.matrix("q", block, head, layer.d, 1)[0]))
            else:
                rows = layer.d + 1 if layer.qk_bias else layer.d
                score = walk.matrix("W_QK", block, head, rows, layer.d, layer.d_head)[0]
                left = _stacked(a, c, layer.d) if c is not None else a
                left = _cornered(left, sharp=c is None) if layer.qk_bias else left
                self.put("W_QK", block, head, _times(_times(left, score), _turned(a)))
        biased = layer.qk_bias or (c is not None and layer.qk != "fixed")
        return layer.but(d=first.d_in, d_value=layer.out, qk_bias=biased, v_bias=layer.v_bias or c is not None)


def _consecutive(setting: Setting) -> Setting:
    joined = _Joining(setting)
    return joined.setting(_rewritten(setting.stages, joined.meets))


def _numbers(layer: Layer, d: int) -> int:
    """How many numbers heads have on rows of width d."""
    width = layer.d_head or d
    values = layer.groups * d * layer.out
    if layer.qk == "split":
        return values + d * width * (layer.heads + layer.groups)
    return values + layer.heads * (d if layer.qk == "fixed" else min(d * d, 2 * d * width))


def _out_of_heads(setting: Setting) -> Setting:
    """Output projections in the value maps, where that leaves fewer numbers; else the same."""
    joined = _Made(setting)

    def one(heads: Layer, after: Layer) -> bool:
        offsets = [("b_V" if heads.v_bias else None, heads.block), (after.bias, after.block)]
        if (heads.v_bias or after.bias is not None) and heads.normaliser.name != "softmax":
            return False
        before = heads.heads * heads.d * heads.out + after.d_in * after.d_out
        fewer = heads.groups == heads.heads and before > heads.heads * heads.d * after.d_out
        return fewer and all(joined.alone(*at) for at in [("W_V", heads.block), (after.kind, after.block), *offsets])

    def join(heads: Layer, after: Layer) -> Layer:
        own = list(range(heads.heads)) if setting.norms.headed else [None]
        w_o = joined.norms(after)
        for head in own:
            value = joined.walk.matrix("W_V", heads.block, head, heads.d, heads.out)[0]
            joined.put("W_V", heads.block, head, _times(value, w_o))
        moved = heads.v_bias or after.bias is not None
        if moved:
            lengths = [joined.length("b_V" if heads.v_bias else None, heads.block, head) for head in own]
            lengths = lengths if len(own) == heads.heads else lengths * heads.heads
            side = (
                MP.sqrt(sum(size**2 for size in lengths)) if heads.combine == "concat" else sum(lengths, start=num(0))
            )
            added = side * w_o.op + joined.length(after.bias, after.block)
            for head in own:
                joined.put("b_V", heads.block, head, added / heads.heads)
        return heads.but(d_value=after.d_out, combine="sum", v_bias=moved)

    def meets(out: list[Layer], layer: Layer) -> bool:
        joins = layer.label == "linear" and bool(out) and out[-1].label == "attention" and one(out[-1], layer)
        if joins:
            out[-1] = join(out[-1], layer)
        return joins

    return joined.setting(_rewritten(setting.stages, meets))


def looked_up(setting: Setting) -> Setting:
    """The class with tables for the first attention's scores and values, where its row has no data; else the same."""
    parts = looks_up(setting.stages)
    if parts is None:
        return setting
    first, heads, output = parts
    joined = _Made(setting)
    words, places = (
        joined.walk.vector(("row", "op", "fro", "two_one"), kind)[0] for kind in ("embedding", "positions")
    )
    query, value, carried = num(0), num(0), num(0)
    for head in range(heads.heads):  # one by one, alike or not
        query = max(query, joint_scores(joined.walk, heads, head)[0].op)
        value += joined.walk.matrix("W_V", heads.block, head, heads.d, heads.out)[0].op ** 2
        carried += joined.length("b_V" if heads.v_bias else None, heads.block, head) ** 2
    row = words + places
    query *= MP.sqrt(row**2 + (1 if heads.qk_bias else 0)) / num(heads.normaliser.temperature or 1)
    for side, long in (("token", words), ("position", places)):
        joined.put_least(f"{side}_scores", None, "sup", long * query)
        joined.put_least(f"{side}_values", None, "heads", long * MP.sqrt(value))
    added = row + MP.sqrt(carried) * joined.norms(output).op + joined.length(output.bias, output.block)
    joined.put_least("first_row", output.block, "op", added)
    lookup = Layer(label="lookup", vocabulary=first.vocabulary, heads=heads.heads, d_value=heads.out)
    return joined.setting((lookup, Layer(label="pool", how="cls"), output.but(bias="first_row"), *setting.stages[2:]))


def read_out(setting: Setting) -> Setting:
    """(x + hA + a)R + r as xR + h(AR) + (aR + r), where the network ends so; else the same."""
    parts = reads_out(setting.stages)
    if parts is None:
        return setting
    before, part, last, pools, readout = parts
    joined = _Made(setting)
    own = [(name, layer.block) for layer in (last, readout) for name in (layer.kind, layer.bias) if name is not None]
    if any(joined.uses[place] > 1 for place in own):
        return setting
    kind, a, r = f"{last.kind}_to_readout", joined.norms(last), joined.norms(readout)
    product, own_budget = _times(a, r), joined.walk.budget(kind, last.block)
    if own_budget is not None:  # the least of what follows and of what is given
        sizes = Sizes.of(own_budget, last.d_in, readout.d_out)
        product = Sizes(product.d, product.k, *map(min, product[2:], sizes[2:]))
    joined.put(kind, last.block, None, product)
    name = readout.bias
    if last.bias is not None:
        name = readout.bias or "b_readout"
        moved = joined.length(last.bias, last.block) * r.op + joined.length(readout.bias, readout.block)
        joined.put(name, readout.block, None, moved)
    inside = list(part.branch[:-1])
    two = [layer.label for layer in inside[-2:]] == ["linear", "activation"] and inside[-2].block == last.block
    if two and readout.d_out == 1:
        first, act = inside[-2:]
        shape = {"d": first.d_in, "d_ff": first.d_out, "block": first.block, "bias": first.bias}
        unit = Layer(label="hidden", first=first.kind, last=kind, activation=act.name, **shape)
        inside = [*inside[:-2], unit]
    else:
        inside.append(linear(kind, last.d_in, readout.d_out, None, last.block))
    both = residual(inside, [[readout.but(bias=name)]], skip=False)
    return joined.setting((*before, both, *pools))
