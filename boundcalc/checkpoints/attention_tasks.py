"""The measurements of attention: maps of heads, queries and keys apart or as scores, a group of heads at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from boundcalc.checkpoints.account import FOLDED, KEY_BIAS
from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.heads import head_offsets, heads_of, trained_query
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.maps import Found, HeadMaps, Task, difference, head_maps, key_of
from boundcalc.norms.heads import Heads
from boundcalc.norms.matrix import Measured, Native, as_stored, measure, vector
from boundcalc.setting import Attention, Weight

if TYPE_CHECKING:
    from boundcalc.checkpoints.tasks import Plan

_HEADS_BYTES = 32 << 20
"""Maps of a group of heads take at most so much as float64."""


def attention(plan: Plan, layer: Attention) -> Iterator[Task]:
    """The measurements of one layer."""
    b = layer.block
    scores = layer.scores.kind
    if layer.qk == "fixed" and plan.model.has("probe", b):
        yield _pooling(plan, layer)
        return
    if plan.model.has(scores, b):
        if any(layer.beside_heads()):
            raise CheckpointError(
                "weights that heads share besides their maps are read where queries and keys are apart"
            )
        for weight in layer.weights(plan.architecture.seq_len):
            yield _headed(plan, weight)
        return
    if layer.d_head is None:
        raise CheckpointError("scores of full rank need one tensor W_QK per block")
    _expect_heads(plan, layer)
    fused = plan.model.has("W_QKV", b)
    entries = sum(plan.use(role, b) for role in (("W_QKV",) if fused else ("W_Q", "W_K", "W_V")))
    split = layer.qk == "split"
    conserved = _forgets_keys(layer)
    for role, needed in (("b_Q", layer.qk_bias), ("b_K", layer.qk_bias), ("b_V", layer.v_bias)):
        if needed and plan.model.has(role, b):
            plan.use(role, b)
    if layer.qk_bias and not split and conserved and plan.model.has("b_K", b):
        plan.read["b_K", b] = (0, KEY_BIAS)
    if plan.model.has("b_QKV", b):
        size = plan.model.place("b_QKV", b).tensor.size
        keys = size * layer.groups // (layer.heads + 2 * layer.groups)
        used = size if split or not conserved else size - keys
        plan.read["b_QKV", b] = (used, "those of the keys: " + KEY_BIAS)
    per_group = layer.heads // layer.groups
    step = max(1, _HEADS_BYTES // (8 * layer.d * max(layer.d_head, 1) * per_group))
    for first in range(0, layer.groups, step):
        part = slice(first, min(first + step, layer.groups))
        share = entries * (part.stop - part.start) // layer.groups
        yield Task(f"heads[{b}]{first}", share, _heads_task(plan, layer, part, per_group))

    for weight in layer.beside_heads():
        yield plan.vector(weight.kind, b, math.prod(weight.shape))


def _expect_heads(plan: Plan, layer: Attention) -> None:
    """Refuse maps of heads, and their offsets, that are not of the size the architecture says."""
    b, d, width = layer.block, layer.d, layer.d_head or 0
    outputs = {"Q": (layer.heads, width), "K": (layer.groups, width), "V": (layer.groups, layer.out)}
    together = sum(count * out for count, out in outputs.values())
    if plan.model.has("W_QKV", b):
        plan.expect("W_QKV", b, (d, together))
    for kind, (count, out) in outputs.items():
        if not plan.model.has("W_QKV", b):
            plan.expect(f"W_{kind}", b, (d, count * out), (count, d, out))
        if plan.model.has(f"b_{kind}", b):
            plan.expect(f"b_{kind}", b, (count * out,))
    if plan.model.has("b_QKV", b):
        plan.expect("b_QKV", b, (together,))


def _heads_task(plan: Plan, layer: Attention, part: slice, per_group: int) -> Callable[[np.random.Generator], Found]:
    queries = slice(part.start * per_group, part.stop * per_group)

    def maps(model: Model) -> HeadMaps:
        return head_maps(model, layer, queries, part)

    times_by = _norm_factors(plan.model, layer)

    def run(_: np.random.Generator) -> Found:
        own = maps(plan.model)
        out = own.norms(layer, queries.start, part.start)
        if plan.reference is not None:
            out |= {
                key + "'": value
                for key, value in own.distance_norms(maps(plan.reference), layer, queries.start, part.start).items()
            }
        return {
            key: value if (factor := times_by[key.partition("[")[0]]) == 1 else value.times(factor)
            for key, value in out.items()
        }

    return run


def _forgets_keys(layer: Attention) -> bool:
    """Whether the keys' offsets change nothing: what they add to all scores of a query alike, softmax takes away."""
    return layer.normaliser.name == "softmax" and layer.cap is None


def _norm_factors(model: Model, layer: Attention) -> dict[str, float]:
    """The factor of each kind of norm: the constants of its maps. A joint score is one matrix, so has one."""
    kinds = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V")
    found = {kind: model.factor(kind, layer.block) for kind in kinds}
    if layer.qk != "split":
        for kind in "Q" if _forgets_keys(layer) else "QK":
            offset = model.has(f"b_{kind}", layer.block) or model.has("b_QKV", layer.block)
            if offset and found[f"b_{kind}"] != found[f"W_{kind}"]:
                scales = f"W_{kind} has scale {found[f'W_{kind}']:g} and b_{kind} {found[f'b_{kind}']:g}"
                raise CheckpointError(
                    f"{model.checkpoint.where}: {scales}, but joint scores hold both in one matrix: give both one "
                    "scale, or scale the tensors in the file"
                )
    product = found["W_Q"] * found["W_K"]
    return found | {"W_QK": product if 1 in (found["W_Q"], found["W_K"]) else math.nextafter(product, math.inf)}


def _pooling(plan: Plan, layer: Attention) -> Task:
    """Those of attention by a trained query, whose maps of queries and keys are folded into it."""
    b, d, heads = layer.block or 0, layer.d, layer.heads
    if plan.reference is not None:
        raise CheckpointError("a distance from a reference is not measured of attention by a trained query")
    plan.expect("probe", b, (d,))
    plan.expect("W_QKV", b, (d, 3 * d))
    folded = f"{FOLDED} the trained query, but for the maps of values"
    entries = plan.use("probe", b) + plan.use("W_QKV", b, d * d, folded)
    if layer.v_bias:
        plan.expect("b_QKV", b, (3 * d,))
        plan.use("b_QKV", b, d, folded)
    plan.shared += (heads - 1) * d

    def run(_: np.random.Generator) -> Found:
        queries, values = trained_query(plan.model, b, heads), heads_of(plan.model, "V", b, heads)
        offsets = head_offsets(plan.model, "V", b, heads) if layer.v_bias else None
        out = {key_of("q", b, h): found for h, found in enumerate(Heads.of(queries.swapaxes(1, 2)).measured())}
        out |= {key_of("W_V", b, h): found for h, found in enumerate(Heads.of(values).measured())}
        return out | {key_of("b_V", b, h): vector(w) for h, w in enumerate(() if offsets is None else offsets)}

    return Task(f"heads[{b}]", entries, run)


def _headed(plan: Plan, weight: Weight) -> Task:
    """Those of one tensor with a dimension for heads."""
    kind, b, shape = weight.kind, weight.block, (weight.copies, *weight.shape)
    plan.expect(kind, b, shape if len(shape) > 2 else (math.prod(shape),))
    entries = plan.use(kind, b)

    def of(model: Model) -> Native:
        return read(model.place(kind, b).tensor).reshape(shape)

    def norms(w: Native, rng: np.random.Generator, *, spectrum: bool = False) -> Measured:
        return vector(w) if w.ndim == 1 else measure(as_stored(w), rng, spectrum=spectrum, exact=True)

    def run(rng: np.random.Generator) -> Found:
        own = of(plan.model)
        out = {key_of(kind, b, h): norms(w, rng, spectrum=plan.want.spectrum(w.shape)) for h, w in enumerate(own)}
        if plan.reference is not None:
            far = difference(own, of(plan.reference))
            out |= {key_of(kind, b, h) + "'": norms(w, rng).widened for h, w in enumerate(far)}
        return out

    return plan.scaled(kind, b, Task(key_of(kind, b), entries, run))
