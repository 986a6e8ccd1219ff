"""What a forward pass needs beside the weights, as a module of the transformers library has it; and rotary positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.checkpoints.layers import Fixed, Rows
from boundcalc.setting.validate import flag, known_keys, positive, size

_Rotate = Callable[[Rows, int | None], Rows]


def rotary(theta: float = 10000.0, *, width: int | None = None, pairs: bool = False) -> _Rotate:
    """Rotary positions: the first `width` entries (all, unless given) of queries and keys turn.

    `pairs`: entries 1 and 2, 3 and 4, ... turn together; else entry i and entry i + width/2.
    """
    positive("theta", theta)
    if width is not None:
        size("rotary width", width)

    def rotate(x: Rows, _: int | None) -> Rows:
        turned = x.shape[-1] if width is None else width
        speeds = theta ** (-np.arange(0, turned, 2) / turned)
        angles = np.arange(x.shape[-2])[:, None] * speeds
        return _turned(x, np.sin(angles), np.cos(angles), pairs)

    return rotate


def rotary_of(data: object) -> _Rotate:
    """As a mapping writes them: {"theta": 10000, "width": 32, "pairs": true}."""
    raw = known_keys("rotary", data, ["theta", "width", "pairs"])
    return rotary(
        raw.get("theta", 10000.0), width=raw.get("width"), pairs=flag("rotary: pairs", raw.get("pairs", False))
    )


def fixed_of(module: Any, row: int = 0) -> Fixed:
    """Angles of rotations, numbers added to scores and windows of a module of the transformers library; of others none."""
    config = getattr(module, "config", None)
    if config is None:
        return Fixed(row=row)
    kind = getattr(config, "model_type", "")
    alibi = kind == "bloom" or getattr(config, "alibi", False)
    return Fixed(
        rotate=None if alibi else _rotation(module, config),
        added=(lambda count: _alibi(config, count)) if alibi else None,
        window=_window(config),
        bucket=(lambda count: _buckets(module, count)) if kind == "t5" else None,
        row=row,
    )


def _turned(x: Rows, sin: Rows, cos: Rows, pairs: bool) -> Rows:
    rows, width = x.shape[-2], 2 * sin.shape[1]
    sin, cos, rest = sin[:rows], cos[:rows], x[..., width:]
    a, b = (x[..., 0:width:2], x[..., 1:width:2]) if pairs else np.split(x[..., :width], 2, axis=-1)
    first, second = a * cos - b * sin, b * cos + a * sin
    if pairs:
        return np.concatenate([np.stack([first, second], -1).reshape(*a.shape[:-1], width), rest], -1)
    return np.concatenate([first, second, rest], -1)


def _rotation(module: Any, config: Any) -> _Rotate | None:
    """By the module's own angles, without any factor: that is read off its config."""
    tables = [buffer for name, buffer in module.named_buffers() if name.endswith("embed_positions")]
    if tables:
        sin, cos = np.split(tables[0].detach().double().numpy(), 2, axis=1)
        return lambda x, _: _turned(x, sin, cos, pairs=True)
    found = [part for name, part in module.named_modules() if name.endswith("rotary_emb")]
    if not found:
        return None

    def rotate(x: Rows, block: int | None) -> Rows:
        name = "inv_freq" if hasattr(found[0], "inv_freq") else f"{config.layer_types[block]}_inv_freq"
        speeds = getattr(found[0], name).detach().double().numpy()
        angles = np.arange(x.shape[-2])[:, None] * speeds
        return _turned(x, np.sin(angles), np.cos(angles), pairs=False)

    return rotate


def _window(config: Any) -> Callable[[int | None, int], NDArray[np.bool_]] | None:
    types: Any = getattr(config, "layer_types", None)
    if not types or getattr(config, "sliding_window", None) is None:
        return None
    causal = config.model_type != "modernbert"

    def window(block: int | None, count: int) -> NDArray[np.bool_]:
        apart = np.arange(count)[:, None] - np.arange(count)
        near = apart < config.sliding_window if causal else abs(apart) <= config.sliding_window
        return near if types[block] == "sliding_attention" else np.ones_like(near)

    return window


def _buckets(module: Any, count: int) -> NDArray[np.int64]:
    """T5's numbers of pairs of positions."""
    import torch

    place = torch.arange(count)
    attention = next(part for part in module.modules() if hasattr(part, "_relative_position_bucket"))
    far, many = module.config.relative_attention_max_distance, module.config.relative_attention_num_buckets
    return attention._relative_position_bucket(place[None] - place[:, None], num_buckets=many, max_distance=far).numpy()


def _alibi(config: Any, count: int) -> Rows:
    import torch
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor as bloom
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor as falcon

    rows = torch.ones(1, count, dtype=torch.long)
    make, scale = (bloom, 1.0) if config.model_type == "bloom" else (falcon, config.head_dim**-0.5)
    heads = getattr(config, "num_attention_heads", None) or config.n_head
    table = make(rows, heads, torch.float64).numpy().reshape(-1, 1, count)
    return np.broadcast_to(table * scale, (len(table), count, count))
