"""Checkpoints of small models as files, those that do harm among them."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def state(tensors: Mapping[str, Array], dtype: str) -> dict[str, Any]:
    """Torch tensors, whose floats are of this type."""
    import torch

    values = {
        name: torch.as_tensor(np.ascontiguousarray(array).reshape(array.shape)) for name, array in tensors.items()
    }
    return {name: v.to(getattr(torch, dtype)) if v.is_floating_point() else v for name, v in values.items()}


def encode(values: Array, dtype: str) -> Array:
    """Numbers as bits of a type."""
    import torch

    (tensor,) = state({"": values}, dtype).values()
    return (tensor.view(torch.uint16) if dtype == "bfloat16" else tensor).numpy()


def safetensors(
    tensors: Mapping[str, Array], dtype: str = "float32", metadata: Mapping[str, str] | None = None
) -> bytes:
    """A safetensors file; integer arrays keep their type."""
    from safetensors.torch import save

    return save(state(tensors, dtype), None if metadata is None else dict(metadata))


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

    out = io.BytesIO()
    torch.save(state(tensors, dtype) if wrapper is None else {wrapper: state(tensors, dtype)}, out, **how)
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

_HEADS = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 12}
_ENCODER = _HEADS | {"vocab_size": 11, "max_position_embeddings": 6}
_GPT2 = {"n_embd": 8, "n_head": 4, "n_layer": 2, "n_positions": 6, "vocab_size": 11, "n_inner": 12}
_IMAGES = _HEADS | {"image_size": 4, "patch_size": 2, "num_channels": 3}
_CONFIGS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "bert": ("bert", "BertForSequenceClassification", _ENCODER | {"num_labels": 3}),
    "gpt2": ("gpt2", "GPT2LMHeadModel", _GPT2),
    "llama": ("qwen2", "Qwen2ForCausalLM", _ENCODER | {"num_key_value_heads": 2, "tie_word_embeddings": False}),
    "vit": ("vit", "ViTForImageClassification", _IMAGES | {"num_labels": 3}),
}
"""By family: the type, the class and the sizes of a small model, as its config.json has them."""


def small(name: str, rng: np.random.Generator, **sizes: int) -> tuple[dict[str, Array], dict[str, Any]]:
    """The small model of a family, perhaps of other sizes, with weights as after training; BERT's with a buffer."""
    from tests.checkpoints.live import hf

    kind, cls, fields = _CONFIGS[name]
    shapes = getattr(hf, cls)(hf.AutoConfig.for_model(kind, **{**fields, **sizes})).named_parameters()
    drawn = {
        key: ((value.ndim == 1 and key.endswith("weight")) + 0.3 * rng.standard_normal(tuple(value.shape)))
        for key, value in shapes
    }
    buffers = {"bert.embeddings.position_ids": np.arange(6)[None]} if name == "bert" else {}
    exact = {key: values.astype(np.float32).astype(np.float64) for key, values in drawn.items()}
    return exact | buffers, {"model_type": kind, "architectures": [cls], **fields, **sizes}


bert, gpt2, llama, vit = (partial(small, name) for name in _CONFIGS)
SMALL = {"bert": bert, "gpt2": gpt2, "llama": llama, "vit": vit}
