"""safetensors: the library compares a file's header with the file, and numbers are mapped where the header says."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from boundcalc.base import project
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import STORED, Array, Checkpoint, Tensor, mapped, sound

_MOST_HEADER = 10_000_000
"""Bytes of a header that is read: of some 100,000 tensors, and it takes up to forty times as much memory."""

_KINDS = {"F": "float", "BF": "bfloat", "I": "int", "U": "uint"}
_TYPES = {f"{short}{bits}": f"{kind}{bits}" for short, kind in _KINDS.items() for bits in (8, 16, 32, 64)}
_TYPES = {short: kind for short, kind in _TYPES.items() if kind in STORED} | {"BOOL": "bool"}


def open_safetensors(path: Path) -> Checkpoint:
    """The tensors of one file; metadata may hold the architecture of this library's own models as JSON."""
    try:
        from safetensors import safe_open
    except ModuleNotFoundError:
        raise InvalidSetting(f"reading {path} needs safetensors ({project.install('weights')})") from None
    with sound(path, "safetensors file"):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MOST_HEADER:
                raise CheckpointError(f"{path} has a header of {length:,} bytes, and at most {_MOST_HEADER:,} are read")
            with safe_open(path, "np"):
                header = json.loads(file.read(length))
        metadata = header.pop("__metadata__", {})
        tensors = {name: _tensor(path, name, entry, 8 + length) for name, entry in header.items()}
    config: dict[str, Any] = {}
    for key in {"architecture", "config"} & set(metadata):
        with suppress(ValueError, RecursionError):  # text that is no JSON is no config
            config[key] = json.loads(metadata[key])
    return Checkpoint(str(path), tensors, config)


def _tensor(path: Path, name: str, entry: dict[str, Any], start: int) -> Tensor:
    if entry["dtype"] not in _TYPES:
        raise CheckpointError(
            f"{path}: {name!r:.80} has type {entry['dtype']}, which is no type of weights: of a "
            "quantised model, take the one before quantisation"
        )
    dtype, shape, first = _TYPES[entry["dtype"]], tuple(entry["shape"]), start + entry["data_offsets"][0]
    return Tensor(name, shape, dtype, partial(_fetch, path, first, dtype, shape), f"{path.name}:{first}")


def _fetch(path: Path, offset: int, dtype: str, shape: tuple[int, ...]) -> Array:
    with sound(path, "safetensors file"):  # it may have been cut since it was opened
        return mapped(path, offset, dtype, shape)
