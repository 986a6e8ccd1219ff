"""Depth-one models that read one row of a sequence of bits, exactly, as one product per batch.

A position holds one of two rows, whichever its bit says. So what attention from the read row can meet is
fixed before any sample is seen: a score and a value for every (position, bit), the same for all samples.
With X2 = (1 - x, x), the numerators and denominators of all heads are X2 times one matrix, then a division.

Where the rows that attention reads are position + bit row, the exponential of a score factors into a part
of the position and a part of the bit, and the matrix has one row per position instead of two.

Weights and bits have the trials of a stack in front.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from boundcalc.lab.train.model import Weights, has_attention, reads_one_row, through
from boundcalc.lab.train.parameters import CLS
from boundcalc.layers.base import of_class, place_named
from boundcalc.setting import Architecture, Attention, Embedding, Layer, Pool

_ROUNDING = 20.0
"""exp(-20) is below the rounding error of float32."""
_LIFT = {torch.float32: 50.0, torch.float64: 300.0}
"""Log of the largest shared exponential: high, so that much lower ones keep full precision too."""


class BitPlan(NamedTuple):
    """A depth-one architecture, cut at its attention.

    Attributes:
        front: row-wise layers between the tables and the residual (or the attention).
        inside: row-wise layers of the residual's branch before the attention.
        attention: the one attention layer.
        after: the rest of the branch.
        residual: whether there is a residual around it.
        tail: row-wise layers to the read-out.
        additive: whether the attention reads position + bit rows as they are.
    """

    front: tuple[Layer, ...]
    inside: tuple[Layer, ...]
    attention: Attention
    after: tuple[Layer, ...]
    residual: bool
    tail: tuple[Layer, ...]
    additive: bool


@cache
def bit_plan(architecture: Architecture) -> BitPlan | None:
    """The cut, or None where the architecture does not allow it."""
    stages, mixers = architecture.stages, list(of_class(architecture.stages, Attention))
    embedding = next(of_class(stages[:1], Embedding), None)
    if embedding is None or embedding.vocabulary != CLS + 1 or len(mixers) != 1 or not reads_one_row(architecture):
        return None
    mixer = mixers[0]
    if mixer.causal or mixer.cap is not None or mixer.normaliser.name not in ("softmax", "softmax1"):
        return None
    at = next(index for index, stage in enumerate(stages) if has_attention(stage))
    front, tail = stages[1:at], tuple(stage for stage in stages[at + 1 :] if not isinstance(stage, Pool))
    inside, after = (), ()
    if stages[at] is not mixer:
        skip, *branches = stages[at].branches
        if skip or len(branches) != 1 or not any(layer is mixer for layer in branches[0]):
            return None
        cut = branches[0].index(mixer)
        inside, after = branches[0][:cut], branches[0][cut + 1 :]
    additive = not front and not inside and embedding.positions != "none"
    return BitPlan(front, inside, mixer, after, stages[at] is not mixer, tail, additive)


def two_sided(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """X2: bits (..., T) as (..., 2, T), one side for zeros and one for ones."""
    ones = bits.to(dtype)
    return torch.stack([1 - ones, ones], -2)


def bit_forward(plan: BitPlan, weights: Weights, sides: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (trials, n, classes) for sides (trials, n, 2, T), and by how much scores of one position differ.

    The second value (one number per trial) says whether the sharing of exponentials was safe: beyond
    `reach(dtype)` some sample may have lost precision, and the caller must take another path.
    """
    embedding, (trials, n, _, seq_len) = weights["embedding"], sides.shape
    positions = weights.get("positions")
    if positions is None:
        positions = embedding.new_zeros(embedding.shape[0], seq_len + 1, embedding.shape[-1])
    first, rows = positions.split([1, seq_len], dim=1)
    read = through(plan.front, weights, first + embedding[:, CLS:])
    query = through(plan.inside, weights, read)
    if plan.additive:
        parts, picks = embedding[:, :CLS], sides.reshape(trials, 2 * n, seq_len)
    else:  # a row for every position and bit, zeros first, and nothing that all of them share
        rows = (rows.unsqueeze(1) + embedding[:, :CLS].unsqueeze(2)).flatten(1, 2)
        rows = through(plan.inside, weights, through(plan.front, weights, rows))
        parts, picks = torch.zeros_like(query), sides.reshape(trials, n, 2 * seq_len)
    heads, layer = plan.attention.heads, plan.attention
    maps, offset = _head_maps(layer, weights, query)
    few, table = torch.baddbmm(offset, torch.cat([parts, query], 1), maps), rows @ maps
    out = _Heads.apply(table, few, picks, heads, layer.normaliser.name == "softmax1")
    row = through(plan.after, weights, out.sum(2) if layer.combine == "sum" else out.flatten(2))
    outputs = through(plan.tail, weights, read + row if plan.residual else row)
    with torch.no_grad():
        scores, shared = table[..., :heads], few[:, :-1, :heads]
        if plan.additive:
            spread = (shared[:, 0] - shared[:, 1]).abs()
        else:  # every sample has a score of at least the highest of the lower ones
            spread = scores.amax(1) - scores.unflatten(1, (2, seq_len)).amin(1).amax(1)
        spread = spread.amax(-1)
        if not bool((spread <= reach(table.dtype)).all()):
            # Harmless where positions differ less: what the higher bit hides is then below rounding error.
            spread = torch.minimum(spread, (scores.amax(1) - scores.amin(1)).amax(-1) + _ROUNDING)
    return outputs, spread


def reach(dtype: torch.dtype) -> float:
    """Score differences up to which shared exponentials, and their gradients, keep full precision."""
    return 800.0 if dtype == torch.float64 else 120.0


def _head_maps(layer: Attention, weights: Weights, query: Tensor) -> tuple[Tensor, Tensor]:
    """For a read row (trials, 1, d): score map and value map (trials, d, heads (1 + d_value)), and their offset.

    The first `heads` columns give the scores of a row, the rest its values.
    """
    block, repeat = layer.block, layer.heads // layer.groups

    def tensor(kind: str) -> Tensor:
        return weights[place_named(kind, block)]

    def of_heads(kind: str) -> Tensor:
        return tensor(kind).repeat_interleave(repeat, 1)

    value, scale = of_heads("W_V"), 1 / layer.temperature
    offset = value.new_zeros(value.shape[0], layer.heads * (1 + layer.out))
    if layer.d_head is None:
        if layer.qk_bias:
            query = torch.cat([query, torch.ones_like(query[..., :1])], -1)
        score = (query.unsqueeze(1) @ tensor("W_QK")).squeeze(2)
    else:
        q = query.unsqueeze(1) @ tensor("W_Q")
        if layer.qk_bias:
            q = q + tensor("b_Q").unsqueeze(2)
            offset[:, : layer.heads] = (q.squeeze(2) * of_heads("b_K")).sum(-1) * scale
        score = (q @ of_heads("W_K").transpose(-1, -2)).squeeze(2)
    if layer.v_bias:
        offset[:, layer.heads :] = of_heads("b_V").flatten(1)
    maps = torch.cat([(score * scale).transpose(1, 2), value.transpose(1, 2).flatten(2)], -1)
    return maps, offset.unsqueeze(1)


class _Heads(torch.autograd.Function):
    """Heads' outputs (trials, n, heads, d_value) from scores and values of rows, of parts, and of the read row.

    With E = exp(score of a row - shift), D_b and N_b the sums of E and of E V over the rows of side b of a sample,
    to all of which part b is added, and f_b = exp(score of the part + shift - top) for any top of the sample,
        Z = sum_b f_b D_b + f_own (+ exp(-top)),   out = (sum_b f_b (N_b + D_b v_b) + f_own v_own) / Z.
    By hand because memory traffic and the number of calls are what a small batch costs: the gradient of the
    table is made in place in the one large buffer that its product returns.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, table: Tensor, few: Tensor, picks: Tensor, heads: int, plus_one: bool
    ) -> Tensor:
        trials, _, columns = table.shape
        sides = few.shape[1] - 1
        shift = table[..., :heads].amax(1) - _LIFT[table.dtype]
        terms = torch.empty_like(table)
        weight = torch.sub(table[..., :heads], shift.unsqueeze(1), out=terms[..., :heads]).exp_()
        torch.mul(_by_head(table, heads), weight.unsqueeze(-1), out=_by_head(terms, heads))
        summed = (picks @ terms).view(trials, -1, sides, columns)
        mass, sums = summed[..., :heads], _by_head(summed, heads)
        own_score, part_scores = few[:, sides:, :heads], few[:, :sides, :heads] + shift.unsqueeze(1)
        # The log of each sample's larger side as top: no factor below can overflow, and a side without rows is 0.
        top = torch.maximum((part_scores.unsqueeze(1) + mass.log()).amax(2), own_score)
        if plus_one:
            top = top.clamp_min(0.0)
        factor = torch.where(mass > 0, part_scores.unsqueeze(1) - top.unsqueeze(2), -torch.inf).exp()
        own = (own_score - top).exp()
        share = mass * factor
        denominator = share.sum(2).add_(own)
        if plus_one:
            denominator += (-top).exp()
        out = sums[:, :, 0] * factor[:, :, 0].unsqueeze(-1)
        for side in range(1, sides):
            out.addcmul_(sums[:, :, side], factor[:, :, side].unsqueeze(-1))
        out += torch.einsum("bnsh,bshv->bnhv", torch.cat([share, own.unsqueeze(2)], 2), _by_head(few, heads))
        out /= denominator.unsqueeze(-1)
        ctx.save_for_backward(terms, picks, few, summed, factor, own, denominator, out)
        ctx.heads = heads
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        terms, picks, few, summed, factor, own, denominator, out = ctx.saved_tensors
        heads, sides = ctx.heads, summed.shape[2]
        mass, sums = summed[..., :heads], _by_head(summed, heads)
        by_out = grads[0] / denominator.unsqueeze(-1)
        by_mass = torch.einsum("bnhv,bshv->bnsh", by_out, _by_head(few, heads))  # of the parts and the read row
        by_mass -= (by_out * out).sum(-1).unsqueeze(2)
        shares = torch.cat([mass * factor, own.unsqueeze(2)], 2)
        by_few = torch.empty_like(few)
        by_few[..., heads:] = torch.einsum("bnsh,bnhv->bshv", shares, by_out).flatten(2)
        by_score = shares * by_mass
        by_score[:, :, :sides] += torch.einsum("bnshv,bnhv->bnsh", sums, by_out) * factor
        by_few[..., :heads] = by_score.sum(1)
        by_summed = torch.empty_like(summed)
        torch.mul(by_mass[:, :, :sides], factor, out=by_summed[..., :heads])
        torch.mul(by_out.unsqueeze(2), factor.unsqueeze(-1), out=_by_head(by_summed, heads))
        by_table = picks.transpose(1, 2) @ by_summed.flatten(1, 2)
        weight, by_values = terms[..., :heads], _by_head(by_table, heads)
        by_row_score = (by_values * _by_head(terms, heads)).sum(-1)
        by_row_score.addcmul_(by_table[..., :heads], weight)
        by_values.mul_(weight.unsqueeze(-1))
        by_table[..., :heads] = by_row_score
        return by_table, by_few, None, None, None


def _by_head(rows: Tensor, heads: int) -> Tensor:
    """The values of [scores, values], as a view (..., heads, d_value)."""
    return rows[..., heads:].unflatten(-1, (heads, -1))
