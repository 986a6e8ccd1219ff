"""Layers that stand for several joined ones, in 50 digits: A7 and V4."""

from dataclasses import replace

from .covers import LEAST, Sizes, View, nuclear_of, single
from .layers import Layer
from .numbers import MP, Real, demand, num
from .rules import SLOPES
from .walk import Walk

BENDS = {"identity": "0", "silu": "0.5", "quick_gelu": "0.851", "tanh": "0.76981", "gelu": "0.79789"}


def lookup(walk: Walk, layer: Layer, _: int) -> None:
    """A7, S5."""

    def known(kind: str, name: str, d: int, k: int) -> tuple[Real, Sizes]:
        budget = walk.limit(kind)
        given = [x for x in (getattr(budget, name), budget.fro) if x is not None]
        demand(given, f"{kind} has no budget of its own norm")
        most = num(given[0] or LEAST)
        whole = MP.sqrt(d * k if name == "sup" else d) * most
        whole = whole if budget.fro is None else min(whole, num(budget.fro or LEAST))
        low = min(d, k)
        nuclear = min(MP.sqrt(low) * whole, nuclear_of(budget, whole, low))
        columns, rows = MP.sqrt(k) * whole, MP.sqrt(d) * whole
        return most, Sizes(d, k, whole, whole, columns, rows, MP.sqrt(d) * columns, nuclear, low)

    sides = {"token": layer.vocabulary, "position": walk.seq_len}
    width = layer.heads * layer.d_value
    values = {side: known(f"{side}_values", "row", rows, width) for side, rows in sides.items()}
    walk.radius = values["token"][0] + values["position"][0]
    for side, rows in sides.items():
        most, sizes = known(f"{side}_scores", "sup", rows, layer.heads)
        ways = [single("gain", rows * layer.heads, most), View("numbers", num(1), 0, sizes, 1)]
        walk.error += walk.piece(f"{side}_scores", None, [(1, ways)], walk.radius, 2 * walk.radius, bends=True)
    for side, rows in sides.items():
        sizes = values[side][1]
        ways = [single("vector", rows * width, sizes.fro), View("pooled", num(1), 1, sizes)]
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
    """V4: e = L|v| s (t + 1/(2L) + [kinks] + bends s) with s the noise in one unit, for s up to where the last is `room`."""
    k, kinks = num(layer.d_ff), num(0)
    if layer.activation == "relu":
        kinks, curved = MP.sqrt(k) / (MP.sqrt(2 * MP.pi) * slope), num(0)
    elif layer.activation in BENDS:
        curved = num(BENDS[layer.activation]) * MP.sqrt(k) / 2
    else:
        return []
    bends = (curved + k / (2 * inner)) / slope
    found: list[View] = []
    for room in (0.3, 0.6, 1.2, 2.4):
        found.append(replace(row, kind="summed", extra=1 / (2 * slope) + kinks + num(room), most=num(room) / bends))
    return found
