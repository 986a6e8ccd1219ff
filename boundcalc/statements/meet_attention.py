"""A6 where attention reads hA + a: its matrices take A in, and offsets take in a."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Attention
from boundcalc.statements.targets import MatrixNorms
from boundcalc.statements.weights import Weights


def transposed(norms: MatrixNorms) -> MatrixNorms:
    """The norms of W'."""
    return replace(norms, two_one=norms.two_one_t, two_one_t=norms.two_one)


def product(ns: NumberSystem, left: MatrixNorms, right: MatrixNorms) -> MatrixNorms:
    """A6: norms of AB. Columns of AB are A times those of B, its rows B times those of A (L6)."""
    fro = ns.minimum(left.op * right.fro, left.fro * right.op)
    return MatrixNorms(
        op=left.op * right.op,
        fro=fro,
        two_one=left.op * right.two_one,
        two_one_t=left.two_one_t * right.op,
        one_one=left.one_one * right.one_one,
        nuclear=ns.minimum(left.op * right.nuclear, left.nuclear * right.op, left.fro * right.fro),
        rank=min(left.rank, right.rank),
    )


def below(ns: NumberSystem, a: MatrixNorms, row: Number, width: int) -> MatrixNorms:
    """[A; c], a row of length `row` below `width` columns."""
    entries = ns.sqrt(ns.number(width)) * row
    return MatrixNorms(
        op=ns.sqrt(a.op**2 + row**2),
        fro=ns.sqrt(a.fro**2 + row**2),
        two_one=a.two_one + entries,
        two_one_t=a.two_one_t + row,
        one_one=a.one_one + entries,
        nuclear=a.nuclear + row,
        rank=a.rank + 1,
    )


def bordered(ns: NumberSystem, a: MatrixNorms, row: Number | None, width: int) -> MatrixNorms:
    """[A 0; c 1]; c = 0 where no row is given."""
    one = ns.number(1)
    inner = a if row is None else below(ns, a, row, width)
    return MatrixNorms(
        op=ns.maximum(a.op, one) if row is None else ns.sqrt(inner.op**2 + 1),
        fro=ns.sqrt(inner.fro**2 + 1),
        two_one=inner.two_one + 1,
        two_one_t=inner.two_one_t + 1,
        one_one=inner.one_one + 1,
        nuclear=inner.nuclear + 1,
        rank=a.rank + 1,
    )


def meets_attention(layer: Attention, moved: bool) -> bool:
    """Whether attention on hA (+ a, if `moved`) is attention of the same kind on h.

    Where the matrix of scores holds the offsets, what they add must be the same for all keys of a row and drop out.
    """
    if layer.qk == "split" or not (moved or layer.qk_bias):
        return True
    return layer.normaliser.name == "softmax" and layer.cap is None


def numbers_of(layer: Attention, d: int) -> int:
    """How many numbers the heads' matrices have on rows of width d; of a product of factors at most theirs."""
    width = layer.d_head or d
    if layer.qk == "joint":
        scores = layer.heads * min(d * d, 2 * d * width)
    else:
        scores = layer.heads * d if layer.qk == "fixed" else (layer.heads + layer.groups) * d * width
    return scores + layer.groups * d * layer.out


def through_attention(
    weights: Weights, layer: Attention, head: int | None, a: MatrixNorms, offset: Number | None
) -> Mapping[str, MatrixNorms | Number]:
    """Of one head on hA + a the norms of what it multiplies h with, and the lengths of its offsets."""
    ns, block, width = weights.ns, layer.block, layer.d
    made: dict[str, MatrixNorms | Number] = {}

    def affine(kind: str, bias: str, columns: int, *, biased: bool) -> None:
        """(hA + a) W + b = h (AW) + (aW + b)."""
        own = weights.matrix(kind, block, head, width, columns).whole
        made[kind] = product(ns, a, own)
        size = weights.vector(bias, block, head)[0] if biased else None
        if offset is not None:
            size = offset * own.op if size is None else offset * own.op + size
        if size is not None:
            made[bias] = size

    affine("W_V", "b_V", layer.out, biased=layer.v_bias)
    if layer.qk == "split":
        for side in ("Q", "K"):
            affine(f"W_{side}", f"b_{side}", layer.d_head or width, biased=layer.qk_bias)
    elif layer.qk == "fixed":
        made["q"] = product(ns, a, weights.matrix("q", block, head, width, 1).whole)
    else:
        left = a
        if layer.qk_bias:
            left = bordered(ns, a, offset, width)
        elif offset is not None:
            left = below(ns, a, offset, width)
        score = weights.scores(layer.scores, head, layer.d_head).whole
        made["W_QK"] = product(ns, product(ns, left, score), transposed(a))
    return made
