"""A6 where attention reads hA + a: its matrices take A in, and offsets take in a."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from boundcalc.base.intervals import upper_float
from boundcalc.base.system import Number
from boundcalc.setting import Attention, Budget
from boundcalc.setting.norms import place_of
from boundcalc.statements.product_norms import below, bordered, budget_of, product, transposed
from boundcalc.statements.targets import MatrixNorms
from boundcalc.statements.weights import Weights

if TYPE_CHECKING:
    from boundcalc.statements.meet import Larger, Waiting

_READ_FROM_ROWS = frozenset(("W_QK", "W_Q", "W_K", "W_V", "q", "b_Q", "b_K", "b_V"))
"""What attention multiplies its rows with, or adds to the products."""


def behind_map(layer: Attention, first: Waiting, walk: Larger) -> Attention | None:
    """What attention is to the rows before a map that its rows come from; None where the map cannot be taken in.

    Of rows that are pooled in between it reads one only.
    """
    if first.pools or not _attends(layer, first, walk):
        return None
    for head in range(layer.heads) if walk.weights.norms.headed else (None,):
        for kind, found in through_attention(walk.weights, layer, head, first.norms, first.offset).items():
            made = budget_of(found) if isinstance(found, MatrixNorms) else Budget(op=upper_float(found))
            walk.set((kind, layer.block), head, made)
    moved = first.offset is not None
    return replace(
        layer,
        d=first.layer.d_in,
        d_value=layer.out,
        qk_bias=layer.qk_bias or (moved and layer.qk != "fixed"),
        v_bias=layer.v_bias or moved,
    )


def _attends(layer: Attention, first: Waiting, walk: Larger) -> bool:
    """Whether attention on hA + a is attention on h, by matrices with names of their own."""
    factors = {each.kind for each in layer.scores.factors} if layer.qk == "joint" else frozenset[str]()
    if any(place_of(key)[0] in factors for key in walk.weights.norms.budgets):
        return False
    own = [each for each in layer.weights(walk.seq_len) if each.kind in _READ_FROM_ROWS]
    wide, narrow = first.layer.d_in, first.layer.d_out
    fewer = numbers_of(layer, wide) < numbers_of(layer, narrow) + wide * narrow
    alone = all(walk.places.alone(each.kind, each.block) for each in own)
    return fewer and alone and meets_attention(layer, first.offset is not None)


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
