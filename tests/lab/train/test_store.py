"""The store, hashes and sweeps: none of it needs torch."""

from __future__ import annotations

import copy
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.train.presets import PRESETS
from boundcalc.lab.train.store import Store, StoreError
from boundcalc.lab.train.sweep import missing, read_sweep_file, sweep_from_json
from boundcalc.lab.train.tasks import ArraysTask, BooleanTask
from boundcalc.lab.train.trial import Optimisation, Trial, canonical, model_for
from boundcalc.setting import Normaliser


def trial(seed: int = 0, T: int = 16, m: int = 8) -> Trial:
    task = BooleanTask(T=T, s=2)
    return Trial(task, model_for(task, d=16, heads=4), m, seed)


def result(error: float = 0.25) -> dict[str, Any]:
    part = {"n": 100, "loss": 0.1, "error": error, "wrong": round(100 * error), "interval": [0.0, 1.0]}
    return {
        "status": "done",
        "reason": "training loss reached",
        "steps": 10,
        "train": {**part, "error": 0.0},
        "test": part,
        "gap": error,
        "device": "cpu",
        "curves": [],
    }


# -- hashes


def test_a_hash_names_all_that_determines_the_result(tmp_path: Path) -> None:
    base = trial()
    changed = [
        base.but(seed=1),
        base.but(m=9),
        base.but(n_test=100),
        base.but(task=BooleanTask(T=16, s=2, noise=0.1)),
        base.but(task=BooleanTask(T=16, s=2, function="parity")),
        base.but(device="cuda"),
        base.but(architecture=replace(base.architecture, activation="relu")),
        base.but(architecture=replace(base.architecture, normaliser=Normaliser("softmax1"))),
        base.but(init=replace(base.init, position_std=0.2)),
        *(
            base.but(optimisation=replace(base.optimisation, **change))
            for change in ({"lr": 2e-3}, {"batch": 8}, {"balls": {"W_V": ("op", 1.0)}}, {"clip": 1.0}, {"steps": 7})
        ),
    ]
    assert len({base.hash, *(t.hash for t in changed)}) == len(changed) + 1
    assert base.hash == trial().hash
    assert Trial.from_json(json.loads(canonical(base.to_json()))) == base
    spelled = replace(base, task=BooleanTask(T=16, s=2, function="conjunction", law="balanced"))
    assert spelled.hash == base.hash  # a default that is written out changes nothing


def test_where_a_file_lies_does_not_count(tmp_path: Path) -> None:
    hashes: set[str] = set()
    for name in ("a.npz", "b.npz"):
        np.savez(tmp_path / name, x=np.zeros((9, 3), int), y=np.arange(9) % 2)
        task = ArraysTask(path=str(tmp_path / name))
        hashes.add(Trial(task, model_for(task, d=16, heads=4), 4).hash)
    assert len(hashes) == 1


def test_a_hash_is_the_same_in_another_process() -> None:
    code = "from tests.lab.train.test_store import trial; print(trial(3).hash)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == trial(3).hash


# -- sweeps


def test_grids_lists_and_seeds_expand_without_repetition() -> None:
    data = {
        "task": {"task": "conjunction", "s": 2},
        "model": {"d": 16, "heads": 4},
        "seeds": 3,
        "grid": [{"T": [8, 16], "m": [4, 8]}, {"T": 16, "m": [8, 12], "train.lr": 1e-3}],
    }
    sweep = sweep_from_json(data)
    assert len(sweep.trials) == (2 * 2 + 1) * 3
    assert {(t.task.T, t.m) for t in sweep.trials} == {(8, 4), (8, 8), (16, 4), (16, 8), (16, 12)}  # type: ignore[attr-defined]


def test_changing_one_value_touches_only_its_trials() -> None:
    data: dict[str, Any] = {
        "task": {"task": "conjunction"},
        "seeds": 2,
        "grid": {"T": [8, 16], "m": [4, 8]},
        "model": {"d": 16, "heads": 4},
    }
    before = sweep_from_json(data)
    data["grid"]["m"] = [4, 9]
    after = sweep_from_json(data)
    todo = missing(after.trials, {t.hash for t in before.trials})
    assert len(todo) == 4
    assert {t.m for t in todo} == {9}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_sweeps(name: str) -> None:
    sweep = sweep_from_json({**copy.deepcopy(PRESETS[name]), "name": name, "seeds": 2})
    assert sweep.name == name
    assert sweep.trials
    assert sweep.about


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "must be a JSON object"),
        ({}, 'needs a "task"'),
        ({"task": {"task": "parity"}}, 'needs "m"'),
        ({"task": {"task": "parity"}, "m": 8, "grd": {}}, "did you mean 'grid'"),
        ({"task": {"task": "parity"}, "m": 8, "grid": 3}, '"grid" is an object'),
        ({"task": {"task": "parity"}, "m": 8, "grid": {"T": []}}, "has no value"),
        ({"task": {"task": "parity"}, "m": 8, "grid": {"T": [8], "task.T": [9]}}, "twice"),
        ({"task": {"task": "parity"}, "m": 8, "grid": {"lrate": [1]}}, "the grid has no 'lrate'"),
        ({"task": {"task": "parity"}, "m": 8, "train": {"lrate": 1}}, "has no 'lrate'"),
        ({"task": {"task": "parity"}, "m": 8, "model": {"widht": 1}}, "has no 'widht'"),
        ({"task": {"task": "parity"}, "m": -1}, "m must lie between 0"),
        ({"task": {"task": "parity"}, "m": 0, "train": {"batch": 0}}, "online training"),
        ({"task": {"task": "parity"}, "m": 8, "train": {"lr": 0}}, "lr must be finite and above 0"),
        ({"task": {"task": "parity"}, "m": 8, "train": {"momentum": 0.9}}, "momentum belongs to sgd"),
        ({"task": {"task": "parity"}, "m": 8, "train": {"balls": {"W_V": ["nuclear", 1]}}}, "must be one of op, F, 21"),
        ({"task": {"task": "parity"}, "m": 8, "seeds": 0}, "seeds must lie between 1"),
        ({"task": {"task": "parity"}, "m": 8, "model": {"rope": True}}, "rotary positions"),
        ({"task": {"task": "parity"}, "m": 8, "model": {"d": 10, "heads": 4}}, "not divisible"),
        ({"task": {"task": "parity"}, "m": 8, "grid": {"seed": list(range(3))}}, "the grid has no 'seed'"),
    ],
)
def test_bad_sweeps_are_refused_in_one_line(data: Any, says: str) -> None:
    with pytest.raises(BoundcalcError) as error:
        sweep_from_json(data)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.toml", "x = ", "is not TOML"),
        ("a.json", b"\xff\xfe", "is not text"),
        ("absent.json", None, "No such file"),
    ],
)
def test_unreadable_sweep_files(tmp_path: Path, name: str, text: str | bytes | None, says: str) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidSetting) as error:
        read_sweep_file(path)
    assert says in str(error.value)


def test_sweep_files_of_three_kinds_agree(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    data = {"task": {"task": "parity", "s": 2}, "m": 8, "grid": {"T": [8, 9]}}
    (tmp_path / "a.json").write_text(json.dumps(data))
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(data))
    (tmp_path / "a.toml").write_text('m = 8\n[task]\ntask = "parity"\ns = 2\n[grid]\nT = [8, 9]\n')
    found = [sweep_from_json(read_sweep_file(tmp_path / f"a.{kind}")).trials for kind in ("json", "yaml", "toml")]
    assert found[0] == found[1] == found[2]


# -- the store


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        assert store.add(trial(1), result(), sweep="a")
        assert not store.add(trial(1), result(), sweep="b")  # once only, but in both sweeps
        assert store.add(trial(2, T=32), result(0.5))
    with Store(tmp_path / "runs.db", create=False) as store:
        assert len(store) == 2
        record = store.find(trial(1).hash[:8])
        assert record.trial == trial(1)
        assert record.result == result()
        assert store.sweeps() == {"a": 1, "b": 1}
        assert [r.trial.seed for r in store.select(T=32)] == [2]
        assert store.verify() == []
        assert store.remove([trial(1).hash]) == 1
        assert store.hashes() == {trial(2, T=32).hash}


@pytest.mark.parametrize("column", ["config", "result", "digest"])
def test_verify_sees_a_change(tmp_path: Path, column: str) -> None:
    with Store(tmp_path / "runs.db") as store:
        store.add(trial(), result())
        old = store.connection.execute(f"SELECT {column} FROM trials").fetchone()[0]
        store.connection.execute(f"UPDATE trials SET {column} = ?", (old.replace("1", "2"),))
        assert len(store.verify()) == 1


def test_verify_sees_a_hash_that_is_not_the_configurations(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        store._insert("0" * 32, trial().to_json(), result())
        assert "hash is not that" in store.verify()[0]


def test_stores_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    with Store(tmp_path / "new.db") as store:
        store.connection.execute("PRAGMA user_version = 99")
    (tmp_path / "text.db").write_text("this is no database, although long enough to be taken for one" * 9)
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE things (a)")
    connection.close()
    for name, says in (
        ("new.db", "has schema 99"),
        ("text.db", "not a database"),
        ("other.db", "of another program"),
        ("no/where.db", "no directory"),
    ):
        with pytest.raises(StoreError, match=says):
            Store(tmp_path / name)
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path / "absent.db", create=False)


@pytest.mark.parametrize("prefix", ["", "zz", "%"])
def test_prefixes_are_digits(tmp_path: Path, prefix: str) -> None:
    with Store(tmp_path / "runs.db") as store, pytest.raises(InvalidSetting):
        store.find(prefix)


def _write(path: str, first: int, count: int) -> int:
    with Store(path) as store:
        return sum(store.add(trial(seed), result(), sweep=str(first)) for seed in range(first, first + count))


def test_writers_at_once_leave_every_trial_once(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.db")
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        added = [f.result() for f in [pool.submit(_write, path, first, 40) for first in (0, 20, 0, 20)]]
    with Store(path) as store:
        assert sum(added) == len(store) == 60
        assert store.verify() == []


def test_a_writer_killed_at_any_moment_loses_nothing_it_reported(tmp_path: Path) -> None:
    """A process reports every trial it has stored; it is killed, and all it reported must be there."""
    path = tmp_path / "runs.db"
    code = (
        "import sys; from tests.lab.train.test_store import trial, result; from boundcalc.lab.train.store import Store\n"
        f"with Store({str(path)!r}) as store:\n"
        "    for seed in range(int(sys.argv[1]), 10**6):\n"
        "        store.add(trial(seed), result()); print(seed, flush=True)\n"
    )
    reported: set[int] = set()
    rng = np.random.default_rng(0)
    for round_ in range(10):
        child = subprocess.Popen([sys.executable, "-c", code, str(1000 * round_)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(float(rng.uniform(0, 0.05)))
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read()
        child.stdout.close()
        child.wait()
        reported |= {int(line) for line in (first + rest).split("\n") if line.strip()}
    with Store(path) as store:
        stored = {record.trial.seed for record in store.records()}
        assert store.verify() == []
    assert reported <= stored
    assert len(stored - reported) <= 10  # stored, and killed before it could say so
    assert len(reported) >= 10


def _fill(store: Store) -> None:
    for seed in range(1000):
        store.add(trial(seed), result())


def test_a_full_disk_is_an_error_and_leaves_the_store_whole(tmp_path: Path) -> None:
    """SQLite's own limit of pages behaves as a full disk does."""
    with Store(tmp_path / "runs.db") as store:
        store.connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(StoreError, match="disk is full; trials that were finished are kept"):
            _fill(store)
        added = len(store)
    assert added > 0
    with Store(tmp_path / "runs.db") as store:
        assert store.verify() == []
        assert len(store) == added
        assert store.add(trial(5000), result())


def test_optimisation_takes_its_fields_from_json() -> None:
    assert Optimisation(balls={"W_V": ["op", 2]}).balls == {"W_V": ("op", 2.0)}  # type: ignore[dict-item]
