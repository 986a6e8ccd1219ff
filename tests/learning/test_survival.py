"""Sweeps that are killed, that share a store, that run out of disk, that run on clusters. They train for real."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("joblib")

from boundcalc.learning.backends import Where
from boundcalc.learning.run import run_sweep
from boundcalc.learning.store import Store
from boundcalc.learning.sweep import sweep_from_json

SPEC: dict[str, Any] = {
    "name": "survival",
    "task": {"task": "conjunction", "s": 2},
    "model": {"d": 16, "heads": 4, "d_ff": 16},
    "train": {"lr": 4e-3, "steps": 120},
    "n_test": 64,
    "seeds": 10,
    "grid": {"T": [8, 12], "m": [20, 24, 28]},
}
TOTAL = 60
STACK = 4


def sweep_command(folder: Path, *more: str) -> list[str]:
    (folder / "spec.json").write_text(json.dumps(SPEC))
    words = ["sweep", "spec.json", "--store", "runs.db", "--stack", str(STACK), "--device", "cpu", *more]
    return [sys.executable, "-m", "boundcalc", *words]


def finished(path: Path) -> set[str]:
    with Store(path) as store:
        assert store.verify() == []
        return store.hashes()


def whole(path: Path) -> None:
    """All trials present once, all as written."""
    expected = {trial.hash for trial in sweep_from_json(SPEC).trials}
    assert finished(path) == expected
    with Store(path) as store:
        assert len(store) == TOTAL
        assert store.sweeps() == {"survival": TOTAL}


@pytest.mark.slow
def test_kill_9_in_mid_sweep_ten_times(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    command, path = sweep_command(tmp_path), tmp_path / "runs.db"
    before: set[str] = set()
    for _ in range(10):
        child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        assert child.stderr is not None
        child.stderr.readline()  # it has looked at the store
        time.sleep(float(rng.uniform(0.0, 2.0)))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stderr.close()
        now = finished(path)
        assert before <= now  # nothing that was there is lost
        before = now
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    whole(path)


@pytest.mark.slow
def test_two_sweeps_into_one_store(tmp_path: Path) -> None:
    command = sweep_command(tmp_path)
    children = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    whole(tmp_path / "runs.db")


@pytest.mark.slow
def test_ctrl_c_ends_at_once_and_the_sweep_goes_on(tmp_path: Path) -> None:
    command, path = sweep_command(tmp_path), tmp_path / "runs.db"
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    while not path.exists() or not finished(path):
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=20) == 130
    assert finished(path)
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    whole(path)


@pytest.mark.slow
def test_a_full_disk_ends_the_sweep_with_one_line(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        command = sweep_command(tmp_path)
        command[command.index("runs.db")] = str(small / "runs.db")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1
        assert "the disk is full" in done.stderr.splitlines()[-1]
        kept = finished(small / "runs.db")
        assert 0 < len(kept) < TOTAL
        (tmp_path / "runs.db").write_bytes((small / "runs.db").read_bytes())
        if (small / "runs.db-wal").exists():
            (tmp_path / "runs.db-wal").write_bytes((small / "runs.db-wal").read_bytes())
        assert finished(tmp_path / "runs.db") >= kept
    finally:
        subprocess.run(["umount", str(small)], check=True)


def _children(pid: int) -> list[int]:
    text = subprocess.run(["ps", "-o", "pid=,ppid=,args=", "-e"], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in text.splitlines()]
    found: list[int] = []
    parents = {pid}
    for _ in range(4):
        parents |= {int(row[0]) for row in rows if int(row[1]) in parents}
    found = [int(row[0]) for row in rows if int(row[0]) in parents and int(row[0]) != pid]
    return found


def _workers(kind: str) -> list[int]:
    """Processes below this one that train: told by their command lines."""
    marks = {"loky": ("loky",), "ray": ("ray::PoolActor", "ray::"), "dask": ("spawn_main", "from multiprocessing")}[
        kind
    ]
    found: list[int] = []
    for pid in _children(os.getpid()):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if any(mark in line for mark in marks) and "resource_tracker" not in line and "IDLE" not in line:
            found.append(pid)
    return found


@pytest.fixture
def dask_address() -> Iterator[str]:
    distributed = pytest.importorskip("dask.distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def killed_once(kind: str, store: Store, workers: Any) -> threading.Thread:
    """A thread that kills a worker as soon as the first trials are stored."""

    def wait_and_kill() -> None:
        with Store(store.path) as mine:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and not len(mine):
                time.sleep(0.05)
        found = workers()
        if found:
            os.kill(found[-1], signal.SIGKILL)
            killed.append(found[-1])

    killed: list[int] = []
    thread = threading.Thread(target=wait_and_kill, name=kind)
    thread.killed = killed  # type: ignore[attr-defined]
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kill", [False, True], ids=["", "worker killed"])
def test_processes_here(tmp_path: Path, kill: bool) -> None:
    with Store(tmp_path / "runs.db") as store:
        thread = killed_once("loky", store, lambda: _workers("loky")) if kill else None
        ran = run_sweep(sweep_from_json(SPEC), store, where=Where(jobs=2), stack=STACK)
        if thread is not None:
            thread.join()
            assert thread.killed  # type: ignore[attr-defined]
    assert ran.added == TOTAL
    assert not ran.errors
    whole(tmp_path / "runs.db")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kill", [False, True], ids=["", "worker killed"])
def test_dask_cluster_of_two(tmp_path: Path, dask_address: str, kill: bool) -> None:
    where = Where("dask", -1, dask_address)
    with Store(tmp_path / "runs.db") as store:
        thread = killed_once("dask", store, lambda: _workers("dask")) if kill else None
        ran = run_sweep(sweep_from_json(SPEC), store, where=where, stack=STACK)
        if thread is not None:
            thread.join()
            assert thread.killed  # type: ignore[attr-defined]
    assert ran.added == TOTAL
    whole(tmp_path / "runs.db")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
@pytest.mark.parametrize("kill", [False, True], ids=["", "worker killed"])
def test_ray_cluster_of_two(tmp_path: Path, kill: bool) -> None:
    import ray  # type: ignore[import-not-found]

    ray.init(num_cpus=2, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    try:
        with Store(tmp_path / "runs.db") as store:
            thread = killed_once("ray", store, lambda: _workers("ray")) if kill else None
            ran = run_sweep(sweep_from_json(SPEC), store, where=Where("ray", 2), stack=STACK)
            if thread is not None:
                thread.join()
                assert thread.killed  # type: ignore[attr-defined]
    finally:
        ray.shutdown()
    assert ran.added == TOTAL
    whole(tmp_path / "runs.db")
