"""The commands about training, used as from a shell."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from boundcalc.cli import main
from boundcalc.lab.train.store import Store

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="trains")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def go(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main.main(list(words))
        out = capsys.readouterr()
        return int(end.value.code or 0), out.out, out.err

    return go


@needs_torch
def test_train_prints_gap_norms_and_bounds(run: Any) -> None:
    words = ["train", "conjunction", "--T", "8", "--s", "2", "--m", "24", "--d", "16", "--heads", "4"]
    code, out, err = run(*words, "--store", "runs.db", "--out", "model.safetensors", "--set", "n_test=128")
    assert code == 0
    assert "CPU-s" in err
    for text in ("gap", "W_QK[0]", "best head", "chosen after training", "vacuous"):
        assert text in out
    with Store("runs.db", create=False) as store:
        assert len(store.records()) == 1
    assert Path("model.safetensors").stat().st_size > 1000
    assert run(*words, "--set", "n_test=128")[1] == out  # what differs, the time, goes to the other stream
    assert run(*words, "--set", "n_test=128", "--seed", "1")[1] != out


@needs_torch
def test_sweep_runs_lists_and_continues(run: Any) -> None:
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
    code, out, err = run("sweep", "mine.json", "--seeds", "1")
    assert code == 0
    assert "0 were there, 2 added" in out
    assert "of 2 trials are in the store" in err
    assert "2 were there, 2 added" in run("sweep", "mine.json")[1]
