"""Names of tensors: patterns with a place for the block, what wrappers put before all of them, and tables in short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WRAPPERS = ("module.", "model.")
"""What data-parallel training and Lightning put before every name; torch.compile puts _orig_mod. anywhere."""


def stripped(names: Sequence[str], but: Sequence[str] = ()) -> dict[str, str]:
    """Names without the wrappers that all of them begin with, unless patterns of `but` begin so too."""
    wrappers = [w for w in _WRAPPERS if not any(pattern.startswith(w) for pattern in but)]
    short = [name.replace("_orig_mod.", "") for name in names]  # of parts that were compiled by themselves too
    if len(set(short)) < len(short):
        short = list(names)
    while wrapper := next((w for w in wrappers if all(name.startswith(w) and name != w for name in short)), None):
        short = [name.removeprefix(wrapper) for name in short]
    return dict(zip(names, short, strict=True))


def compiled(pattern: str) -> re.Pattern[str]:
    """The expression that a pattern of a family's table stands for: {b} is the number of a block."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\{b\}", r"(?P<b>\d+)", 1))


def block_of(match: re.Match[str]) -> int | None:
    """The block that a name is of."""
    return int(match["b"]) if "b" in match.re.groupindex else None


POOLING_HEAD = "pooling "
"""How roles begin that are of attention by a trained query after the last block, and are read as of one block more."""


def block_count(places: Iterable[tuple[str, int | None]]) -> int:
    """One more than the largest block number of some (role, block)."""
    return 1 + max((block for _, block in places if block is not None), default=-1)


def read_again(places: Mapping[tuple[str, int | None], Any], depth: int) -> dict[tuple[str, int | None], Any]:
    """The blocks up to `depth` that share the stored ones, which they read in turn."""
    stored = block_count(places)
    return {
        (role, at): place
        for (role, block), place in places.items()
        if block is not None
        for at in range(block + stored, depth, stored)
    }


def with_offsets(modules: Mapping[str, str]) -> dict[str, str]:
    """The tensors of modules that have both: each weight in the given role, each bias as the offset of that role."""
    tensors: dict[str, str] = {}
    for module, role in modules.items():
        tensors[f"{module}.weight"] = role
        tensors[f"{module}.bias"] = offset_of(role)
    return tensors


def offset_of(role: str) -> str:
    """The role of what is added after a map or a gain: b_Q of W_Q, b_readout of readout, norm_final.offset."""
    layer = role.removesuffix(".T")
    return layer.removesuffix("gain") + "offset" if layer.endswith(".gain") else f"b_{layer.removeprefix('W_')}"
