"""Running a sweep: what is missing, in stacks, through joblib, into the store as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
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
    """How many trials, or certificates, there are, were in the store and were added; how many of these failed."""

    total: int
    present: int
    added: int = 0
    failed: int = 0


def _results(work: Callable[[Any], Any], parts: Sequence[Any], jobs: int | None, backend: str | None) -> Iterator[Any]:
    """What `work` returns of each part, as it comes, one thread in each process."""
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
        calls = [joblib.delayed(work)(part) for part in parts]
        try:
            parallel: Any = joblib.Parallel(jobs, return_as="generator_unordered", batch_size=1)
        except ValueError:  # the back end has no generators
            for start in range(0, len(calls), _PORTION):
                yield from joblib.Parallel(jobs)(calls[start : start + _PORTION])  # type: ignore[misc]
        else:
            yield from parallel(calls)


def _train_stack(configs: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Hashes of the trials of a stack, with their results."""
    import torch

    from boundcalc.lab.train.trainer import train

    torch.set_num_threads(1)
    try:
        return [(outcome.trial.hash, outcome.result) for outcome in train([Trial.from_json(c) for c in configs])]
    except (RuntimeError, MemoryError) as error:
        raise BoundcalcError(
            f"{len(configs)} trials of the task {configs[0]['task']['task']!r} cannot be trained at once: {error}; "
            "those that were finished are kept"
        ) from error


def _certify(part: tuple[Mapping[str, Any], Sequence[Request]]) -> tuple[str, list[Any]]:
    """The hash of a trial, and the answer to each request."""
    import torch

    from boundcalc.lab.train.certify import certify_trial

    torch.set_num_threads(1)
    trial = Trial.from_json(part[0])
    return trial.hash, list(certify_trial(trial, part[1]))


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
    trials, present = {trial.hash: trial for trial in sweep.trials}, store.hashes()
    stacks = _stacks_of([trial for key, trial in trials.items() if key not in present], stack)
    ran = _Ran(len(trials), len(present & trials.keys()))
    store.enrol(sweep.name, trials)
    tell("trials", ran.present, ran.total)
    for results in _results(_train_stack, [[trial.to_json() for trial in some] for some in stacks], jobs, backend):
        for key, result in results:
            ran.added += store.add(trials[key], result)
            ran.failed += result["status"] == "diverged"
        tell("trials", ran.present + ran.added, ran.total)
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
    stored, parts = store.certified(), list[tuple[Any, list[Request]]]()
    for trial in sorted(trials, key=lambda trial: -trial.m):
        missed = [request for request in requests if (trial.hash, canonical(request.to_json())) not in stored]
        if missed:
            parts.append((trial.to_json(), missed))
    total = len(trials) * len(requests)
    ran = _Ran(total, total - sum(len(missed) for _, missed in parts))
    tell("certificates", ran.present, ran.total)
    for key, answers in _results(_certify, parts, jobs, backend):
        for issued in answers:
            store.add_certificate(issued, key)
            ran.added += 1
            ran.failed += issued.certificate is None
        tell("certificates", ran.present + ran.added, ran.total)
    return ran
