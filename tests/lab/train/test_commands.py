"""The commands about training, used as from a shell."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from boundcalc.base import project
from boundcalc.cli import main
from boundcalc.lab.train.store import Store
from tests.lab.train.test_store import result, trial

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


def filled(path: str = "boundcalc-runs.db") -> None:
    with Store(path) as store:
        for T in (16, 32, 64):
            for m in (8, 16, 32):
                for seed in range(4):
                    learned = seed < (0, 2, 4)[(8, 16, 32).index(m)]
                    store.add(trial(seed, T, m), result(0.0 if learned else 0.3), sweep="demo")


def test_runs_list_show_rm(run: Any) -> None:
    filled()
    code, out, _ = run("runs", "list", "--runs", "T=16")
    assert code == 0
    assert len(out.splitlines()) == 15
    assert "demo (36)" in out
    code, out, _ = run("runs", "show", trial(0, 16, 8).hash[:10])
    assert json.loads(out)["config"]["m"] == 8
    assert run("runs", "rm", trial(0, 16, 8).hash)[0] == 0
    assert run("runs", "verify")[:2] == (0, "35 trials, all as they were written\n")


ERRORS: list[tuple[list[str], int, str]] = [
    (["runs", "list", "--store", "absent.db"], 1, "there is no store"),
    (["runs", "show", "zz"], 2, "first digits of its hash"),
]
TRAINING_ERRORS: list[tuple[list[str], int, str]] = [
    (["sweep", "conjuntion"], 2, "no preset or file 'conjuntion'"),
    (["sweep", "absent.json"], 2, "cannot read the sweep file"),
    (["sweep", "smoke", "--backend", "spark", "--quiet"], 2, "joblib cannot use the back end 'spark' here"),
    (["sweep", "smoke", "--set", "lr=3"], 2, "--set takes"),
    (["sweep", "smoke", "--set", "train.lr"], 2, "NAME=VALUE"),
    (["sweep", "smoke", "--store", "no/where.db"], 2, "no directory"),
    (["train", "conjuction"], 2, "did you mean 'conjunction'"),
    (["train", "conjunction", "--s", "9", "--T", "4"], 2, "choose s <= T"),
    (["train", "conjunction", "--m", "-1"], 2, "m must lie between 0"),
    (["train", "parity", "--m", "0", "--batch", "0"], 2, "online training"),
    (["train", "conjunction", "--ball", "W_V=op"], 2, "KIND=NORM:RADIUS"),
    (["train", "conjunction", "--gamma", "0"], 2, "gamma must be"),
    (["train", "boolean", "--function", "x0 &", "--T", "8"], 2, "cannot read"),
    (["train", "arrays"], 2, "needs the path"),
    (["train", "conjunction", "--ball", "W_Z=op:1"], 2, "weights of a ball must be one of"),
    (["train", "conjunction", "--out", "no/where.safetensors"], 2, "no directory"),
    (["train", "conjunction", "--store", "no/where.db"], 2, "no directory"),
    (["train", "conjunction", "--set", "model.vocabulary=9"], 2, "follows from the task (3)"),
    (["train", "conjunction", "--set", "model.normaliser=sparsemax"], 2, "a constant independent of T"),
    (["train", "conjunction", "--set", "train.momentum=0.9"], 2, "momentum belongs to sgd"),
    (["sweep", "smoke", "--seeds", "1000000000", "--list"], 2, "more than 1000000 trials"),
    (["train", "conjunction", "--m", "-1e6"], 2, "got -1000000"),
    (["train", "conjunction", "--lr", "-10^-3"], 2, "lr must be"),
    (["train", "conjunction", "--function", "x0"], 2, "is a function: leave out function"),
]


@pytest.mark.parametrize(("words", "code", "says"), ERRORS)
def test_errors_are_one_line(run: Any, words: list[str], code: int, says: str) -> None:
    with Store("boundcalc-runs.db"):
        pass
    got, out, err = run(*words)
    assert (got, out) == (code, "")
    assert says in err
    assert len(err.splitlines()) == 1


@needs_torch
@pytest.mark.parametrize(("words", "code", "says"), TRAINING_ERRORS)
def test_training_errors_are_one_line(run: Any, words: list[str], code: int, says: str) -> None:
    got, out, err = run(*words)
    assert (got, out) == (code, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_without_torch_the_extra_is_named(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = run("train", "conjunction")
    assert code == 1
    assert project.install("train") in err


def test_looking_at_a_store_does_not_import_torch(run: Any) -> None:
    filled()
    if "torch" in sys.modules:
        import subprocess

        code = "import sys; from boundcalc.lab.train.store import Store; import boundcalc.lab.figures.trials\n"
        code += "import boundcalc.lab.train.presets; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    else:
        run("runs", "list")
        assert "torch" not in sys.modules


@needs_torch
def test_train_prints_gap_norms_and_bounds(run: Any) -> None:
    words = ["train", "conjunction", "--T", "8", "--s", "2", "--m", "24", "--d", "16", "--heads", "4", "--quiet"]
    code, out, err = run(*words, "--store", "runs.db", "--out", "model.safetensors", "--set", "n_test=128")
    assert (code, err) == (0, "")
    for text in ("gap", "W_QK[0]", "best head", "a_posteriori", "vacuous"):
        assert text in out
    with Store("runs.db", create=False) as store:
        assert store.verify() == []
    assert Path("model.safetensors").stat().st_size > 1000
    found = json.loads(run(*words, "--format", "json")[1])
    assert found["result"]["status"] == "done"


@needs_torch
def test_two_runs_of_one_training_print_the_same(run: Any) -> None:
    words = ["train", "conjunction", "--T", "8", "--s", "2", "--m", "24", "--d", "16", "--heads", "4"]
    first, second, other = run(*words), run(*words), run(*words, "--seed", "1")
    assert first[:2] == second[:2]
    assert first[1] != other[1]
    assert "CPU-s" in first[2]  # what differs goes to the other stream


@needs_torch
def test_a_diverging_training_fails_with_its_reason(run: Any) -> None:
    code, _, err = run("train", "conjunction", "--T", "8", "--m", "24", "--lr", "1e30", "--quiet")
    assert code == 1
    assert "diverged" in err


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
    assert run("sweep", "mine.json", "--list")[1].startswith("sweep mine: 4 trials, 4 of them")
    code, out, err = run("sweep", "mine.json", "--seeds", "1")
    assert code == 0
    assert "0 trials were there, 2 added" in out
    assert "2 of 2 trials" in err
    assert run("sweep", "mine.json", "--quiet") == (0, "", "")
    with Store("boundcalc-runs.db") as store:
        store.connection.execute("UPDATE trials SET result = replace(result, '0', '1') WHERE seed = 1")
    code, _, err = run("runs", "verify")
    assert code == 1
    assert "was changed" in err
