"""A7, and A6 where a residual meets the read-out, in 50 digits."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.proof.second.covers import Sizes
from boundcalc.proof.second.network import Walk
from boundcalc.proof.second.numbers import MP, Real, grown, num
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Budget,
    Embedding,
    Experts,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Pool,
    Residual,
    Setting,
    SoftCap,
)
from boundcalc.setting.layer import flat, weights_of

_ROW_BY_ROW = (Activation, Ball, Experts, GatedFeedForward, LayerNorm, Linear, Residual, SoftCap)
_TABLES = ("token_scores", "position_scores", "token_values", "position_values")


def looked_up(setting: Setting) -> Setting:
    """The class with tables for the first attention's scores and values, where its row has no data; else the same."""
    stages = setting.architecture.stages
    first = stages[0]
    part = stages[1] if len(stages) > 1 else None
    rest = stages[2:]
    if not isinstance(first, Embedding) or not isinstance(part, Residual) or len(part.branch) != 2:
        return setting
    heads, output = part.branch
    if not isinstance(heads, Attention) or not isinstance(output, Linear) or part.beside or not part.skip:
        return setting
    changed = (
        heads.qk != "joint",
        heads.causal,
        heads.combine != "concat",
        heads.offsets != "none",
        heads.cap,
        heads.qk_eps,
    )
    if any(changed) or heads.kv_heads not in (None, heads.heads) or heads.normaliser.name != "softmax":
        return setting
    if first.own_row is None or first.positions != "learned" or first.segments or first.vocabulary < 1:
        return setting
    others = [layer for layer in flat(rest) if not isinstance(layer, _ROW_BY_ROW)]
    if others != [Pool("cls")] or others[0] not in rest:
        return setting
    walk = Walk(setting, None, 1)
    words, places = (walk.vector(("row", "op", "fro", "two_one"), kind)[0] for kind in ("embedding", "positions"))
    query, value, carried = num(0), num(0), num(0)
    for head in range(heads.heads):  # one by one, alike or not
        scores = _score_norm(walk, heads, head)
        query = max(query, scores)
        value += walk.matrix("W_V", heads.block, head, heads.d, heads.out)[0].op ** 2
        if heads.v_bias:
            carried += walk.offset("b_V", heads.block, head)[0] ** 2
    row = words + places
    query *= MP.sqrt(row**2 + (1 if heads.qk_bias else 0)) / num(heads.normaliser.temperature or 1)
    added = row + MP.sqrt(carried) * walk.matrix(output.kind, output.block, None, output.d_in, output.d_out)[0].op
    if output.bias is not None:
        added += walk.offset(output.bias, output.block)[0]
    spread = MP.sqrt(value)
    limits = dict(zip(_TABLES, (words * query, places * query, words * spread, places * spread), strict=True))
    made = {kind: _least(walk, kind, None, "sup" if "scores" in kind else "row", size) for kind, size in limits.items()}
    made[_at("first_row", output.block)] = _least(walk, "first_row", output.block, "op", added)
    lookup = Lookup(first.vocabulary, heads.heads, heads.out)
    return _other(setting, (lookup, Pool("cls"), replace(output, bias="first_row"), *rest), made)


def _score_norm(walk: Walk, heads: Attention, head: int) -> Real:
    """Spectral norm of a head's score matrix, an offset of its queries being one more row."""
    extra = 1 if heads.qk_bias else 0
    if walk.budget("W_Q", heads.block, head) is None and walk.budget("W_K", heads.block, head) is None:
        return walk.matrix("W_QK", heads.block, head, heads.d + extra, heads.d, heads.d_head)[0].op
    width = heads.d_head or heads.d
    q = walk.matrix("W_Q", heads.block, head, heads.d, width)[0].op
    k = walk.matrix("W_K", heads.block, head, heads.d, width)[0].op
    b = walk.offset("b_Q", heads.block, head)[0] if heads.qk_bias else num(0)
    return MP.sqrt(q**2 + b**2) * k


def _least(walk: Walk, kind: str, block: int | None, name: str, size: Real) -> Budget:
    given = walk.budget(kind, block) or Budget()
    own = getattr(given, name)
    most = grown(size)
    return replace(given, **{name: most if own is None else min(own, most)})


def _at(kind: str, block: int | None) -> str:
    return kind if block is None else f"{kind}[{block}]"


def read_out(setting: Setting) -> Setting:
    """(x + hA + a)R + r as xR + h(AR) + (aR + r), where the network ends so; else the same."""
    stages = list(setting.architecture.stages)
    readout = stages.pop()
    pools: list[Layer] = []
    while stages and isinstance(stages[-1], Pool):
        pools.append(stages.pop())
    part = stages.pop() if stages else None
    if not isinstance(readout, Linear) or not isinstance(part, Residual) or not part.skip or part.beside:
        return setting
    last = part.branch[-1] if part.branch else None
    if not isinstance(last, Linear) or last.d_out < 2 * readout.d_out:
        return setting
    uses = [(w.kind, w.block) for each in weights_of(setting.architecture.stages, 1) for w in each.all]
    own = [(layer.kind, layer.block) for layer in (last, readout)]
    own += [(layer.bias, layer.block) for layer in (last, readout) if layer.bias is not None]
    if any(uses.count(place) > 1 for place in own):
        return setting
    walk = Walk(setting, None, 1)
    a = walk.matrix(last.kind, last.block, None, last.d_in, last.d_out)[0]
    r = walk.matrix(readout.kind, readout.block, None, readout.d_in, readout.d_out)[0]
    kind = f"{last.kind}_to_readout"
    made = {_at(kind, last.block): _product(walk, kind, last, readout, a, r)}
    name = readout.bias
    if last.bias is not None:
        name = readout.bias or "b_readout"
        constant = walk.offset(last.bias, last.block)[0] * r.op
        constant += num(0) if readout.bias is None else walk.offset(readout.bias, readout.block)[0]
        made[_at(name, readout.block)] = Budget(op=grown(constant))
    inside = list(part.branch[:-1])
    match inside[-2:]:
        case [Linear() as first, Activation() as act] if readout.d_out == 1 and first.block == last.block:
            one = Hidden(first.kind, kind, first.d_in, first.d_out, act.name, first.bias, first.block)
            inside = [*inside[:-2], one]
        case _:
            inside.append(Linear(kind, last.d_in, readout.d_out, block=last.block))
    both = Residual(tuple(inside), ((replace(readout, bias=name),),), skip=False)
    return _other(setting, (*stages, both, *reversed(pools)), made)


def _product(walk: Walk, kind: str, last: Linear, readout: Linear, a: Sizes, r: Sizes) -> Budget:
    """What follows of AR, and what is given of it."""
    limits = {
        "op": a.op * r.op,
        "fro": min(a.op * r.fro, a.fro * r.op),
        "two_one": a.op * r.two_one,
        "two_one_t": a.two_one_t * r.op,
        "nuclear": min(a.op * r.nuclear, a.nuclear * r.op, a.fro * r.fro),
    }
    rank = min(a.rank, r.rank)
    given = walk.budget(kind, last.block)
    if given is not None:
        sizes = Sizes.of(given, last.d_in, readout.d_out)
        limits = {name: min(size, getattr(sizes, name)) for name, size in limits.items()}
        rank = min(rank, sizes.rank)
    op = grown(limits["op"])
    fro = max(op, grown(limits["fro"]))
    columns, rows, nuclear = (max(fro, grown(limits[name])) for name in ("two_one", "two_one_t", "nuclear"))
    return Budget(op, fro, columns, rows, rank=rank, schatten=(1.0, nuclear))


def _other(setting: Setting, stages: tuple[Layer, ...], made: dict[str, Budget]) -> Setting:
    """The setting of other layers: what was made, and of what was given all that is still there."""
    given, norms = setting.architecture, setting.norms
    larger = Architecture(seq_len=given.seq_len, classes=given.classes, input_radius=given.input_radius, layers=stages)
    kinds = {(w.kind, w.block) for each in weights_of(stages, given.seq_len) for w in each.all}
    kinds |= {(f"{layer.kind}_to_readout", layer.block) for layer in flat(stages) if isinstance(layer, Linear)}
    own = {key.partition("[")[0] for key in made}
    kept: dict[str, Budget] = {}
    for key, budget in norms.budgets.items():
        kind, _, place = key.partition("[")
        block = int(place.partition(",")[0].rstrip("]")) if place else None
        there = any(other == kind and block in (None, number) for other, number in kinds)
        if there and kind not in own:
            kept[key] = budget
    return Setting(larger, replace(norms, budgets={**kept, **made}), setting.sample)
