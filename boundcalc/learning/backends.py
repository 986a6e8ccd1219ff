"""Where stacks of trials are trained: in this process, in others here, or on a Ray or Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from boundcalc.errors import BoundcalcError, InvalidSetting
from boundcalc.learning.trial import Trial

BACKENDS = ("loky", "ray", "dask")
_PATIENCE = 5
"""Deaths of workers in a row, without a finished stack between them, after which a sweep gives up."""


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
        if self.backend not in BACKENDS:
            raise InvalidSetting(f"backend must be one of {', '.join(BACKENDS)}; got {self.backend!r}")
        if self.jobs == 0 or self.jobs < -1:
            raise InvalidSetting(f"jobs must be at least 1, or -1 for all cores, got {self.jobs}")
        if self.address and self.backend == "loky":
            raise InvalidSetting("--address belongs to --backend ray or dask; loky runs on this machine")
        if self.threads < 1:
            raise InvalidSetting(f"threads must be at least 1, got {self.threads}")

    @property
    def here(self) -> bool:
        """Whether all is done in this process."""
        return self.backend == "loky" and self.jobs == 1


def train_stack(configs: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker does: train a stack, return plain data. A Python error is returned, as text."""
    import torch

    from boundcalc.learning.trainer import train

    torch.set_num_threads(int(options.get("threads", 1)))
    try:
        trials = [Trial.from_json(config) for config in configs]
        outcomes = train(
            trials, device=options.get("device"), path=options.get("path"), compiled=bool(options.get("compile"))
        )
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    keep = bool(options.get("keep_weights"))
    return {
        "results": [outcome.result for outcome in outcomes],
        "weights": [{k: v.cpu().numpy() for k, v in o.weights.items()} for o in outcomes] if keep else None,
    }


def spread(
    stacks: Sequence[Sequence[Trial]], where: Where, options: Mapping[str, Any], note: Callable[[str], None]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Results of stacks as they come, with the number of the stack; stacks of a dead worker are given out again."""
    import joblib

    waiting = dict(enumerate(stacks))
    deaths = 0
    with ExitStack() as cluster:
        settings = _connect(where, cluster)
        while waiting:
            try:
                with joblib.parallel_config(**settings):
                    calls = (
                        joblib.delayed(_numbered)(number, [trial.to_json() for trial in stack], dict(options))
                        for number, stack in list(waiting.items())
                    )
                    run = joblib.Parallel(
                        n_jobs=where.jobs,
                        return_as=_streams(settings),
                        batch_size=1,  # type: ignore[arg-type]
                        pre_dispatch="2*n_jobs",
                    )
                    for number, found in run(calls):  # type: ignore[union-attr]
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
    return number, train_stack(configs, options)


def _streams(settings: Mapping[str, Any]) -> str:
    """Results one by one where the backend can; as a list, round by round, elsewhere."""
    from joblib.parallel import BACKENDS as KNOWN

    factory = KNOWN.get(settings["backend"])
    streams = getattr(factory, "supports_return_generator", True)
    return "generator_unordered" if streams is True or isinstance(streams, property) else "list"


def _connect(where: Where, cluster: ExitStack) -> dict[str, Any]:
    if where.backend == "loky":
        return {"backend": "loky", "inner_max_num_threads": where.threads}
    if where.backend == "ray":
        return _connect_ray(where, cluster)
    return _connect_dask(where, cluster)


def _connect_ray(where: Where, cluster: ExitStack) -> dict[str, Any]:
    try:
        import ray  # type: ignore[import-not-found]
        from ray.util.joblib import register_ray  # type: ignore[import-not-found]
    except ImportError:
        raise BackendError("--backend ray needs ray: pip install 'boundcalc[ray]'") from None
    if not ray.is_initialized():
        try:
            ray.init(address=where.address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise BackendError(f"cannot reach a Ray cluster at {where.address}: {_short(error)}") from None
        cluster.callback(ray.shutdown)
    register_ray()
    settings: dict[str, Any] = {"backend": "ray"}
    if where.gpus:
        settings["ray_remote_args"] = {"num_gpus": where.gpus}
    return settings


def _connect_dask(where: Where, cluster: ExitStack) -> dict[str, Any]:
    try:
        from dask.distributed import Client  # type: ignore[import-not-found]
    except ImportError:
        raise BackendError("--backend dask needs dask: pip install 'boundcalc[dask]'") from None
    try:
        if where.address:
            client = Client(where.address, timeout="10s")
        else:
            client = Client(
                n_workers=None if where.jobs < 0 else where.jobs, threads_per_worker=1, dashboard_address=None
            )
    except (OSError, ValueError, TimeoutError) as error:
        raise BackendError(f"cannot reach a Dask cluster at {where.address}: {_short(error)}") from None
    cluster.enter_context(client)
    settings: dict[str, Any] = {"backend": "dask"}
    if where.gpus:
        settings["resources"] = {"GPU": where.gpus}
    return settings


def _is_death(error: Exception) -> bool:
    """Whether an error says that a worker is gone, rather than that our code is wrong."""
    names = {cls.__name__ for cls in type(error).__mro__}
    return bool(
        names & {"TerminatedWorkerError", "BrokenProcessPool", "RayActorError", "ActorDiedError", "WorkerCrashedError"}
        | (names & {"KilledWorker", "ActorUnavailableError", "NodeDiedError", "CommClosedError"})
    )


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
