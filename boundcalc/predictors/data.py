"""Examples as arrays, their digest, and the one order in which everything meets them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.npz import plain_arrays
from boundcalc.base.output import writing

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, slots=True)
class Data:
    """Examples: x[i] and its answer y[i]."""

    x: Array
    y: Array

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not len(self.y):
            raise InvalidSetting(f"data need as many x as y, and at least one; got {len(self.x)} and {len(self.y)}")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Data({len(self)} examples, x {self.x.dtype}{list(self.x.shape[1:])}, y {self.y.dtype})"

    def take(self, places: Sequence[int] | Array) -> Data:
        """Some examples, in this order."""
        index = np.asarray(places, dtype=np.int64)
        return Data(self.x[index], self.y[index])

    @property
    def sha256(self) -> str:
        """Names the examples and their order by every bit of them."""
        return digest_of_arrays({"x": self.x, "y": self.y})

    @classmethod
    def load(cls, path: str) -> Data:
        """Arrays x and y of an .npz file; pickled objects are refused."""
        with plain_arrays(path, "plain arrays x and y") as file:
            missing = {"x", "y"} - set(file.files)
            if missing:
                raise InvalidSetting(f"{path} has no array {sorted(missing)[0]!r}: it has {file.files}")
            return cls(file["x"], file["y"])

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write them as an .npz file; `force` replaces a file there that this did not write."""
        with writing(path, force=force) as part, part.open("wb") as file:
            np.savez(file, x=self.x, y=self.y, made_by=np.array("boundcalc"))


def digest_of_arrays(arrays: Mapping[str, Array]) -> str:
    """Sha256 of names, types, shapes and bits."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {value.dtype.str} {value.shape} ".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def fixed_order(count: int) -> Array:
    """The one permutation of so many examples: prefixes are cut from it, and places in it break ties.

    It has no seed to choose: an order chosen by looking at the examples would be a choice that no share of delta
    covers.
    """
    return np.random.Generator(np.random.PCG64(0)).permutation(count)
