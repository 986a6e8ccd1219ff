"""A user's own sequences and labels: from a file, or from a dataset that a Python file names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import is_name
from boundcalc.base.output import reading
from boundcalc.checkpoints.data import Sequences, sequences
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks.base import Shape, Task, register_builtin
from boundcalc.predictors.data import digest_of_arrays

_MOST_TOKENS = 2**20
"""Rows of a trained token table."""


@register_builtin
@dataclass(frozen=True)
class ArraysTask(Task):
    """Sequences "x" and labels "y"; every trial splits them anew into training and test examples.

    "x" holds integer tokens (N, T) or real rows (N, T, d), "y" integer classes or truth values (N,), of an .npz, .csv
    or .parquet file, or of a dataset, a loader or arrays that a Python file names (checkpoints.data says in which
    forms). Shorter sequences of tokens are filled up with a token of their own. The first row is read out. Real rows
    get no positions, unless model.positions asks for them.

    Attributes:
        path: the file, or module.py:dataset.
        sha256: of the file, or of the arrays of a dataset; filled in when unset, checked when set.
    """

    kind: ClassVar[str] = "arrays"
    path: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        if not self.path:
            raise InvalidSetting(
                'task "arrays" needs the path of a file with x and y (path=data.npz, .csv or .parquet)'
            )
        reading(self._file, "task arrays")
        try:
            digest = hashlib.sha256(Path(self._file).read_bytes()).hexdigest()
        except OSError as error:
            raise InvalidSetting(f"cannot read {self._file}: {error.strerror or error}") from None
        if is_name(self.path):
            digest = digest_of_arrays(dict(zip("xy", self.data, strict=True)))
        if self.sha256 and self.sha256 != digest:
            raise InvalidSetting(f"{self.path} has changed since this task was written (its sha256 differs)")
        object.__setattr__(self, "sha256", digest)
        x, y = self.data
        if x.ndim not in (2, 3) or len(y) < 2 or (x.ndim == 2 and (x.dtype.kind not in "iu" or x.min() < 0)):
            raise InvalidSetting(
                f"{self.path}: need tokens 0, 1, ... (N, T) or rows (N, T, d), and N > 1; got {x.shape}"
            )
        if x.ndim == 2 and x.max() >= _MOST_TOKENS:
            raise InvalidSetting(
                f"{self.path}: tokens up to {int(x.max())} need a table of as many rows, at most {_MOST_TOKENS} are "
                f"trained: number the {len(np.unique(x))} that occur, x = np.unique(x, "
                "return_inverse=True)[1].reshape(x.shape)"
            )

    @cached_property
    def data(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The arrays; pickled objects are refused."""
        return _filled_up(sequences(self.path))

    @property
    def _file(self) -> str:
        return self.path.rpartition(":")[0] if is_name(self.path) else self.path

    @property
    def identity(self) -> list[Any]:
        return [self.kind, {"sha256": self.sha256}]  # its content counts, not where it lies

    @property
    def shape(self) -> Shape:
        x, y = self.data
        classes = int(y.max()) + 1
        answer = "binary" if classes <= 2 else "classes"
        logits = 1 if classes <= 2 else classes
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
        if m >= self.size:
            raise InvalidSetting(f"m = {m} leaves no test example: {self.path} holds {self.size}")
        order = np.random.default_rng(world["seed"]).permutation(self.size)
        x, y = self.data
        x = x.astype(np.float32 if x.ndim == 3 else np.int64)
        train, test = order[:m], order[m : m + n_test]
        y = y.astype(np.int64)
        return source.array(x[train]), source.array(y[train]), source.array(x[test]), source.array(y[test])

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        raise InvalidSetting("a file of examples has no endless supply: give m, and no online training")


def _filled_up(examples: Sequences) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """One array; shorter sequences of tokens end with a token of their own."""
    longest = max(map(len, examples.x))
    if all(len(x) == longest for x in examples.x):
        return examples.arrays
    if not examples.tokens:
        raise InvalidSetting("sequences of rows must have one length to be trained on: only tokens are filled up")
    filler = 1 + max(int(x.max()) for x in examples.x)
    x = np.full((len(examples), longest), filler)
    for row, tokens in zip(x, examples.x, strict=True):
        row[: len(tokens)] = tokens
    return x, examples.y
