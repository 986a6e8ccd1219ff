"""The measurements of attention: maps of heads, queries and keys apart or as scores, a group of heads at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from boundcalc.checkpoints.account import FOLDED, KEY_BIAS
from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.maps import Found, HeadMaps, Task, head_maps, heads_of, key_of, offsets_of, trained_query
from boundcalc.norms.heads import Heads
from boundcalc.norms.matrix import Native, as_stored, measure, vector
from boundcalc.setting import Attention, Weight

if TYPE_CHECKING:
    from boundcalc.checkpoints.tasks import Plan

_HEADS_BYTES = 32 << 20
"""Maps of a group of heads take at most so much as float64."""


def attention(plan: Plan, layer: Attention) -> Iterator[Task]:
    """The measurements of one layer."""
    b = layer.block
    if layer.qk == "fixed" and plan.model.has("probe", b):
        yield _pooling(plan, layer)
        return
    if plan.model.has(layer.scores.kind, b):
        if any(layer.beside_heads()):
            raise CheckpointError(
                "weights that heads share besides their maps are read where queries and keys are apart"
            )
        yield from (_headed(plan, weight) for weight in layer.weights(plan.architecture.seq_len))
        return
    if layer.d_head is None:
        raise CheckpointError("scores of full rank need one tensor W_QK per block")
    _expect_heads(plan, layer)
    entries = sum(plan.use(role, b) for role in ("W_Q", "W_K", "W_V"))
    for role, needed in (("b_Q", layer.qk_bias), ("b_K", layer.qk_bias), ("b_V", layer.v_bias)):
        if needed and plan.model.has(role, b):
            forgotten = role == "b_K" and layer.qk != "split" and _forgets_keys(layer)
            plan.use(role, b, 0 if forgotten else None, KEY_BIAS)
    per_group = layer.heads // layer.groups
    step = max(1, _HEADS_BYTES // (8 * layer.d * max(layer.d_head, 1) * per_group))
    factors = _norm_factors(plan.model, layer)

    def maps(groups: slice, model: Model) -> HeadMaps:
        return head_maps(model, layer, slice(groups.start * per_group, groups.stop * per_group), groups)

    def norms(groups: slice, own: HeadMaps, _: np.random.Generator) -> Found:
        return own.norms(layer, groups.start * per_group, groups.start)

    for first in range(0, layer.groups, step):
        part = slice(first, min(first + step, layer.groups))
        share = entries * (part.stop - part.start) // layer.groups
        yield plan.task(f"heads[{b}]{first}", share, partial(maps, part), partial(norms, part), factors, layer)
    for weight in layer.beside_heads():
        yield plan.vector(weight.kind, b, math.prod(weight.shape))


def _expect_heads(plan: Plan, layer: Attention) -> None:
    """Refuse maps of heads, and their offsets, that are not of the size the architecture says."""
    b, d, width = layer.block, layer.d, layer.d_head or 0
    outputs = {"Q": (layer.heads, width), "K": (layer.groups, width), "V": (layer.groups, layer.out)}
    for kind, (count, out) in outputs.items():
        plan.expect(f"W_{kind}", b, (d, count * out), (count, d, out))
        if plan.model.has(f"b_{kind}", b):
            plan.expect(f"b_{kind}", b, (count * out,))


def _forgets_keys(layer: Attention) -> bool:
    """Whether the keys' offsets change nothing: what they add to all scores of a query alike, softmax takes away."""
    return layer.normaliser.name == "softmax" and layer.cap is None


def _norm_factors(model: Model, layer: Attention) -> dict[str, float]:
    """The factor of each kind of norm: the constants of its maps. A joint score is one matrix, so has one."""
    kinds = ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V")
    factors = {kind: model.factor(kind, layer.block) for kind in kinds}
    if layer.qk != "split":
        for kind in "Q" if _forgets_keys(layer) else "QK":
            if model.has(f"b_{kind}", layer.block) and factors[f"b_{kind}"] != factors[f"W_{kind}"]:
                scales = f"W_{kind} has scale {factors[f'W_{kind}']:g} and b_{kind} {factors[f'b_{kind}']:g}"
                raise CheckpointError(
                    f"{model.checkpoint.where}: {scales}, but joint scores hold both in one matrix: give both one "
                    "scale, or scale the tensors in the file"
                )
    product = factors["W_Q"] * factors["W_K"]
    return factors | {"W_QK": product if 1 in (factors["W_Q"], factors["W_K"]) else math.nextafter(product, math.inf)}


def _pooling(plan: Plan, layer: Attention) -> Task:
    """Those of attention by a trained query, whose maps of queries and keys are folded into it."""
    b, d, heads = layer.block or 0, layer.d, layer.heads
    if plan.reference is not None:
        raise CheckpointError("a distance from a reference is not measured of attention by a trained query")
    plan.expect("probe", b, (d,))
    for kind in "QKV":
        plan.expect(f"W_{kind}", b, (d, d))
        if layer.v_bias:
            plan.expect(f"b_{kind}", b, (d,))
    entries = plan.use("probe", b) + plan.use("W_V", b)
    for role in ("W_Q", "W_K", *(("b_Q", "b_K") if layer.v_bias else ())):
        plan.use(role, b, 0, f"{FOLDED} the trained query, but for the maps of values")
    if layer.v_bias:
        plan.use("b_V", b)
    plan.shared += (heads - 1) * d

    def run(_: np.random.Generator) -> Found:
        queries, values = trained_query(plan.model, b, heads), heads_of(plan.model, "W_V", b, heads)
        offsets = offsets_of(plan.model, "b_V", b, heads)
        norms = {key_of("q", b, h): norm for h, norm in enumerate(Heads.of(queries.swapaxes(1, 2)).measured())}
        norms |= {key_of("W_V", b, h): norm for h, norm in enumerate(Heads.of(values).measured())}
        return norms | {key_of("b_V", b, h): vector(w) for h, w in enumerate(() if offsets is None else offsets)}

    return Task(f"heads[{b}]", entries, run)


def _headed(plan: Plan, weight: Weight) -> Task:
    """Those of one tensor with a dimension for heads."""
    kind, b, shape = weight.kind, weight.block, (weight.copies, *weight.shape)
    plan.expect(kind, b, shape if len(shape) > 2 else (math.prod(shape),))

    def array(model: Model) -> Native:
        return read(model.place(kind, b).tensor).reshape(shape)

    def norms(heads: Native, rng: np.random.Generator) -> Found:
        spectrum = plan.want.spectrum(weight.shape) if len(shape) > 2 else False
        return {
            key_of(kind, b, h): vector(head)
            if head.ndim == 1
            else measure(as_stored(head), rng, spectrum=spectrum, exact=True)
            for h, head in enumerate(heads)
        }

    return plan.task(key_of(kind, b), plan.use(kind, b), array, norms, {kind: plan.model.factor(kind, b)})
