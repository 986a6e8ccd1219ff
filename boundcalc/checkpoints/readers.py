"""Finds and reads the files of a checkpoint: safetensors, files of torch.save, shards, folders; and live modules."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import BoundcalcError
from boundcalc.base.files import read_json
from boundcalc.base.output import reading
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.tensors import STORED, Array, Checkpoint, Tensor

_IN_DIRECTORY = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


def open_checkpoint(source: object) -> Checkpoint:
    """The checkpoint at a path, or of a live torch module; one that is open stays so."""
    if isinstance(source, Checkpoint):
        return source
    if not isinstance(source, str | Path):
        return _open_module(source)
    path = Path(source)
    reading(path)
    folder = path if path.is_dir() else path.parent
    file = next((folder / name for name in _IN_DIRECTORY if (folder / name).is_file()), path) if path.is_dir() else path
    in_folder = file in (folder, *(folder / name for name in _IN_DIRECTORY))
    if (in_folder or file.name.startswith("adapter_model.")) and (folder / "adapter_config.json").is_file():
        raise CheckpointError(
            f"{folder} has an adapter (adapter_config.json), whose weights are differences: merge it into its base "
            "model (merge_and_unload of peft), save that, and point at it"
        )
    if file == folder:
        raise CheckpointError(f"{path} has none of {', '.join(_IN_DIRECTORY)}: point at the weights file itself")
    if not file.is_file():
        raise CheckpointError(f"no file or directory {path}: point at a checkpoint file or a save_pretrained directory")
    checkpoint, config = _index(file) if file.name.endswith(".index.json") else _file(file), folder / "config.json"
    if config.is_file() and (path == folder or not checkpoint.config):
        checkpoint = replace(checkpoint, config={**checkpoint.config, **_read_config(config)})
    if in_folder and (folder / "modules.json").is_file():
        checkpoint = _with_doubt(checkpoint, folder)
    return _plain(replace(checkpoint, where=str(path)))


def find_weights_folder(path: Path) -> Path | None:
    """The folder whose model a path is: itself, or that of a weights file; None of other files."""
    folder = path if path.is_dir() else path.parent
    first = next((name for name in _IN_DIRECTORY if (folder / name).is_file()), None)
    whole = first is not None and (path.is_dir() or path.name == first)
    return folder if whole and (folder / "config.json").is_file() else None


def _file(path: Path) -> Checkpoint:
    reading(path)
    if path.suffix not in _READERS:
        endings = ", ".join(_READERS)
        raise CheckpointError(f"{path} has no known ending: need one of {endings}, an .index.json, or a directory")
    return _READERS[path.suffix](path)


def _with_doubt(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    """The checkpoint of a sentence-transformers folder, which makes no labels of its encoder's rows."""
    said = read_json(folder / "modules.json", "a table of modules", CheckpointError)
    parts = [part for part in said if isinstance(part, dict)] if isinstance(said, list) else []
    kinds = [str(part.get("type", "?")).rpartition(".")[2] for part in parts]
    doubt = (
        f"modules.json: a sentence-transformers model ({', '.join(kinds)}), and what follows its encoder is not read"
    )
    if "Normalize" in kinds:
        doubt += ": it divides answers by their norms, and x / |x| has no Lipschitz constant near 0"
    return replace(checkpoint, doubts=(*checkpoint.doubts, doubt))


_CODES = (".qweight", ".SCB", ".absmax", ".weight_format", ".g_idx")
"""Endings of names in files of quantised models."""


def _plain(checkpoint: Checkpoint) -> Checkpoint:
    """Refuses stored numbers that are codes and not the weights that the model multiplies by."""
    said = checkpoint.config.get("quantization_config")
    codes = next((name for name in checkpoint.tensors if name.endswith(_CODES)), None)
    if said is not None or codes is not None:
        method = said.get("quant_method", "quantised") if isinstance(said, dict) else "quantised"
        raise CheckpointError(
            f"{checkpoint.where} is quantised ({method}, {codes or 'quantization_config'}): its numbers are codes and "
            "no weights; point at the model before quantisation"
        )
    if not checkpoint.config.get("auto_map"):
        return checkpoint
    own = "auto_map: the code that the folder has for its model was not run"
    return replace(checkpoint, doubts=(*checkpoint.doubts, own))


def _read_config(path: Path) -> dict[str, Any]:
    """A config.json."""
    reading(path)
    try:
        config = read_json(path, "a config", CheckpointError)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} is no table of settings")
    return config


def _index(path: Path) -> Checkpoint:
    """Shards: the index says which file holds which tensor, and is compared with the files."""
    weight_map = _read_config(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{path} is not an index of shards: it has no 'weight_map'")
    shards: dict[str, Checkpoint] = {}
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or Path(shard).name != shard or shard in (".", "..", "") or "\\" in shard:
            raise CheckpointError(f"{path} names the shard {shard!r}, which is not a file next to it: refused")
        if not (path.parent / shard).is_file():
            raise CheckpointError(f"{path} names the shard {shard!r}, which is missing; fetch it")
        if shard not in shards:
            shards[shard] = _file(path.parent / shard)
        if name not in shards[shard].tensors:
            raise CheckpointError(
                f"{path} says {name!r} is in {shard!r}, which does not have it; fetch the index again"
            )
    for shard, part in shards.items():
        for name in part.tensors:
            if weight_map.get(name) != shard:
                raise CheckpointError(f"{shard!r} has {name!r}, which {path.name} does not place there")
    return Checkpoint(str(path), {name: shards[shard].tensors[name] for name, shard in weight_map.items()})


@contextmanager
def sound(path: Path, kind: str) -> Iterator[None]:
    """Reads a file of which any byte may be damaged: whatever a library raises becomes one clear line."""
    try:
        yield
    except BoundcalcError:
        raise
    except Exception as error:
        text = ascii(str(error))[1:-1]
        why = text if len(text) <= 100 else text[:100] + "..."
        raise CheckpointError(f"{path} is not a whole {kind} ({type(error).__name__}: {why}); fetch it again") from None


# -- safetensors: the library compares the header with the file, and numbers are mapped where the header says

_MOST_HEADER = 10_000_000
"""Bytes of a header that is read: of some 100,000 tensors, and it takes up to forty times as much memory."""
_SHORT = {"F": "float", "BF": "bfloat", "I": "int", "U": "uint"}
_TYPES = {f"{short}{bits}": f"{kind}{bits}" for short, kind in _SHORT.items() for bits in (8, 16, 32, 64)}
_TYPES = {short: kind for short, kind in _TYPES.items() if kind in STORED} | {"BOOL": "bool"}


def _open_safetensors(path: Path) -> Checkpoint:
    """The tensors of one file; metadata may hold the architecture of this library's own models as JSON."""
    from safetensors import safe_open

    with sound(path, "safetensors file"):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MOST_HEADER:
                raise CheckpointError(f"{path} has a header of {length:,} bytes, and at most {_MOST_HEADER:,} are read")
            with safe_open(path, "np"):
                header = json.loads(file.read(length))
        said = header.pop("__metadata__", {}).get("architecture")
        tensors = {name: _mapped(path, name, entry, 8 + length) for name, entry in header.items()}
    config: dict[str, Any] = {}
    if said is not None:
        with suppress(ValueError, RecursionError):  # text that is no JSON is no architecture
            config["architecture"] = json.loads(said)
    return Checkpoint(str(path), tensors, config)


def _mapped(path: Path, name: str, entry: dict[str, Any], start: int) -> Tensor:
    """A read-only view of part of a file. The map is this tensor's own: when it goes, its pages go."""
    if entry["dtype"] not in _TYPES:
        raise CheckpointError(
            f"{path}: {name!r:.80} has type {entry['dtype']}, which is no type of weights: of a "
            "quantised model, take the one before quantisation"
        )
    dtype, shape, first = _TYPES[entry["dtype"]], tuple(entry["shape"]), start + entry["data_offsets"][0]
    stored = STORED[dtype]

    def fetch() -> Array:
        with sound(path, "safetensors file"):  # it may have been cut since it was opened
            if 0 in shape:
                return np.zeros(shape, stored)
            return np.memmap(path, dtype=stored, mode="r", offset=first, shape=shape)

    return Tensor(name, shape, dtype, fetch, f"{path.name}:{first}")


# -- torch: files of torch.save, read by weights_only, which runs no code of theirs, and live modules

_WRAPPERS = ("state_dict", "model_state_dict", "model", "module")
"""Keys under which training scripts keep the weights, next to an optimiser."""


def _open_torch(path: Path) -> Checkpoint:
    """The tensors of a .pt, .pth, .bin or .ckpt file; of a zip file they stay on the disk until they are read."""
    import torch

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
        table = root
        if isinstance(root, Mapping):
            table = next((root[key] for key in _WRAPPERS if isinstance(root.get(key), Mapping)), root)
        if not isinstance(table, Mapping):
            raise CheckpointError(
                f"{path} holds a {type(root).__name__}, not a table of tensors: save model.state_dict()"
            )
        tensors = {str(name): value for name, value in table.items() if isinstance(value, torch.Tensor)}
        for name, value in tensors.items():
            if value.numel() * value.element_size() > value.untyped_storage().nbytes():  # rows of stride 0
                raise CheckpointError(f"{path}: {name!r} of shape {tuple(value.shape)} is larger than its storage")
        return _open_module(tensors, str(path))


_READERS: Mapping[str, Callable[[Path], Checkpoint]] = {
    ".safetensors": _open_safetensors,
    **dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), _open_torch),
}


def _open_module(module: Any, where: str | None = None) -> Checkpoint:
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
    return Checkpoint(where or type(module).__name__, tensors, settings, buffers=frozenset(name for name, _ in named()))


def _fetch(value: Any, dtype: str) -> Array:
    import torch

    plain = value.detach().cpu()
    return (plain.view(torch.uint16) if dtype == "bfloat16" else plain).numpy()
