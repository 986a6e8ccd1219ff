"""A Transformer as its architecture describes it: the plain module that every shortcut is tested against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.kinds import WEIGHTS, safetensors_name
from boundcalc.base.output import write_bytes
from boundcalc.lab.train.layers import Weights, attention, rowwise, through
from boundcalc.lab.train.parameters import Init, Parameter, attentions, parameters, read_row
from boundcalc.setting import Architecture, Attention, Embedding, Layer, Pool, Residual

CLS = 2
"""Token of the row that is read out of a sequence of bits; 0 and 1 are the bits."""


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
    return _walk(architecture.stages, weights, x, read_row(architecture))


def read_only(architecture: Architecture, weights: Weights, x: Tensor) -> Tensor:
    """The same values, computing only the row that is read from the last attention on."""
    stages = architecture.stages
    if not reads_one_row(architecture):
        return plain(architecture, weights, x)
    read = read_row(architecture)
    last = max(index for index, stage in enumerate(stages) if has_attention(stage))
    x = _walk(stages[:last], weights, x, read)
    x = _read_stage(stages[last], weights, x, read)
    for stage in stages[last + 1 :]:
        if not isinstance(stage, Pool):
            x = rowwise(stage, weights, x)
    return x.squeeze(-2)


def reads_one_row(architecture: Architecture) -> bool:
    """Whether there is attention, and a read-out of one row behind it."""
    pools = [stage for stage in architecture.stages if isinstance(stage, Pool)]
    return bool(pools) and pools[-1].how == "cls" and any(True for _ in attentions(architecture.stages))


def has_attention(stage: Layer) -> bool:
    """Whether a stage mixes rows."""
    return any(True for _ in attentions((stage,)))


def embed(layer: Embedding, weights: Weights, x: Tensor) -> Tensor:
    """Token rows plus position rows."""
    if layer.vocabulary:
        x = nn.functional.embedding(x, weights["embedding"])
    return x if layer.positions == "none" else x + weights["positions"]


def rows_before(architecture: Architecture, weights: Weights, x: Tensor, block: int) -> tuple[Attention, Tensor]:
    """The attention layer of a block and the rows it reads."""
    read = read_row(architecture)
    for index, stage in enumerate(architecture.stages):
        found = [layer for layer in attentions((stage,)) if layer.block == block]
        if found:
            x = _walk(architecture.stages[:index], weights, x, read)
            if isinstance(stage, Residual):
                x = _walk(stage.branch[: stage.branch.index(found[0])], weights, x, read)
            return found[0], x
    raise InvalidSetting(f"there is no attention in block {block}")


def _walk(stages: Sequence[Layer], weights: Weights, x: Tensor, read: int) -> Tensor:
    for stage in stages:
        if isinstance(stage, Embedding):
            x = embed(stage, weights, x)
        elif isinstance(stage, Attention):
            x = attention(stage, weights, x)
        elif isinstance(stage, Pool):
            x = x.mean(-2, keepdim=True) if stage.how == "mean" else x[:, read].unsqueeze(-2)
        elif isinstance(stage, Residual) and has_attention(stage):
            x = x + _walk(stage.branch, weights, x, read)
        else:
            x = rowwise(stage, weights, x)
    return x.squeeze(-2) if stages and any(isinstance(stage, Pool) for stage in stages) else x


def _read_stage(stage: Layer, weights: Weights, x: Tensor, read: int) -> Tensor:
    if isinstance(stage, Attention):
        return attention(stage, weights, x, read)
    if not isinstance(stage, Residual):
        raise TypeError(f"{type(stage).__name__} has no attention")
    inner = next(index for index, layer in enumerate(stage.branch) if has_attention(layer))
    rows = _walk(stage.branch[:inner], weights, x, read)
    row = _read_stage(stage.branch[inner], weights, rows, read)
    return x[:, read].unsqueeze(-2) + through(stage.branch[inner + 1 :], weights, row)


def draw(parameter: Parameter, generator: torch.Generator | None = None) -> Tensor:
    """A tensor's starting value, drawn in float32 on the generator's device."""
    device = generator.device if generator is not None else torch.device("cpu")
    if parameter.law == "constant":
        return torch.full(parameter.shape, parameter.scale, device=device)
    if parameter.law == "uniform":
        return (torch.rand(parameter.shape, generator=generator, device=device) * 2 - 1) * parameter.scale
    value = torch.randn(parameter.shape, generator=generator, device=device)
    if parameter.law == "sphere":
        return value * (parameter.scale / value.norm(dim=-1, keepdim=True))
    return value * parameter.scale


def save(path: Path | str, architecture: Architecture, weights: Mapping[str, Tensor], *, force: bool = False) -> None:
    """Write a model as safetensors; the architecture travels in the file's metadata."""
    import json

    from safetensors.torch import save as as_bytes

    safetensors_name(path)
    tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
    metadata = {"format": "boundcalc-model/1", "architecture": json.dumps(architecture.to_json())}
    write_bytes(path, as_bytes(tensors, metadata), WEIGHTS, force=force)


def load(path: Path | str) -> Transformer:
    """A model from such a file."""
    import json

    from safetensors import safe_open

    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != "boundcalc-model/1":
            raise InvalidSetting(f"{path} is not a model of boundcalc: it has no architecture in its metadata")
        model = Transformer(Architecture.from_json(json.loads(metadata["architecture"])))
        names = [name for name in file.keys() if not name.startswith("encoding.")]  # noqa: SIM118 - not a mapping
        tensors = {name: file.get_tensor(name) for name in names}
    if tensors.keys() != model.weights.keys():
        odd = sorted(tensors.keys() ^ model.weights.keys())
        raise InvalidSetting(f"{path} does not fit its own architecture: {odd[0]} is missing or too much")
    with torch.no_grad():
        for name, value in model.weights.items():
            value.copy_(tensors[name])
    return model
