"""A live torch module (or its state dict), read without copying it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import STORED, Array, Checkpoint, Tensor


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
