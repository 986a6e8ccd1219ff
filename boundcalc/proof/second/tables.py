"""A7, and A6 where a residual meets the read-out, in 50 digits."""

from dataclasses import replace

from .covers import Sizes
from .layers import Layer, linear, residual
from .network import walk_through
from .numbers import MP, Real, grown, num
from .products import rounded, times
from .setting import Budget, Setting, kind_and_block, looks_up, placed, reads_out, trained, used
from .walk import Walk

_TABLES = ("token_scores", "position_scores", "token_values", "position_values")


def looked_up(setting: Setting) -> Setting:
    """The class with tables for the first attention's scores and values, where its row has no data; else the same."""
    parts = looks_up(setting.stages)
    if parts is None:
        return setting
    first, heads, output = parts
    walk = walk_through(setting)
    words, places = (walk.vector(("row", "op", "fro", "two_one"), kind)[0] for kind in ("embedding", "positions"))
    query, value, carried = num(0), num(0), num(0)
    for head in range(heads.heads):  # one by one, alike or not
        query = max(query, _score_norm(walk, heads, head))
        value += walk.matrix("W_V", heads.block, head, heads.d, heads.out)[0].op ** 2
        carried += walk.offset("b_V" if heads.v_bias else None, heads.block, head)[0] ** 2
    row = words + places
    query *= MP.sqrt(row**2 + (1 if heads.qk_bias else 0)) / num(heads.normaliser.temperature or 1)
    after, spread = walk.matrix(output.kind, output.block, None, output.d_in, output.d_out)[0], MP.sqrt(value)
    added = row + MP.sqrt(carried) * after.op + walk.offset(output.bias, output.block)[0]
    limits = dict(zip(_TABLES, (words * query, places * query, words * spread, places * spread), strict=True))
    made = {kind: _least(walk, kind, None, "sup" if "scores" in kind else "row", size) for kind, size in limits.items()}
    made[placed("first_row", output.block)] = _least(walk, "first_row", output.block, "op", added)
    lookup = Layer(label="lookup", vocabulary=first.vocabulary, heads=heads.heads, d_value=heads.out)
    pool = Layer(label="pool", how="cls")
    return _other(setting, (lookup, pool, output.but(bias="first_row"), *setting.stages[2:]), made)


def _score_norm(walk: Walk, heads: Layer, head: int) -> Real:
    """Spectral norm of a head's score matrix, an offset of its queries being one more row."""
    extra = 1 if heads.qk_bias else 0
    if walk.budget("W_Q", heads.block, head) is None and walk.budget("W_K", heads.block, head) is None:
        return walk.matrix("W_QK", heads.block, head, heads.d + extra, heads.d, heads.d_head)[0].op
    width = heads.d_head or heads.d
    q = walk.matrix("W_Q", heads.block, head, heads.d, width)[0].op
    k = walk.matrix("W_K", heads.block, head, heads.d, width)[0].op
    b = walk.offset("b_Q" if heads.qk_bias else None, heads.block, head)[0]
    return MP.sqrt(q**2 + b**2) * k


def _least(walk: Walk, kind: str, block: int | None, name: str, size: Real) -> Budget:
    given = walk.budget(kind, block) or Budget()
    own = getattr(given, name)
    most = grown(size)
    return given._replace(**{name: most if own is None else min(own, most)})


def read_out(setting: Setting) -> Setting:
    """(x + hA + a)R + r as xR + h(AR) + (aR + r), where the network ends so; else the same."""
    parts = reads_out(setting.stages)
    if parts is None:
        return setting
    before, part, last, pools, readout = parts
    own = [(name, layer.block) for layer in (last, readout) for name in (layer.kind, layer.bias) if name is not None]
    if any(used(setting)[place] > 1 for place in own):
        return setting
    walk = walk_through(setting)
    a = walk.matrix(last.kind, last.block, None, last.d_in, last.d_out)[0]
    r = walk.matrix(readout.kind, readout.block, None, readout.d_in, readout.d_out)[0]
    kind = f"{last.kind}_to_readout"
    made = {placed(kind, last.block): _product(walk, kind, last, readout, a, r)}
    name = readout.bias
    if last.bias is not None:
        name = readout.bias or "b_readout"
        constant = walk.offset(last.bias, last.block)[0] * r.op + walk.offset(readout.bias, readout.block)[0]
        made[placed(name, readout.block)] = Budget(op=grown(constant))
    inside = list(part.branch[:-1])
    two = [layer.label for layer in inside[-2:]] == ["linear", "activation"] and inside[-2].block == last.block
    if two and readout.d_out == 1:
        first, act = inside[-2:]
        own = {"first": first.kind, "bias": first.bias, "d": first.d_in, "d_ff": first.d_out, "block": first.block}
        inside = [*inside[:-2], Layer(label="hidden", last=kind, activation=act.name, **own)]
    else:
        inside.append(linear(kind, last.d_in, readout.d_out, None, last.block))
    both = residual(inside, [[readout.but(bias=name)]], skip=False)
    return _other(setting, (*before, both, *pools), made)


def _product(walk: Walk, kind: str, last: Layer, readout: Layer, a: Sizes, r: Sizes) -> Budget:
    """What follows of AR, and what is given of it."""
    product, given = times(a, r), walk.budget(kind, last.block)
    if given is not None:
        sizes = Sizes.of(given, last.d_in, readout.d_out)
        names = ("op", "fro", "two_one", "two_one_t", "nuclear", "rank")
        product = replace(product, **{name: min(getattr(product, name), getattr(sizes, name)) for name in names})
    return rounded(product)


def _other(setting: Setting, stages: tuple[Layer, ...], made: dict[str, Budget]) -> Setting:
    """The setting of other layers: what was made, and of what was given all that is still there."""
    there = {(each.kind, each.block) for each in trained(stages)}
    there |= {(f"{kind}_to_readout", block) for kind, block in there}
    own = {kind_and_block(key)[0] for key in made}
    kept: dict[str, Budget] = {}
    for key, budget in setting.norms.budgets.items():
        kind, block = kind_and_block(key)
        if kind not in own and any(other == kind and block in (None, number) for other, number in there):
            kept[key] = budget
    return setting._replace(stages=stages, norms=setting.norms._replace(budgets={**kept, **made}))
