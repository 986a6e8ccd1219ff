"""A7 and the end of A6: networks whose first attention looks things up, and whose read-out meets what a residual adds.

Both say that a network is a member of a class with fewer numbers, whose covers serve it. Budgets of that class follow
from those of the factors; budgets given for the products themselves, which may be far smaller, are taken beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.system import Number
from boundcalc.setting import Architecture, Budget, Hidden, Layer, Linear, Pool, Residual, Setting
from boundcalc.setting.accounting import lookups
from boundcalc.setting.layer import weights_of
from boundcalc.setting.norms import place_named
from boundcalc.setting.products import FIRST_ROW, Beginning, Ending, beginning, ending, products_of
from boundcalc.statements.product_norms import budget_of, product
from boundcalc.statements.slots import total
from boundcalc.statements.targets import MatrixNorms, matrix_norms
from boundcalc.statements.weights import Weights

_SIZES = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")


def looked_up(setting: Setting) -> Setting | None:
    """A7: the class in which the first attention looks its scores and values up; None where there is no such attention."""
    found = beginning(setting.architecture.stages)
    if found is None:
        return None
    output = replace(found.output, bias=FIRST_ROW)
    return changed(setting, (found.lookup, Pool("cls"), output, *found.rest), _tables(setting, found))


def _tables(setting: Setting, found: Beginning) -> Mapping[str, Budget]:
    """The budgets of the tables, and of the row that is added to what they make."""
    ns, weights, layer = INTERVAL, Weights(INTERVAL, setting.norms), found.attention
    token, position = weights.row("embedding")[0], weights.row("positions")[0]
    radius = token + position
    heads = range(layer.heads) if setting.norms.headed else (None,)
    copies = ns.number(1 if setting.norms.headed else layer.heads)
    reach = ns.sqrt(radius**2 + 1) if layer.qk_bias else radius
    tau = ns.number(1.0 if layer.normaliser.temperature is None else layer.normaliser.temperature)
    scores = [weights.scores(layer.scores, head, layer.d_head).whole.op for head in heads]
    values = [weights.matrix("W_V", layer.block, head, layer.d, layer.out).whole.op for head in heads]
    query = reach * (ns.maximum(*scores) if len(scores) > 1 else scores[0]) / tau
    spread = ns.sqrt(copies * total([op**2 for op in values]))
    offset = radius
    if layer.v_bias:
        offsets = [weights.vector("b_V", layer.block, head)[0] for head in heads]
        w_o = weights.matrix(found.output.kind, found.output.block, None, found.output.d_in, found.output.d_out)
        offset = offset + ns.sqrt(copies * total([size**2 for size in offsets])) * w_o.whole.op
    if found.output.bias is not None:
        offset = offset + weights.vector(found.output.bias, found.output.block)[0]
    sizes = {
        "token_scores": ("sup", token * query),
        "position_scores": ("sup", position * query),
        "token_values": ("heads", token * spread),
        "position_values": ("heads", position * spread),
        FIRST_ROW: ("op", offset),
    }
    made: dict[str, Budget] = {}
    for kind, (name, most) in sizes.items():
        block = found.output.block if kind == FIRST_ROW else None
        made[place_named(kind, block)] = _least(setting, kind, block, name, most)
    return made


def _least(setting: Setting, kind: str, block: int | None, name: str, most: Number) -> Budget:
    """What follows of the norm `name` of a product, or what is given of it if that is less; and |W|_F if that is given."""
    key = setting.norms.place(kind, block)
    given = Budget() if key is None else setting.norms.budgets[key]
    limits = [value for value in (getattr(given, name), upper_float(most)) if value is not None]
    return replace(given, **{name: min(limits)})


def read_out(setting: Setting) -> Setting | None:
    """A6 at the end: (x + h A + a) R + r = x R + h (A R) + (a R + r); None where the network does not end so."""
    found = ending(setting.architecture.stages)
    if found is None or not _alone(setting, found):
        return None
    return changed(setting, _apart(found), _end(setting, found))


def _apart(found: Ending) -> tuple[Layer, ...]:
    last, readout = found.last, found.readout
    bias = None if last.bias is None and readout.bias is None else readout.bias or "b_readout"
    through: tuple[Layer, ...] = (*found.inside, Linear(found.kind, last.d_in, readout.d_out, block=last.block))
    match found.inside:
        case (*before, inner, outer) if readout.d_out == 1:
            first, function = inner.as_map(), outer.entrywise
            if first is not None and function is not None and first.block == last.block:
                one = Hidden(first.kind, found.kind, first.d_in, first.d_out, function, first.bias, first.block)
                through = (*before, one)
        case _:
            pass
    sum_of_both = Residual(through, ((replace(readout, bias=bias),),), skip=False)
    return (*found.before, sum_of_both, *found.pools)


def _end(setting: Setting, found: Ending) -> Mapping[str, Budget]:
    last, readout = found.last, found.readout
    weights = Weights(INTERVAL, setting.norms)
    a = weights.matrix(last.kind, last.block, None, last.d_in, last.d_out).whole
    r = weights.matrix(readout.kind, readout.block, None, readout.d_in, readout.d_out).whole
    key = setting.norms.place(found.kind, last.block)
    norms = product(INTERVAL, a, r)
    if key is not None:
        given = matrix_norms(INTERVAL, setting.norms.budgets[key], last.d_in, readout.d_out)
        if given is not None:
            norms = _smaller(norms, given)
    made = {place_named(found.kind, last.block): budget_of(norms)}
    if last.bias is not None:
        offset = weights.vector(last.bias, last.block)[0] * r.op
        if readout.bias is not None:
            offset = offset + weights.vector(readout.bias, readout.block)[0]
        made[place_named(readout.bias or "b_readout", readout.block)] = Budget(op=upper_float(offset))
    return made


def _smaller(a: MatrixNorms, b: MatrixNorms) -> MatrixNorms:
    """Each norm by the less of two bounds."""

    def least(name: str) -> Number:
        return INTERVAL.minimum(getattr(a, name), getattr(b, name))

    op, fro, columns, rows, entries, nuclear = map(least, _SIZES)
    return MatrixNorms(op, fro, columns, rows, entries, nuclear, min(a.rank, b.rank))


def _alone(setting: Setting, found: Ending) -> bool:
    """Whether the matrices that change are of one layer each."""
    given = setting.architecture
    places = Counter((w.kind, w.block) for weight in weights_of(given.stages, given.seq_len) for w in weight.all)
    mine = [(found.last.kind, found.last.block), (found.readout.kind, found.readout.block)]
    mine += [(layer.bias, layer.block) for layer in (found.last, found.readout) if layer.bias is not None]
    return all(places[place] == 1 for place in mine)


def changed(setting: Setting, layers: Sequence[Layer], made: Mapping[str, Budget]) -> Setting:
    """The setting of other layers, with new budgets beside those that are still read."""
    given = setting.architecture
    architecture = Architecture(
        seq_len=given.seq_len, classes=given.classes, input_radius=given.input_radius, layers=tuple(layers)
    )
    kept = {key: budget for key, budget in setting.norms.budgets.items() if key not in made}
    norms = replace(setting.norms, budgets={**kept, **made})
    weights = list(weights_of(layers, given.seq_len))
    read = {key for _, key in lookups(norms, weights)}
    later = (norms.place(each.kind, each.block) for each in products_of(layers, given.seq_len))
    read |= {key for key in later if key is not None}
    norms = replace(norms, budgets={key: budget for key, budget in norms.budgets.items() if key in read})
    return Setting(architecture, norms, setting.sample)
