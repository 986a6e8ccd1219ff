"""PyTorch's zip files without torch, and without running what a pickle asks to run.

A .pt, .bin or .ckpt file is a zip: `data.pkl` says how tensors are cut from the storages `data/0`, `data/1`, ...,
which lie in the file uncompressed and are memory-mapped. The pickle is interpreted with a list of the few names
that tensors need; any other name, hence any code it would call, is refused.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import STORED, Array, Checkpoint, Tensor, fingerprint, mapped, sound

MOST_PICKLE = 200_000_000
"""Bytes of data.pkl; it names tensors and does not hold them."""

_STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
_DTYPES = {
    **{name: name for name in ("float64", "float32", "float16", "bfloat16")},
    **{name: name for name in ("int64", "int32", "int16", "int8", "uint8", "bool")},
    "float8_e4m3fn": "float8_e4m3",
    "float8_e5m2": "float8_e5m2",
}
_WRAPPERS = ("state_dict", "model_state_dict", "model", "module")


@dataclass(frozen=True, slots=True)
class _Typed:
    """Stands for torch.FloatStorage and its kin, and for torch.float32 and its kin."""

    dtype: str


@dataclass(frozen=True, slots=True)
class _Storage:
    key: str
    dtype: str
    size: int


@dataclass(frozen=True, slots=True)
class _Strided:
    """A tensor as the pickle describes it."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


def _rebuild(storage: _Storage, offset: int, shape: Any, stride: Any, *_: Any) -> _Strided:
    return _Strided(storage, offset, tuple(shape), tuple(stride), storage.dtype)


def _rebuild_v3(
    storage: _Storage, offset: int, shape: Any, stride: Any, _a: Any, _b: Any, dtype: Any, *_: Any
) -> _Strided:
    return _Strided(storage, offset, tuple(shape), tuple(stride), dtype.dtype)


def _rebuild_parameter(data: _Strided, *_: Any) -> _Strided:
    return data


_ALLOWED: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuild_v3,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch", "Size"): tuple,
}


class _Reader(pickle.Unpickler):
    """Knows the names a table of tensors needs, and refuses all others before anything is called."""

    def __init__(self, file: io.BytesIO, path: Path) -> None:
        super().__init__(file, encoding="utf-8")
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _Typed(_STORAGES[name])
        if module == "torch.storage" and name == "UntypedStorage":
            return _Typed("uint8")
        if module == "torch" and name in _DTYPES:
            return _Typed(_DTYPES[name])
        raise CheckpointError(
            f"{self.path} asks to load {module}.{name}, which is more than tensors and was not run; "
            "save the state dict alone, or as safetensors"
        )

    def persistent_load(self, pid: Any) -> _Storage:
        kind, typed, key, _location, size = pid
        if kind != "storage" or not isinstance(typed, _Typed) or not str(key).isalnum():
            raise CheckpointError(f"{self.path} has a damaged storage entry")
        return _Storage(str(key), typed.dtype, int(size))


def open_torch_zip(path: Path) -> Checkpoint:
    """The tensors of a file written by torch.save."""
    with sound(path, "torch file"):
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            pickled = [name for name in members if name.endswith("data.pkl")]
            if len(pickled) != 1:
                raise CheckpointError(f"{path} is a zip file without the data.pkl that torch.save writes")
            prefix = pickled[0].removesuffix("data.pkl")
            if members[pickled[0]].file_size > MOST_PICKLE:
                raise CheckpointError(
                    f"{path} has a data.pkl of {members[pickled[0]].file_size} bytes: not a table of tensors"
                )
            if f"{prefix}byteorder" in members and archive.read(f"{prefix}byteorder") != b"little":
                raise CheckpointError(f"{path} was written on a big-endian machine, which is not supported")
            content = archive.read(pickled[0])
        _check_memo(content)
        return _table(path, _Reader(io.BytesIO(content), path).load(), prefix, members)


def _check_memo(content: bytes) -> None:
    """A pickle that numbers its memo beyond its own length would only take memory."""
    for code, argument, _ in pickletools.genops(content):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise ValueError("data.pkl has an impossible memo")


def _table(path: Path, root: object, prefix: str, members: Mapping[str, zipfile.ZipInfo]) -> Checkpoint:
    found = root
    for key in _WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
            break
    if not isinstance(found, Mapping):
        raise CheckpointError(f"{path} holds a {type(root).__name__}, not a table of tensors: save model.state_dict()")
    tensors: dict[str, Tensor] = {}
    for name, value in found.items():
        if isinstance(value, _Strided):
            tensors[str(name)] = _tensor(path, str(name), value, prefix, members)
    return Checkpoint(str(path), tensors, fingerprint=fingerprint(path))


def _tensor(path: Path, name: str, value: _Strided, prefix: str, members: Mapping[str, zipfile.ZipInfo]) -> Tensor:
    info = members.get(f"{prefix}data/{value.storage.key}")
    if info is None:
        raise CheckpointError(f"{path}: the storage of {name!r} is missing; fetch it again")
    if info.compress_type != zipfile.ZIP_STORED:
        raise CheckpointError(f"{path}: the storage of {name!r} is compressed, which torch.save never does")
    width = STORED[value.dtype].itemsize
    start = value.offset * width
    numbers = (*value.shape, *value.stride, value.offset)
    if len(value.shape) != len(value.stride) or not all(isinstance(n, int) and 0 <= n < 2**62 for n in numbers):
        raise CheckpointError(f"{path}: {name!r} has impossible sizes {value.shape}")
    if math.prod(value.shape) * width > info.file_size:  # rows of stride 0 could be any number
        raise CheckpointError(f"{path}: {name!r} of shape {value.shape} is larger than its storage; fetch it again")
    spread = sum((n - 1) * s for n, s in zip(value.shape, value.stride, strict=True)) + 1
    span = 0 if math.prod(value.shape) == 0 else spread
    if start + span * width > info.file_size:
        raise CheckpointError(f"{path}: {name!r} of shape {value.shape} is larger than its storage; fetch it again")
    fetch = partial(_fetch, path, info.header_offset, start, value, span, info.file_size)
    return Tensor(name, value.shape, value.dtype, fetch, f"{path.name}:{value.storage.key}:{value.offset}")


def _fetch(path: Path, header: int, start: int, value: _Strided, span: int, size: int) -> Array:
    if span == 0:
        return np.zeros(value.shape, STORED[value.dtype])
    with sound(path, "torch file"):
        with path.open("rb") as file:
            file.seek(header)
            local = file.read(30)
            if len(local) < 30 or local[:4] != b"PK\x03\x04":
                raise CheckpointError(f"{path} is damaged at byte {header}; fetch it again")
            name_length, extra_length = struct.unpack("<HH", local[26:30])
        begin = header + 30 + name_length + extra_length
        if begin + size > path.stat().st_size:
            raise CheckpointError(f"{path} is truncated; fetch it again")
        flat = mapped(path, begin + start, value.dtype, (span,))
    strides = tuple(s * flat.itemsize for s in value.stride)
    return np.lib.stride_tricks.as_strided(flat, value.shape, strides, writeable=False)
