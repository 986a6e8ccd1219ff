"""Depth-one models that read one row of a sequence of bits, exactly, as one product per batch.

A position holds one of two rows, whichever its bit says. So what attention from the read row can meet is
fixed before any sample is seen: a score and a value for every (position, bit), the same for all samples.
With X2 = (1 - x, x), the numerators and denominators of all heads are X2 times one matrix, then a division.

Where the rows that attention reads are position + bit row, the exponential of a score factors into a part
of the position and a part of the bit, and the matrix has one row per position instead of two.

Weights and bits have the trials of a stack in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from boundcalc.lab.train.model import TORCH, Weights, has_attention, reads_one_row, through
from boundcalc.lab.train.parameters import CLS, weight_name
from boundcalc.layers.attention import normalise
from boundcalc.layers.base import of_class
from boundcalc.setting import Architecture, Attention, Embedding, Layer, Pool

_EXPONENTIAL = ("softmax", "softmax1")
_ROUNDING = 20.0
"""exp(-20) is below the rounding error of float32."""
_LIFT = {torch.float32: 50.0, torch.float64: 300.0}
"""Log of the largest shared exponential: high, so that much lower ones keep full precision too."""


@dataclass(frozen=True, slots=True)
class BitPlan:
    """A depth-one architecture, cut at its attention.

    Attributes:
        embedding: the tables.
        front: row-wise layers up to the residual (or the attention).
        inside: row-wise layers of the residual's branch before the attention.
        attention: the one attention layer.
        after: the rest of the branch.
        residual: whether there is a residual around it.
        tail: row-wise layers to the read-out.
        additive: whether the attention reads position + bit rows as they are.
    """

    embedding: Embedding
    front: tuple[Layer, ...]
    inside: tuple[Layer, ...]
    attention: Attention
    after: tuple[Layer, ...]
    residual: bool
    tail: tuple[Layer, ...]
    additive: bool


def bit_plan(architecture: Architecture) -> BitPlan | None:
    """The cut, or None where the architecture does not allow it."""
    stages = architecture.stages
    mixers = list(of_class(stages, Attention))
    if len(mixers) != 1 or mixers[0].causal or mixers[0].cap is not None or not reads_one_row(architecture):
        return None
    embedding = next(of_class(stages[:1], Embedding), None)
    if embedding is None or embedding.vocabulary != CLS + 1:
        return None
    at = next(index for index, stage in enumerate(stages) if has_attention(stage))
    front = stages[1:at]
    tail = tuple(stage for stage in stages[at + 1 :] if not isinstance(stage, Pool))
    stage = stages[at]
    if stage is not mixers[0]:
        skip, *branches = stage.branches
        if skip or len(branches) != 1 or not any(layer is mixers[0] for layer in branches[0]):
            return None
        cut = branches[0].index(mixers[0])
        inside, after = branches[0][:cut], branches[0][cut + 1 :]
    else:
        inside, after = (), ()
    additive = not front and not inside and embedding.positions != "none" and mixers[0].normaliser.name in _EXPONENTIAL
    return BitPlan(embedding, front, inside, mixers[0], after, stage is not mixers[0], tail, additive)


def two_sided(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """X2: bits (..., T) as (..., 2, T), one side for zeros and one for ones."""
    ones = bits.to(dtype)
    return torch.stack([1 - ones, ones], -2)


def bit_forward(plan: BitPlan, weights: Weights, sides: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (trials, n, classes) for sides (trials, n, 2, T), and by how much scores of one position differ.

    The second value (one number per trial) says whether the sharing of exponentials was safe: beyond
    `reach(dtype)` some sample may have lost precision, and the caller must take another path.
    """
    embedding = weights["embedding"]
    positions = weights.get("positions")
    if positions is None:
        positions = embedding.new_zeros(embedding.shape[0], sides.shape[-1] + 1, embedding.shape[-1])
    first, rest = positions.split([1, sides.shape[-1]], dim=1)
    start = first + embedding[:, CLS : CLS + 1]
    read = through(plan.front, weights, start)
    query = through(plan.inside, weights, read)
    if plan.additive:
        heads, spread = _additive(plan.attention, weights, query, rest, embedding[:, :CLS], sides)
    else:
        rows = (rest.unsqueeze(1) + embedding[:, :CLS].unsqueeze(2)).flatten(1, 2)
        rows = through(plan.inside, weights, through(plan.front, weights, rows))
        heads, spread = _tabled(plan.attention, weights, query, rows, sides)
    row = heads.sum(2) if plan.attention.combine == "sum" else heads.flatten(2)
    row = through(plan.after, weights, row)
    if plan.residual:
        row = read + row
    return through(plan.tail, weights, row), spread


def reach(dtype: torch.dtype) -> float:
    """Score differences up to which shared exponentials, and their gradients, keep full precision."""
    return 800.0 if dtype == torch.float64 else 120.0


def _head_maps(layer: Attention, weights: Weights, query: Tensor) -> tuple[Tensor, Tensor]:
    """For a read row (trials, 1, d): score map and value map (trials, d, heads (1 + d_value)), and their offset.

    The first `heads` columns give the scores of a row, the rest its values.
    """
    block, heads = layer.block, layer.heads
    repeat = heads // layer.groups
    value = weights[weight_name("W_V", block)]
    scale = 1 / layer.temperature
    score_offset = value.new_zeros(value.shape[0], heads)
    if layer.d_head is None:
        joint = weights[weight_name("W_QK", block)]
        if layer.qk_bias:
            query = torch.cat([query, torch.ones_like(query[..., :1])], -1)
        score = (query.unsqueeze(1) @ joint).squeeze(2)
    else:
        q_map, k_map = weights[weight_name("W_Q", block)], weights[weight_name("W_K", block)]
        q = query.unsqueeze(1) @ q_map
        if layer.qk_bias:
            q = q + weights[weight_name("b_Q", block)].unsqueeze(2)
            k_offset = weights[weight_name("b_K", block)].repeat_interleave(repeat, 1)
            score_offset = (q.squeeze(2) * k_offset).sum(-1) * scale
        score = (q @ k_map.repeat_interleave(repeat, 1).transpose(-1, -2)).squeeze(2)
    value = value.repeat_interleave(repeat, 1) if repeat > 1 else value
    maps = torch.cat([(score * scale).transpose(1, 2), value.transpose(1, 2).flatten(2)], -1)
    if layer.v_bias:
        value_offset = weights[weight_name("b_V", block)].repeat_interleave(repeat, 1).flatten(1)
    else:
        value_offset = value.new_zeros(value.shape[0], heads * layer.out)
    return maps, torch.cat([score_offset, value_offset], -1).unsqueeze(1)


def _additive(
    layer: Attention, weights: Weights, query: Tensor, positions: Tensor, bit_rows: Tensor, sides: Tensor
) -> tuple[Tensor, Tensor]:
    """Heads' outputs (trials, n, heads, d_value) where rows are position + bit row."""
    trials, n, _, seq_len = sides.shape
    heads = layer.heads
    maps, offset = _head_maps(layer, weights, query)
    few = torch.baddbmm(offset, torch.cat([bit_rows, query], 1), maps)  # zero, one, and the read row itself
    table = positions @ maps
    with torch.no_grad():
        scores, bit_scores = table[..., :heads], few[:, :CLS, :heads]
        spread = (bit_scores[:, 0] - bit_scores[:, 1]).abs().amax(-1)
        if not bool((spread <= reach(table.dtype)).all()):
            # Harmless where positions differ less: what the higher bit hides is then below rounding error.
            spread = torch.minimum(spread, (scores.amax(1) - scores.amin(1)).amax(-1) + _ROUNDING)
    picks = sides.reshape(trials, 2 * n, seq_len)
    out = _AdditiveHeads.apply(table, few, picks, heads, layer.normaliser.name == "softmax1")
    return out, spread


def _tabled(layer: Attention, weights: Weights, query: Tensor, rows: Tensor, sides: Tensor) -> tuple[Tensor, Tensor]:
    """The same for any rows (trials, 2 T, d), zeros first."""
    trials, n, _, seq_len = sides.shape
    heads, width = layer.heads, layer.out
    maps, offset = _head_maps(layer, weights, query)
    own = torch.baddbmm(offset, query, maps).squeeze(1)
    own_score, own_value = own[:, :heads], own[:, heads:].unflatten(-1, (heads, width))
    table = torch.baddbmm(offset, rows, maps)
    picks = sides.reshape(trials, n, 2 * seq_len)
    if layer.normaliser.name not in _EXPONENTIAL:
        mix = normalise(layer.normaliser.name, table[..., :heads], seq_len + 1, TORCH)
        values = (mix.unsqueeze(-1) * table[..., heads:].unflatten(-1, (heads, width))).flatten(2)
        first = normalise(layer.normaliser.name, own_score, seq_len + 1, TORCH).unsqueeze(-1) * own_value
        summed = (picks @ values).unflatten(-1, (heads, width))
        return summed + first.unsqueeze(1), own_score.new_zeros(trials)
    with torch.no_grad():
        scores = table[..., :heads].unflatten(1, (2, seq_len))
        highest = torch.maximum(scores.amax((1, 2)), own_score)
        lowest = torch.maximum(scores.amin(1).amax(1), own_score)  # every sample has a score at least this high
        if layer.normaliser.name == "softmax1":
            highest, lowest = highest.clamp_min(0.0), lowest.clamp_min(0.0)
        spread = (highest - lowest).amax(-1)
        shift = highest - _LIFT[table.dtype]
    summed = _SharedExponentials.apply(table, shift, picks)
    own_mass = (own_score - shift).exp().unsqueeze(1)
    denominator = summed[..., :heads] + own_mass
    if layer.normaliser.name == "softmax1":
        denominator = denominator + (-shift).exp().unsqueeze(1)
    numerator = summed[..., heads:].unflatten(-1, (heads, width)) + own_mass.unsqueeze(-1) * own_value.unsqueeze(1)
    return numerator / denominator.unsqueeze(-1), spread


class _AdditiveHeads(torch.autograd.Function):
    """Heads' outputs from scores and values of positions, of the two bits and of the read row.

    With E = exp(score of a position - shift), D_b and N_b the sums of E and of E V over the positions of a sample
    whose bit is b, and f_b = exp(score of the bit + shift - top) for any top of the sample,
        Z = sum_b f_b D_b + f_own (+ exp(-top)),   out = (sum_b f_b (N_b + D_b v_b) + f_own v_own) / Z.
    By hand because memory traffic and the number of calls are what a small batch costs: the gradient of the
    table is made in place in the one large buffer that its product returns.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, table: Tensor, few: Tensor, picks: Tensor, heads: int, plus_one: bool
    ) -> Tensor:
        trials, _, columns = table.shape
        width = columns // heads - 1
        shift = table[..., :heads].amax(1) - _LIFT[table.dtype]
        terms = _exponentials(table, shift)
        summed = (picks @ terms).view(trials, -1, 2, columns)
        mass, sums = summed[..., :heads], summed[..., heads:].unflatten(-1, (heads, width))
        own_score, bit_scores = few[:, CLS:, :heads], few[:, :CLS, :heads] + shift.unsqueeze(1)
        # The log of each sample's larger side as top: no factor below can overflow, and a side without bits is 0.
        top = torch.maximum((bit_scores.unsqueeze(1) + mass.log()).amax(2), own_score)
        if plus_one:
            top = top.clamp_min(0.0)
        factor = torch.where(mass > 0, bit_scores.unsqueeze(1) - top.unsqueeze(2), -torch.inf).exp()
        own = (own_score - top).exp()
        share = mass * factor
        denominator = share.sum(2).add_(own)
        if plus_one:
            denominator += (-top).exp()
        values = few[..., heads:].unflatten(-1, (heads, width))
        out = sums[:, :, 0] * factor[:, :, 0].unsqueeze(-1)
        out.addcmul_(sums[:, :, 1], factor[:, :, 1].unsqueeze(-1))
        out += torch.einsum("bnsh,bshv->bnhv", torch.cat([share, own.unsqueeze(2)], 2), values)
        out /= denominator.unsqueeze(-1)
        ctx.save_for_backward(terms, picks, few, summed, factor, own, denominator, out)
        ctx.heads = heads
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        terms, picks, few, summed, factor, own, denominator, out = ctx.saved_tensors
        heads = ctx.heads
        trials, samples, _, columns = summed.shape
        width = columns // heads - 1
        mass, sums = summed[..., :heads], summed[..., heads:].unflatten(-1, (heads, width))
        values = few[..., heads:].unflatten(-1, (heads, width))
        by_out = grads[0] / denominator.unsqueeze(-1)
        by_mass = torch.einsum("bnhv,bshv->bnsh", by_out, values)  # of both bits and the read row
        by_mass -= (by_out * out).sum(-1).unsqueeze(2)
        shares = torch.cat([mass * factor, own.unsqueeze(2)], 2)
        by_few = torch.empty_like(few)
        by_few[..., heads:] = torch.einsum("bnsh,bnhv->bshv", shares, by_out).flatten(2)
        by_score = shares * by_mass
        by_score[:, :, :CLS] += torch.einsum("bnshv,bnhv->bnsh", sums, by_out) * factor
        by_few[..., :heads] = by_score.sum(1)
        by_summed = torch.empty_like(summed)
        torch.mul(by_mass[:, :, :CLS], factor, out=by_summed[..., :heads])
        torch.mul(
            by_out.unsqueeze(2),
            factor.unsqueeze(-1),
            out=by_summed[..., heads:].unflatten(-1, (heads, width)),
        )
        by_terms = picks.transpose(1, 2) @ by_summed.view(trials, 2 * samples, columns)
        return _table_gradient(by_terms, terms, heads), by_few, None, None, None


def _exponentials(table: Tensor, shift: Tensor) -> Tensor:
    """[E, E V] for a table [scores, V] and a shift per head."""
    heads = shift.shape[-1]
    width = table.shape[-1] // heads - 1
    terms = torch.empty_like(table)
    mass = torch.sub(table[..., :heads], shift.unsqueeze(1), out=terms[..., :heads]).exp_()
    torch.mul(
        table[..., heads:].unflatten(-1, (heads, width)),
        mass.unsqueeze(-1),
        out=terms[..., heads:].unflatten(-1, (heads, width)),
    )
    return terms


def _table_gradient(grad: Tensor, terms: Tensor, heads: int) -> Tensor:
    """From the gradient of [E, E V], in its place, that of [scores, V]."""
    width = terms.shape[-1] // heads - 1
    by_score = (grad[..., heads:] * terms[..., heads:]).unflatten(-1, (heads, width)).sum(-1)
    mass = terms[..., :heads]
    by_score.addcmul_(grad[..., :heads], mass)
    grad[..., heads:].unflatten(-1, (heads, width)).mul_(mass.unsqueeze(-1))
    grad[..., :heads] = by_score
    return grad


class _SharedExponentials(torch.autograd.Function):
    """picks @ [E, E V] for a table of scores and values, E = exp(scores - shift); the shift is a constant."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, shift: Tensor, picks: Tensor) -> Tensor:  # type: ignore[override]
        terms = _exponentials(table, shift)
        ctx.save_for_backward(terms, picks)
        ctx.heads = shift.shape[-1]
        return picks @ terms

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        terms, picks = ctx.saved_tensors
        return _table_gradient(picks.transpose(1, 2) @ grads[0], terms, ctx.heads), None, None
