"""A module's forward pass in double precision, recorded part by part, and the inputs that it is tried on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundcalc.base.validate import size
from boundcalc.checkpoints.errors import CheckpointError, NotRun
from boundcalc.checkpoints.families.table import TOKENS, Model
from boundcalc.checkpoints.layers import Rows
from boundcalc.checkpoints.modules import answer, as_arrays, double_precision_copy, ready
from boundcalc.layers.attention import attentions
from boundcalc.layers.embedding import token_tables
from boundcalc.setting import Architecture

Call = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Calls:
    """What entered and left each part of a module, call by call."""

    reads: dict[str, list[Rows]]
    makes: dict[str, list[Rows]]


@dataclass(frozen=True)
class Recorded:
    """A forward pass of a module: inputs, outputs, values between parts, whether a step was below double."""

    module: Any
    x: Rows
    outputs: Rows | None
    calls: Calls
    single: bool


def record(
    module: Any, model: Model, architecture: Architecture | None, inputs: Any = None, *, call: Call | None = None
) -> Recorded:
    """A module's forward pass in double precision; without inputs on some that the architecture reads."""
    x = np.asarray(inputs) if architecture is None or inputs is not None else example_inputs(model, architecture)
    try:
        return Recorded(module, x, *_run(module, x, call))
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise NotRun(
            f"the module does not take inputs of shape {x.shape} ({x.dtype}): {' '.join(str(error).split())[:200]}; "
            "give some of its own (--data, inputs=), or call=lambda module, x: ..."
        ) from error


def _run(module: Any, x: Rows, call: Call | None) -> tuple[Rows, Calls, bool]:
    """The outputs, what passed every part, and whether any step was narrower than double."""
    import torch

    seen = Calls({}, {})
    copy = double_precision_copy(module)

    def note(names: Sequence[str]) -> Callable[[Any, Any, Any], None]:
        def hook(_: Any, args: Any, out: Any) -> None:
            for kept, value in ((seen.reads, args[0] if args else None), (seen.makes, out)):
                value = value[0] if isinstance(value, tuple) and value else value
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    rows = value.detach().double().cpu().numpy().copy()
                    for name in names:
                        kept.setdefault(name, []).append(rows)

        return hook

    parts: dict[Any, list[str]] = {}
    for name, part in copy.named_modules(remove_duplicate=False):
        if not _of_many(part):
            parts.setdefault(part, []).append(name)
    handles = [part.register_forward_hook(note(names)) for part, names in parts.items()]
    try:
        with ready(), _narrow() as narrow:
            out = answer(copy, as_arrays(x), call)
    finally:
        for handle in handles:
            handle.remove()
    return out, seen, bool(narrow)


def _of_many(part: Any) -> bool:
    """Whether a part has a weight next to parts that have some: what enters and leaves it is not that weight's."""
    own = [value for value in part.parameters(recurse=False) if value.ndim > 1]
    inner = any(True for child in part.children() for _ in child.parameters())
    return (len(own) > 1 or (bool(own) and inner)) and type(part).__name__ != "MultiheadAttention"


@contextmanager
def _narrow() -> Iterator[list[str]]:
    """Names of operations that gave numbers narrower than double."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    narrow: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            for value in out if isinstance(out, tuple | list) else (out,):
                if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float16, torch.bfloat16):
                    narrow.append(str(func))
            return out

    with Watch():
        yield narrow


def example_inputs(model: Model, architecture: Architecture, n: int = 4, longest: int = 32) -> Rows:
    """Inputs as the architecture reads them, drawn from a fixed seed."""
    rng = np.random.default_rng(0)
    length = min(architecture.seq_len, longest)
    tables = token_tables(architecture.stages)
    if tables:
        drawn = rng.integers(0, tables[0].vocabulary, (n, length))
        padding = model.checkpoint.config.get("pad_token_id")  # some models number positions by what is no padding
        drawn = np.where(drawn == padding, (drawn + 1) % tables[0].vocabulary, drawn)
        end = end_token(model, tables[0].vocabulary)
        if end is not None:
            drawn[drawn == end] = (end + 1) % tables[0].vocabulary
            drawn[:, -1] = end
        return drawn
    shape = model.place("W_patch").tensor.shape if model.has("W_patch") else ()
    if len(shape) == 4:
        patches = architecture.seq_len - tokens_before(model)
        side = math.isqrt(patches)
        if side * side == patches:
            return rng.uniform(-1, 1, (n, shape[1], side * shape[2], side * shape[3]))
    width = architecture.stages[0].widths()[0] or next(attentions(architecture.stages)).d
    x = rng.standard_normal((n, length, width))
    return x / np.sqrt((x**2).sum(-1, keepdims=True)) * architecture.input_radius


def end_token(model: Model, vocabulary: int) -> int | None:
    """The token whose row is read; sequences end with it, as what follows changes nothing where attention is causal.

    Of an `eos_token_id` of 2 CLIP's code reads the row of the largest token instead, which it takes for the end.
    """
    end = model.setting_of("end")
    if end is not None and size("eos_token_id", end, least=0) >= vocabulary:
        raise CheckpointError(f"{model.checkpoint.where}: eos_token_id {end} is none of the {vocabulary} tokens")
    return vocabulary - 1 if end == 2 else end


def some_inputs(module: Any) -> list[Any]:
    """Tokens that every table of the module has; else images of as many patches as a table has rows, or rows."""
    sizes = [part.num_embeddings for part in module.modules() if hasattr(part, "num_embeddings")]
    if sizes:
        return [np.arange(8).reshape(2, 4) % min(sizes)]
    rng, first = np.random.default_rng(0), next((part for part in module.modules() if hasattr(part, "weight")), None)
    shape = () if first is None else tuple(first.weight.shape)
    if len(shape) == 4:
        d, (_, channels, tall, wide) = shape[0], shape
        tables = [value.shape[-2] for value in module.parameters() if value.ndim > 1 and value.shape[-1] == d]
        sides = sorted({math.isqrt(rows) for rows in tables} - {1})
        return [rng.uniform(-1, 1, (2, channels, side * tall, side * wide)) for side in sides]
    return [rng.standard_normal((2, 4, shape[1])) / math.sqrt(shape[1])] if len(shape) == 2 else []


def patch_map(model: Model) -> str | None:
    """The part of the module that maps patches which it cuts itself, where this is a linear map and no convolution."""
    if not model.has("W_patch") or len(model.place("W_patch").tensor.shape) != 2:
        return None
    return model.place("W_patch").tensor.name.rpartition(".")[0]


def rows_read(model: Model, x: Rows, calls: Calls) -> Rows:
    """What the description reads, where the module was given x: rows as they enter the map of patches."""
    if x.ndim == 4 and patch_map(model) is None:
        return rows_of_images(model, x)
    entered = calls.reads.get(patch_map(model) or "", [])
    if len(entered) != 1 or entered[0].ndim != 3:
        return x
    return np.concatenate([np.zeros((len(x), tokens_before(model), entered[0].shape[2])), entered[0]], axis=1)


def tokens_before(model: Model) -> int:
    """Rows that the model puts before its input."""
    return sum(model.has(token) for token in TOKENS)


def rows_of_images(model: Model, images: Rows) -> Rows:
    """Images (n, channels, height, width) as patches (n, T, channels x side x side), class tokens as zeros."""
    shape = model.place("W_patch").tensor.shape if model.has("W_patch") else ()
    if len(shape) != 4 or images.ndim != 4 or images.shape[1] != shape[1]:
        raise CheckpointError(
            f"images need a patch map W_patch of shape (d, channels, side, side) and as many channels; got images of "
            f"{images.shape[1:]} and {shape or 'no map'}: give rows (n, T, d) instead"
        )
    n, channels, height, width = images.shape
    tall, wide = shape[2:]
    if height % tall or width % wide:
        raise CheckpointError(f"images of {height} x {width} are not made of patches of {tall} x {wide}")
    cut = images.reshape(n, channels, height // tall, tall, width // wide, wide).transpose(0, 2, 4, 1, 3, 5)
    rows = cut.reshape(n, -1, channels * tall * wide)
    return np.concatenate([np.zeros((n, tokens_before(model), rows.shape[2])), rows], axis=1)
