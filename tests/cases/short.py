"""Models in short: a line for a module or a tensor says its role, its name and its shape; random numbers fill them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[Any]]

HEADS = 4
"""Of queries, in every model but the last."""
_SIZES = {"d": 8, "f": 12, "q": 8, "k": 4, "V": 11, "T": 6, "C": 3}
"""Widths of rows, of hidden rows, of all queries, of all keys; words, positions, logits."""
_SPREAD = 0.3


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a file: what it is in the model (`turned`: its transpose is), and of which stored block."""

    name: str
    shape: tuple[int, ...]
    role: str
    block: int | None
    turned: bool


@dataclass(frozen=True)
class SmallModel:
    """A model in short.

    Attributes:
        config: its config.json, with all its sizes.
        tensors: one module or tensor per line: its role, its name, and what it is. "d -> f" is a linear map with an
            offset, stored as its transpose (torch.nn.Linear); "d => f" is stored as it is (GPT-2's Conv1D); "d" is a
            normalisation; each without its offset where the line ends with "bare"; "= V d" is a tensor of this name
            and shape ("turned": it is the transpose of the map). "{a,b}" stands for either, "{#}" for the number of
            every block, "^" for `prefix`.
        prefix: what most names begin with.
        sizes: other values than those of letters in general.
        rotated: whether queries and keys are rotated, so that each has norms of its own.
        groups: in how many groups fused queries, keys and values lie (queries, a key, a value); 0: all of a kind
            together.
        reads: the stored block of every block.
    """

    config: Mapping[str, Any]
    tensors: str
    prefix: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    rotated: bool = False
    groups: int = 0
    reads: tuple[int, ...] = (0, 1)

    @property
    def stored(self) -> Iterator[Stored]:
        """All tensors."""
        for role, name, *what in filter(None, map(str.split, self.tensors.splitlines())):
            names, roles = list(_either(name.replace("^", self.prefix))), list(_either(role))
            for pattern, its in zip(names, roles if len(roles) > 1 else roles * len(names), strict=True):
                for block in sorted(set(self.reads)) if "{#}" in pattern else (None,):
                    yield from self._parts(pattern.replace("{#}", str(block)), its, block, what)

    def _parts(self, name: str, role: str, block: int | None, what: list[str]) -> Iterator[Stored]:
        bare = what[-1] == "bare"
        sides = tuple(self._size(word) for word in what if word[-1] not in ">=" and word not in ("bare", "turned"))
        if what[0] == "=":
            yield Stored(name, sides, role, block, "turned" in what)
            return
        weight, offset = (
            (f"{role}.gain", f"{role}.offset") if len(sides) == 1 else (role, f"b_{role.removeprefix('W_')}")
        )
        turned = "->" in what
        yield Stored(f"{name}.weight", sides[::-1] if turned else sides, weight, block, turned)
        if not bare:
            yield Stored(f"{name}.bias", sides[-1:], offset, block, False)

    def _size(self, word: str) -> int:
        """A number, a letter with a number before it (times) or after it (plus)."""
        times, letter, plus = re.fullmatch(r"(\d*)([a-zA-Z]?)\+?(\d*)", word).groups()  # type: ignore[union-attr]
        return int(times or 1) * ({**_SIZES, **self.sizes}[letter] if letter else 1) + int(plus or 0)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all tensors, by name."""
        return {tensor.name: tensor.shape for tensor in self.stored}

    def drawn(self, seed: int = 0) -> Tensors:
        """Random numbers as after training; gains are around 1."""
        rng = np.random.default_rng(seed)
        return {
            tensor.name: (tensor.role.endswith("gain") + _SPREAD * rng.standard_normal(tensor.shape)).astype(np.float32)
            for tensor in self.stored
        }


def _either(written: str) -> Iterator[str]:
    """All that braces stand for, but those of a block's number."""
    choice = re.search(r"\{([^#}]*)\}", written)
    if choice is None:
        yield written
        return
    for part in choice[1].split(","):
        yield from _either(written.replace(choice[0], part, 1))
