"""Finds the files of a checkpoint: one file, shards with an index, or a directory with a config.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from boundcalc.base.files import read_json
from boundcalc.base.output import reading
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.readers.base import Checkpoint, Tensor
from boundcalc.checkpoints.readers.safetensors import open_safetensors
from boundcalc.checkpoints.readers.torch_weights import open_module, open_torch

_READERS: Mapping[str, Callable[[Path], Checkpoint]] = {
    ".safetensors": open_safetensors,
    **dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), open_torch),
}
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
        return open_module(source)
    path = Path(source)
    reading(path)
    folder = path if path.is_dir() else path.parent
    file = next((folder / name for name in _IN_DIRECTORY if (folder / name).is_file()), path) if path.is_dir() else path
    if file in (folder, *(folder / name for name in _IN_DIRECTORY)) or file.name.startswith("adapter_model."):
        _refuse_adapter(folder)
    if file == folder:
        raise CheckpointError(f"{path} has none of {', '.join(_IN_DIRECTORY)}: point at the weights file itself")
    if not file.is_file():
        raise CheckpointError(f"no file or directory {path}: point at a checkpoint file or a save_pretrained directory")
    checkpoint, config = _index(file) if file.name.endswith(".index.json") else _file(file), folder / "config.json"
    if config.is_file() and (path == folder or not checkpoint.config):
        checkpoint = replace(checkpoint, config={**checkpoint.config, **_read_config(config)})
    if file.name in _IN_DIRECTORY:
        checkpoint = _with_pooling(checkpoint, folder)
    return _plain(replace(checkpoint, where=str(path)))


def _file(path: Path) -> Checkpoint:
    reading(path)
    reader = _READERS.get(path.suffix)
    if reader is None:
        endings = ", ".join(_READERS)
        raise CheckpointError(f"{path} has no known ending: need one of {endings}, an .index.json, or a directory")
    return reader(path)


def _refuse_adapter(folder: Path) -> None:
    """Weights of an adapter are differences: the model is another than the base model's weights say."""
    if (folder / "adapter_config.json").is_file():
        raise CheckpointError(
            f"{folder} has an adapter (adapter_config.json): merge it into its base model (merge_and_unload of peft), "
            "save that, and point at it"
        )


POOLING = "sentence pooling"
"""Where a config keeps how a sentence-transformers folder pools rows: "mean" or "cls"."""
_NORMALISES = "its last part divides each answer by its norm, and x / |x| has no Lipschitz constant near 0"


def _with_pooling(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    """The checkpoint with the pooling of a sentence-transformers folder, or a doubt where more follows its encoder."""
    path = folder / "modules.json"
    if not path.is_file():
        return checkpoint
    parts = [part for part in read_json(path, "a table of modules", CheckpointError) if isinstance(part, dict)]
    kinds = [str(part.get("type", "?")).rpartition(".")[2] for part in parts]
    why = _NORMALISES if kinds[-1:] == ["Normalize"] else "what follows its encoder is not read"
    if (
        kinds == ["Transformer", "Pooling"]
        and (config := folder / str(parts[1].get("path", "")) / "config.json").is_file()
    ):
        modes = _pooling_modes(_read_config(config))
        how = {"mean": "mean", "mean_tokens": "mean", "cls": "cls", "cls_token": "cls"}.get(" ".join(modes))
        if how is not None:
            return replace(checkpoint, config={**checkpoint.config, POOLING: how})
        why = f"no layer pools its rows by {' and '.join(modes) or 'nothing'}"
    doubt = f"modules.json: a sentence-transformers model ({', '.join(kinds)}), and {why}"
    return replace(checkpoint, doubts=(doubt,))


def _pooling_modes(said: Mapping[str, Any]) -> tuple[str, ...]:
    """How rows are pooled, as releases before 5 (a truth value each) and since (a word, or several) write it."""
    words = said.get("pooling_mode")
    if words is None:
        return tuple(name.removeprefix("pooling_mode_") for name, on in said.items() if on is True and "mode" in name)
    return (words,) if isinstance(words, str) else tuple(map(str, words))


_CODES = (".qweight", ".SCB", ".absmax", ".weight_format", ".g_idx")
"""Endings of names in files of quantised models."""


def _plain(checkpoint: Checkpoint) -> Checkpoint:
    """Refuses stored numbers that are codes and not the weights that the model multiplies by."""
    if checkpoint.config.get("auto_map"):
        doubts = (*checkpoint.doubts, "auto_map: the code that the folder has for its model was not run")
        checkpoint = replace(checkpoint, doubts=doubts)
    said = checkpoint.config.get("quantization_config")
    codes = next((name for name in checkpoint.tensors if name.endswith(_CODES)), None)
    if said is None and codes is None:
        return checkpoint
    method = said.get("quant_method", "quantised") if isinstance(said, dict) else "quantised"
    why = "quantization_config" if said is not None else codes
    raise CheckpointError(
        f"{checkpoint.where} is quantised ({method}, {why}): its numbers are codes and no weights; point at the model "
        "before quantisation"
    )


def find_weights_folder(path: Path) -> Path | None:
    """The folder whose model a path is: itself, or that of a weights file; None of other files."""
    folder = path if path.is_dir() else path.parent
    if not (folder / "config.json").is_file():
        return None
    first = next((name for name in _IN_DIRECTORY if (folder / name).is_file()), None)
    return folder if first is not None and (path.is_dir() or path.name == first) else None


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
    tensors: dict[str, Tensor] = {}
    for name, shard in weight_map.items():
        if shard not in shards:
            shards[shard] = _file(_inside(path, shard))
        if name not in shards[shard].tensors:
            raise CheckpointError(
                f"{path} says {name!r} is in {shard!r}, which does not have it; fetch the index again"
            )
        tensors[name] = shards[shard].tensors[name]
    for shard, part in shards.items():
        for name in part.tensors:
            if weight_map.get(name) != shard:
                raise CheckpointError(f"{shard!r} has {name!r}, which {path.name} does not place there")
    return Checkpoint(str(path), tensors)


def _inside(index: Path, shard: object) -> Path:
    """An index may only name files next to it."""
    if not isinstance(shard, str) or Path(shard).name != shard or shard in (".", "..", "") or "\\" in shard:
        raise CheckpointError(f"{index} names the shard {shard!r}, which is not a file next to it: refused")
    path = index.parent / shard
    if not path.is_file():
        raise CheckpointError(f"{index} names the shard {shard!r}, which is missing; fetch it")
    return path
