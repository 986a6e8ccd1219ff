"""A user's own sequences and labels: from a file, or from a dataset that a Python file names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import is_name
from boundcalc.base.output import reading
from boundcalc.checkpoints.data import sequences
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks.base import Shape, Task
from boundcalc.predictors.data import digest_of_arrays

_MOST_TOKENS = 2**20
"""Rows of a trained token table."""


@dataclass(frozen=True)
class ArraysTask(Task):
    """Sequences "x" and labels "y"; every trial splits them anew into training and test examples.

    "x" holds integer tokens (N, T) or real rows (N, T, d), "y" integer classes or truth values (N,), in any form that
    checkpoints.data reads. Shorter sequences of tokens are filled up with a token of their own. The first row is read
    out. Real rows get no positions, unless model.positions asks for them.

    Attributes:
        path: the file, or module.py:dataset.
        sha256: of the arrays; filled in when unset, checked when set.
    """

    kind: ClassVar[str] = "arrays"
    path: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        if not self.path:
            raise InvalidSetting(
                'task "arrays" needs the path of a file with x and y (path=data.npz, .csv or .parquet)'
            )
        reading(self.path.rpartition(":")[0] if is_name(self.path) else self.path, "task arrays")
        x, y = self.data
        digest = digest_of_arrays({"x": x, "y": y})
        if self.sha256 not in ("", digest):
            raise InvalidSetting(f"{self.path} has changed since this task was written (its sha256 differs)")
        object.__setattr__(self, "sha256", digest)
        rows = x.ndim == 3 or (x.ndim == 2 and x.dtype.kind in "iu" and x.min() >= 0)
        if not rows or len(y) < 2:
            raise InvalidSetting(
                f"{self.path}: need tokens 0, 1, ... (N, T) or rows (N, T, d), and N > 1; got {x.shape}"
            )
        if x.ndim == 2 and x.max() >= _MOST_TOKENS:
            raise InvalidSetting(
                f"{self.path}: tokens up to {int(x.max())} need a table of as many rows, at most {_MOST_TOKENS} are "
                "trained: number those that occur, x = np.unique(x, return_inverse=True)[1].reshape(x.shape)"
            )

    @cached_property
    def data(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The arrays; shorter sequences of tokens end with a token of their own."""
        examples = sequences(self.path)
        if examples.tokens and min(map(len, examples.x)) < examples.longest:
            filler = 1 + max(int(x.max()) for x in examples.x)
            filled = [np.pad(x, (0, examples.longest - len(x)), constant_values=filler) for x in examples.x]
            return np.stack(filled), examples.y
        return examples.arrays

    @property
    def identity(self) -> list[Any]:
        return [self.kind, {"sha256": self.sha256}]  # its content counts, not where it lies

    @property
    def shape(self) -> Shape:
        x, y = self.data
        classes = int(y.max()) + 1
        answer, logits = ("binary", 1) if classes <= 2 else ("classes", classes)
        if x.ndim == 2:
            return Shape("tokens", x.shape[1], answer, vocabulary=int(x.max()) + 1, classes=logits)
        return Shape("rows", x.shape[1], answer, width=x.shape[2], classes=logits)

    @property
    def size(self) -> int:
        return len(self.data[1])

    def world(self, source: Source) -> dict[str, Any]:
        return {"seed": int(source.integers(2**31, 1)[0])}

    def split(self, world: Mapping[str, Any], source: Source, m: int, n_test: int) -> tuple[Any, Any, Any, Any]:
        """Training and test examples without a common one."""
        order = np.random.default_rng(world["seed"]).permutation(self.size)
        x, y = self.data
        x, y = x.astype(np.float32 if x.ndim == 3 else np.int64), y.astype(np.int64)
        train, test = order[:m], order[m : m + n_test]
        return source.array(x[train]), source.array(y[train]), source.array(x[test]), source.array(y[test])

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        raise InvalidSetting("a file of examples has no endless supply: give m, and no online training")
