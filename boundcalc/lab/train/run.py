"""Running a sweep: what is missing, in stacks, through joblib, into the store as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.sweep import Sweep
from boundcalc.lab.train.trial import Request, Trial, canonical

_STACK = 10
"""Trials trained as one tensor program: on a CPU, between 4 and 16 are about as quick."""
_PORTION = 8
"""Calls given out at once where joblib's back end hands results back only when all are done."""

Tell = Callable[[str, int, int], None]
"""Receives what is made, how many of it are in the store, and how many there are in all."""


@dataclass
class _Ran:
    """What a sweep, or certifying it, found in the store and added to it.

    Attributes:
        what: trials, or certificates.
        total: how many there are.
        present: those that were in the store.
        tell: receives a report of each.
        added: those that were made.
        failed: diverged trials, or refused certificates, among those added.
        errors: of stacks that failed.
    """

    what: str
    total: int
    present: int
    tell: Tell
    added: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.tell(self.what, self.present, self.total)

    def count(self, *, failed: bool) -> None:
        """One more is stored."""
        self.added += 1
        self.failed += failed
        self.tell(self.what, self.present + self.added, self.total)


def _results(
    work: Callable[..., Any], calls: Sequence[tuple[Any, ...]], jobs: int | None, backend: str | None
) -> Iterator[Any]:
    """What `work` returns of each call, as it comes, one thread in each process."""
    import joblib

    with ExitStack() as cluster:
        try:
            if backend == "ray":
                from ray.util.joblib import register_ray  # type: ignore[import-not-found]

                register_ray()  # which connects to $RAY_ADDRESS, or starts a cluster here
            elif backend == "dask":
                from dask.distributed import Client  # type: ignore[import-not-found]

                cluster.enter_context(Client())  # to $DASK_SCHEDULER_ADDRESS, or a cluster started here
            if backend is not None:
                cluster.enter_context(joblib.parallel_config(backend))
        except (ImportError, ValueError, OSError) as error:
            raise InvalidSetting(f"joblib cannot use the back end {backend!r} here: {error}") from None
        delayed = [joblib.delayed(work)(*call) for call in calls]
        try:
            options: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}
            parallel = joblib.Parallel(jobs, **options)
        except ValueError:  # the back end has no generators
            for start in range(0, len(delayed), _PORTION):
                yield from joblib.Parallel(jobs)(delayed[start : start + _PORTION])  # type: ignore[misc]
        else:
            yield from parallel(delayed)  # type: ignore[misc]


def _train_stack(configs: Sequence[Mapping[str, Any]]) -> Any:
    """Trials of a stack with their results, or the text of an error."""
    import torch

    from boundcalc.lab.train.trainer import train

    torch.set_num_threads(1)
    trials = [Trial.from_json(config) for config in configs]
    try:
        return [(outcome.trial.to_json(), outcome.result) for outcome in train(trials)]
    except BoundcalcError:
        raise
    except (RuntimeError, MemoryError) as error:
        return f"{len(trials)} trials like {trials[0].hash[:12]}: {type(error).__name__}: {error}"


def _certify(config: Mapping[str, Any], requests: Sequence[Request]) -> tuple[str, list[Any]]:
    """The hash of a trial, and the answer to each request."""
    import torch

    from boundcalc.lab.train.certify import certify_trial

    torch.set_num_threads(1)
    trial = Trial.from_json(config)
    return trial.hash, list(certify_trial(trial, requests))


def _stacks_of(trials: Sequence[Trial], size: int) -> list[list[Trial]]:
    """Trials that may share a stack, at most `size` of them, of similar m; the costly stacks first."""
    from boundcalc.lab.train.trainer import stack_key

    groups: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: (trial.m, trial.seed, trial.hash)):
        groups.setdefault(stack_key(trial), []).append(trial)
    stacks = [group[start : start + size] for group in groups.values() for start in range(0, len(group), size)]
    return sorted(stacks, key=lambda stack: stack[0].architecture.seq_len * max(stack[0].batch, 64), reverse=True)


def run_sweep(
    sweep: Sweep,
    store: Store,
    *,
    jobs: int | None = None,
    backend: str | None = None,
    stack: int = _STACK,
    tell: Tell = lambda *_: None,
) -> _Ran:
    """Train what the store does not have; the trials of every finished stack are stored at once.

    Args:
        sweep: the trials.
        store: where they are kept.
        jobs: processes (-1: one per core); unset, what `joblib.parallel_config` says, or this process.
        backend: of joblib: loky, ray, dask, ...; unset, what `joblib.parallel_config` says.
        stack: trials trained as one tensor program.
        tell: receives how far it is.
    """
    present = store.hashes()
    todo = [trial for trial in sweep.trials if trial.hash not in present]
    ran = _Ran("trials", len(sweep.trials), len(sweep.trials) - len(todo), tell)
    store.enrol(sweep.name, [trial.hash for trial in sweep.trials if trial.hash in present])
    calls = [([trial.to_json() for trial in trials],) for trials in _stacks_of(todo, stack)]
    for results in _results(_train_stack, calls, jobs, backend):
        if isinstance(results, str):
            ran.errors.append(results)
            continue
        for config, result in results:
            if store.add(Trial.from_json(config), result, sweep=sweep.name):
                ran.count(failed=result["status"] == "diverged")
    return ran


def certify_sweep(
    trials: Sequence[Trial],
    store: Store,
    requests: Sequence[Request],
    *,
    jobs: int | None = None,
    backend: str | None = None,
    tell: Tell = lambda *_: None,
) -> _Ran:
    """Every certificate of every trial that the store does not have; those of a trial are stored when they are made."""
    stored, calls = store.certified(), list[tuple[Any, ...]]()
    for trial in sorted(trials, key=lambda trial: -trial.m):
        missed = [request for request in requests if (trial.hash, canonical(request.to_json())) not in stored]
        if missed:
            calls.append((trial.to_json(), missed))
    total = len(trials) * len(requests)
    ran = _Ran("certificates", total, total - sum(len(missed) for _, missed in calls), tell)
    for key, answers in _results(_certify, calls, jobs, backend):
        for issued in answers:
            store.add_certificate(issued, key)
            ran.count(failed=issued.certificate is None)
    return ran
