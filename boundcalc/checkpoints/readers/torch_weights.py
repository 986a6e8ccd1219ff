"""Weights of torch: files of torch.save, read by weights_only, which runs no code of theirs, and live modules."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from boundcalc.base import project
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import STORED, Array, Checkpoint, Tensor, sound

_WRAPPERS = ("state_dict", "model_state_dict", "model", "module")
"""Keys under which training scripts keep the weights, next to an optimiser."""


def open_torch(path: Path) -> Checkpoint:
    """The tensors of a .pt, .pth, .bin or .ckpt file; of a zip file they stay on the disk until they are read."""
    try:
        import torch
    except ModuleNotFoundError:
        raise InvalidSetting(
            f"reading {path} needs torch ({project.install('train')}); or save the weights as .safetensors"
        ) from None
    with sound(path, "file of torch.save"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            root: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
        except Exception as error:
            if "weights_only" in str(error).lower() or "Unsupported" in str(error):
                raise CheckpointError(
                    f"{path} holds more than tensors, and none of its code was run: save the state dict alone, or as "
                    f"safetensors ({' '.join(str(error).split())[-160:]})"
                ) from None
            raise
        return open_module(_state(path, root), str(path))


def _state(path: Path, root: object) -> dict[str, Any]:
    """The table of tensors in what a training script saved."""
    import torch

    table = root
    for key in _WRAPPERS:
        if isinstance(table, Mapping) and isinstance(table.get(key), Mapping):
            table = table[key]
            break
    if not isinstance(table, Mapping):
        raise CheckpointError(f"{path} holds a {type(root).__name__}, not a table of tensors: save model.state_dict()")
    tensors = {str(name): value for name, value in table.items() if isinstance(value, torch.Tensor)}
    for name, value in tensors.items():
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():  # rows of stride 0
            raise CheckpointError(f"{path}: {name!r} of shape {tuple(value.shape)} is larger than its storage")
    return tensors


def open_module(module: Any, where: str | None = None) -> Checkpoint:
    """The tensors of a module; its `config`, when it has one (transformers), comes along."""
    state: Mapping[str, Any] = module if isinstance(module, Mapping) else module.state_dict()
    config: Any = getattr(module, "config", None)
    settings = config.to_dict() if hasattr(config, "to_dict") else {}
    if settings and not settings.get("architectures") and type(module).__module__.startswith("transformers."):
        settings["architectures"] = [type(module).__name__]  # which the library writes when it saves the model
    tensors: dict[str, Tensor] = {}
    for name, value in state.items():
        dtype = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
        if dtype not in STORED or not hasattr(value, "data_ptr"):
            raise CheckpointError(
                f"{where or type(module).__name__}: {name} is {dtype}, not a tensor of plain numbers; of a quantised "
                "model, take the one before quantisation"
            )
        storage = f"{value.data_ptr()}:{tuple(value.stride())}"
        tensors[name] = Tensor(name, tuple(value.shape), dtype, partial(_fetch, value, dtype), storage)
    named: Any = getattr(module, "named_buffers", dict[str, Any]().items)
    buffers = {name for name, _ in named()}
    return Checkpoint(where or type(module).__name__, tensors, settings, buffers=frozenset(buffers))


def _fetch(value: Any, dtype: str) -> Array:
    import torch

    plain = value.detach().cpu()
    return (plain.view(torch.uint16) if dtype == "bfloat16" else plain).numpy()
