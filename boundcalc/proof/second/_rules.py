"""L3-L6, L9, L12, T8-T10, A7 and V4 in 50 digits: the walk through a network, layer by layer."""

from collections.abc import Sequence
from typing import Any

from ._attention import attention
from ._covers import LEAST, Sizes, View
from ._covers import single as one
from ._layers import Layer, rows_read
from ._numbers import MP, Real, demand, num
from ._setting import Setting
from ._walk import Walk

SLOPES = {"relu": "1", "tanh": "1", "identity": "1", "gelu": "1.12891", "gelu_tanh": "1.12900"}
SLOPES |= {"silu": "1.09984", "quick_gelu": "1.09984"}
BENDS = {"identity": "0", "silu": "0.5", "quick_gelu": "0.851", "tanh": "0.76981", "gelu": "0.79789"}


def linear(walk: Walk, layer: Layer, rows: int) -> None:
    """L6, T8."""
    whole, covered = walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)
    size, apart = walk.offset(layer.bias, layer.block)
    walk.error *= whole.op
    walk.cover(layer.kind, layer.block, View("map", walk.radius, rows, covered))
    walk.shift(layer.bias, layer.block, layer.d_out, apart)
    walk.radius = walk.radius * whole.op + size


def plain(walk: Walk, layer: Layer, rows: int) -> None:
    """L3, L4, L12; a row that is selected, or the mean of all, is no longer and errs no more."""
    match layer.label:
        case "activation":
            walk.error *= num(SLOPES[layer.name])
        case "ball":
            walk.radius = min(walk.radius, num(layer.radius))
        case "softcap":
            walk.radius = min(walk.radius, num(layer.cap) * MP.sqrt(layer.d))


def layernorm(walk: Walk, layer: Layer, rows: int) -> None:
    """L5, T9."""
    b, d, e, floor, block = walk.radius, num(layer.d), num(layer.eps), num(layer.variance_floor), layer.block
    most = num(0) if layer.centred and layer.d == 1 else b**2 / d  # of the variance of a row no longer than b
    demand(floor * (1 - num("1e-9")) <= most or floor == 0, f"no network has such a variance before {layer.kind}")
    reach = MP.sqrt(d) * b / MP.sqrt(b**2 + d * e)
    largest, apart, gain = num(1), num(0), f"{layer.kind}.gain"
    if layer.gain:
        largest, apart = walk.vector(("sup",), gain, block)
        largest += 1 if layer.around_one else 0
    offset = f"{layer.kind}.offset" if layer.offset else None
    size, near = walk.offset(offset, block)
    walk.error *= largest / MP.sqrt(floor + e)
    if layer.gain:
        walk.cover(gain, block, one("gain", layer.d, apart, reach))
    walk.shift(offset, block, layer.d, near)
    walk.radius = largest * reach + size


def gated(walk: Walk, layer: Layer, rows: int) -> None:
    """L9."""
    b, slope, block, d, hidden = walk.radius, num(SLOPES[layer.activation]), layer.block, layer.d, layer.d_ff
    (w1, v1), (w3, v3) = (walk.matrix(kind, block, None, d, hidden) for kind in ("W_1", "W_3"))
    w2, v2 = walk.matrix("W_2", block, None, hidden, d)
    named = ("b_1", "b_3", "b_2") if layer.bias else (None, None, None)
    b1, b3, b2 = (walk.offset(kind, block) for kind in named)
    left, right = b * w1.op + b1[0], b * w3.op + b3[0]
    steep1, steep3 = slope * right * w2.op, left * w2.op
    walk.error *= w2.op * (slope * w1.op * right + left * w3.op)
    walk.cover("W_1", block, View("map", b, rows, v1), steep1)
    walk.cover("W_3", block, View("map", b, rows, v3), steep3)
    walk.cover("W_2", block, View("map", left * right, rows, v2))
    for kind, steep, size, apart in zip(named, (steep1, steep3, 1), (hidden, hidden, d), (b1, b3, b2), strict=True):
        walk.shift(kind, block, size, apart[1], steep)
    walk.radius = left * right * w2.op + b2[0]


def embedding(walk: Walk, layer: Layer, _: int) -> None:
    """T10."""

    def table(kind: str, rows: int) -> Real:
        size, apart = walk.vector(("row", "op", "fro", "two_one"), kind)
        norms = Sizes(rows, layer.d, apart, apart, apart, apart, apart, apart, layer.d)
        views = [View("table", num(1), walk.seq_len, norms, rows)]
        budget: Any = walk.limit(kind)
        part = budget.distance or budget
        if kind == "embedding" and (part.two_one is not None or part.fro is not None):
            covered = walk.matrix(kind, None, None, rows, layer.d)[1]
            views.append(View("map", num(1), walk.seq_len, covered, rows))
        walk.error += walk.piece(kind, None, [(1, views)], num(1))
        return size

    if layer.vocabulary:
        walk.radius = table("embedding", layer.vocabulary)
    if layer.positions == "fixed":
        walk.radius += num(layer.position_radius)
    elif layer.positions == "learned":
        walk.radius += table("positions", walk.seq_len)
    if layer.segments:
        walk.radius += table("segments", layer.segments)


def lookup(walk: Walk, layer: Layer, _: int) -> None:
    """A7, S5."""

    def table_norms(kind: str, name: str, d: int, k: int) -> tuple[Real, Sizes]:
        budget = walk.limit(kind)
        limits = [x for x in (getattr(budget, name), budget.fro) if x is not None]
        demand(limits, f"{kind} has no budget of its own norm")
        most = num(limits[0] or LEAST)
        whole = MP.sqrt(d * k if name == "sup" else d) * most
        whole = whole if budget.fro is None else min(whole, num(budget.fro or LEAST))
        low = min(d, k)
        most_nuclear = MP.inf if budget.nuclear is None else num(budget.nuclear or LEAST)
        nuclear = min(MP.sqrt(low) * whole, most_nuclear)
        columns, rows = MP.sqrt(k) * whole, MP.sqrt(d) * whole
        return most, Sizes(d, k, whole, whole, columns, rows, MP.sqrt(d) * columns, nuclear, low)

    sides = {"token": layer.vocabulary, "position": walk.seq_len}
    width = layer.heads * layer.d_value
    values = {side: table_norms(f"{side}_values", "heads", rows, width) for side, rows in sides.items()}
    walk.radius = values["token"][0] + values["position"][0]
    for side, rows in sides.items():
        most, sizes = table_norms(f"{side}_scores", "sup", rows, layer.heads)
        ways = [one("gain", rows * layer.heads, most), View("numbers", num(1), 0, sizes, 1)]
        walk.error += walk.piece(f"{side}_scores", None, [(1, ways)], walk.radius, 2 * walk.radius, bends=True)
    for side, rows in sides.items():
        sizes = values[side][1]
        ways = [one("vector", rows * width, sizes.fro), View("pooled", num(1), 1, sizes)]
        walk.error += walk.piece(f"{side}_values", None, [(1, ways)], num(1))


def hidden(walk: Walk, layer: Layer, rows: int) -> None:
    """A linear map, an activation and a column."""
    b, slope = walk.radius, num(SLOPES[layer.activation])
    w, near = walk.matrix(layer.first, layer.block, None, layer.d, layer.d_ff)
    v, near_v = walk.matrix(layer.last, layer.block, None, layer.d_ff, 1)
    size, offset = walk.offset(layer.bias, layer.block)
    inner = b * w.op + size
    walk.error *= slope * w.op * v.op
    views = [View("map", b, rows, near), *_summed(layer, slope, View("map", b, rows, near), inner)]
    walk.error += walk.piece(layer.first, layer.block, [(1, views)], slope * v.op)
    walk.shift(layer.bias, layer.block, layer.d_ff, offset, slope * v.op)
    walk.cover(layer.last, layer.block, View("map", inner, rows, near_v))
    walk.radius = inner * v.op


def _summed(layer: Layer, slope: Real, row: View, inner: Real) -> list[View]:
    """V4: e = L|v| s (t + 1/(2L) + [kinks] + bends s) with s the noise in one unit, up to where the last is `room`."""
    k, kinks = num(layer.d_ff), num(0)
    if layer.activation == "relu":
        kinks, curved = MP.sqrt(k) / (MP.sqrt(2 * MP.pi) * slope), num(0)
    elif layer.activation in BENDS:
        curved = num(BENDS[layer.activation]) * MP.sqrt(k) / 2
    else:
        return []
    bends = (curved + k / (2 * inner)) / slope
    views: list[View] = []
    for room in (0.3, 0.6, 1.2, 2.4):
        views.append(row._replace(kind="summed", extra=1 / (2 * slope) + kinks + num(room), most=num(room) / bends))
    return views


_RULES = {rule.__name__: rule for rule in (linear, layernorm, attention, gated, embedding, hidden, lookup)}
_RULES |= dict.fromkeys(("activation", "ball", "softcap", "pool"), plain)


def walk_through(setting: Setting, covers: Any = None, samples: int = 1, **how: Any) -> Walk:
    """Radius, error and log count of a network at one level; without covers its radius alone."""
    walk = Walk(setting, covers, samples, **how)
    _through(walk, setting.stages, 1)
    demand(covers is None or len(covers) == sum(walk.seen.values()), "covers are given for pieces that there are not")
    return walk


def _through(walk: Walk, layers: Sequence[Layer], rows: int) -> None:
    for layer, read in zip(layers, rows_read(layers, rows, walk.seq_len), strict=True):
        walk.at[id(layer)] = max(walk.radius, walk.at.get(id(layer), walk.radius))
        if layer.label != "residual":
            _RULES[layer.label](walk, layer, read)
            continue
        radius, error = walk.radius, walk.error
        sums = (radius, error) if layer.skip else (num(0), num(0))
        for branch in (layer.branch, *layer.beside):
            walk.radius, walk.error = radius, error
            _through(walk, branch, read)
            sums = sums[0] + walk.radius, sums[1] + walk.error
        walk.radius, walk.error = sums
