"""`train --certify` and `verify` of what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boundcalc.cli._train import show_certificates

from .conftest import answer, one_line, printed, run_line

pytest.importorskip("torch")
LINE = "train conjunction --T 8 --set n_test=200 --d 8"
MADE = {
    ("holdout", "p2l"): "--m 60 --heads 2 --steps 150",
    ("occam", "pac-bayes"): "--m 200 --heads 1 --steps 10",
}
FACTS = {"holdout": "errors", "p2l": "picks", "occam": "bits", "pac-bayes": "nats"}


@pytest.mark.parametrize("methods", MADE)
def test_certificates_are_made_written_and_verified(methods: tuple[str, str], tmp_path: Path) -> None:
    certify = " ".join(f"--certify {method}" for method in methods)
    entries = answer(f"{LINE} {MADE[methods]} {certify} --certificates {tmp_path}")["certificates"]
    assert tuple(entry["method"] for entry in entries) == methods
    for entry in entries:
        assert {"statement", "risk", "delta", "errors", "n", "test_error", "certified", "file"} <= entry.keys()
        assert entry["test_error"] <= entry["risk"] < 1
        assert answer(f"verify {entry['file']}")["facts_established"] is False
        text = printed(f"verify {entry['file']} --data {tmp_path / 'examples.npz'}")
        assert FACTS[entry["method"]] in text
        assert "equal to the bit" in " ".join(text.split())
    forged = json.loads(Path(entries[0]["file"]).read_text())
    forged["risk"] /= 2
    Path(entries[0]["file"]).write_text(json.dumps(forged))
    refused = run_line("verify", entries[0]["file"])
    assert refused.exit_code == 1
    assert "does not follow" in one_line(refused)


@pytest.mark.parametrize(
    ("options", "why"), [("--certify occam --prefix 0.5", "leave --prefix to rules"), ("--prefix 0.5", "--certify")]
)
def test_options_of_certificates_need_their_method(options: str, why: str) -> None:
    assert why in one_line(run_line(f"{LINE} {options}"))


def test_errors_are_said_to_be_of_the_examples_that_test(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that were picked are not among them."""
    entry = {"method": "p2l", "statement": "G10r", "risk": 0.29, "errors": 2, "n": 60, "picks": 8, "certified": "made"}
    show_certificates([{**entry, "test_error": None, "file": None}], 0.05)
    assert "8 picks, 2 errors of 52; made" in capsys.readouterr().out
