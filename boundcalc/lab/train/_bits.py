"""Depth-one models that read one row of a sequence of bits, exactly, as one product per batch.

A row that attention reads is a row of positions plus one of two bit rows. So the exponential of a score factors into a
part of the position, fixed before any sample is seen, and a part of the bit. With X2 = (1 - x, x), the numerators and
denominators of all heads are X2 times one matrix with a row per position, times the parts of the bits, then a division.

Weights and bits have the trials of a stack in front.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from boundcalc.lab.train.model import Weights, reads_one_row, through
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
        attention: the one attention layer, which reads position + bit rows as they are.
        after: the rest of its branch.
        residual: whether there is a residual around it.
        tail: row-wise layers to the read-out.
    """

    attention: Attention
    after: tuple[Layer, ...]
    residual: bool
    tail: tuple[Layer, ...]


@cache
def bit_plan(architecture: Architecture) -> BitPlan | None:
    """The cut, or None where the architecture does not allow it."""
    first, *rest = architecture.stages
    mixers = list(of_class(rest, Attention))
    if not isinstance(first, Embedding) or first.vocabulary != CLS + 1 or first.positions == "none":
        return None
    if len(mixers) != 1 or not reads_one_row(architecture):
        return None
    mixer = mixers[0]
    if mixer.causal or mixer.cap is not None or mixer.normaliser.name != "softmax":
        return None
    stage, *others = rest
    branches = ((), (stage,)) if stage is mixer else stage.branches
    if len(branches) != 2 or branches[0] or not branches[1] or branches[1][0] is not mixer:
        return None
    tail = tuple(layer for layer in others if not isinstance(layer, Pool))
    return BitPlan(mixer, branches[1][1:], stage is not mixer, tail)


def two_sided(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """X2: bits (..., T) as (..., 2, T), one side for zeros and one for ones."""
    ones = bits.to(dtype)
    return torch.stack([1 - ones, ones], -2)


def bit_forward(plan: BitPlan, weights: Weights, sides: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (trials, n, classes) for sides (trials, n, 2, T), and by how much scores of one position differ.

    The second value (one number per trial) says whether the sharing of exponentials was safe: beyond
    `reach(dtype)` some sample may have lost precision, and the caller must take another path.
    """
    embedding, (trials, n, _, seq_len), layer = weights["embedding"], sides.shape, plan.attention
    first, rows = weights["positions"].split([1, seq_len], dim=1)
    read = first + embedding[:, CLS:]
    maps, offset = _head_maps(layer, weights, read)
    few = torch.baddbmm(offset, torch.cat([embedding[:, :CLS], read], 1), maps)  # of both bits, and of the row read
    table = rows @ maps
    out = _Heads.apply(table, few, sides.reshape(trials, 2 * n, seq_len), layer.heads)
    row = through(plan.after, weights, out.sum(2) if layer.combine == "sum" else out.flatten(2))
    outputs = through(plan.tail, weights, read + row if plan.residual else row)
    with torch.no_grad():
        scores, shared = table[..., : layer.heads], few[..., : layer.heads]
        spread = (shared[:, 0] - shared[:, 1]).abs().amax(-1)
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
    """Heads' outputs (trials, n, heads, d_value) from scores and values of positions, both bits and the read row.

    With E = exp(score of a position - shift), D_b and N_b the sums of E and of E V over the positions of a sample whose
    bit is b, and f_b = exp(score of the bit + shift - top) for any top of the sample,
        Z = sum_b f_b D_b + f_own,   out = (sum_b f_b (N_b + D_b v_b) + f_own v_own) / Z.
    By hand because memory traffic and the number of calls are what a small batch costs: the gradient of the
    table is made in place in the one large buffer that its product returns.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, few: Tensor, picks: Tensor, heads: int) -> Tensor:  # type: ignore[override]
        shift = table[..., :heads].amax(1) - _LIFT[table.dtype]
        terms = torch.empty_like(table)
        weight = torch.sub(table[..., :heads], shift.unsqueeze(1), out=terms[..., :heads]).exp_()
        torch.mul(_by_head(table, heads), weight.unsqueeze(-1), out=_by_head(terms, heads))
        summed = (picks @ terms).unflatten(1, (-1, 2))
        mass, sums = summed[..., :heads], _by_head(summed, heads)
        own_score, bit_scores = few[:, 2:, :heads], few[:, :2, :heads] + shift.unsqueeze(1)
        # The log of each sample's larger side as top: no factor below can overflow, and a side without rows is 0.
        top = torch.maximum((bit_scores.unsqueeze(1) + mass.log()).amax(2), own_score)
        factor = torch.where(mass > 0, bit_scores.unsqueeze(1) - top.unsqueeze(2), -torch.inf).exp()
        own = (own_score - top).exp()
        share = mass * factor
        denominator = share.sum(2).add_(own)
        out = sums[:, :, 0] * factor[:, :, 0].unsqueeze(-1)
        out.addcmul_(sums[:, :, 1], factor[:, :, 1].unsqueeze(-1))
        out += torch.einsum("bnsh,bshv->bnhv", torch.cat([share, own.unsqueeze(2)], 2), _by_head(few, heads))
        out /= denominator.unsqueeze(-1)
        ctx.save_for_backward(terms, picks, few, summed, factor, own, denominator, out)
        ctx.heads = heads
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        terms, picks, few, summed, factor, own, denominator, out = ctx.saved_tensors
        heads = ctx.heads
        mass, sums = summed[..., :heads], _by_head(summed, heads)
        by_out = grads[0] / denominator.unsqueeze(-1)
        by_mass = torch.einsum("bnhv,bshv->bnsh", by_out, _by_head(few, heads))  # of the bits and the read row
        by_mass -= (by_out * out).sum(-1).unsqueeze(2)
        shares = torch.cat([mass * factor, own.unsqueeze(2)], 2)
        by_few = torch.empty_like(few)
        by_few[..., heads:] = torch.einsum("bnsh,bnhv->bshv", shares, by_out).flatten(2)
        by_score = shares * by_mass
        by_score[:, :, :2] += torch.einsum("bnshv,bnhv->bnsh", sums, by_out) * factor
        by_few[..., :heads] = by_score.sum(1)
        by_summed = torch.empty_like(summed)
        torch.mul(by_mass[:, :, :2], factor, out=by_summed[..., :heads])
        torch.mul(by_out.unsqueeze(2), factor.unsqueeze(-1), out=_by_head(by_summed, heads))
        by_table = picks.transpose(1, 2) @ by_summed.flatten(1, 2)
        weight, by_values = terms[..., :heads], _by_head(by_table, heads)
        by_row_score = (by_values * _by_head(terms, heads)).sum(-1)
        by_row_score.addcmul_(by_table[..., :heads], weight)
        by_values.mul_(weight.unsqueeze(-1))
        by_table[..., :heads] = by_row_score
        return by_table, by_few, None, None


def _by_head(rows: Tensor, heads: int) -> Tensor:
    """The values of [scores, values], as a view (..., heads, d_value)."""
    return rows[..., heads:].unflatten(-1, (heads, -1))
