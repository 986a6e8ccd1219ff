"""A6 and A7 in 50 digits: the larger class with maps that meet made one."""

from collections import Counter

from ._attention import joint_scores
from ._covers import Sizes
from ._layers import Layer, linear, residual
from ._numbers import MP, Real, demand, grown, num
from ._rules import walk_through
from ._setting import (
    Budget,
    Setting,
    kind_and_block,
    looks_up,
    placed,
    products,
    read_places,
    reads_out,
    trained,
    weights_of,
)


def joined(setting: Setting) -> Setting:
    """The larger class; refuses one in which no maps meet, or of which layers share weights."""
    uses = Counter((weight.kind, weight.block) for weight in trained(setting.stages))
    kinds = Counter(kind for kind, _ in uses.elements())
    shared = [kind for (kind, block), number in uses.items() if number > 1 or (block is None and kinds[kind] > 1)]
    demand(not shared, "layers share weights")
    branches = any(layer.label == "residual" for layer in setting.stages)
    larger = read_out(looked_up(setting)) if branches else _consecutive(setting)
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
    return Budget(op, fro, *sides, nuclear=max(fro, grown(a.nuclear)), rank=a.rank)


class _Made:
    """Budgets of products in a setting."""

    def __init__(self, setting: Setting) -> None:
        self.given, self.walk = setting, walk_through(setting)
        self.budgets: dict[str, Budget] = {}

    def norms(self, layer: Layer) -> Sizes:
        """Of the matrix of a linear map."""
        return self.walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)[0]

    def length(self, kind: str | None, block: int | None, head: int | None = None) -> Real:
        """Of an offset; 0 where there is none."""
        return self.walk.offset(kind, block, head)[0]

    def put(self, kind: str, block: int | None, head: int | None, size: Sizes) -> None:
        """The budget of a product."""
        self.budgets[placed(kind, block, head)] = _rounded(size)

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


def _consecutive(setting: Setting) -> Setting:
    """Maps without offsets made one wherever they follow each other, and heads behind such a map."""
    larger = _Made(setting)
    out: list[Layer] = []
    left: tuple[int, Layer, Sizes] | None = None  # where the last map is, the map, and its norms
    for layer in setting.stages:
        if layer.label == "pool" or _idle(larger, layer):
            out.append(layer)
            continue
        own = larger.norms(layer) if layer.label == "linear" and layer.bias is None else None
        at, first, a = left or (len(out), layer, None)
        pools = [other for other in out[at:] if other.label == "pool"]
        if a is not None and own is not None and _fewer(first.d_in, first.d_out, layer.d_out):
            own = _times(a, own)
            larger.put(layer.kind, layer.block, None, own)
            layer = layer.but(d_in=first.d_in)
            out[at:] = pools
        elif a is not None and layer.label == "attention" and not pools and _reads(setting, first, layer):
            for head in range(layer.heads) if setting.norms.headed else (None,):
                score = larger.walk.matrix("W_QK", layer.block, head, layer.d, layer.d, layer.d_head)[0]
                value = larger.walk.matrix("W_V", layer.block, head, layer.d, layer.out)[0]
                larger.put("W_QK", layer.block, head, _times(_times(a, score), _turned(a)))
                larger.put("W_V", layer.block, head, _times(a, value))
            layer = layer.but(d=first.d_in, d_value=layer.out)
            del out[at:]
        left = None if own is None else (len(out), layer, own)
        out.append(layer)
    return larger.setting(tuple(out))


def _idle(larger: _Made, layer: Layer) -> bool:
    """Whether a layer does nothing."""
    if layer.label == "ball":
        return larger.walk.at[id(layer)] <= num(layer.radius)
    return layer.label == "activation" and layer.name == "identity"


def _fewer(d: int, n: int, k: int) -> bool:
    return d * k < d * n + n * k


def _reads(setting: Setting, first: Layer, layer: Layer) -> bool:
    """Whether heads have a score matrix and no offsets, and on rows before the map fewer numbers."""
    factors = {factor.kind for weight in weights_of((layer,)) for factor in weight.factors}
    if layer.qk != "joint" or layer.qk_bias or layer.v_bias:
        return False
    if factors & {kind_and_block(key)[0] for key in setting.norms.budgets}:
        return False
    d, n = first.d_in, first.d_out
    before, behind = (
        layer.heads * min(rows * rows, 2 * rows * (layer.d_head or rows)) + layer.groups * rows * layer.out
        for rows in (d, n)
    )
    return before < behind + d * n


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
        joined.budgets[placed(name, readout.block)] = Budget(op=grown(moved))
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
