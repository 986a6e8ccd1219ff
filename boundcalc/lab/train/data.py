"""A trial's examples, made on its device from its seed, and the order in which training sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.source import TorchSource, substream
from boundcalc.lab.train.tasks import ArraysTask, Task
from boundcalc.lab.train.trial import Trial

CHUNK = 4096
"""Examples drawn at once. Each chunk has a stream of its own, so any of them can be drawn again."""
_MOST_KEPT = 2**28
"""Entries (m T) of a training set."""
_AHEAD = 64
"""Steps for which the order is drawn at once."""


class Examples:
    """Training and test examples of one trial."""

    def __init__(self, trial: Trial, device: torch.device) -> None:
        self.trial = trial
        self.device = device
        self.world: dict[str, Any] = trial.task.world(self._source("world"))
        self._order = TorchSource(substream(trial.seed, "order"), device)
        self._start = 0
        self._queue: Tensor | None = None
        self._held: tuple[int, Tensor, Tensor] | None = None
        if trial.m * trial.task.shape.rows > _MOST_KEPT:
            raise InvalidSetting(f"m = {trial.m} sequences of {trial.task.shape.rows} rows do not fit: choose m = 0")
        self.train: tuple[Tensor, Tensor] | None = None
        if isinstance(trial.task, ArraysTask):
            x, y, x_test, y_test = trial.task.split(self.world, self._source("split"), trial.m, trial.n_test)
            self.train, self.test = (x, y), (x_test, y_test)
        else:
            self.test = self._chunks("test", trial.n_test)
            if not trial.online:
                self.train = self._chunks("train", trial.m)

    def _source(self, *labels: str | int) -> TorchSource:
        return TorchSource(substream(self.trial.seed, *labels), self.device)

    def _chunks(self, label: str, n: int) -> tuple[Tensor, Tensor]:
        parts = [self._chunk(label, k, n) for k in range(-(-n // CHUNK))]
        return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])

    def _chunk(self, label: str, k: int, n: int) -> tuple[Tensor, Tensor]:
        return self._draw(self._source(label, k), min(CHUNK, n - k * CHUNK))

    def _draw(self, source: TorchSource, n: int) -> tuple[Tensor, Tensor]:
        """A sample as tensors of the task's shape; a task of a user's own may draw NumPy arrays."""
        task = self.trial.task
        x, y = (a if isinstance(a, Tensor) else source.array(a) for a in task.sample(self.world, source, n))
        if task.origin is not None:
            _check(task, x, y, n)
        return x, y

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        """The next examples of a run through one permutation after another, or fresh ones."""
        if self.trial.online:
            return self._fresh(size)
        assert self.train is not None  # noqa: S101 - kept unless online
        picked = self._next(size, self.trial.m)
        return self.train[0][picked], self.train[1][picked]

    def _next(self, size: int, m: int) -> Tensor:
        while self._queue is None or len(self._queue) < size:
            rounds = max(1, _AHEAD * size // m)
            # uniforms, sorted, are that many permutations at once
            fresh = self._order.uniform(rounds, m).argsort(dim=1).flatten()
            self._queue = fresh if self._queue is None else torch.cat([self._queue, fresh])
        picked, self._queue = self._queue[:size], self._queue[size:]
        return picked

    def _fresh(self, size: int) -> tuple[Tensor, Tensor]:
        """The next examples of a chunk, or of a new one."""
        if self._held is None or self._start + size > len(self._held[1]):
            number = 0 if self._held is None else self._held[0] + 1
            many = max(1, CHUNK // size) * size
            self._held, self._start = (number, *self._draw(self._source("fresh", number), many)), 0
        start, self._start = self._start, self._start + size
        return self._held[1][start : self._start], self._held[2][start : self._start]

    def training_parts(self, most: int, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The training examples (the first `most` of them), a few at a time; for online training, fresh ones."""
        if self.train is not None:
            x, y = self.train[0][:most], self.train[1][:most]
            yield from zip(x.split(size), y.split(size), strict=True)
            return
        x, y = self._chunk("probe", 0, min(most, CHUNK))
        yield from zip(x.split(size), y.split(size), strict=True)


def _check(task: Task, x: Tensor, y: Tensor, n: int) -> None:
    """What a task of a user's own draws is what its shape says."""
    shape = task.shape
    rows = shape.rows - (shape.inputs == "bits")
    wanted = (n, rows, shape.width) if shape.inputs == "rows" else (n, rows)
    if tuple(x.shape) != wanted or tuple(y.shape) != (n,):
        raise InvalidSetting(
            f"task {task.kind}: sample gives x of shape {tuple(x.shape)} and y of {tuple(y.shape)}; its shape says "
            f"{wanted} and {(n,)}"
        )
    if shape.inputs != "rows" and (x.is_floating_point() or int(x.min()) < 0 or int(x.max()) >= shape.vocabulary):
        raise InvalidSetting(f"task {task.kind}: x holds other things than tokens 0 to {shape.vocabulary - 1}")
    classes = max(shape.classes, 2)
    if shape.answer != "real" and (y.is_floating_point() or int(y.min()) < 0 or int(y.max()) >= classes):
        raise InvalidSetting(f"task {task.kind}: y holds other things than the answers 0 to {classes - 1}")
