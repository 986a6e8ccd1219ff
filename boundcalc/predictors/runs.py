"""Learners, and runs of one that picks its examples: where they stand, and how one that was killed goes on."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.output import write_text
from boundcalc.base.schema import write
from boundcalc.predictors.certificate import digest_of, plain
from boundcalc.predictors.data import Answers, Array, Data, digest_of_arrays
from boundcalc.predictors.plans import Member


class Learner(Answers, Protocol):
    """A deterministic learner.

    Its state is a function of its recipe, the seed and the examples it was given, in their order: no clock, no global
    generator, nothing of other examples. A replay refuses a learner that is not (as far as a replay can tell).
    """

    def start(self, seed: int) -> Any:
        """The state before any example."""
        ...

    def fit(self, state: Any, examples: Data, prefix: int) -> Any:
        """Go on from a state: `examples` are the prefix, if there is one, then all picks so far in their order."""
        ...

    def scores(self, state: Any, examples: Data) -> Array:
        """A score per example that looks at this example and the state alone: right where it is above 0."""
        ...

    def weights(self, state: Any) -> Mapping[str, Array]:
        """The tensors of the model, copied."""
        ...

    def dump(self, state: Any) -> bytes:
        """The state, to go on with after a kill."""
        ...

    def restore(self, data: bytes) -> Any:
        """The state from such bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Stop:
    """A run at one of its stops."""

    picks: tuple[int, ...]
    wrong: int
    others: int
    weights: str


@dataclass
class Run:
    """One trajectory over candidates of a data set; picks are places in the data's order.

    Attributes:
        learner: what learns.
        data: the examples in their order: the prefix first.
        prefix: how many of them it starts from.
        seed: of the learner.
        candidates: places that may be picked.
        picks: so far, in their order.
        state: of the learner.
        stops: those that were reached, by their picks.
    """

    learner: Learner
    data: Data
    prefix: int
    seed: int
    candidates: Array
    picks: list[int] = field(default_factory=list[int])
    state: Any = None
    stops: dict[int, Stop] = field(default_factory=dict[int, Stop])
    left: Array = field(init=False)
    keys: Array = field(init=False)

    def __post_init__(self) -> None:
        if self.state is None:
            self.state = self.learner.start(self.seed)
            if self.prefix:
                self._fit()
        self.left = np.setdiff1d(self.candidates, np.asarray(self.picks, dtype=np.int64))
        self._score()

    def _fit(self) -> None:
        places = [*range(self.prefix), *self.picks]
        self.state = self.learner.fit(self.state, self.data.take(places), self.prefix)

    def _score(self) -> None:
        if not len(self.left):
            self.keys = np.zeros(0)
            return
        scores = np.asarray(self.learner.scores(self.state, self.data.take(self.left)), dtype=np.float64)
        if scores.shape != (len(self.left),):
            raise InvalidSetting(f"scores must be one number per example: need {(len(self.left),)}, got {scores.shape}")
        self.keys = np.where(np.isnan(scores), -np.inf, scores)

    @property
    def wrong(self) -> int:
        """How many of the others are not right."""
        return count_wrong(self.keys, len(self.left))

    def round(self, size: int) -> None:
        """Pick the next ones with the worst keys (their places break ties), and learn."""
        order = np.lexsort((self.left, self.keys))[:size]
        self.picks += [int(place) for place in self.left[order]]
        self.left, self.keys = np.delete(self.left, order), np.delete(self.keys, order)
        self._fit()
        self._score()

    def stop(self) -> Stop:
        """Where it stands."""
        if len(self.picks) not in self.stops:
            weights = digest_of_arrays(self.learner.weights(self.state))
            self.stops[len(self.picks)] = Stop(tuple(self.picks), self.wrong, len(self.left), weights)
        return self.stops[len(self.picks)]


class Saved:
    """Unfinished runs, in a file that belongs to one learner, data set and plan."""

    def __init__(
        self, path: Path | None, learner: Learner, data: Data, members: Sequence[Member], delta: float
    ) -> None:
        self.path = path
        self.runs: dict[str, Any] = {}
        if path is None:
            return
        whose = [plain(learner.recipe), data.sha256, write(tuple(members), complete=True), delta]
        self.name = digest_of(whose)
        if not path.exists():
            return
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            owner, self.runs = document["of"], dict(document["runs"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidSetting(f"{path} is no state of a run: name another file, or remove it") from None
        if owner != self.name:
            raise InvalidSetting(f"{path} is of another run: name another file, or remove it")

    def load(self, run: str, learner: Learner, data: Data, prefix: int, seed: int) -> Run | None:
        """A run as it was left, with the stops it had reached."""
        if run not in self.runs:
            return None
        entry = self.runs[run]
        state = learner.restore(b64decode(entry["state"]))
        candidates = np.arange(prefix, len(data))
        stops = {int(k): Stop(tuple(s[0]), *s[1:]) for k, s in entry["stops"].items()}
        return Run(learner, data, prefix, seed, candidates, list(entry["picks"]), state, stops)

    def keep(self, run: str, trajectory: Run) -> None:
        """Write it, whole or not at all."""
        if self.path is None:
            return
        state = b64encode(trajectory.learner.dump(trajectory.state)).decode()
        stops = {str(k): [list(s.picks), s.wrong, s.others, s.weights] for k, s in trajectory.stops.items()}
        self.runs[run] = {"picks": trajectory.picks, "state": state, "stops": stops}
        write_text(self.path, json.dumps({"of": self.name, "runs": self.runs}), force=True)

    def remove(self) -> None:
        """All runs are over."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
