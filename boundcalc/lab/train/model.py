"""A Transformer as its architecture describes it: the plain pass that every shortcut is tested against.

Rows are (..., rows, d). Where a stack of trials is worked on at once, weights and rows both have the trials in front,
and row-wise layers serve as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional

from boundcalc.lab.train.parameters import Init, Parameter, parameters, read_row
from boundcalc.layers.base import of_class, place_named
from boundcalc.layers.forward import Fixed, Forward, Step
from boundcalc.setting import Architecture, Attention, Layer, Pool

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
        return self.weights[place_named(kind, layer.where())]

    def has(self, layer: Layer, kind: str) -> bool:
        return place_named(kind, layer.where()) in self.weights


def through(
    layers: Sequence[Layer],
    weights: Weights,
    x: Tensor,
    read: int = 0,
    *,
    query: int | None = None,
    steps: list[Step] | None = None,
) -> Tensor:
    """Layers in sequence; `read` is the row that a [CLS] read-out takes, `query` the one of attention."""
    return Forward(TORCH, _Source(weights), Fixed(row=read), query=query, steps=steps, trains=True)(layers, x)


def attention_of_read(
    architecture: Architecture, weights: Weights, x: Tensor
) -> list[tuple[Attention, Tensor, Tensor]]:
    """The attention layers, the rows (n, T, d) that each reads, and the weights (n, heads, T) of the read row."""
    read, steps = read_row(architecture), list[Step]()
    _read(architecture.stages, weights, x, read, steps)
    run = Forward(TORCH, _Source(weights), Fixed(row=read), query=read, trains=True)
    return [
        (step.layer, step.reads, step.layer.mix(step.reads, partial(run.source, step.layer), run).squeeze(-2))
        for step in steps
        if isinstance(step.layer, Attention)
    ]


def draw_weights(
    architecture: Architecture, init: Init | None = None, generator: torch.Generator | None = None
) -> dict[str, Tensor]:
    """A model at its start: its tensors by the names of `parameters`."""
    return {name: _draw(parameter, generator) for name, parameter in parameters(architecture, init).items()}


def _draw(parameter: Parameter, generator: torch.Generator | None) -> Tensor:
    """A tensor's starting value, drawn in float32."""
    if parameter.law == "constant":
        return torch.full(parameter.shape, parameter.scale)
    if parameter.law == "uniform":
        return (torch.rand(parameter.shape, generator=generator) * 2 - 1) * parameter.scale
    value = torch.randn(parameter.shape, generator=generator)
    return value * (
        parameter.scale / value.norm(dim=-1, keepdim=True) if parameter.law == "sphere" else parameter.scale
    )


def plain(architecture: Architecture, weights: Weights, x: Tensor) -> Tensor:
    """Every layer on every row, as written."""
    out = through(architecture.stages, weights, x, read_row(architecture))
    return out.squeeze(-2) if any(True for _ in of_class(architecture.stages, Pool)) else out


def forward_last_row(architecture: Architecture, weights: Weights, x: Tensor) -> Tensor:
    """The same values, computing only the row that is read from the last attention on."""
    if not reads_one_row(architecture):
        return plain(architecture, weights, x)
    return _read(architecture.stages, weights, x, read_row(architecture)).squeeze(-2)


def reads_one_row(architecture: Architecture) -> bool:
    """Whether there is attention, and a read-out of one row behind it."""
    pools = [layer.how for layer in of_class(architecture.stages, Pool)]
    return pools[-1:] == ["cls"] and any(map(has_attention, architecture.stages))


def has_attention(stage: Layer) -> bool:
    """Whether a stage mixes rows."""
    return any(True for _ in of_class((stage,), Attention))


def _read(layers: Sequence[Layer], weights: Weights, x: Tensor, read: int, steps: list[Step] | None = None) -> Tensor:
    """One row of what layers make of all: every row up to the last that mixes rows, then one."""
    mixing = [index for index, layer in enumerate(layers) if has_attention(layer)]
    if not mixing:
        return through(layers, weights, x[:, read].unsqueeze(-2), read, steps=steps)
    last = layers[mixing[-1]]
    x = through(layers[: mixing[-1]], weights, x, read, steps=steps)
    if last.branches:
        first, *others = (_read(branch, weights, x, read, steps) for branch in last.branches)
        x = sum(others, start=first)
    else:
        x = through((last,), weights, x, query=read, steps=steps)
    return through(layers[mixing[-1] + 1 :], weights, x, read, steps=steps)
