"""A trial's examples, made from its seed, and the order in which training sees them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.source import Source, substream
from boundcalc.lab.train.tasks import ArraysTask, Task
from boundcalc.lab.train.trial import Trial

CHUNK = 4096
"""Examples drawn at once. Each chunk has a stream of its own, so any of them can be drawn again."""
_MOST_KEPT = 2**28
"""Entries (m T) of a training set."""
_AHEAD = 64
"""Steps for which the order is drawn at once."""
_Pair = tuple[Tensor, Tensor]


class Examples:
    """Training and test examples of one trial."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.world: dict[str, Any] = trial.task.world(self._source("world"))
        if trial.m * trial.task.shape.rows > _MOST_KEPT:
            raise InvalidSetting(f"m = {trial.m} sequences of {trial.task.shape.rows} rows do not fit: choose m = 0")
        self.train: _Pair | None = None
        if isinstance(trial.task, ArraysTask):
            x, y, x_test, y_test = trial.task.split(self.world, self._source("split"), trial.m, trial.n_test)
            self.train, self.test = (x, y), (x_test, y_test)
        else:
            self.test = self._chunks("test", trial.n_test)
            if not trial.online:
                self.train = self._chunks("train", trial.m)
        self._batches = self._permuted(*self.train) if self.train else self._fresh()

    def batch(self) -> _Pair:
        """The next examples of a run through one permutation after another, or fresh ones."""
        return next(self._batches)

    def parts(self, which: str, most: int, size: int) -> Iterator[_Pair]:
        """The first `most` training or test examples, `size` at a time; of online training, fresh ones."""
        kept = self.train if which == "train" else self.test
        x, y = kept or self._chunk("probe", 0, min(most, CHUNK))
        return zip(x[:most].split(size), y[:most].split(size), strict=True)

    def _source(self, *labels: str | int) -> Source:
        return Source(substream(self.trial.seed, *labels))

    def _chunks(self, label: str, n: int) -> _Pair:
        parts = [self._chunk(label, k, n) for k in range(-(-n // CHUNK))]
        return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])

    def _chunk(self, label: str, k: int, n: int) -> _Pair:
        return self._draw(self._source(label, k), min(CHUNK, n - k * CHUNK))

    def _draw(self, source: Source, n: int) -> _Pair:
        """A sample as tensors of the task's shape; a task of a user's own may draw NumPy arrays."""
        task = self.trial.task
        x, y = (a if isinstance(a, Tensor) else source.array(a) for a in task.sample(self.world, source, n))
        if task.file:
            _check(task, x, y, n)
        return x, y

    def _permuted(self, x: Tensor, y: Tensor) -> Iterator[_Pair]:
        order, queue, size = self._source("order"), torch.empty(0, dtype=torch.long), self.trial.batch
        while True:
            while len(queue) < size:
                # uniforms, sorted, are that many permutations at once
                rounds = order.uniform(max(1, _AHEAD * size // len(x)), len(x)).argsort(dim=1)
                queue = torch.cat([queue, rounds.flatten()])
            places, queue = queue[:size], queue[size:]
            yield x[places], y[places]

    def _fresh(self) -> Iterator[_Pair]:
        size = self.trial.batch
        for number in itertools.count():
            x, y = self._draw(self._source("fresh", number), max(1, CHUNK // size) * size)
            yield from zip(x.split(size), y.split(size), strict=True)


def _check(task: Task, x: Tensor, y: Tensor, n: int) -> None:
    """What a task of a user's own draws is what its shape says."""
    shape = task.shape
    sizes = (n, shape.rows - (shape.inputs == "bits"), *[shape.width] * (shape.inputs == "rows"))
    right = tuple(x.shape) == sizes and tuple(y.shape) == (n,)
    counted = [(x, shape.vocabulary)] * (shape.inputs != "rows") + [(y, max(shape.classes, 2))] * (
        shape.answer != "real"
    )
    for values, most in counted if right else []:
        right = right and not values.is_floating_point() and 0 <= int(values.min()) <= int(values.max()) < most
    if not right:
        raise InvalidSetting(
            f"task {task.kind}: sample gives x {tuple(x.shape)} and y {tuple(y.shape)} of other values or shapes than "
            f"{sizes} and {(n,)} of its {shape}"
        )
