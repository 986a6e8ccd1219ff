"""What is read off a trained model: norms of its weights, where its attention looks, margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from boundcalc.checkpoints import audit, open_checkpoint
from boundcalc.lab.train.model import Weights, attention_of_read
from boundcalc.setting import Architecture, Norms

_PROBE = 32
"""Sequences over which attention is averaged."""


def measured_norms(architecture: Architecture, weights: Weights, seed: int = 0) -> Norms:
    """The norms of a model's weights as measured budgets: what `certify` reads off the same weights, saved.

    Only spectral norms of matrices with both sides above 1024 depend on the seed.
    """
    saved = replace(open_checkpoint(weights), config={"architecture": architecture.to_json()})
    return audit(saved, seed=seed).norms()


def attention_mass(
    architecture: Architecture, weights: Weights, tokens: Tensor, coordinates: Sequence[int]
) -> list[dict[str, float]]:
    """Per block: the share of the read row's attention on the rows of the true coordinates.

    Of the best head, and the mean over heads. Behind the first block rows have been mixed: there the share says less.
    """
    masses: list[dict[str, float]] = []
    for _, _, mix in attention_of_read(architecture, weights, tokens[:_PROBE]):
        rows = torch.tensor([c + 1 for c in coordinates], device=mix.device)
        total = mix.abs().sum(-1).clamp_min(1e-30)
        share = (mix[..., rows].abs().sum(-1) / total).mean(0)
        masses.append({"best_head": float(share.max()), "mean": float(share.mean())})
    return masses


def margin_summary(margins: Tensor) -> dict[str, float]:
    """Quantiles of the margins."""
    levels = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
    finite = margins.double().nan_to_num(nan=-torch.inf).clamp(-1e30, 1e30).sort().values
    return {f"{level:g}": float(finite[min(len(finite) - 1, int(level * len(finite)))]) for level in levels}
