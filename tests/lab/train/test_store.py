"""The store, hashes and sweeps: none of it needs torch."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from boundcalc.lab.train.store import Store, StoreError
from boundcalc.lab.train.tasks import BooleanTask
from boundcalc.lab.train.trial import Trial, canonical, model_for
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
        base.but(architecture=replace(base.architecture, activation="relu")),
        base.but(architecture=replace(base.architecture, normaliser=Normaliser("softmax1"))),
        base.but(init=replace(base.init, position_std=0.2)),
        *(
            base.but(optimisation=replace(base.optimisation, **change))
            for change in ({"lr": 2e-3}, {"batch": 8}, {"balls": {"W_V": ("op", 1.0)}}, {"steps": 7})
        ),
    ]
    assert len({base.hash, *(t.hash for t in changed)}) == len(changed) + 1
    assert base.hash == trial().hash
    assert Trial.from_json(json.loads(canonical(base.to_json()))) == base
    spelled = replace(base, task=BooleanTask(T=16, s=2, function="conjunction", law="balanced"))
    assert spelled.hash == base.hash  # a default that is written out changes nothing


# -- the store


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        assert store.add(trial(1), result())
        assert not store.add(trial(1), result())  # once only, but in both sweeps
        store.enrol("a", [trial(1).hash])
        store.enrol("b", [trial(1).hash])
        assert store.add(trial(2, T=32), result(0.5))
    with Store(tmp_path / "runs.db", create=False) as store:
        assert len(store.hashes()) == 2
        record = {record.hash: record for record in store.records()}[trial(1).hash]
        assert record.trial == trial(1)
        assert record.result == result()
        assert store.sweeps() == {"a": 1, "b": 1}
        assert [r.trial.seed for r in store.records(sweep="b")] == [1]


def _write(path: str, first: int, count: int) -> int:
    with Store(path) as store:
        return sum(store.add(trial(seed), result()) for seed in range(first, first + count))


def test_writers_at_once_leave_every_trial_once(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.db")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        added = [f.result() for f in [pool.submit(_write, path, first, 40) for first in (0, 20)]]
    with Store(path) as store:
        assert sum(added) == len(store.hashes()) == 60


def _fill(store: Store) -> None:
    for seed in range(1000):
        store.add(trial(seed), result())


def test_a_full_disk_is_an_error_and_leaves_the_store_whole(tmp_path: Path) -> None:
    """SQLite's own limit of pages behaves as a full disk does."""
    with Store(tmp_path / "runs.db") as store:
        store.connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(StoreError, match="disk is full; trials that were finished are kept"):
            _fill(store)
        added = len(store.hashes())
    assert added > 0
    with Store(tmp_path / "runs.db") as store:
        assert len(store.hashes()) == added
        assert store.add(trial(5000), result())
