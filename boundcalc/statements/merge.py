"""A6 and A7: linear maps with nothing between them that acts are one map, and heads that read one row look up tables.

The class of a setting lies in a class with fewer maps, whose covers serve it. Between two maps there is nothing, the
identity, a pooling, or a projection that cannot act because its radius is at least that of its rows: then the functions
are equal, whatever approximate networks do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import NamedTuple

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.system import Number
from boundcalc.layers.base import weights_of
from boundcalc.layers.facts import Context, total
from boundcalc.layers.products import FIRST_ROW, beginning, ending, products_of
from boundcalc.setting import Architecture, Attention, Budget, Hidden, Layer, Linear, Pool, Residual, Setting
from boundcalc.setting.accounting import lookups
from boundcalc.setting.norms import place_named, place_of
from boundcalc.statements.network import Visit, walk
from boundcalc.statements.targets import MatrixNorms, matrix_norms, product, with_corner, with_row
from boundcalc.statements.weights import Weights

_ZERO = INTERVAL.number(0)
_ROW_MAPS = frozenset(("W_QK", "W_Q", "W_K", "W_V", "q", "b_Q", "b_K", "b_V"))
"""What attention multiplies its rows with, or adds to the products."""


def _budget(size: MatrixNorms | Number) -> Budget:
    """The budget of a matrix, or of an offset of some length; rounded up, and in order."""
    if not isinstance(size, MatrixNorms):
        return Budget(op=upper_float(size))
    op = upper_float(size.op)
    fro = max(op, upper_float(size.fro))
    two_one, two_one_t, nuclear = (max(fro, upper_float(x)) for x in (size.two_one, size.two_one_t, size.nuclear))
    return Budget(op, fro, two_one, two_one_t, rank=size.rank, schatten=(1.0, nuclear))


# -- settings


class Merged(NamedTuple):
    """A setting with fewer maps, whose class contains another's.

    Attributes:
        setting: it.
        consecutive: whether nothing but maps in a row was merged: they have fewer numbers, hence smaller uniform
            covers. Of distances from references nothing is left in products.
    """

    setting: Setting
    consecutive: bool


def merge_linear_maps(setting: Setting) -> Merged | None:
    """The setting with its linear maps merged where that helps; None where no maps meet."""
    larger, consecutive = setting, all(budget.distance is None for budget in setting.norms.budgets.values())
    for step in (look_up, split_readout, merge_consecutive, merge_outputs):
        merged = step(larger)
        if merged is not None:
            larger, consecutive = merged, consecutive and step is merge_consecutive
    return None if larger is setting else Merged(larger, consecutive)


class _Placed(NamedTuple):
    """A layer of the larger class.

    Attributes:
        layer: it.
        passes: whether maps before and after it meet.
        norms: those of a linear map.
        offset: the length of its offset, where it has one.
    """

    layer: Layer
    passes: bool = False
    norms: MatrixNorms | None = None
    offset: Number | None = None


_Place = Callable[[list[_Placed], Layer], None]


class _Merger:
    """The budgets of one setting in intervals, and those of products that are made of it."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.seq_len = setting, setting.architecture.seq_len
        self.weights = Weights(INTERVAL, setting.norms)
        weights = weights_of(setting.architecture.stages, self.seq_len)
        self.uses = Counter((part.kind, part.block) for weight in weights for part in weight.all)
        self.kinds = Counter(kind for kind, _ in self.uses.elements())
        self.budgets: dict[str, Budget] = {}

    def alone(self, *places: tuple[str | None, int | None]) -> bool:
        """Whether keys of the norms, where there are any, are those of one layer each."""
        named = ((kind, block) for kind, block in places if kind is not None)
        return all(self.uses[at] == 1 and (at[1] is not None or self.kinds[at[0]] == 1) for at in named)

    def heads(self, layer: Attention) -> Sequence[int | None]:
        """The heads with budgets of their own, or one for all."""
        return range(layer.heads) if self.setting.norms.headed else (None,)

    def norms(self, layer: Linear) -> MatrixNorms:
        """Of the matrix of a linear map."""
        return self.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out).whole

    def length(self, kind: str | None, block: int | None, head: int | None = None) -> Number:
        """The length of an offset; of one that is not there 0."""
        return _ZERO if kind is None else self.weights.vector(kind, block, head)[0]

    def put(self, kind: str, block: int | None, size: MatrixNorms | Number, head: int | None = None) -> None:
        """Set the budget of a product, or of an offset, in the larger class."""
        self.budgets[place_named(kind, block, head)] = _budget(size)

    def rewrite(self, layers: Iterable[Layer], place: _Place) -> tuple[Layer, ...]:
        """Layers one by one, those in branches too: each is placed behind those before it, which may change then."""
        out: list[_Placed] = []
        for layer in layers:
            if layer.branches:
                out.append(_Placed(layer.map_branches(partial(self.rewrite, place=place))))
            else:
                place(out, layer)
        return tuple(placed.layer for placed in out)

    def result(self, layers: tuple[Layer, ...]) -> Setting | None:
        """The setting of other layers, with what was made and all of the rest that is still read."""
        if not self.budgets:
            return None
        norms, places = self.setting.norms, {place_of(key)[:2] for key in self.budgets}
        kept = {key: budget for key, budget in norms.budgets.items() if place_of(key)[:2] not in places}
        norms = replace(norms, budgets=kept | self.budgets)
        read = {key for _, key in lookups(norms, list(weights_of(layers, self.seq_len)))}
        read |= {norms.place(weight.kind, weight.block) for weight in products_of(layers, self.seq_len)}
        norms = replace(norms, budgets={key: budget for key, budget in norms.budgets.items() if key in read})
        a = self.setting.architecture
        fields = {"seq_len": a.seq_len, "classes": a.classes, "input_radius": a.input_radius}
        return Setting(Architecture(layers=layers, **fields), norms, self.setting.sample)


# -- maps in a row, and heads behind a map


def merge_consecutive(setting: Setting) -> Setting | None:
    """A6: maps that follow each other are one, where that has fewer numbers; heads take in the map before them."""
    merger, architecture = _Merger(setting), setting.architecture
    start = Context(merger.weights, INTERVAL.number(architecture.input_radius), 1, architecture.seq_len)
    visits = (step for step in walk(architecture.stages, start) if isinstance(step, Visit))

    def place(out: list[_Placed], layer: Layer) -> None:
        idle = _idle(layer, next(visits).at.radius)
        i = next((i for i in reversed(range(len(out))) if not out[i].passes), len(out))
        pools = [placed for placed in out[i + 1 :] if isinstance(placed.layer, Pool)]
        merged = None
        if isinstance(layer, Linear):
            offset = None if layer.bias is None else merger.length(layer.bias, layer.block)
            here = _Placed(layer, False, merger.norms(layer), offset)
            merged = _times(merger, out[i], here) if i < len(out) else None
        else:
            here = _Placed(layer, idle or isinstance(layer, Pool))
            if isinstance(layer, Attention) and i < len(out) and not pools:
                merged = _behind(merger, out[i], layer)
        if merged is None:
            out.append(here)
        else:
            out[i:] = [*pools, merged]

    return merger.result(merger.rewrite(architecture.stages, place))


def _idle(layer: Layer, radius: Number) -> bool:
    """Whether a layer does nothing to rows of this radius."""
    return layer.idle(radius)


def _times(merger: _Merger, first: _Placed, second: _Placed) -> _Placed | None:
    """(hA + a) B + b = h (AB) + (aB + b); None where that has no fewer numbers, or no names of its own."""
    a, b = first.layer, second.layer
    if not isinstance(a, Linear) or not isinstance(b, Linear) or first.norms is None or second.norms is None:
        return None
    bias = b.bias or f"b_{b.kind}"
    free = merger.alone((b.bias, b.block)) if b.bias or first.offset is None else not merger.uses[bias, b.block]
    if a.d_in * b.d_out >= a.d_out * (a.d_in + b.d_out) or not free or not merger.alone((b.kind, b.block)):
        return None
    norms, offset = product(INTERVAL, first.norms, second.norms), None
    merger.put(b.kind, b.block, norms)
    if first.offset is not None or second.offset is not None:
        offset = (first.offset or _ZERO) * second.norms.op + (second.offset or _ZERO)
        merger.put(bias, b.block, offset)
    return _Placed(replace(b, d_in=a.d_in, bias=None if offset is None else bias), False, norms, offset)


def _behind(merger: _Merger, first: _Placed, layer: Attention) -> _Placed | None:
    """Heads on hA + a as heads on h: their matrices take A in, and their offsets a."""
    a, offset, before = first.norms, first.offset, first.layer
    if not isinstance(before, Linear) or a is None or not _can_read(merger, before, offset is not None, layer):
        return None
    block, width, weights = layer.block, layer.d, merger.weights
    for head in merger.heads(layer):

        def affine(kind: str, bias: str, columns: int, *, biased: bool, head: int | None = head) -> None:
            """(hA + a) W + b = h (AW) + (aW + b)."""
            own = weights.matrix(kind, block, head, width, columns).whole
            merger.put(kind, block, product(INTERVAL, a, own), head)
            if biased or offset is not None:
                size = (offset or _ZERO) * own.op + merger.length(bias if biased else None, block, head)
                merger.put(bias, block, size, head)

        affine("W_V", "b_V", layer.out, biased=layer.v_bias)
        if layer.qk == "split":
            for side in ("Q", "K"):
                affine(f"W_{side}", f"b_{side}", layer.d_head or width, biased=layer.qk_bias)
        elif layer.qk == "fixed":
            merger.put("q", block, product(INTERVAL, a, weights.matrix("q", block, head, width, 1).whole), head)
        else:
            left = a if offset is None else with_row(INTERVAL, a, offset, width)
            left = with_corner(INTERVAL, a, offset, width) if layer.qk_bias else left
            score = weights.scores(layer.scores, head, layer.d_head).whole
            right = replace(a, two_one=a.two_one_t, two_one_t=a.two_one)  # of A'
            merger.put("W_QK", block, product(INTERVAL, product(INTERVAL, left, score), right), head)
    biased = layer.qk_bias or (offset is not None and layer.qk != "fixed")
    v_bias = layer.v_bias or offset is not None
    return _Placed(replace(layer, d=before.d_in, d_value=layer.out, qk_bias=biased, v_bias=v_bias))


def _can_read(merger: _Merger, first: Linear, moved: bool, layer: Attention) -> bool:
    """Whether heads on hA + a are heads of the same kind on h, in fewer numbers and with names of their own."""
    factors = {factor.kind for factor in layer.scores.factors} if layer.qk == "joint" else set[str]()
    if factors & {place_of(key)[0] for key in merger.setting.norms.budgets}:
        return False
    if (moved or layer.qk_bias) and not _offsets_fit(layer):
        return False
    fewer = _numbers(layer, first.d_in) < _numbers(layer, first.d_out) + first.d_in * first.d_out
    own = [(weight.kind, weight.block) for weight in layer.weights(merger.seq_len) if weight.kind in _ROW_MAPS]
    return fewer and merger.alone(*own)


def _offsets_fit(layer: Attention) -> bool:
    """Whether scores have offsets of their own, or what these add is the same for all keys of a row and drops out."""
    return layer.qk == "split" or (layer.normaliser.name == "softmax" and layer.cap is None)


def _numbers(layer: Attention, d: int) -> int:
    """How many numbers the heads' matrices have on rows of width d; of a product of factors at most theirs."""
    width = layer.d_head or d
    scores = {
        "joint": layer.heads * min(d * d, 2 * d * width),
        "split": (layer.heads + layer.groups) * d * width,
        "fixed": layer.heads * d,
    }
    return scores[layer.qk] + layer.groups * d * layer.out


# -- output projections


def merge_outputs(setting: Setting) -> Setting | None:
    """A6: a value map and the output projection behind it are one map of each head, where that has fewer numbers.

    sum_h a_h X V_h W_O,h = sum_h a_h X (V_h W_O,h). Errors then add up where those of heads side by side add as squares
    (L8), so which of the two is less is for a search to find out.
    """
    merger = _Merger(setting)

    def place(out: list[_Placed], layer: Layer) -> None:
        heads = out[-1].layer if out else None
        if isinstance(heads, Attention) and isinstance(layer, Linear) and _fewer(merger, heads, layer):
            out[-1] = _Placed(_join(merger, heads, layer))
        else:
            out.append(_Placed(layer))

    return merger.result(merger.rewrite(setting.architecture.stages, place))


def _fewer(merger: _Merger, heads: Attention, output: Linear) -> bool:
    """Whether the products have fewer numbers, and names and offsets of their own."""
    offset = "b_V" if heads.v_bias else None
    if (
        offset or output.bias
    ) and heads.normaliser.name != "softmax":  # an offset of the output is then none of the values
        return False
    apart = heads.heads * heads.d * heads.out + output.d_in * output.d_out
    fewer = heads.groups == heads.heads and heads.heads * heads.d * output.d_out < apart
    own = [(kind, heads.block) for kind in ("W_V", offset)] + [
        (kind, output.block) for kind in (output.kind, output.bias)
    ]
    return fewer and merger.alone(*own)


def _join(merger: _Merger, heads: Attention, output: Linear) -> Attention:
    ns, block, own = INTERVAL, heads.block, merger.heads(heads)
    after = merger.norms(output)
    for head in own:
        value = merger.weights.matrix("W_V", block, head, heads.d, heads.out).whole
        merger.put("W_V", block, product(ns, value, after), head)
    biased = heads.v_bias or output.bias is not None
    if biased:  # weights sum to 1, and the sum of all offsets is what counts: each head may have an equal part
        sizes = [merger.length("b_V" if heads.v_bias else None, block, head) for head in own]
        sizes = sizes * (heads.heads // len(own))
        side = ns.sqrt(total([size**2 for size in sizes])) if heads.combine == "concat" else total(sizes)
        moved = side * after.op + merger.length(output.bias, output.block)
        for head in own:
            merger.put("b_V", block, moved / heads.heads, head)
    return replace(heads, d_value=output.d_out, combine="sum", v_bias=biased)


# -- the first attention and the read-out


def look_up(setting: Setting) -> Setting | None:
    """A7: the class in which the first attention looks up scores and values; None where there is no such attention."""
    parts = beginning(setting.architecture.stages)
    if parts is None:
        return None
    merger, ns, layer, output = _Merger(setting), INTERVAL, parts.attention, parts.output
    weights, own = merger.weights, merger.heads(layer)
    copies = ns.number(layer.heads // len(own))
    token, position = weights.row("embedding")[0], weights.row("positions")[0]
    row = token + position
    scores = [weights.scores(layer.scores, head, layer.d_head).whole.op for head in own]
    values = [weights.matrix("W_V", layer.block, head, layer.d, layer.out).whole.op for head in own]
    asks = ns.sqrt(row**2 + 1) if layer.qk_bias else row
    tau = ns.number(1.0 if layer.normaliser.temperature is None else layer.normaliser.temperature)
    query = asks * reduce(ns.maximum, scores) / tau
    spread = ns.sqrt(copies * total([op**2 for op in values]))
    added = row + merger.length(output.bias, output.block)
    if layer.v_bias:
        offsets = [weights.vector("b_V", layer.block, head)[0] for head in own]
        added = added + ns.sqrt(copies * total([size**2 for size in offsets])) * merger.norms(output).op
    for kind, block, name, most in (
        ("token_scores", None, "sup", token * query),
        ("position_scores", None, "sup", position * query),
        ("token_values", None, "heads", token * spread),
        ("position_values", None, "heads", position * spread),
        (FIRST_ROW, output.block, "op", added),
    ):  # what follows of the norm, or its own budget if that is less; and |W|_F where it is given
        key = setting.norms.place(kind, block)
        budget = Budget() if key is None else setting.norms.budgets[key]
        limits = [value for value in (getattr(budget, name), upper_float(most)) if value is not None]
        merger.budgets[place_named(kind, block)] = replace(budget, **{name: min(limits)})
    return merger.result((parts.lookup, Pool("cls"), replace(output, bias=FIRST_ROW), *parts.rest))


def split_readout(setting: Setting) -> Setting | None:
    """A6 at the end: (x + h A + a) R + r = x R + h (A R) + (a R + r); None where the network does not end so."""
    parts = ending(setting.architecture.stages)
    if parts is None:
        return None
    merger, last, readout = _Merger(setting), parts.last, parts.readout
    own = [(kind, layer.block) for layer in (last, readout) for kind in (layer.kind, layer.bias) if kind is not None]
    if any(merger.uses[at] > 1 for at in own):
        return None
    a, r = merger.norms(last), merger.norms(readout)
    norms, key = product(INTERVAL, a, r), setting.norms.place(parts.kind, last.block)
    own_norms = None if key is None else matrix_norms(INTERVAL, setting.norms.budgets[key], last.d_in, readout.d_out)
    if own_norms is not None:
        names = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")
        sizes = (INTERVAL.minimum(getattr(norms, name), getattr(own_norms, name)) for name in names)
        norms = MatrixNorms(**dict(zip(names, sizes, strict=True)), rank=min(norms.rank, own_norms.rank))
    merger.put(parts.kind, last.block, norms)
    bias = readout.bias
    if last.bias is not None:
        bias = bias or "b_readout"
        moved = merger.length(last.bias, last.block) * r.op + merger.length(readout.bias, readout.block)
        merger.put(bias, readout.block, moved)
    through: tuple[Layer, ...] = (*parts.inside, Linear(parts.kind, last.d_in, readout.d_out, block=last.block))
    if parts.hidden is not None and readout.d_out == 1:
        first, function = parts.hidden
        own_names = {"first": first.kind, "bias": first.bias, "block": first.block}
        unit = Hidden(**own_names, last=parts.kind, d=first.d_in, d_ff=first.d_out, activation=function.name)
        through = (*parts.inside[:-2], unit)
    beside = Residual(through, ((replace(readout, bias=bias),),), skip=False)
    return merger.result((*parts.before, beside, *parts.pools))
