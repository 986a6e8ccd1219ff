"""What is read off a trained model: norms of its weights, where its attention looks, margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from boundcalc.checkpoints import Want, audit, open_checkpoint
from boundcalc.lab.train.model import Weights, attended, weights_of_read
from boundcalc.lab.train.parameters import read_row, weight_name
from boundcalc.setting import Architecture, Attention, Norms

_PROBE = 32
"""Sequences over which attention is averaged."""


def measured_norms(architecture: Architecture, weights: Weights, seed: int = 0) -> Norms:
    """The norms of a model's weights as measured budgets: what `certify` reads off the same weights, saved.

    Only spectral norms of matrices with both sides above 1024 depend on the seed.
    """
    saved = replace(open_checkpoint(weights), config={"architecture": architecture.to_json()})
    return audit(saved, want=Want(spectra=False), seed=seed).norms()


def attention_mass(
    architecture: Architecture, weights: Weights, tokens: Tensor, coordinates: Sequence[int]
) -> list[dict[str, float]]:
    """Per block: the share of the read row's attention on the rows of the true coordinates.

    Of the best head, the mean over heads, and the mean weighted by how much each head adds to the row. Behind the
    first block rows have been mixed, so there the share says less.
    """
    tokens = tokens[:_PROBE]
    rows = torch.tensor([c + 1 for c in coordinates], device=tokens.device)
    masses: list[dict[str, float]] = []
    for layer, x in attended(architecture, weights, tokens):
        mix = weights_of_read(layer, weights, x, read_row(architecture))
        total = mix.abs().sum(-1).clamp_min(1e-30)
        share = (mix[..., rows].abs().sum(-1) / total).mean(0)
        size = head_sizes(layer, weights, mix, x)
        masses.append(
            {
                "best_head": float(share.max()),
                "mean": float(share.mean()),
                "value_weighted": float((share * size).sum() / size.sum().clamp_min(1e-30)),
            }
        )
    return masses


def head_sizes(layer: Attention, weights: Weights, mix: Tensor, x: Tensor) -> Tensor:
    """Mean norm of what each head adds to the read row."""
    block = layer.block
    value = weights[weight_name("W_V", block)].repeat_interleave(layer.heads // layer.groups, 0)
    pooled = torch.einsum("nht,ntd->nhd", mix, x)
    out = torch.einsum("nhd,hdv->nhv", pooled, value)
    if layer.v_bias:
        offset = weights[weight_name("b_V", block)].repeat_interleave(layer.heads // layer.groups, 0)
        out = out + offset * mix.sum(-1, keepdim=True)
    if layer.combine == "concat" and weight_name("W_O", block) in weights:
        maps = weights[weight_name("W_O", block)].unflatten(0, (layer.heads, layer.out))
        out = torch.einsum("nhv,hvd->nhd", out, maps)
    return out.norm(dim=-1).mean(0)


def margin_summary(margins: Tensor) -> dict[str, float]:
    """Quantiles of the margins."""
    levels = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
    finite = margins.double().nan_to_num(nan=-torch.inf).clamp(-1e30, 1e30).sort().values
    return {f"{level:g}": float(finite[min(len(finite) - 1, int(level * len(finite)))]) for level in levels}
