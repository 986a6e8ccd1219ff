"""The walk through a network, layer by layer."""

from collections.abc import Sequence
from typing import Any

from .attention import attention
from .joint import hidden, lookup
from .layers import Layer, rows_read
from .numbers import demand, num
from .rules import activation, ball, embedding, experts, gated, layernorm, linear, pool, softcap
from .setting import Setting
from .walk import Walk

_PARTS = (linear, activation, ball, softcap, layernorm, attention, gated, experts, embedding, hidden, lookup, pool)
_RULES = {rule.__name__: rule for rule in _PARTS}


def walk_through(setting: Setting, covers: Any = None, samples: int = 1, **how: Any) -> Walk:
    """Radius, error and log count of a network at one level; without covers its radius alone."""
    walk = Walk(setting, covers, samples, **how)
    _through(walk, setting.stages, 1)
    extra = set(covers or ()) - walk.keys
    demand(not extra, f"there is no piece {sorted(extra)[:1]}")
    return walk


def _through(walk: Walk, layers: Sequence[Layer], rows: int) -> None:
    for layer, read in zip(layers, rows_read(layers, rows, walk.seq_len), strict=True):
        walk.at[id(layer)] = max(walk.radius, walk.at.get(id(layer), walk.radius))
        if layer.label != "residual":
            _RULES[layer.label](walk, layer, read)
            continue
        radius, error = walk.radius, walk.error
        sums = (radius, error) if layer.skip else (num(0), num(0))
        for branch in (layer.branch, *layer.beside):
            walk.radius, walk.error = radius, error
            _through(walk, branch, read)
            sums = sums[0] + walk.radius, sums[1] + walk.error
        walk.radius, walk.error = sums
