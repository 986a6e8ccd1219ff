"""A Transformer as its architecture describes it: the plain module that every shortcut is tested against."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.layers import Weights, through
from boundcalc.lab.train.parameters import Init, Parameter, parameters, read_row
from boundcalc.layers.attention import attentions
from boundcalc.layers.base import flat, of_class
from boundcalc.setting import Architecture, Attention, Layer, Pool


class Transformer(nn.Module):
    """One model: reads tokens (n, T), or rows (n, T, d_in) where there is no vocabulary; returns (n, classes)."""

    def __init__(self, architecture: Architecture, init: Init | None = None, generator: torch.Generator | None = None):
        super().__init__()
        self.architecture = architecture
        table = parameters(architecture, init)
        drawn = {name: draw(parameter, generator) for name, parameter in table.items()}
        for name, value in drawn.items():
            self.register_parameter(_safe(name), nn.Parameter(value, requires_grad=table[name].trained))
        self._names = tuple(table)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The tensors by the names of `parameters`."""
        return {name: getattr(self, _safe(name)) for name in self._names}

    def forward(self, x: Tensor) -> Tensor:
        """Scores or logits."""
        return plain(self.architecture, self.weights, x)


def _safe(name: str) -> str:
    """A name torch takes for a parameter: "norm_ffn.gain[0]" has a dot."""
    return name.replace(".", ":")


def plain(architecture: Architecture, weights: Weights, x: Tensor) -> Tensor:
    """Every layer on every row, as written."""
    out = through(architecture.stages, weights, x, read_row(architecture))
    return out.squeeze(-2) if any(isinstance(layer, Pool) for layer in flat(architecture.stages)) else out


def forward_last_row(architecture: Architecture, weights: Weights, x: Tensor) -> Tensor:
    """The same values, computing only the row that is read from the last attention on."""
    stages = architecture.stages
    if not reads_one_row(architecture):
        return plain(architecture, weights, x)
    read = read_row(architecture)
    last = max(index for index, stage in enumerate(stages) if has_attention(stage))
    x = _read(stages[: last + 1], weights, x, read)
    return through(stages[last + 1 :], weights, x, 0).squeeze(-2)


def reads_one_row(architecture: Architecture) -> bool:
    """Whether there is attention, and a read-out of one row behind it."""
    pools = [layer.how for layer in of_class(architecture.stages, Pool)]
    return pools[-1:] == ["cls"] and any(True for _ in attentions(architecture.stages))


def has_attention(stage: Layer) -> bool:
    """Whether a stage mixes rows."""
    return any(True for _ in attentions((stage,)))


def rows_before(architecture: Architecture, weights: Weights, x: Tensor, block: int) -> tuple[Attention, Tensor]:
    """The attention layer of a block and the rows it reads."""
    read = read_row(architecture)
    for index, stage in enumerate(architecture.stages):
        matches = [layer for layer in attentions((stage,)) if layer.block == block]
        if matches:
            x = through(architecture.stages[:index], weights, x, read)
            branch = next((branch for branch in stage.branches if matches[0] in branch), None)
            if branch is not None:
                x = through(branch[: branch.index(matches[0])], weights, x, read)
            return matches[0], x
    raise InvalidSetting(f"there is no attention in block {block}")


def _read(layers: Sequence[Layer], weights: Weights, x: Tensor, read: int) -> Tensor:
    """One row of what layers make of all: every row up to the last that mixes rows, then one."""
    mixing = [index for index, layer in enumerate(layers) if has_attention(layer)]
    if not mixing:
        return through(layers, weights, x[:, read].unsqueeze(-2), read)
    last = mixing[-1]
    x = through(layers[:last], weights, x, read)
    return through(layers[last + 1 :], weights, _read_one(layers[last], weights, x, read), read)


def _read_one(layer: Layer, weights: Weights, x: Tensor, read: int) -> Tensor:
    """One row of what a layer with attention makes of all."""
    if not layer.branches:
        return through((layer,), weights, x, query=read)
    first, *others = (_read(branch, weights, x, read) for branch in layer.branches)
    return sum(others, start=first)


def draw(parameter: Parameter, generator: torch.Generator | None = None) -> Tensor:
    """A tensor's starting value, drawn in float32."""
    if parameter.law == "constant":
        return torch.full(parameter.shape, parameter.scale)
    if parameter.law == "uniform":
        return (torch.rand(parameter.shape, generator=generator) * 2 - 1) * parameter.scale
    value = torch.randn(parameter.shape, generator=generator)
    if parameter.law == "sphere":
        return value * (parameter.scale / value.norm(dim=-1, keepdim=True))
    return value * parameter.scale
