"""Everything that can be wrong is told in one line, with the exit code that belongs to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from boundcalc.base import project
from boundcalc.base.errors import InvalidSetting

from .conftest import Run, one_line, written

USAGE = [
    (["--depth", "0"], "got 0"),
    (["--T", "-5"], "got -5"),
    (["--m", "0"], "m must lie"),
    (["--m", "1.5"], "needs a whole number such as 512, 1e6 or 10^6, got '1.5'"),
    (["--m", "many"], "got 'many'"),
    (["--T", "1e30"], "T must lie between"),
    (["--m", "1e400"], "needs a whole number"),
    (["--C", "nan"], "C must be finite and above 0, got nan"),
    (["--C", "inf"], "C must be finite"),
    (["--C", "-2"], "got -2.0"),
    (["--C", "two"], "needs a number such as 0.05 or 1e-3, got 'two'"),
    (["--gamma", "0"], "gamma must be finite and above 0"),
    (["--delta", "0"], "delta must lie in (0, 1), got 0.0"),
    (["--delta", "1"], "delta must lie in (0, 1)"),
    (["--delta", "nan"], "got nan"),
    (["--train-error", "1.5"], "train_error must lie in [0, 1]"),
    (["--set", "lipschitz=-1"], "lipschitz must be"),
    (["--d", "10", "--heads", "3"], "d = 10 is not divisible by heads = 3"),
    (["--set", "normaliser=sparsemax"], "grows with the size of the support"),
    (["--set", "normaliser=hardmax"], "not continuous"),
    (["--set", "normaliser=softmx"], "did you mean 'softmax'"),
    (["--set", "normaliser=custom"], "needs both c and mu"),
    (["--set", "normaliser_c=2"], "belong to normaliser 'custom'"),
    (["--set", "activation=gelo"], "did you mean 'gelu'"),
    (["--preset", "bertt"], "did you mean 'bert'"),
    (["--bound", "bets"], "did you mean 'best'"),
    (["--set", "residual=yes"], "use style 'post' or 'pre'"),
    (["--format", "xml"], "'table', 'json', 'csv', 'markdown', 'latex'"),
    (["--dept", "3"], "--depth"),
    (["stray"], "unexpected extra argument"),
    (["X3"], "did you mean --bound X3?"),
    (["json"], "did you mean --format json?"),
    (["--explain", "--format", "json"], "leave out --format json, or --explain"),
]


@pytest.mark.parametrize(("words", "needle"), USAGE, ids=[" ".join(words) for words, _ in USAGE])
def test_wrong_usage(run: Run, words: list[str], needle: str) -> None:
    outcome = run("eval", *words)
    assert outcome.exit_code == 2
    assert needle in one_line(outcome)


def test_contradictory_norms(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "norms.json", {"C": 1, "budgets": {"W_V": {"op": 3, "F": 1}}})
    outcome = run("eval", "--norms", path)
    assert outcome.exit_code == 2
    assert "norms contradict" in one_line(outcome)
    assert "W_V" in outcome.stderr


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"C": 1, "budget": {}}', "did you mean 'budgets'"),
        ("[" * 100_000, "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_files_whose_content_is_wrong(run: Run, tmp_path: Path, text: str, needle: str) -> None:
    outcome = run("eval", "--norms", written(tmp_path / "norms.json", text))
    assert outcome.exit_code == 2
    assert needle in one_line(outcome)


def test_binary_files(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "norms.json"
    path.write_bytes(b"\xff\xfe\x00")
    outcome = run("eval", "--setting", str(path))
    assert outcome.exit_code == 2
    assert "it is not text" in one_line(outcome)


@pytest.mark.parametrize("option", ["--norms", "--setting"])
def test_files_that_cannot_be_read(run: Run, tmp_path: Path, option: str) -> None:
    outcome = run("eval", option, str(tmp_path / "absent.json"))
    assert outcome.exit_code == 1
    assert "absent.json: No such file" in one_line(outcome)


def test_files_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    outcome = run("eval", "--depth", "1", "--no-solve", "--certificate", str(tmp_path / "no" / "gap.json"))
    assert outcome.exit_code == 2
    assert "there is no directory" in one_line(outcome)


def test_a_directory_is_no_file(run: Run, tmp_path: Path) -> None:
    outcome = run("eval", "--norms", str(tmp_path))
    assert outcome.exit_code == 2
    assert "is a directory" in one_line(outcome)


def test_preset_and_setting_exclude_each_other(run: Run, tmp_path: Path) -> None:
    outcome = run("eval", "--preset", "bert", "--setting", written(tmp_path / "s.json", {}))
    assert outcome.exit_code == 2
    assert "not both" in one_line(outcome)


def test_options_that_listed_layers_make_useless_are_refused(run: Run, tmp_path: Path) -> None:
    layers = [{"layer": "pool"}, {"layer": "linear", "kind": "readout", "d_in": 8, "d_out": 1}]
    path = written(tmp_path / "s.json", {"architecture": {"layers": layers}})
    assert run("eval", "--setting", path, "--no-solve", "--T", "9", "--bound", "best").exit_code == 0
    outcome = run("eval", "--setting", path, "--depth", "3")
    assert outcome.exit_code == 2
    assert "--depth would change nothing" in one_line(outcome)


def test_unknown_commands(run: Run) -> None:
    outcome = run("evla")
    assert outcome.exit_code == 2
    assert "did you mean 'eval'" in one_line(outcome)


def test_no_command_shows_the_help(run: Run) -> None:
    outcome = run()
    assert outcome.exit_code == 2
    assert "Bounds:" in outcome.output


@pytest.mark.parametrize("place", [0, 1, 3])
def test_debug_shows_the_traceback_wherever_it_stands(run: Run, place: int) -> None:
    words = ["eval", "--delta", "7"]
    words.insert(place, "--debug")
    outcome = run(*words)
    assert isinstance(outcome.exception, InvalidSetting)
    assert "delta must lie" in str(outcome.exception)


def test_defects_are_told_in_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("boundcalc.cli.report.compare", broken)
    outcome = run("eval")
    assert outcome.exit_code == 1
    assert "internal error: ZeroDivisionError: oh; --debug" in one_line(outcome)


@pytest.mark.parametrize("says", ["DefaultCPUAllocator: can't allocate memory: you tried", "CUDA out of memory. Tried"])
def test_too_little_memory_is_no_defect(run: Run, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise RuntimeError(says)

    monkeypatch.setattr("boundcalc.cli.report.compare", full)
    outcome = run("eval")
    assert outcome.exit_code == 1
    assert one_line(outcome) == "boundcalc: out of memory: ask for less at once"


@pytest.mark.parametrize(
    ("library", "extra"), [(name, extra) for extra, names in project.EXTRAS.items() for name in names]
)
def test_missing_libraries_name_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch, library: str, extra: str) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise ModuleNotFoundError(f"No module named '{library}'", name=f"{library}.nn")

    monkeypatch.setattr("boundcalc.cli.report.compare", lacking)
    outcome = run("eval")
    assert outcome.exit_code == 1
    assert project.install(extra) in one_line(outcome)


def test_interruption_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("boundcalc.cli.report.compare", interrupted)
    outcome = run("eval")
    assert outcome.exit_code == 130
    assert outcome.output.strip() == ""
