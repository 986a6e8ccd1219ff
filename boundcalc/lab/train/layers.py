"""Torch as the array library of `layers.forward`, and the layers of a model that is trained.

Rows are (..., rows, d). Where a stack of trials is worked on at once, weights and rows both have the trials in front,
and row-wise layers serve as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional

from boundcalc.lab.train.parameters import weight_name
from boundcalc.layers import Attention, Layer
from boundcalc.layers.forward import Fixed, Forward

Weights = Mapping[str, Tensor]


def _affine(x: Tensor, matrix: Tensor, offset: Tensor | None) -> Tensor:
    if offset is None:
        return x @ matrix
    if x.dim() == 3 and matrix.dim() == 3:
        return torch.baddbmm(offset.unsqueeze(-2), x, matrix)
    return x @ matrix + offset.unsqueeze(-2)


def _causal(x: Tensor) -> Tensor:
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()


TORCH = SimpleNamespace(
    activations={
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
        "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
        "mish": functional.mish,
        "tanh": torch.tanh,
        "identity": lambda x: x,
    },
    affine=_affine,
    causal=_causal,
    concatenate=torch.concatenate,
    einsum=torch.einsum,
    embedding=functional.embedding,
    layer_norm=lambda x, eps: functional.layer_norm(x, x.shape[-1:], eps=eps),
    ones_like=torch.ones_like,
    repeat_interleave=torch.repeat_interleave,
    sigmoid=torch.sigmoid,
    softmax=torch.softmax,
    sqrt=torch.sqrt,
    tanh=torch.tanh,
    where=torch.where,
    zeros_like=torch.zeros_like,
)


class _Source:
    """The arrays of layers, by the names of `parameters`."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def __call__(self, layer: Layer, kind: str) -> Tensor:
        return self.weights[weight_name(kind, layer.where())]

    def has(self, layer: Layer, kind: str) -> bool:
        return weight_name(kind, layer.where()) in self.weights


def through(layers: Sequence[Layer], weights: Weights, x: Tensor, read: int = 0, *, query: int | None = None) -> Tensor:
    """Layers in sequence; `read` is the row that a [CLS] read-out takes, `query` the one of attention."""
    return Forward(TORCH, _Source(weights), Fixed(row=read), query=query, trains=True)(layers, x)


def weights_of_read(layer: Attention, weights: Weights, x: Tensor, read: int) -> Tensor:
    """The attention weights (n, heads, T) of one row."""
    run = Forward(TORCH, _Source(weights), query=read, trains=True)
    return layer.mix(x, lambda kind: run.source(layer, kind), run).squeeze(-2)
