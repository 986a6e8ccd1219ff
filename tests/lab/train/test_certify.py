"""Certificates beside stored trials: made once, kept whole, gone on with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")


from boundcalc.lab.train.certify import Issued
from boundcalc.lab.train.run import certify_sweep, run_sweep
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.sweep import Sweep, sweep_from_json
from boundcalc.lab.train.trial import Request
from boundcalc.predictors.certificate import PredictorCertificate, verify_predictor

DATA = {
    "task": {"task": "conjunction", "T": 8, "s": 2},
    "model": {"d": 8, "heads": 1, "d_ff": 8},
    "train": {"steps": 20},
    "m": 60,
    "n_test": 100,
    "seeds": 2,
}
PLANS = [Request("holdout"), Request("p2l")]


def sweep() -> Sweep:
    return sweep_from_json(DATA, name="tiny")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "runs.db"
    with Store(path) as opened:
        run_sweep(sweep(), opened)
        made = certify_sweep(sweep().trials, opened, PLANS)
        assert (made.total, made.present, made.added) == (4, 0, 4)
    return path


@pytest.fixture
def store(made_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made_once, tmp_path / "runs.db"))


def test_certificates_are_kept_with_their_trials_and_made_once(store: Path) -> None:
    with Store(store) as opened:
        again = certify_sweep(sweep().trials, opened, [*PLANS, Request("holdout", 0.1)])
        assert (again.present, again.added) == (4, 2)
        records = list(opened.records(sweep="tiny"))
    for record in records:
        assert [(s["asked"]["method"], s["asked"]["delta"]) for s in record.certificates] == [
            ("holdout", 0.05),
            ("p2l", 0.05),
            ("holdout", 0.1),
        ]
        for stored in record.certificates:
            found = PredictorCertificate.from_json(stored["certificate"])
            assert verify_predictor(found).risk == stored["entry"]["risk"]
            assert stored["entry"]["test_error"] <= 1


def test_what_a_killed_sweep_has_made_is_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Store.add_certificate
    kept: list[Issued] = []

    def dying(self: Store, made: Issued, key: str) -> None:
        if len(kept) == 3:
            raise KeyboardInterrupt
        kept.append(made)
        own(self, made, key)

    monkeypatch.setattr(Store, "add_certificate", dying)
    plans = [Request("holdout", delta) for delta in (0.2, 0.3)]
    with Store(store) as opened, pytest.raises(KeyboardInterrupt):
        certify_sweep(sweep().trials, opened, plans)
    monkeypatch.setattr(Store, "add_certificate", own)
    with Store(store) as opened:
        again = certify_sweep(sweep().trials, opened, plans)
        assert (again.present, again.added) == (3, 1)
