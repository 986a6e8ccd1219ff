"""Where stacks of trials are trained: in this process, in others here, or on a Ray or Dask cluster."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

from boundcalc.base import project
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.train.trial import Trial

_BACKENDS = ("loky", "ray", "dask")
_PATIENCE = 5
"""Deaths of workers in a row, without a finished stack between them, after which a sweep gives up."""


_Call = tuple[int, list[dict[str, Any]], dict[str, Any]]
_Run = Callable[[Sequence[_Call]], Generator[tuple[int, Any], None, None]]
"""Gives stacks out and yields their results as they come."""


class BackendError(BoundcalcError):
    """Workers that cannot be reached or keep dying."""


@dataclass(frozen=True)
class Where:
    """How work is spread.

    Attributes:
        backend: loky (processes here), ray or dask.
        jobs: processes; with ray or dask, stacks in flight (-1: as many as there are workers).
        address: of the cluster; unset, a local one.
        threads: of each process.
        gpus: per stack, passed on to ray ("num_gpus") or dask (resource "GPU").
    """

    backend: str = "loky"
    jobs: int = 1
    address: str | None = None
    threads: int = 1
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.backend not in _BACKENDS:
            raise InvalidSetting(f"backend must be one of {', '.join(_BACKENDS)}; got {self.backend!r}")
        if self.jobs == 0 or self.jobs < -1:
            raise InvalidSetting(f"jobs must be at least 1, or -1 for all cores, got {self.jobs}")
        if self.address and self.backend == "loky":
            raise InvalidSetting("--address belongs to --backend ray or dask; loky runs on this machine")
        if self.threads < 1:
            raise InvalidSetting(f"threads must be at least 1, got {self.threads}")
        if self.gpus < 0 or (self.gpus and self.backend == "loky"):
            raise InvalidSetting(
                f"--gpus {self.gpus:g} is a share of a cluster's GPUs: give at least 0, with --backend ray or dask; "
                "here, use --device cuda"
            )

    @property
    def here(self) -> bool:
        """Whether all is done in this process."""
        return self.backend == "loky" and self.jobs == 1


def _work(configs: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker does with a stack, as plain data: it trains it, or certifies what its trials' data teach.

    A Python error is returned, as text.
    """
    import torch

    torch.set_num_threads(options["threads"])
    try:
        trials = [Trial.from_json(config) for config in configs]
        return _certify_stack(trials, options) if options.get("certify") else _train_stack(trials, options)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _certify_stack(trials: Sequence[Trial], options: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked of every trial, one after the other."""
    from boundcalc.lab.train.certify import Asked, certify_trial

    found: list[list[dict[str, Any]]] = []
    for trial, asked in zip(trials, options["certify"], strict=True):
        made = certify_trial(trial, [Asked(**one) for one in asked])
        found.append([one.to_json() for one in made])
    return {"certificates": found}


def _train_stack(trials: Sequence[Trial], options: Mapping[str, Any]) -> dict[str, Any]:
    from boundcalc.lab.train.trainer import train

    outcomes = train(trials, compiled=options["compiled"])
    keep = options["keep_weights"]
    return {
        "results": [outcome.result for outcome in outcomes],
        "weights": [outcome.arrays if keep else None for outcome in outcomes],
    }


def spread(
    stacks: Sequence[Sequence[Trial]],
    where: Where,
    options: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    note: Callable[[str], None],
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Results of stacks as they come, with the number of the stack; stacks of a dead worker are given out again.

    Options are those of all stacks, or one object per stack.
    """
    each = [options] * len(stacks) if isinstance(options, Mapping) else list(options)
    waiting = dict(enumerate(stacks))
    deaths = 0
    with ExitStack() as cluster:
        run = _ray(where, cluster) if where.backend == "ray" else _joblib(where, cluster)
        while waiting:
            calls = [(n, [trial.to_json() for trial in stack], dict(each[n])) for n, stack in waiting.items()]
            try:
                with closing(run(calls)) as results:
                    for number, found in results:
                        deaths = 0
                        if waiting.pop(number, None) is not None:
                            yield number, found
            except Exception as error:
                if not _is_death(error):
                    raise
                deaths += 1
                if deaths >= _PATIENCE:
                    raise BackendError(
                        f"{deaths} workers died one after the other ({type(error).__name__}): is there enough memory? "
                        "Finished trials are kept; use smaller stacks (--stack 4) or fewer --jobs"
                    ) from error
                note(f"a worker died ({type(error).__name__}); its trials are given out again")


def _numbered(number: int, configs: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> tuple[int, Any]:
    return number, _work(configs, options)


def _joblib(where: Where, cluster: ExitStack) -> _Run:
    import joblib

    cluster.enter_context(warnings.catch_warnings())
    warnings.filterwarnings("ignore", message=r"\d+ tasks which", category=UserWarning)  # those given up on the way out
    settings = _dask(where, cluster) if where.backend == "dask" else {"inner_max_num_threads": where.threads}

    def run(calls: Sequence[_Call]) -> Generator[tuple[int, Any], None, None]:
        with joblib.parallel_config(where.backend, **settings):
            parallel = joblib.Parallel(
                n_jobs=where.jobs,
                return_as="generator_unordered",
                batch_size=1,  # type: ignore[arg-type]
                pre_dispatch="2*n_jobs",
            )
            yield from parallel(joblib.delayed(_numbered)(*call) for call in calls)  # type: ignore[misc]

    return run


def _ray(where: Where, cluster: ExitStack) -> _Run:
    """Ray's tasks themselves: Ray's plug-in for joblib hands back nothing until the last stack is done."""
    try:
        import ray  # type: ignore[import-not-found]
    except ImportError:
        raise BackendError(f"--backend ray needs ray: {project.install('ray')}") from None
    if not ray.is_initialized():
        try:
            ray.init(address=where.address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise BackendError(f"cannot reach a Ray cluster at {where.address}: {_short(error)}") from None
        cluster.callback(ray.shutdown)
    task = ray.remote(num_cpus=where.threads, num_gpus=where.gpus, max_retries=0)(_work)
    most = where.jobs if where.jobs > 0 else max(1, int(ray.cluster_resources().get("CPU", 1)) // where.threads)

    def run(calls: Sequence[_Call]) -> Generator[tuple[int, Any], None, None]:
        left = list(reversed(calls))
        flying: dict[Any, int] = {}
        try:
            while left or flying:
                while left and len(flying) < most:
                    number, configs, options = left.pop()
                    flying[task.remote(configs, options)] = number
                for done in ray.wait(list(flying))[0]:
                    found = ray.get(done)
                    yield flying.pop(done), found
        finally:
            for task_of_this_run in flying:
                ray.cancel(task_of_this_run, force=True)

    return run


def _dask(where: Where, cluster: ExitStack) -> dict[str, Any]:
    try:
        from dask.distributed import Client  # type: ignore[import-not-found]
    except ImportError:
        raise BackendError(f"--backend dask needs dask: {project.install('dask')}") from None
    try:
        if where.address:
            client = Client(where.address, timeout="10s")
        else:
            client = Client(
                n_workers=None if where.jobs < 0 else where.jobs,
                threads_per_worker=1,
                dashboard_address=None,
                silence_logs=logging.ERROR,
            )
    except (OSError, ValueError, TimeoutError) as error:
        raise BackendError(f"cannot reach a Dask cluster at {where.address}: {_short(error)}") from None
    cluster.enter_context(client)
    return {"resources": {"GPU": where.gpus}} if where.gpus else {}


def _is_death(error: Exception) -> bool:
    """Whether an error says that a worker is gone, rather than that our code is wrong."""
    names = {cls.__name__ for cls in type(error).__mro__}
    return bool(
        names & {"TerminatedWorkerError", "BrokenProcessPool", "RayActorError", "ActorDiedError", "WorkerCrashedError"}
        | (names & {"KilledWorker", "ActorUnavailableError", "NodeDiedError", "CommClosedError"})
    )


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
