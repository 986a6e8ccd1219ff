"""The forward pass of a description, in NumPy and float64: what a checkpoint's tensors compute put together.

And what it needs besides the weights, as a module of the transformers library has it: rotations, masks, buckets.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit, softmax

from boundcalc.base.validate import flag, positive
from boundcalc.checkpoints._arrays import Arrays
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import rotation_factor
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.modules import ready
from boundcalc.layers.forward import Fixed, Forward, Step

Rows = NDArray[np.float64]

ACTIVATIONS: Mapping[str, Callable[[Rows], Rows]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x * expit(x),
    "quick_gelu": lambda x: x * expit(1.702 * x),
    "tanh": np.tanh,
    "identity": lambda x: x,
}


def _layer_norm(x: Rows, eps: float) -> Rows:
    y = x - x.mean(-1, keepdims=True)
    return y / np.sqrt((y**2).mean(-1, keepdims=True) + eps)


def _affine(x: Rows, matrix: Rows, offset: Rows | None) -> Rows:
    return x @ matrix if offset is None else x @ matrix + offset[..., None, :]


NUMPY = SimpleNamespace(
    activations=ACTIVATIONS,
    affine=_affine,
    causal=lambda x: np.tri(x.shape[1], dtype=bool),
    concatenate=np.concatenate,
    einsum=partial(np.einsum, optimize=True),
    embedding=lambda tokens, table: table[tokens],
    layer_norm=_layer_norm,
    ones_like=np.ones_like,
    repeat_interleave=np.repeat,
    sigmoid=expit,
    softmax=softmax,
    sqrt=np.sqrt,
    tanh=np.tanh,
    where=np.where,
    zeros_like=np.zeros_like,
)


class Network:
    """A checkpoint run by its architecture."""

    def __init__(self, model: Model, fixed: Fixed | None = None) -> None:
        self.stages, self.fixed = model.architecture.stages, fixed or Fixed()
        self.arrays = Arrays(model, model.architecture.seq_len)

    def __call__(self, x: Any, *, every_row: bool = False, steps: list[Step] | None = None) -> Rows:
        """Outputs (n, classes) for tokens (n, T), or for rows (n, T, d), and every layer in the order they run.

        With `every_row`, no row is picked before the read-out.
        """
        values, forward = np.asarray(x), Forward(NUMPY, self.arrays, self.fixed, every_row=every_row, steps=steps)
        out = forward(self.stages, values if values.ndim == 2 else values.astype(np.float64))
        return out[:, 0] if out.shape[1] == 1 else out


# -- what is fixed besides the weights

_Rotate = Callable[[Rows, int | None], Rows]


def rotary(theta: float = 10000.0, *, pairs: bool = False) -> _Rotate:
    """Rotary positions: entries 1 and 2, 3 and 4, ... of queries and keys turn together if `pairs`.

    Else entry i and entry i + half the width.
    """
    positive("rotary: theta", theta)
    flag("rotary: pairs", pairs)

    def rotate(x: Rows, _: int | None) -> Rows:
        width = x.shape[-1]
        angles = np.arange(x.shape[-2])[:, None] * theta ** (-np.arange(0, width, 2) / width)
        return _turned(x, np.sin(angles), np.cos(angles), pairs)

    return rotate


def fixed_beside(module: Any, model: Model) -> Fixed:
    """What a description takes from its module: rotations, numbers added to scores, windows, buckets."""
    config, said = getattr(module, "config", None), model.family.rotate
    if config is None:
        return Fixed(rotate=said)
    kind = getattr(config, "model_type", "")
    return Fixed(
        rotate=said or (None if kind == "bloom" else _rotation(module, config, model)),
        added=(lambda count: _alibi(config, count)) if kind == "bloom" else None,
        window=_window(config),
        bucket=(lambda count: _buckets(module, count)) if kind in ("t5", "mpnet") else None,
    )


def _turned(x: Rows, sin: Rows, cos: Rows, pairs: bool) -> Rows:
    rows, width = x.shape[-2], 2 * sin.shape[1]
    sin, cos, rest = sin[:rows], cos[:rows], x[..., width:]
    a, b = (x[..., 0:width:2], x[..., 1:width:2]) if pairs else np.split(x[..., :width], 2, axis=-1)
    first, second = a * cos - b * sin, b * cos + a * sin
    if pairs:
        return np.concatenate([np.stack([first, second], -1).reshape(*a.shape[:-1], width), rest], -1)
    return np.concatenate([first, second, rest], -1)


def _rotation(module: Any, config: Any, model: Model) -> _Rotate | None:
    """By the cos and sin that the module itself computes for so many rows; some types change them with the length.

    The factor that the description has in its temperature is not applied twice.
    """
    factor = rotation_factor(model.config_field, []) if model.flag("stretches") else 1.0
    tables = [buffer for name, buffer in module.named_buffers() if name.endswith("embed_positions")]
    if tables:
        sin, cos = np.split(tables[0].detach().double().numpy(), 2, axis=1)
        return lambda x, _: _turned(x, sin, cos, pairs=True)
    rotary_parts = [part for name, part in module.named_modules() if name.endswith("rotary_emb")]
    if not rotary_parts:
        return None

    by_kind = "layer_type" in inspect.signature(rotary_parts[0].forward).parameters
    skipped = [not turns for turns in getattr(config, "no_rope_layers", None) or ()]

    @cache
    def table(count: int, *kind: str) -> tuple[Rows, Rows]:
        import torch

        part = copy.deepcopy(rotary_parts[0]).double()  # without the lengths that it has seen
        with ready():
            cos, sin = (out[0].numpy() for out in part(torch.zeros(1, count, 1), torch.arange(count)[None], *kind))
        size = float(np.sqrt((cos**2 + sin**2).max(initial=0)))
        if size > factor * (1 + 1e-6):
            raise CheckpointError(
                f"the rotations of the module multiply by {size:.6g}, and the description has {factor:.6g}: a bound of "
                "it would not be about this module"
            )
        half = cos.shape[1] // 2
        return cos[:, :half] / factor, sin[:, :half] / factor

    def rotate(x: Rows, block: int | None) -> Rows:
        if skipped and block is not None and skipped[block]:
            return x
        cos, sin = table(x.shape[-2], *([config.layer_types[block]] if by_kind else []))
        return _turned(x, sin, cos, pairs=False)

    return rotate


def _window(config: Any) -> Callable[[int | None, int], NDArray[np.bool_]] | None:
    """Which keys a query sees: in the layers listed as having a window, or in all without such a list."""
    types, size = getattr(config, "layer_types", None), getattr(config, "sliding_window", None)
    if size is None or not getattr(config, "use_sliding_window", True):
        return None
    causal = config.model_type != "modernbert"

    def window(block: int | None, count: int) -> NDArray[np.bool_]:
        apart = np.arange(count)[:, None] - np.arange(count)
        near = apart < size if causal else abs(apart) <= size
        return near if not types or types[block] == "sliding_attention" else np.ones_like(near)

    return window


def _buckets(module: Any, count: int) -> NDArray[np.int64]:
    """The numbers of pairs of positions of T5 and MPNet."""
    import torch

    place, config = torch.arange(count), module.config
    apart, sizes = place[None] - place[:, None], {"num_buckets": config.relative_attention_num_buckets}
    if config.model_type == "mpnet":
        name = "relative_position_bucket"
    else:
        name, sizes["max_distance"] = "_relative_position_bucket", config.relative_attention_max_distance
    part = next(part for part in module.modules() if hasattr(part, name))
    return getattr(part, name)(apart, **sizes).numpy()


def _alibi(config: Any, count: int) -> Rows:
    import torch
    import transformers

    table = transformers.models.bloom.modeling_bloom.build_alibi_tensor(
        torch.ones(1, count, dtype=torch.long), config.n_head, torch.float64
    )
    return np.broadcast_to(table.numpy().reshape(-1, 1, count), (config.n_head, count, count))
