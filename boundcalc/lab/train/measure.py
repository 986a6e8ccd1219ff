"""What is read off a trained model: norms of its weights, and where its attention looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from boundcalc.lab.train.layers import Weights, normalise, weights_of_read
from boundcalc.lab.train.model import rows_before
from boundcalc.lab.train.parameters import attentions, parameters, read_row, weight_name
from boundcalc.setting import Architecture, Budget, Norms, Residual
from boundcalc.setting import Linear as LinearLayer

ROUNDED_UP = 1 + 1e-9
"""Norms are computed in float64 and enlarged by this: far more than LAPACK's backward error at these sizes."""
_PROBE = 32
"""Sequences over which attention is averaged."""


def measured_norms(architecture: Architecture, weights: Weights) -> Norms:
    """The norms of a model's weights, the largest over its heads, as budgets that pay P1."""
    budgets: dict[str, Budget] = {}
    for key, budget in head_norms(architecture, weights).items():
        tied = key.partition(",")[0] + "]" if "," in key else key
        budgets[tied] = budget if tied not in budgets else _largest(budgets[tied], budget)
    return Norms(budgets=budgets, measured=True)


def head_norms(architecture: Architecture, weights: Weights) -> dict[str, Budget]:
    """The norms of every tensor, those of heads one by one ("W_V[0,3]"); W_Q and W_K also as their product W_QK."""
    table = parameters(architecture)
    found: dict[str, Budget] = {}
    wide = {name: value.detach().double().cpu() for name, value in weights.items()}
    for name, parameter in table.items():
        value = wide[name]
        if parameter.kind in ("embedding", "positions"):
            if parameter.trained:
                found[name] = Budget(row=_up(value.norm(dim=-1).max()))
        elif parameter.kind.endswith(".gain"):
            found[name] = Budget(sup=_up(value.abs().max()))
        elif parameter.headed:
            for head, part in enumerate(value):
                found[_headed(parameter.kind, parameter.block, head)] = _budget(part)
        else:
            found[name] = _budget(value)
    for layer in attentions(architecture.stages):
        if layer.d_head is None or layer.qk == "split":
            continue
        q, k = (wide[weight_name(kind, layer.block)] for kind in ("W_Q", "W_K"))
        if layer.qk_bias:
            q = torch.cat([q, wide[weight_name("b_Q", layer.block)].unsqueeze(1)], 1)
        k = k.repeat_interleave(layer.heads // layer.groups, 0)
        for head in range(layer.heads):
            found[_headed("W_QK", layer.block, head)] = _budget(q[head] @ k[head].T, layer.d_head)
            for kind in ("W_Q", "W_K", "b_Q", "b_K"):
                found.pop(_headed(kind, layer.block, head), None)
    return found


def _headed(kind: str, block: int | None, head: int) -> str:
    return f"{kind}[{block or 0},{head}]"


def _up(value: Tensor | float) -> float:
    return float(value) * ROUNDED_UP


def _budget(value: Tensor, rank: int | None = None) -> Budget:
    """All norms of a matrix (d_in, d_out); the l2 norm of a vector."""
    if value.dim() == 1:
        return Budget(op=_up(value.norm()))
    op = _up(torch.linalg.matrix_norm(value, 2))
    fro = max(op, _up(value.norm()))
    return Budget(
        op=op,
        fro=fro,
        two_one=max(fro, _up(value.norm(dim=0).sum())),
        two_one_t=max(fro, _up(value.norm(dim=1).sum())),
        rank=rank,
    )


def _largest(a: Budget, b: Budget) -> Budget:
    values: dict[str, Any] = {"rank": a.rank}
    for name in ("op", "fro", "two_one", "two_one_t", "sup", "row"):
        pair = [value for value in (getattr(a, name), getattr(b, name)) if value is not None]
        values[name] = max(pair) if pair else None
    return Budget(**values)


def attention_mass(
    architecture: Architecture, weights: Weights, tokens: Tensor, coordinates: Sequence[int]
) -> list[dict[str, float]]:
    """Per block: the share of the read row's attention on the rows of the true coordinates.

    Of the best head, the mean over heads, and the mean weighted by how much each head adds to the row. Behind the
    first block rows have been mixed, so there the share says less.
    """
    tokens = tokens[:_PROBE]
    rows = torch.tensor([c + 1 for c in coordinates], device=tokens.device)
    found: list[dict[str, float]] = []
    for layer in attentions(architecture.stages):
        _, x = rows_before(architecture, weights, tokens, layer.block or 0)
        mix = weights_of_read(layer, weights, x, read_row(architecture))
        total = mix.abs().sum(-1).clamp_min(1e-30)
        share = (mix[..., rows].abs().sum(-1) / total).mean(0)
        size = _head_sizes(architecture, weights, layer.block, mix, x)
        found.append(
            {
                "best_head": float(share.max()),
                "mean": float(share.mean()),
                "value_weighted": float((share * size).sum() / size.sum().clamp_min(1e-30)),
            }
        )
    return found


def _head_sizes(architecture: Architecture, weights: Weights, block: int | None, mix: Tensor, x: Tensor) -> Tensor:
    """Mean norm of what each head adds to the read row."""
    layer = next(layer for layer in attentions(architecture.stages) if layer.block == block)
    value = weights[weight_name("W_V", block)].repeat_interleave(layer.heads // layer.groups, 0)
    pooled = torch.einsum("nht,ntd->nhd", mix, x)
    out = torch.einsum("nhd,hdv->nhv", pooled, value)
    if layer.v_bias:
        offset = weights[weight_name("b_V", block)].repeat_interleave(layer.heads // layer.groups, 0)
        out = out + offset * mix.sum(-1, keepdim=True)
    if layer.combine == "concat" and _has_output_map(architecture, block):
        maps = weights[weight_name("W_O", block)].unflatten(0, (layer.heads, layer.out))
        out = torch.einsum("nhv,hvd->nhd", out, maps)
    return out.norm(dim=-1).mean(0)


def _has_output_map(architecture: Architecture, block: int | None) -> bool:
    layers = [
        inner
        for stage in architecture.stages
        for inner in (stage.branch if isinstance(stage, Residual) else (stage,))
        if isinstance(inner, LinearLayer)
    ]
    return any(layer.kind == "W_O" and layer.block == block for layer in layers)


def margin_summary(margins: Tensor) -> dict[str, float]:
    """Quantiles of the margins."""
    levels = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
    finite = margins.double().clamp(-1e30, 1e30).sort().values
    return {f"{level:g}": float(finite[min(len(finite) - 1, int(level * len(finite)))]) for level in levels}


def norm_summary(norms: Norms) -> Mapping[str, Any]:
    """The budgets as JSON."""
    return norms.to_json()


__all__ = ["attention_mass", "head_norms", "margin_summary", "measured_norms", "norm_summary", "normalise"]
