"""Sweeps that are killed, that share a store, that run out of disk, that run on clusters. They train for real.

None of these waits for a time to pass: what is to be killed is killed when the store holds so many trials.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("joblib")


from boundcalc.base.progress import Progress
from boundcalc.lab.train.backends import Where
from boundcalc.lab.train.run import run_sweep
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.store_file import STORE_ID, StoreError
from boundcalc.lab.train.sweep import sweep_from_json

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
STACK = 4
PATIENCE = 300.0
"""Seconds for what takes a few, on a machine that is busy with other things."""


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


def wait_until(condition: Callable[[], bool], child: Any) -> None:
    """Until something holds, while a process lives."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        alive = child.is_alive() if hasattr(child, "is_alive") else child.poll() is None
        assert alive, "the sweep ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def count(path: Path) -> int:
    """How many trials are stored by now."""
    if not path.exists():
        return 0
    try:
        with Store(path, create=False) as store:
            return len(store)
    except Exception:  # another process is just making it
        return 0


def sweep_here(path: str) -> None:
    """A process that sweeps."""
    with Store(path) as store:
        run_sweep(sweep_from_json(SPEC), store, stack=STACK)


@pytest.mark.parametrize("times", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_kill_9_in_mid_sweep_again_and_again(tmp_path: Path, times: int) -> None:
    rng = np.random.default_rng(0)
    context = get_context("forkserver")  # imports torch once, not ten times
    context.set_forkserver_preload(["boundcalc.lab.train.run", "boundcalc.lab.train.trainer"])
    path = tmp_path / "runs.db"
    before: set[str] = set()
    for _ in range(times):
        child = context.Process(target=sweep_here, args=(str(path),))
        child.start()
        enough = len(before) + int(rng.integers(0, 6))  # at most 50 in all: it is always in mid-sweep
        wait_until(lambda enough=enough: count(path) >= enough, child)
        time.sleep(float(rng.uniform(0, 0.05)))
        child.kill()
        child.join(PATIENCE)
        assert child.exitcode == -signal.SIGKILL
        child.close()
        now = finished(path) if path.exists() else set[str]()
        assert before <= now  # nothing that was there is lost
        before = now
    assert 0 < len(before) < TOTAL
    subprocess.run(sweep_command(tmp_path), cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE)
    whole(path)


KILLED = """
import os, signal, sqlite3, sys
from boundcalc.lab.train.store import Store
if sys.argv[2] == "0":
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
else:
    store = Store(sys.argv[1])
    store.enrol("survival", ["0" * 64])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("begun", [0, 1])
def test_a_store_whose_process_was_killed_is_still_known_as_one(tmp_path: Path, begun: int) -> None:
    """All that was written may be in the log beside the file: typing the command again must not be refused."""
    path = tmp_path / "runs.db"
    died = subprocess.run([sys.executable, "-c", KILLED, str(path), str(begun)], timeout=PATIENCE, check=False)
    assert died.returncode == -signal.SIGKILL
    assert int.from_bytes(path.read_bytes()[68:72]) != STORE_ID  # else this would show nothing
    with Store(path) as store:
        assert store.verify() == []


def test_a_database_of_another_program_is_no_store_in_a_log_either(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreError, match="of another program"):
        Store(path)
    other.close()


@pytest.mark.slow
def test_two_sweeps_into_one_store(tmp_path: Path) -> None:
    command = sweep_command(tmp_path)
    children = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)
    ]
    assert [child.wait(PATIENCE) for child in children] == [0, 0]
    whole(tmp_path / "runs.db")


@pytest.mark.slow
def test_ctrl_c_ends_at_once_and_the_sweep_goes_on(tmp_path: Path) -> None:
    command, path = sweep_command(tmp_path), tmp_path / "runs.db"
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: count(path) > 0, child)
    child.send_signal(signal.SIGINT)
    assert child.wait(PATIENCE) == 130
    assert 0 < len(finished(path)) < TOTAL
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE)
    whole(path)


def stopped_by_the_disk(folder: Path, path: Path, **how: Any) -> str:
    """What a sweep says for which there is no room; what it had finished must be kept, and be of use elsewhere."""
    command = sweep_command(folder)
    command[command.index("runs.db")] = str(path)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, **how)
    assert done.returncode == 1
    kept = finished(path)
    assert 0 < len(kept) < TOTAL
    for end in ("", "-wal"):
        if Path(f"{path}{end}").exists():
            (folder / f"runs.db{end}").write_bytes(Path(f"{path}{end}").read_bytes())
    subprocess.run(sweep_command(folder), cwd=folder, check=True, capture_output=True, timeout=PATIENCE)
    whole(folder / "runs.db")
    return done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_full_disk_ends_the_sweep_with_one_line(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs; the next test does without")
    try:
        assert "the disk is full" in stopped_by_the_disk(tmp_path, small / "runs.db")
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_files_that_may_not_grow_end_the_sweep_with_one_line(tmp_path: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    (tmp_path / "small").mkdir()
    says = stopped_by_the_disk(tmp_path, tmp_path / "small" / "runs.db", preexec_fn=limited)
    assert "cannot be written any further" in says
    assert "run the same command again" in says


def workers(*marks: str) -> list[int]:
    """Processes below this one whose command lines say that they train."""
    text = subprocess.run(["ps", "-ww", "-o", "pid=,ppid=,args=", "-e"], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in text.splitlines()]
    family = {os.getpid()}
    for _ in range(6):
        family |= {int(row[0]) for row in rows if int(row[1]) in family}
    mine = [(int(row[0]), row[2]) for row in rows if int(row[0]) in family and len(row) == 3]
    return [pid for pid, line in mine if any(mark in line for mark in marks) and "resource_tracker" not in line]


class Killer(Progress):
    """Progress that kills a worker as soon as the first trials are stored."""

    def __init__(self, *marks: str) -> None:
        self.marks = marks
        self.at: int | None = None
        """Trials that were stored when the worker was killed."""

    def advance(self, trials: int, done: int, total: int, left: float | None) -> None:
        found = workers(*self.marks) if self.at is None else []
        if found:
            os.kill(found[-1], signal.SIGKILL)
            self.at = done


def survives(path: Path, where: Where, *marks: str) -> None:
    """A sweep in which a worker is killed in the middle ends whole."""
    killer = Killer(*marks)
    with Store(path) as store:
        ran = run_sweep(sweep_from_json(SPEC), store, where=where, stack=STACK, progress=killer)
    assert killer.at is not None
    assert killer.at <= TOTAL - 2 * STACK  # in mid-sweep, with stacks left to do
    assert (ran.added, ran.errors) == (TOTAL, [])
    whole(path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_processes_here_one_of_them_killed(tmp_path: Path) -> None:
    survives(tmp_path / "runs.db", Where(jobs=2), "joblib.externals.loky")


@pytest.fixture
def dask_address() -> Iterator[str]:
    distributed = pytest.importorskip("dask.distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_cluster_of_two_one_of_them_killed(tmp_path: Path, dask_address: str) -> None:
    survives(tmp_path / "runs.db", Where("dask", -1, dask_address), "multiprocessing.spawn", "spawn_main")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray_cluster_of_two_one_of_them_killed(tmp_path: Path) -> None:
    import ray  # type: ignore[import-not-found]

    ray.init(
        num_cpus=2, object_store_memory=10**8, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False
    )
    try:
        survives(tmp_path / "runs.db", Where("ray", -1), "ray::_work")
    finally:
        ray.shutdown()
