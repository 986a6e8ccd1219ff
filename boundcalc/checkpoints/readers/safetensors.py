"""safetensors: a JSON header and raw numbers. Read here without a library, so that nothing is trusted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import STORED, Array, Checkpoint, Tensor, mapped, sound

_MOST_HEADER = 10_000_000
"""Bytes of a header that is read: of some 100,000 tensors, and it takes up to forty times as much memory."""
"""Bytes; the format's own limit."""

_TYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}


def open_safetensors(path: Path) -> Checkpoint:
    """The tensors of one file; every claim of the header is compared with the file before any is believed."""
    header, start, size = _header(path)
    metadata = header.pop("__metadata__", {})
    tensors: dict[str, Tensor] = {}
    spans: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        tensor, span = _tensor(path, name, entry, start)
        tensors[name] = tensor
        spans.append((*span, name))
    _check_spans(path, spans, size - start)
    config = _metadata_config(metadata)
    return Checkpoint(str(path), tensors, config)


def _header(path: Path) -> tuple[dict[str, Any], int, int]:
    size = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8 or length > size - 8:
            raise CheckpointError(
                f"{path} is not a whole safetensors file: {size} bytes, but its header claims {length}; fetch it again"
            )
        if length > _MOST_HEADER:
            raise CheckpointError(f"{path} has a header of {length:,} bytes, and at most {_MOST_HEADER:,} are read")
        raw = file.read(length)
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} has a damaged safetensors header ({error}); fetch it again") from None
    if not isinstance(header, dict):
        raise CheckpointError(f"{path} has a safetensors header that is no table; fetch it again")
    return header, 8 + length, size


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name is given twice")
    return table


def _tensor(path: Path, name: str, entry: object, start: int) -> tuple[Tensor, tuple[int, int]]:
    try:
        assert isinstance(entry, Mapping)  # noqa: S101 - a failure is reported below
        dtype = _TYPES[entry["dtype"]]
        shape = tuple(entry["shape"])
        first, last = entry["data_offsets"]
    except (AssertionError, KeyError, TypeError, ValueError):
        raise CheckpointError(f"{path}: the header's entry for {name!r} is damaged: {entry!r:.100}") from None
    numbers = [*shape, first, last]
    if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**62 for n in numbers):
        raise CheckpointError(f"{path}: {name!r} has impossible sizes {shape} at {first}:{last}")
    need = math.prod(shape) * STORED[dtype].itemsize
    if last - first != need:
        raise CheckpointError(f"{path}: {name!r} of shape {shape} needs {need} bytes, its header gives {last - first}")
    fetch = partial(_fetch, path, start + first, dtype, shape)
    return Tensor(name, shape, dtype, fetch, f"{path.name}:{first}"), (first, last)


def _fetch(path: Path, offset: int, dtype: str, shape: tuple[int, ...]) -> Array:
    with sound(path, "safetensors file"):  # it may have been cut since it was opened
        return mapped(path, offset, dtype, shape)


def _check_spans(path: Path, spans: list[tuple[int, int, str]], available: int) -> None:
    """Tensors lie one after the other and fill the file."""
    reached = 0
    for first, last, name in sorted(spans):
        if last > available:
            raise CheckpointError(
                f"{path} is truncated: {name!r} ends at byte {last} of the data, the file has {available}; "
                "fetch it again"
            )
        if first != reached:
            raise CheckpointError(f"{path}: {name!r} starts at byte {first} of the data, expected {reached}")
        reached = last
    if reached != available:
        raise CheckpointError(f"{path} has {available - reached} bytes that belong to no tensor")


def _metadata_config(metadata: object) -> dict[str, Any]:
    """Metadata are strings; boundcalc's own models keep their architecture there as JSON."""
    if not isinstance(metadata, Mapping):
        return {}
    config: dict[str, Any] = {}
    for key, value in metadata.items():
        if key in ("architecture", "config") and isinstance(value, str):
            try:
                config[key] = json.loads(value)
            except (ValueError, RecursionError):
                continue  # text that is no JSON is no config
    return config
