"""An interrupted audit goes on where it stopped, and gives the same norms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints import audit
from tests.checkpoints import handmade


class Stop(Exception):
    """An interruption."""


def model(tmp_path: Path, seed: int = 0) -> Path:
    t, config = handmade.bert(np.random.default_rng(seed))
    return handmade.save_shards(tmp_path / f"m{seed}", t, config)


def interrupt(path: Path, journal: Path, after: int) -> int:
    """Runs an audit that is stopped after so many tasks; returns how many there are."""
    totals: list[int] = []

    def progress(name: str, done: int, total: int) -> None:
        totals.append(total)
        if len(totals) == after:
            raise Stop

    with pytest.raises(Stop):
        audit(path, journal=journal, progress=progress)
    return totals[0]


def test_an_interrupted_audit_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, journal = model(tmp_path), tmp_path / "journal"
    interrupt(path, journal, after=7)
    done = [json.loads(line)["task"] for line in journal.read_text().splitlines()[1:]]
    assert len(done) == 7
    with journal.open("a") as file:
        file.write('{"task": "W_O[1]", "found": {"W_O')  # the last line was cut off
    from boundcalc.checkpoints.journal import Journal

    ran: list[str] = []
    add = Journal.add
    monkeypatch.setattr(Journal, "add", lambda self, name, found: ran.append(name) or add(self, name, found))
    seen: list[str] = []
    found = audit(path, journal=journal, progress=lambda name, done, total: seen.append(name))
    assert done + ran == seen
    assert len(ran) == len(seen) - 7
    assert found.norms() == audit(path).norms()
    assert not journal.exists()


def test_a_journal_of_something_else_is_not_used(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    interrupt(model(tmp_path, 0), journal, after=7)
    assert audit(model(tmp_path, 1), journal=journal).norms() == audit(model(tmp_path, 1)).norms()


@pytest.mark.parametrize("text", ["", '{"identity": 1, "seed": 2}\n', '{"identity": 1, "seed": 2}\n{\n'])
def test_a_damaged_journal_is_not_used(tmp_path: Path, text: str) -> None:
    journal = tmp_path / "journal"
    journal.write_text(text)
    path = model(tmp_path)
    assert audit(path, journal=journal).norms() == audit(path).norms()


@pytest.mark.parametrize("text", ["{", "[]\n", "7", '{"identity": 1}\n', "\x00\x01", "notes on this model\n"])
def test_a_file_that_is_no_journal_is_kept(tmp_path: Path, text: str) -> None:
    other = tmp_path / "other"
    other.write_text(text)
    with pytest.raises(InvalidSetting, match="no journal"):
        audit(model(tmp_path), journal=other)
    assert other.read_text() == text


def test_the_seed_of_an_interrupted_audit_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from boundcalc.checkpoints import task
    from boundcalc.norms import spectral

    monkeypatch.setattr(spectral, "EXACT_SIDE", 4)
    monkeypatch.setattr(task, "SPECTRUM_SIDE", 4)
    path, journal = model(tmp_path), tmp_path / "journal"
    interrupt(path, journal, after=5)
    seed = json.loads(journal.read_text().splitlines()[0])["seed"]
    found = audit(path, journal=journal)
    assert found.seed == seed
    assert found.norms() == audit(path, seed=seed).norms()
