"""The primitive layers as plain functions of their weights and rows.

Rows are (..., rows, d). Weights have the shapes of `parameters`; where a stack of trials is worked on at
once, weights and rows both have the trials in front, and the same lines serve.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from boundcalc.lab.train.parameters import weight_name
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Embedding,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Pool,
    Residual,
    SoftCap,
)
from boundcalc.setting.layer import Rules

Weights = Mapping[str, Tensor]

_ACTIVATIONS = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "mish": functional.mish,
    "tanh": torch.tanh,
    "identity": lambda x: x,
}


def activation(name: str, x: Tensor) -> Tensor:
    """An entrywise non-linearity by name."""
    return _ACTIVATIONS[name](x)


def linear(x: Tensor, matrix: Tensor, offset: Tensor | None) -> Tensor:
    """X -> x W (+ b) on every row."""
    if offset is None:
        return x @ matrix
    if x.dim() == 3 and matrix.dim() == 3:
        return torch.baddbmm(offset.unsqueeze(-2), x, matrix)
    return x @ matrix + offset.unsqueeze(-2)


def norm(layer: LayerNorm, weights: Weights, x: Tensor) -> Tensor:
    """LayerNorm, or RMSNorm where the layer is not centred."""
    gain = weights.get(weight_name(f"{layer.kind}.gain", layer.block)) if layer.gain else None
    offset = weights.get(weight_name(f"{layer.kind}.offset", layer.block)) if layer.offset else None
    if layer.centred:
        x = functional.layer_norm(x, (layer.d,), eps=layer.eps)
    else:
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + layer.eps)
    if gain is not None:
        x = x * (1 + gain if layer.around_one else gain).unsqueeze(-2)
    return x if offset is None else x + offset.unsqueeze(-2)


def ball(radius: float, x: Tensor) -> Tensor:
    """Projection of every row onto the l2 ball; its gradient at the origin is that of the identity."""
    size = x.square().sum(-1, keepdim=True)
    outside = size > radius**2
    return torch.where(outside, x * (radius / torch.where(outside, size, 1.0).sqrt()), x)


def gated(layer: GatedFeedForward, weights: Weights, x: Tensor) -> Tensor:
    """The gated feed-forward layer."""
    w_1, w_3, w_2 = (weights[weight_name(kind, layer.block)] for kind in ("W_1", "W_3", "W_2"))
    if not layer.bias:
        return (activation(layer.activation, x @ w_1) * (x @ w_3)) @ w_2
    b_1, b_3, b_2 = (weights[weight_name(kind, layer.block)] for kind in ("b_1", "b_3", "b_2"))
    return linear(activation(layer.activation, linear(x, w_1, b_1)) * linear(x, w_3, b_3), w_2, b_2)


def _affine(layer: Linear, weights: Weights, x: Tensor) -> Tensor:
    """A linear map with its own weights."""
    offset = weights[weight_name(layer.bias, layer.block)] if layer.bias else None
    return linear(x, weights[weight_name(layer.kind, layer.block)], offset)


def embed(layer: Embedding, weights: Weights, x: Tensor) -> Tensor:
    """Token rows plus position rows."""
    if layer.vocabulary:
        x = functional.embedding(x, weights["embedding"])
    return x if layer.positions == "none" else x + weights["positions"]


def through(layers: Sequence[Layer], weights: Weights, x: Tensor, read: int = 0) -> Tensor:
    """Layers one after the other; `read` is the row that a [CLS] read-out takes."""
    for layer in layers:
        x = _FORWARD.of(layer)(layer, weights, x, read)
    return x


def added(layer: Residual, weights: Weights, x: Tensor, read: int) -> Tensor:
    """The sum of what every branch makes of the rows."""
    first, *others = (through(branch, weights, x, read) for branch in layer.branches)
    return sum(others, start=first)


def pooled(layer: Pool, x: Tensor, read: int) -> Tensor:
    """One row of all."""
    return x.mean(-2, keepdim=True) if layer.how == "mean" else x[:, read].unsqueeze(-2)


def attention(layer: Attention, weights: Weights, x: Tensor, read: int | None = None) -> Tensor:
    """Attention from every row of x (n, T, d), or from the row `read` alone (the result then has one row)."""
    queries = x if read is None else x[:, read : read + 1 or None]
    scores = capped(layer.cap, _scores(layer, weights, queries, x) / layer.temperature)
    if layer.causal and read is None:
        unseen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(unseen, -torch.inf)
    mix = normalise(layer.normaliser.name, scores, x.shape[1])
    return _combine(layer, mix @ _values(layer, weights, x))


def weights_of_read(layer: Attention, weights: Weights, x: Tensor, read: int) -> Tensor:
    """The attention weights (n, heads, T) of one row."""
    scores = capped(layer.cap, _scores(layer, weights, x[:, read : read + 1 or None], x) / layer.temperature)
    return normalise(layer.normaliser.name, scores, x.shape[1]).squeeze(-2)


def capped(cap: float | None, x: Tensor) -> Tensor:
    """Entries softly kept within the cap: cap tanh(x / cap)."""
    return x if cap is None else cap * torch.tanh(x / cap)


def _combine(layer: Attention, heads: Tensor) -> Tensor:
    """From (n, heads, rows, d_value) to rows: the heads' sum, or the heads side by side."""
    if layer.combine == "sum":
        return heads.sum(1)
    return heads.transpose(1, 2).flatten(2)


def normalise(name: str, scores: Tensor, seq_len: int) -> Tensor:
    """From scores to attention weights, along the last dimension; masked scores are -inf."""
    if name == "softmax":
        return scores.softmax(-1)
    if name == "softmax1":
        zero = torch.zeros_like(scores[..., :1])
        return torch.cat([scores, zero], -1).softmax(-1)[..., :-1]
    if name == "sigmoid":
        return scores.sigmoid() / seq_len
    return scores.masked_fill(scores == -torch.inf, 0.0) / seq_len


def _scores(layer: Attention, weights: Weights, queries: Tensor, keys: Tensor) -> Tensor:
    """Unscaled scores (n, heads, queries, keys)."""
    block = layer.block
    if layer.d_head is None:
        joint = weights[weight_name("W_QK", block)]
        if layer.qk_bias:
            queries = torch.cat([queries, torch.ones_like(queries[..., :1])], -1)
        asked = torch.einsum("ntd,hde->nhte", queries, joint)
        return torch.einsum("nhqd,nkd->nhqk", asked, keys)
    q = torch.einsum("ntd,hde->nhte", queries, weights[weight_name("W_Q", block)])
    k = torch.einsum("ntd,hde->nhte", keys, weights[weight_name("W_K", block)])
    if layer.qk_bias:
        q = q + weights[weight_name("b_Q", block)].unsqueeze(-2)
        k = k + weights[weight_name("b_K", block)].unsqueeze(-2)
    return q @ _shared(layer, k).transpose(-1, -2)


def _values(layer: Attention, weights: Weights, x: Tensor) -> Tensor:
    values = torch.einsum("ntd,hde->nhte", x, weights[weight_name("W_V", layer.block)])
    if layer.v_bias:
        values = values + weights[weight_name("b_V", layer.block)].unsqueeze(-2)
    return _shared(layer, values)


def _shared(layer: Attention, grouped: Tensor) -> Tensor:
    """Key and value heads, repeated for the query heads that share them."""
    if layer.groups == layer.heads:
        return grouped
    return grouped.repeat_interleave(layer.heads // layer.groups, dim=1)


_FORWARD: Rules[Callable[[Any, Weights, Tensor, int], Tensor]] = Rules(
    "training",
    {
        Linear: lambda layer, weights, x, _: _affine(layer, weights, x),
        Activation: lambda layer, _, x, __: activation(layer.name, x),
        SoftCap: lambda layer, _, x, __: capped(layer.cap, x),
        Ball: lambda layer, _, x, __: ball(layer.radius, x),
        LayerNorm: lambda layer, weights, x, _: norm(layer, weights, x),
        Attention: lambda layer, weights, x, _: attention(layer, weights, x),
        GatedFeedForward: lambda layer, weights, x, _: gated(layer, weights, x),
        Embedding: lambda layer, weights, x, _: embed(layer, weights, x),
        Pool: lambda layer, _, x, read: pooled(layer, x, read),
        Residual: added,
    },
)
"""What a layer makes of rows."""
