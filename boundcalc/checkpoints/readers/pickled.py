"""Files of torch.save, read by torch.load with weights_only, which runs no code of the file."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boundcalc.base import project
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import Checkpoint, sound
from boundcalc.checkpoints.readers.module import open_module

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

    found = root
    for key in _WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
            break
    if not isinstance(found, Mapping):
        raise CheckpointError(f"{path} holds a {type(root).__name__}, not a table of tensors: save model.state_dict()")
    tensors = {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}
    for name, value in tensors.items():
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():  # rows of stride 0
            raise CheckpointError(f"{path}: {name!r} of shape {tuple(value.shape)} is larger than its storage")
    return tensors
