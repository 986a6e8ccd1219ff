"""Sweeps that are killed, that run in processes, on Ray and on Dask. They train for real.

Nothing here waits for a time to pass: what is to be killed is killed when the store holds so many trials.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
joblib = pytest.importorskip("joblib")

from boundcalc.lab.train.run import run_sweep  # noqa: E402
from boundcalc.lab.train.store import Store  # noqa: E402
from boundcalc.lab.train.sweep import sweep_from_json  # noqa: E402

SPEC: dict[str, Any] = {
    "name": "survival",
    "task": {"task": "conjunction", "s": 2},
    "model": {"d": 16, "heads": 4, "d_ff": 16},
    "train": {"lr": 4e-3, "steps": 40},
    "n_test": 64,
    "seeds": 10,
    "grid": {"T": [8, 12], "m": [20, 24, 28]},
}
TOTAL = 60
PATIENCE = 300.0
"""Seconds for what takes a few, on a machine that is busy with other things."""
KILLED = """
import json, sys
from boundcalc.lab.train.run import run_sweep
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.sweep import sweep_from_json
with Store("runs.db") as store:
    run_sweep(sweep_from_json(json.load(open("spec.json"))), store, stack=4)
"""


def whole(path: Path) -> None:
    """All trials present once."""
    with Store(path) as store:
        assert store.hashes() == {trial.hash for trial in sweep_from_json(SPEC).trials}
        assert store.sweeps() == {"survival": TOTAL}


def stored(path: Path) -> set[str]:
    if not path.exists():
        return set()
    try:
        with Store(path, create=False) as store:
            return store.hashes()
    except Exception:  # another process is just making it
        return set()


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_kill_9_in_mid_sweep_again_and_again(tmp_path: Path, times: int) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    rng, path, before = np.random.default_rng(0), tmp_path / "runs.db", set[str]()
    for _ in range(times):
        child = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path)
        deadline, enough = time.monotonic() + PATIENCE, len(before) + 1
        while len(stored(path)) < enough:
            assert child.poll() is None, "the sweep ended before it could be killed"
            assert time.monotonic() < deadline
        time.sleep(float(rng.uniform(0, 0.02)))
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait(PATIENCE) == -signal.SIGKILL
        now = stored(path)
        assert before < now  # nothing that was stored is lost
        before = now
    assert 0 < len(before) < TOTAL
    results_of(path)


def results_of(path: Path, **options: Any) -> dict[str, Any]:
    """What the sweep's trials give on test examples, those trained that the store lacks."""
    with Store(path) as store:
        run_sweep(sweep_from_json(SPEC), store, **options)
        results = {record.hash: record.result["test"] for record in store.records()}
    whole(path)
    return results


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process gives: others must give the same, to the bit."""
    return results_of(tmp_path_factory.mktemp("here") / "runs.db")


@pytest.mark.filterwarnings("ignore")
def test_processes(tmp_path: Path, here: dict[str, Any]) -> None:
    assert results_of(tmp_path / "runs.db", jobs=2) == here


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_dask(tmp_path: Path, here: dict[str, Any], processes: bool) -> None:
    """By a cluster that the user connected to."""
    distributed = pytest.importorskip("dask.distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "processes": processes}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        assert results_of(tmp_path / "runs.db") == here


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray(tmp_path: Path, here: dict[str, Any]) -> None:
    import ray  # type: ignore[import-not-found]

    ray.init(num_cpus=2, object_store_memory=10**8, log_to_driver=False, include_dashboard=False)
    try:
        assert results_of(tmp_path / "runs.db", jobs=2, backend="ray") == here
    finally:
        ray.shutdown()
