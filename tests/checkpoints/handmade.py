"""Checkpoints written byte by byte, so that the readers are tested without the libraries they replace."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.checkpoints.decode import float8_values
from boundcalc.checkpoints.readers.base import Checkpoint, Tensor
from tests.cases.models import MODELS

Array = NDArray[Any]
CODES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64",
    "bool": "BOOL",
}


def checkpoint(arrays: Mapping[str, Array], config: Mapping[str, Any] | None = None) -> Checkpoint:
    """A checkpoint of arrays at hand."""
    tensors = {
        name: Tensor(name, values.shape, str(values.dtype), partial(np.asarray, values), str(id(values)))
        for name, values in arrays.items()
    }
    return Checkpoint("m", tensors, config or {})


def encode(values: Array, dtype: str) -> Array:
    """Numbers as bits of a type; bfloat16 by rounding to even, float8 by the nearest value."""
    if dtype == "bfloat16":
        bits = np.asarray(values, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    if dtype.startswith("float8"):
        table = float8_values(dtype)
        usable = np.where(np.isfinite(table), table, 1e30)
        return np.abs(np.asarray(values, np.float32)[..., None] - usable).argmin(axis=-1).astype(np.uint8)
    return np.asarray(values, dtype)


def safetensors(
    tensors: Mapping[str, Array], dtype: str = "float32", metadata: Mapping[str, str] | None = None
) -> bytes:
    """A safetensors file; integer arrays keep their type."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    data = b""
    for name, values in tensors.items():
        kind = dtype if np.asarray(values).dtype.kind == "f" else str(np.asarray(values).dtype)
        raw = np.ascontiguousarray(encode(values, kind)).tobytes()
        header[name] = {
            "dtype": CODES[kind],
            "shape": list(np.shape(values)),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def save(
    path: Path, tensors: Mapping[str, Array], config: Mapping[str, Any] | None = None, dtype: str = "float32"
) -> Path:
    """A directory as save_pretrained writes it."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "model.safetensors").write_bytes(safetensors(tensors, dtype))
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    return path


def save_shards(path: Path, tensors: Mapping[str, Array], config: Mapping[str, Any], shards: int = 3) -> Path:
    """The same in several files with an index."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for i in range(shards):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        part = names[i::shards]
        (path / file).write_bytes(safetensors({name: tensors[name] for name in part}))
        weight_map |= dict.fromkeys(part, file)
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return path


class _Pickle:
    """Writes the few opcodes a table of tensors needs, without importing torch."""

    def __init__(self, *, old: bool = False) -> None:
        """`old`: storages have a sixth entry, as before torch 1.6."""
        self.old = old
        self.out = io.BytesIO()
        self.out.write(b"\x80\x02")

    def name(self, module: str, name: str) -> None:
        self.out.write(b"c" + module.encode() + b"\n" + name.encode() + b"\n")

    def text(self, value: str) -> None:
        raw = value.encode()
        self.out.write(b"X" + struct.pack("<I", len(raw)) + raw)

    def whole(self, value: int) -> None:
        self.out.write(b"J" + struct.pack("<i", value))

    def op(self, code: bytes) -> None:
        self.out.write(code)

    def numbers(self, values: tuple[int, ...]) -> None:
        self.op(b"(")
        for value in values:
            self.whole(value)
        self.op(b"t")

    def tensor(self, key: str, storage: str, values: Array) -> None:
        self.name("torch._utils", "_rebuild_tensor_v2")
        self.op(b"((")
        self.text("storage")
        self.name("torch", storage)
        self.text(key)
        self.text("cpu")
        self.whole(values.size)
        self.op(b"NtQ" if self.old else b"tQ")
        self.whole(0)
        self.numbers(values.shape)
        strides = tuple(s // values.itemsize for s in values.strides)
        self.numbers(strides)
        self.op(b"\x89")
        self.name("collections", "OrderedDict")
        self.op(b")RtR")


STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
}


def torch_zip(tensors: Mapping[str, Array], dtype: str = "float32", wrapper: str | None = None) -> bytes:
    """What torch.save writes for a state dict."""
    return zipped(*_state_dict(_Pickle(), tensors, dtype, wrapper))


def torch_pickles(tensors: Mapping[str, Array], dtype: str = "float32", root: bytes | None = None) -> bytes:
    """What torch.save wrote before torch 1.6; `root` stands in for the pickle of the tensors."""
    pickled, storages = _state_dict(_Pickle(old=True), tensors, dtype)
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    values = [v if np.asarray(v).dtype.kind != "f" else encode(v, dtype) for v in tensors.values()]
    out = b"".join(pickle.dumps(value, protocol=2) for value in (0x1950A86A20F9469CFC6C, 1001, machine))
    out += root or pickled
    out += pickle.dumps([str(i) for i in range(len(storages))], protocol=2)
    return out + b"".join(struct.pack("<q", v.size) + raw for v, raw in zip(values, storages, strict=True))


def _state_dict(
    script: _Pickle, tensors: Mapping[str, Array], dtype: str, wrapper: str | None = None
) -> tuple[bytes, list[bytes]]:
    """A pickle that names tensors, and their storages."""
    if wrapper is not None:
        script.op(b"}")
        script.text(wrapper)
    script.name("collections", "OrderedDict")
    script.op(b")R")
    storages: list[bytes] = []
    for name, values in tensors.items():
        kind = dtype if np.asarray(values).dtype.kind == "f" else str(np.asarray(values).dtype)
        stored = encode(values, kind)
        script.text(name)
        script.tensor(str(len(storages)), STORAGES[kind], stored)
        script.op(b"s")
        storages.append(stored.tobytes(order="A"))
    if wrapper is not None:
        script.op(b"s")
    script.op(b".")
    return script.out.getvalue(), storages


def zipped(pickled: bytes, storages: list[bytes] = []) -> bytes:  # noqa: B006 - never changed
    """The zip around a data.pkl."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", b"little")
        for i, raw in enumerate(storages):
            archive.writestr(f"archive/data/{i}", raw)
    return out.getvalue()


class Payload:
    """Unpickled carelessly, it makes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, (f"open({str(self.target)!r}, 'w').close()",))


def payload(target: Path) -> bytes:
    """A pickle that runs code."""
    return pickle.dumps({"weight": Payload(target)}, protocol=2)


# -- small models


def small(name: str, rng: np.random.Generator, depth: int = 2, **sizes: int) -> tuple[dict[str, Array], dict[str, Any]]:
    """The small model of a family, with so many blocks, or with other sizes than its config says; BERT's with a buffer."""
    model = MODELS[name]
    model = replace(model, reads=tuple(range(depth)), sizes={**model.sizes, **sizes})
    drawn = model.drawn(int(rng.integers(2**31)))
    buffers = {"bert.embeddings.position_ids": np.arange(6)[None]} if name == "bert" else {}
    return {key: values.astype(np.float64) for key, values in drawn.items()} | buffers, dict(model.config)


bert, gpt2, llama, vit = (partial(small, name) for name in ("bert", "gpt2", "llama", "vit"))
SMALL = {"bert": bert, "gpt2": gpt2, "llama": llama, "vit": vit}
