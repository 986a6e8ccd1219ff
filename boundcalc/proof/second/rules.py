"""L3-L6, L9, L12, L15, T8-T10 in 50 digits: radius, error and pieces of every layer but attention."""

from typing import Any

from .covers import Sizes, View
from .covers import single as one
from .layers import Layer
from .numbers import MP, Real, demand, num
from .walk import Walk

SLOPES = {"relu": "1", "tanh": "1", "identity": "1", "gelu": "1.12891", "gelu_tanh": "1.12900"}
SLOPES |= {"silu": "1.09984", "mish": "1.08850", "quick_gelu": "1.09984"}


def linear(walk: Walk, layer: Layer, rows: int) -> None:
    """L6, T8."""
    whole, covered = walk.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)
    size, apart = walk.offset(layer.bias, layer.block)
    walk.error *= whole.op
    walk.cover(layer.kind, layer.block, View("map", walk.radius, rows, covered))
    walk.shift(layer.bias, layer.block, layer.d_out, apart)
    walk.radius = walk.radius * whole.op + size


def activation(walk: Walk, layer: Layer, rows: int) -> None:
    """L3."""
    walk.error *= num(SLOPES[layer.name])


def ball(walk: Walk, layer: Layer, rows: int) -> None:
    """L4."""
    walk.radius = min(walk.radius, num(layer.radius))


def softcap(walk: Walk, layer: Layer, rows: int) -> None:
    """L12."""
    walk.radius = min(walk.radius, num(layer.cap) * MP.sqrt(layer.d))


def pool(walk: Walk, layer: Layer, rows: int) -> None:
    """A row that is selected, or the mean of all, is no longer and errs no more."""


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


def experts(walk: Walk, layer: Layer, rows: int) -> None:
    """L15."""
    b, slope, block, n = walk.radius, num(SLOPES[layer.activation]), layer.block, layer.experts
    gate, near = walk.matrix("W_gate", block, None, layer.d, n)
    (w1, v1), (w3, v3) = (walk.matrix(kind, block, None, layer.d, layer.d_ff) for kind in ("W_1", "W_3"))
    w2, v2 = walk.matrix("W_2", block, None, layer.d_ff, layer.d)
    inner = b**2 * w1.op * w3.op
    most, c = inner * w2.op, 1 / MP.sqrt(2)
    walk.error *= b * w1.op * w3.op * w2.op * (1 + slope) + c * most * gate.op
    walk.cover("W_gate", block, View("map", b, rows, near), c * most, cap=2 * most)
    walk.cover("W_1", block, View("map", b, rows, v1), slope * b * w3.op * w2.op, n)
    walk.cover("W_3", block, View("map", b, rows, v3), b * w1.op * w2.op, n)
    walk.cover("W_2", block, View("map", inner, rows, v2), 1, n)
    walk.radius = most


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
