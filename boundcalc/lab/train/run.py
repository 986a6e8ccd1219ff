"""Running a sweep: what is missing, in stacks, through joblib, into the store as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.train.certify import Issued, Request, certify_trial
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.sweep import Sweep, missing
from boundcalc.lab.train.trial import Trial, canonical

_STACK = 10
"""Trials trained as one tensor program: on a CPU, between 4 and 16 are about as quick."""
_PORTION = 8
"""Calls given out at once where joblib's back end hands results back only when all are done."""

Tell = Callable[[str, int, int], None]
"""Receives what is made, how many of it are in the store, and how many there are in all."""


@dataclass
class Ran:
    """What a sweep, or certifying it, found in the store and added to it.

    Attributes:
        what: trials, or certificates.
        total: how many there are.
        present: those that were in the store.
        tell: receives a report of each.
        added: those that were made.
        failed: diverged trials, or refused certificates, among those added.
        seconds: duration until the last was stored.
        errors: of stacks that failed.
    """

    what: str
    total: int
    present: int
    tell: Tell
    added: int = 0
    failed: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self.tell(self.what, self.present, self.total)

    def count(self, *, failed: bool, new: bool = True) -> None:
        """One more is stored."""
        self.added += new
        self.failed += failed
        self.seconds = time.monotonic() - self._started
        self.tell(self.what, self.present + self.added, self.total)


@dataclass(frozen=True)
class Workers:
    """Where stacks are computed, a thread in each process.

    Attributes:
        jobs: processes (-1: one per core); unset, what `joblib.parallel_config` says, or this process.
        backend: of joblib: loky, ray, dask, ...; unset, what `joblib.parallel_config` says.
    """

    jobs: int | None = None
    backend: str | None = None

    def results(self, work: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """(number of the call, what `work` returns of it), as they come."""
        import joblib

        with ExitStack() as cluster:
            self._connect(cluster)
            numbered = [joblib.delayed(_numbered)(work, n, *call) for n, call in enumerate(calls)]
            try:
                options: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}
                parallel = joblib.Parallel(self.jobs, **options)
            except ValueError:  # the back end has no generators
                for start in range(0, len(numbered), _PORTION):
                    yield from joblib.Parallel(self.jobs)(numbered[start : start + _PORTION])  # type: ignore[misc]
            else:
                yield from parallel(numbered)  # type: ignore[misc]

    def _connect(self, cluster: ExitStack) -> None:
        """Make the back end known to joblib, and joblib use it."""
        import joblib

        try:
            if self.backend == "ray":
                from ray.util.joblib import register_ray  # type: ignore[import-not-found]

                register_ray()  # which connects to $RAY_ADDRESS, or starts a cluster here
            elif self.backend == "dask":
                from dask.distributed import Client  # type: ignore[import-not-found]

                cluster.enter_context(Client())  # to $DASK_SCHEDULER_ADDRESS, or a cluster started here
            if self.backend is not None:
                cluster.enter_context(joblib.parallel_config(self.backend))
        except (ImportError, ValueError, OSError) as error:
            raise InvalidSetting(f"joblib cannot use the back end {self.backend!r} here: {error}") from None


def _numbered(work: Callable[..., Any], number: int, *arguments: Any) -> tuple[int, Any]:
    import torch

    torch.set_num_threads(1)
    return number, work(*arguments)


def _train_stack(configs: Sequence[Mapping[str, Any]]) -> Any:
    """Results of a stack, or the text of an error."""
    from boundcalc.lab.train.trainer import train

    try:
        return [outcome.result for outcome in train([Trial.from_json(config) for config in configs])]
    except BoundcalcError:
        raise
    except (RuntimeError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"


def _certify(config: Mapping[str, Any], requests: Sequence[Request]) -> list[Issued]:
    return certify_trial(Trial.from_json(config), requests)


def _stacks_of(trials: Sequence[Trial], size: int) -> list[list[Trial]]:
    """Trials that may share a stack, at most `size` of them, of similar m; the costly stacks first."""
    from boundcalc.lab.train.trainer import stack_key

    groups: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: (trial.m, trial.seed, trial.hash)):
        groups.setdefault(stack_key(trial), []).append(trial)
    stacks = [group[start : start + size] for group in groups.values() for start in range(0, len(group), size)]
    return sorted(stacks, key=lambda stack: stack[0].architecture.seq_len * max(stack[0].batch, 64), reverse=True)


def run_sweep(
    sweep: Sweep, store: Store, *, workers: Workers | None = None, stack: int = _STACK, tell: Tell = lambda *_: None
) -> Ran:
    """Train what the store does not have; the trials of every finished stack are stored at once."""
    present = store.hashes()
    todo = missing(sweep.trials, present)
    ran = Ran("trials", len(sweep.trials), len(sweep.trials) - len(todo), tell)
    store.enrol(sweep.name, [trial.hash for trial in sweep.trials if trial.hash in present])
    stacks = _stacks_of(todo, stack)
    calls = [([trial.to_json() for trial in trials],) for trials in stacks]
    for number, results in (workers or Workers()).results(_train_stack, calls):
        if isinstance(results, str):
            ran.errors.append(f"{len(stacks[number])} trials like {stacks[number][0].hash[:12]}: {results}")
            continue
        for trial, result in zip(stacks[number], results, strict=True):
            new = store.add(trial, result, sweep=sweep.name)
            ran.count(new=new, failed=result["status"] == "diverged")
    return ran


def certify_sweep(
    trials: Sequence[Trial],
    store: Store,
    requests: Sequence[Request],
    *,
    workers: Workers | None = None,
    tell: Tell = lambda *_: None,
) -> Ran:
    """Every certificate of every trial that the store does not have; those of a trial are stored when they are made."""
    stored = store.certified()
    todo: list[tuple[Trial, list[Request]]] = []
    for trial in sorted(trials, key=lambda trial: -trial.m):
        missed = [request for request in requests if (trial.hash, canonical(request.to_json())) not in stored]
        if missed:
            todo.append((trial, missed))
    total = len(trials) * len(requests)
    ran = Ran("certificates", total, total - sum(len(missed) for _, missed in todo), tell)
    calls = [(trial.to_json(), missed) for trial, missed in todo]
    for number, answers in (workers or Workers()).results(_certify, calls):
        for issued in answers:
            store.add_certificate(issued, todo[number][0].hash)
            ran.count(failed=issued.certificate is None)
    return ran
