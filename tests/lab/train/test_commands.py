"""`boundcalc train` shows what it measured; `boundcalc sweep` does not train again what is in the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from boundcalc.cli import main

pytest.importorskip("torch")


def test_train_shows_errors_attention_bounds_and_norms() -> None:
    words = "train conjunction --T 8 --s 2 --m 24 --d 16 --heads 4 --set n_test=128"
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 0, done.output
    for text in ("test error", "best head", "chosen after training", "vacuous", "W_QK[0]"):
        assert text in done.stdout
    assert "CPU-s" in done.stderr  # what differs between two runs


def test_sweep_continues_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = {
        "task": {"task": "parity", "s": 2},
        "model": {"d": 16, "heads": 4, "d_ff": 16},
        "train": {"steps": 20},
        "n_test": 32,
        "m": 16,
        "seeds": 2,
        "grid": {"T": [6, 8]},
    }
    Path("mine.json").write_text(json.dumps(spec))
    for words, said in (("--seeds 1", "0 were there, 2 added"), ("", "2 were there, 2 added")):
        done = CliRunner().invoke(main, ["sweep", "mine.json", *words.split()])
        assert done.exit_code == 0, done.output
        assert said in done.stdout
        assert "trials are in the store" in done.stderr
