"""`train --certify` and `verify` of what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, one_line

TRAIN = ("train", "conjunction", "--T", "8", "--m", "60", "--d", "8", "--heads", "2", "--steps", "150")
QUIET = ("--set", "n_test=200")


def test_certificates_are_made_written_and_verified(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    examples = tmp_path / "examples.npz"
    line = (*TRAIN, *QUIET, "--certify", "holdout", "--certify", "p2l", "--certificates", str(tmp_path))
    made = run(*line, "--format", "json")
    assert made.exit_code == 0, made.stderr
    entries = json.loads(made.stdout)["certificates"]
    assert [entry["method"] for entry in entries] == ["holdout", "p2l"]
    for entry in entries:
        assert {"statement", "risk", "delta", "errors", "n", "test_error", "certified", "file"} <= entry.keys()
        facts = run("verify", entry["file"], "--format", "json")
        assert facts.exit_code == 0, facts.stderr
        assert json.loads(facts.stdout)["facts_established"] is False
        again = run("verify", entry["file"], "--data", str(examples))
        assert again.exit_code == 0, again.stderr
        assert "equal to the bit" in " ".join(again.stdout.split())
    forged = json.loads(Path(entries[0]["file"]).read_text())
    forged["risk"] /= 2
    Path(entries[0]["file"]).write_text(json.dumps(forged))
    refused = run("verify", entries[0]["file"])
    assert refused.exit_code == 1
    assert "does not follow" in one_line(refused)


def test_codes_and_draws_are_made_written_and_verified(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    examples = tmp_path / "examples.npz"
    line = ("train", "conjunction", "--T", "8", "--m", "200", "--d", "8", "--heads", "1", "--steps", "10", *QUIET)
    methods = ("--certify", "occam", "--certify", "pac-bayes")
    made = run(*line, *methods, "--certificates", str(tmp_path), "--format", "json")
    assert made.exit_code == 0, made.stderr
    entries = json.loads(made.stdout)["certificates"]
    assert [entry["method"] for entry in entries] == ["occam", "pac-bayes"]
    for entry, fact in zip(entries, ("bits", "nats"), strict=True):
        assert entry["test_error"] <= entry["risk"] < 1
        again = run("verify", entry["file"], "--data", str(examples))
        assert again.exit_code == 0, again.stderr
        assert fact in again.stdout
        assert "equal to the bit" in " ".join(again.stdout.split())
    refused = run(*line, *methods, "--prefix", "0.5", "--format", "json")
    assert "leave --prefix to rules" in one_line(refused)


def test_options_of_certificates_need_a_method(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    outcome = run(*TRAIN, *QUIET, "--certificates", str(tmp_path))
    assert outcome.exit_code in (1, 2)
    assert "--certify" in outcome.stderr


def test_errors_are_said_to_be_of_the_examples_that_test(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that were picked are not among them."""
    from boundcalc.cli._train import show_certificates

    entry = {"method": "p2l", "statement": "G10r", "risk": 0.29, "errors": 2, "n": 60, "picks": 8, "certified": "made"}
    show_certificates([{**entry, "test_error": None, "file": None}], 0.05)
    assert "8 picks, 2 errors of 52; made" in capsys.readouterr().out
