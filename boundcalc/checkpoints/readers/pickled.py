"""PyTorch's files without torch, and without running what a pickle asks to run.

A .pt, .bin or .ckpt file is a zip: `data.pkl` says how tensors are cut from the storages `data/0`, `data/1`, ...,
which lie in the file uncompressed and are memory-mapped. Before torch 1.6 it was five pickles (a magic number, a
version, what the machine was like, the tensors, the names of their storages), and then the storages. Either way a
pickle is interpreted with a list of the few names that tensors need; any other name, hence any code it would call, is
refused.
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
from typing import Any, BinaryIO

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import (
    STORED,
    TORCH_NAMES,
    Array,
    Checkpoint,
    Tensor,
    fingerprint,
    mapped,
    sound,
)

_MOST_PICKLE = 200_000_000
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
class _Bytes:
    """Where the bytes of a storage begin, looked up when they are needed, and how many there are."""

    begin: Callable[[], int]
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
    ("torch._utils", "_rebuild_tensor"): _rebuild,
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
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _Typed(_STORAGES[name])
        if module == "torch.storage" and name == "UntypedStorage":
            return _Typed("uint8")
        if module == "torch" and name in TORCH_NAMES:
            return _Typed(TORCH_NAMES[name])
        raise CheckpointError(
            f"{self.path} asks to load {module}.{name}, which is more than tensors and was not run; "
            "save the state dict alone, or as safetensors"
        )

    def persistent_load(self, pid: Any) -> _Storage:
        kind, typed, key, _location, size, *view = pid
        if kind != "storage" or not isinstance(typed, _Typed) or not str(key).isalnum() or view not in ([], [None]):
            raise CheckpointError(f"{self.path} has a damaged storage entry")
        storage = _Storage(str(key), typed.dtype, int(size))
        if self.storages.setdefault(storage.key, storage) != storage:
            raise CheckpointError(f"{self.path} has two storages of one name")
        return storage


def open_torch_zip(path: Path) -> Checkpoint:
    """The tensors of a file written by torch.save."""
    with sound(path, "torch file"):
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            pickled = [name for name in members if name.endswith("data.pkl")]
            if len(pickled) != 1:
                raise CheckpointError(f"{path} is a zip file without the data.pkl that torch.save writes")
            prefix = pickled[0].removesuffix("data.pkl")
            if members[pickled[0]].file_size > _MOST_PICKLE:
                raise CheckpointError(
                    f"{path} has a data.pkl of {members[pickled[0]].file_size} bytes: not a table of tensors"
                )
            if f"{prefix}byteorder" in members and archive.read(f"{prefix}byteorder") != b"little":
                raise CheckpointError(f"{path} was written on a big-endian machine, which is not supported")
            content = archive.read(pickled[0])
        _check_memo(content)

        def locate(key: str) -> _Bytes | None:
            info = members.get(f"{prefix}data/{key}")
            if info is None:
                return None
            if info.compress_type != zipfile.ZIP_STORED:
                raise CheckpointError(f"{path}: storage {key!r} is compressed, which torch.save never does")
            return _Bytes(partial(_begin, path, info.header_offset, info.file_size), info.file_size)

        return _table(path, _Reader(io.BytesIO(content), path).load(), locate)


_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


def open_torch_pickles(path: Path) -> Checkpoint:
    """The tensors of a file written by torch.save before torch 1.6."""
    with sound(path, "torch file"), path.open("rb") as file:
        if _next(path, file).load() != _MAGIC:
            raise CheckpointError(
                f"{path} is a pickle that torch.save did not write: it was not run; save the state dict with torch.save, "
                "or as safetensors"
            )
        if _next(path, file).load() != _PROTOCOL or _next(path, file).load()["little_endian"] is not True:
            raise CheckpointError(f"{path} was written by another machine or version, which is not supported")
        reader = _next(path, file)
        root, keys = reader.load(), _next(path, file).load()
        if not isinstance(keys, list) or sorted(keys) != sorted(reader.storages):
            raise CheckpointError(f"{path} has storages that are not those of its tensors; fetch it again")
        places: dict[str, _Bytes] = {}
        reached, whole = file.tell(), path.stat().st_size
        for key in keys:
            storage = reader.storages[key]
            file.seek(reached)
            size = storage.size * STORED[storage.dtype].itemsize
            if int.from_bytes(file.read(8), "little") != storage.size or reached + 8 + size > whole:
                raise CheckpointError(f"{path} is truncated or damaged at byte {reached}; fetch it again")
            places[key] = _Bytes(partial(int, reached + 8), size)
            reached += 8 + size
        if reached != whole:
            raise CheckpointError(f"{path} has {whole - reached} bytes that belong to no tensor; fetch it again")
        return _table(path, root, places.get)


def _next(path: Path, file: BinaryIO) -> _Reader:
    """A reader of the next of several pickles, which is looked through before anything in it is believed."""
    begin = file.tell()
    for _ in pickletools.genops(file):
        if file.tell() - begin > _MOST_PICKLE:
            raise CheckpointError(f"{path} has a pickle of more than {_MOST_PICKLE} bytes: not a table of tensors")
    size = file.tell() - begin
    file.seek(begin)
    content = file.read(size)
    _check_memo(content)
    return _Reader(io.BytesIO(content), path)


def _check_memo(content: bytes) -> None:
    """A pickle that numbers its memo beyond its own length would only take memory."""
    for code, argument, _ in pickletools.genops(content):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise ValueError("data.pkl has an impossible memo")


def _table(path: Path, root: object, locate: Callable[[str], _Bytes | None]) -> Checkpoint:
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
            tensors[str(name)] = _tensor(path, str(name), value, locate)
    return Checkpoint(str(path), tensors, fingerprint=fingerprint(path))


def _tensor(path: Path, name: str, value: _Strided, locate: Callable[[str], _Bytes | None]) -> Tensor:
    place = locate(value.storage.key)
    if place is None:
        raise CheckpointError(f"{path}: the storage of {name!r} is missing; fetch it again")
    width = STORED[value.dtype].itemsize
    start = value.offset * width
    numbers = (*value.shape, *value.stride, value.offset)
    if len(value.shape) != len(value.stride) or not all(isinstance(n, int) and 0 <= n < 2**62 for n in numbers):
        raise CheckpointError(f"{path}: {name!r} has impossible sizes {value.shape}")
    if math.prod(value.shape) * width > place.size:  # rows of stride 0 could be any number
        raise CheckpointError(f"{path}: {name!r} of shape {value.shape} is larger than its storage; fetch it again")
    spread = sum((n - 1) * s for n, s in zip(value.shape, value.stride, strict=True)) + 1
    span = 0 if math.prod(value.shape) == 0 else spread
    if start + span * width > place.size:
        raise CheckpointError(f"{path}: {name!r} of shape {value.shape} is larger than its storage; fetch it again")
    fetch = partial(_fetch, path, place.begin, start, value, span)
    return Tensor(
        name, value.shape, value.dtype, fetch, f"{path.name}:{value.storage.key}:{value.offset}:{value.stride}"
    )


def _begin(path: Path, header: int, size: int) -> int:
    """Where the bytes of a member of a zip begin."""
    with path.open("rb") as file:
        file.seek(header)
        local = file.read(30)
        if len(local) < 30 or local[:4] != b"PK\x03\x04":
            raise CheckpointError(f"{path} is damaged at byte {header}; fetch it again")
        name_length, extra_length = struct.unpack("<HH", local[26:30])
    begin = header + 30 + name_length + extra_length
    if begin + size > path.stat().st_size:
        raise CheckpointError(f"{path} is truncated; fetch it again")
    return begin


def _fetch(path: Path, begin: Callable[[], int], start: int, value: _Strided, span: int) -> Array:
    if span == 0:
        return np.zeros(value.shape, STORED[value.dtype])
    with sound(path, "torch file"):
        flat = mapped(path, begin() + start, value.dtype, (span,))
    strides = tuple(s * flat.itemsize for s in value.stride)
    return np.lib.stride_tricks.as_strided(flat, value.shape, strides, writeable=False)
