"""A6 and A7: linear maps with nothing between them that acts are one map, and heads that read one row look up tables.

The class of a setting lies in a class with fewer maps, whose covers serve it. Between two maps there is nothing, the
identity, a pooling, or a projection that cannot act because its radius is at least that of its rows: then the functions
are equal, whatever approximate networks do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float
from boundcalc.base.numbers import Number
from boundcalc.layers.base import weights_of
from boundcalc.layers.facts import Context, MatrixNorms
from boundcalc.layers.merged import FIRST_ROW, beginning, ending, products_of
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Budget,
    Hidden,
    Layer,
    Linear,
    Pool,
    Residual,
    Setting,
)
from boundcalc.setting.norms import place_named, place_of
from boundcalc.setting.setting import lookups
from boundcalc.statements.network import Visit, walk
from boundcalc.statements.weights import Weights, matrix_norms, product


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
    """The setting with its linear maps merged where that helps; None where no maps meet, or layers share weights."""
    a = setting.architecture
    kinds = Counter(part.kind for weight in weights_of(a.stages, a.seq_len) for part in weight.all)
    places = {(part.kind, part.block) for weight in weights_of(a.stages, a.seq_len) for part in weight.all}
    if sum(kinds.values()) > len(places) or any(kinds[kind] > 1 for kind, block in places if block is None):
        return None
    plain = not any(layer.branches for layer in a.stages)
    larger = setting
    for step in (_merge_consecutive,) if plain else (look_up, _split_readout):
        larger = step(larger) or larger
    referred = any(budget.distance is not None for budget in setting.norms.budgets.values())
    return None if larger is setting else Merged(larger, plain and not referred)


class _Merger:
    """The budgets of one setting in intervals, and those of products that are made of it."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.weights = setting, Weights(INTERVAL, setting.norms)
        self.budgets: dict[str, Budget] = {}

    def heads(self, layer: Attention) -> Sequence[int | None]:
        """The heads with budgets of their own, or one for all."""
        return range(layer.heads) if self.setting.norms.headed else (None,)

    def norms(self, layer: Linear) -> MatrixNorms:
        """Of the matrix of a linear map."""
        return self.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out).whole

    def offset(self, layer: Layer, head: int | None = None) -> Number:
        """The length of what a layer adds; 0 where it adds nothing."""
        added = (self.weights.read(weight, head)[0] for weight in layer.weights(1) if weight.role == "vector")
        return sum(added, start=INTERVAL.number(0))

    def put(self, kind: str, block: int | None, size: MatrixNorms, head: int | None = None) -> None:
        """Set the budget of a product in the larger class, rounded up and in order."""
        op = upper_float(size.op)
        fro = max(op, upper_float(size.fro))
        two_one, two_one_t, nuclear = (max(fro, upper_float(x)) for x in (size.two_one, size.two_one_t, size.nuclear))
        budget = Budget(op, fro, two_one, two_one_t, nuclear=nuclear, rank=size.rank)
        self.budgets[place_named(kind, block, head)] = budget

    def result(self, *layers: Layer) -> Setting:
        """The setting of other layers, with what was made and all of the rest that is still read."""
        a, norms, places = self.setting.architecture, self.setting.norms, {place_of(key)[:2] for key in self.budgets}
        kept = {key: budget for key, budget in norms.budgets.items() if place_of(key)[:2] not in places}
        norms = replace(norms, budgets=kept | self.budgets)
        read = {key for _, key in lookups(norms, list(weights_of(layers, a.seq_len)))}
        read |= {norms.place(weight.kind, weight.block) for weight in products_of(layers, a.seq_len)}
        norms = replace(norms, budgets={key: budget for key, budget in norms.budgets.items() if key in read})
        fields = {"seq_len": a.seq_len, "classes": a.classes, "input_radius": a.input_radius}
        return Setting(Architecture(layers=layers, **fields), norms, self.setting.sample)


def _merge_consecutive(setting: Setting) -> Setting | None:
    """A6: maps without offsets that follow each other are one, and heads take in the map before them.

    Where that has fewer numbers, in networks without branches.
    """
    merger, a = _Merger(setting), setting.architecture
    layers: list[Layer] = []
    before: tuple[int, Linear, MatrixNorms] | None = None  # the last map, behind which nothing acts
    for visit in walk(a.stages, Context(merger.weights, INTERVAL.number(a.input_radius), 1, a.seq_len))[0]:
        assert isinstance(visit, Visit)  # noqa: S101 - there are no branches
        layer = visit.layer
        if _does_nothing(layer, visit.at.radius):
            layers.append(layer)
            continue
        plain = layer if isinstance(layer, Linear) and layer.bias is None else None
        norms = None if plain is None else merger.norms(plain)
        if before is not None:
            index, first, left = before
            pools = [other for other in layers[index:] if isinstance(other, Pool)]
            if plain and norms and first.d_in * plain.d_out < first.d_out * (first.d_in + plain.d_out):
                norms = product(INTERVAL, left, norms)
                merger.put(plain.kind, plain.block, norms)
                layer = plain = replace(plain, d_in=first.d_in)
                layers[index:] = pools
            elif isinstance(layer, Attention) and not pools and _can_read(setting, first, layer):
                layer = _into_heads(merger, first, left, layer)
                del layers[index:]
        before = None if plain is None or norms is None else (len(layers), plain, norms)
        layers.append(layer)
    return merger.result(*layers) if merger.budgets else None


def _does_nothing(layer: Layer, radius: Number) -> bool:
    """Whether a layer keeps rows no longer than so: they are picked, averaged, or left as they are."""
    short = isinstance(layer, Ball) and certainly_le(radius, INTERVAL.number(layer.radius))
    return isinstance(layer, Pool) or layer == Activation("identity") or short


def _into_heads(merger: _Merger, first: Linear, a: MatrixNorms, layer: Attention) -> Attention:
    """Heads on hA as heads on h: their scores are A W_QK A', their values A W_V."""
    turned = replace(a, two_one=a.two_one_t, two_one_t=a.two_one)
    for head in merger.heads(layer):
        score = merger.weights.scores(layer.scores, head, layer.d_head).whole
        value = merger.weights.matrix("W_V", layer.block, head, layer.d, layer.out).whole
        merger.put("W_QK", layer.block, product(INTERVAL, product(INTERVAL, a, score), turned), head)
        merger.put("W_V", layer.block, product(INTERVAL, a, value), head)
    return replace(layer, d=first.d_in, d_value=layer.out)


def _can_read(setting: Setting, first: Linear, layer: Attention) -> bool:
    """Whether heads have one score matrix each and no offsets, and products with the map before have fewer numbers."""
    if layer.qk != "joint" or layer.qk_bias or layer.v_bias:
        return False
    factors = {factor.kind for factor in layer.scores.factors}
    if factors & {place_of(key)[0] for key in setting.norms.budgets}:
        return False
    d, k = first.d_in, first.d_out

    def numbers(rows: int) -> int:
        """The norms of the heads' matrices on rows of some width; of a product of factors at most theirs."""
        return layer.heads * min(rows * rows, 2 * rows * (layer.d_head or rows)) + layer.groups * rows * layer.out

    return numbers(d) < numbers(k) + d * k


def look_up(setting: Setting) -> Setting | None:
    """A7: the class in which the first attention looks up scores and values; None where there is no such attention."""
    parts = beginning(setting.architecture.stages)
    if parts is None:
        return None
    merger, ns, layer, output = _Merger(setting), INTERVAL, parts.attention, parts.output
    weights, own = merger.weights, merger.heads(layer)
    copies = ns.number(layer.heads // len(own))
    token, position = (weights.read(table)[0] for table in parts.embedding.weights(setting.architecture.seq_len))
    row = token + position
    scores = [weights.scores(layer.scores, head, layer.d_head).whole.op for head in own]
    values = [weights.matrix("W_V", layer.block, head, layer.d, layer.out).whole.op for head in own]
    offsets = [merger.offset(layer, head) for head in own]
    asks = ns.sqrt(row**2 + 1) if layer.qk_bias else row
    tau = ns.number(1.0 if layer.normaliser.temperature is None else layer.normaliser.temperature)
    query = asks * reduce(ns.maximum, scores) / tau
    spread, carried = (ns.sqrt(copies * sum(size**2 for size in sizes)) for sizes in (values, offsets))
    added = row + merger.offset(output) + carried * merger.norms(output).op
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
    return merger.result(parts.lookup, Pool("cls"), replace(output, bias=FIRST_ROW), *parts.rest)


def _split_readout(setting: Setting) -> Setting | None:
    """A6 at the end: (x + h A + a) R + r = x R + h (A R) + (a R + r); None where the network does not end so."""
    parts = ending(setting.architecture.stages)
    if parts is None:
        return None
    merger, last, readout = _Merger(setting), parts.last, parts.readout
    a, r = merger.norms(last), merger.norms(readout)
    norms, key = product(INTERVAL, a, r), setting.norms.place(parts.kind, last.block)
    own = None if key is None else matrix_norms(INTERVAL, setting.norms.budgets[key], last.d_in, readout.d_out)
    if own is not None:
        names = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")
        sizes = (INTERVAL.minimum(getattr(norms, name), getattr(own, name)) for name in names)
        norms = MatrixNorms(**dict(zip(names, sizes, strict=True)), rank=min(norms.rank, own.rank))
    merger.put(parts.kind, last.block, norms)
    bias = readout.bias
    if last.bias is not None:
        bias = bias or "b_readout"
        moved = merger.offset(last) * r.op + merger.offset(readout)
        merger.budgets[place_named(bias, readout.block)] = Budget(op=upper_float(moved))
    through: tuple[Layer, ...] = (*parts.inside, Linear(parts.kind, last.d_in, readout.d_out, block=last.block))
    if parts.hidden is not None and readout.d_out == 1:
        first, function = parts.hidden
        own_names = {"first": first.kind, "bias": first.bias, "block": first.block}
        unit = Hidden(**own_names, last=parts.kind, d=first.d_in, d_ff=first.d_out, activation=function.name)
        through = (*parts.inside[:-2], unit)
    beside = Residual(through, ((replace(readout, bias=bias),),), skip=False)
    return merger.result(*parts.before, beside, *parts.pools)
