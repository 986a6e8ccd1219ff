"""Checkpoints written byte by byte, so that the readers are tested without the libraries they replace."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.cases.models import MODELS

Array = NDArray[Any]
CODES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "bool": "BOOL",
}


def encode(values: Array, dtype: str) -> Array:
    """Numbers as bits of a type; bfloat16 by rounding to even."""
    if dtype == "bfloat16":
        bits = np.asarray(values, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
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


def torch_zip(tensors: Mapping[str, Array], dtype: str = "float32", wrapper: str | None = None, **how: Any) -> bytes:
    """What torch.save writes for a state dict."""
    import torch

    types = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}
    state = {name: torch.as_tensor(np.asarray(values)) for name, values in tensors.items()}
    state = {name: value.to(types[dtype]) if value.is_floating_point() else value for name, value in state.items()}
    out = io.BytesIO()
    torch.save(state if wrapper is None else {wrapper: state}, out, **how)
    return out.getvalue()


torch_pickles = partial(torch_zip, _use_new_zipfile_serialization=False)
"""What torch.save wrote before torch 1.6."""


def zipped(pickled: bytes) -> bytes:
    """The zip around a data.pkl."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", b"3\n")
        archive.writestr("archive/byteorder", b"little")
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
    """The small model of a family, with so many blocks, or with other sizes than its config says; BERT's with a
    buffer."""
    model = MODELS[name]
    drawn = model.drawn(int(rng.integers(2**31)), depth, **sizes)
    buffers = {"bert.embeddings.position_ids": np.arange(6)[None]} if name == "bert" else {}
    return {key: values.astype(np.float64) for key, values in drawn.items()} | buffers, dict(model.config)


bert, gpt2, llama, vit = (partial(small, name) for name in ("bert", "gpt2", "llama", "vit"))
SMALL = {"bert": bert, "gpt2": gpt2, "llama": llama, "vit": vit}
