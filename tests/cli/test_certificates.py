"""`--certificate` and `boundcalc verify`: what was written verifies, what was altered does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import answer, one_line, printed, run_line, written


def test_round_trip(tmp_path: Path) -> None:
    gap, risk = tmp_path / "gap.json", tmp_path / "risk.json"
    line = f"eval --depth 1 --m 1e8 --certificate {gap} --certificate-risk {risk}"
    results = answer(line)["results"]
    best = min(results, key=lambda row: row["log10_gap"])
    for path, quantity in ((gap, "gap"), (risk, "risk")):
        verified = answer(f"verify {path}")
        assert verified["quantity"] == quantity
        assert verified["log10_value"] == pytest.approx(best[f"log10_{quantity}"], rel=1e-9)
    text = printed(f"verify {gap}")
    assert text.startswith("✓ verified: gap <= 0.")
    assert "with probability at least 0.95" in text
    assert "at margin training error 0" in printed(f"verify {risk}")


def test_what_was_measured_and_paid_is_printed(tmp_path: Path) -> None:
    path, norms = tmp_path / "gap.json", tmp_path / "n.json"
    kinds = ("W_QK", "W_V", "W_1", "readout")
    norms.write_text(json.dumps({"budgets": {k: {"op": 0.9, "21": 1.7} for k in kinds}, "measured": True}), "utf-8")
    printed(f"eval --depth 1 --d 8 --m 1e8 --norms {norms} --gamma 0.25 --no-solve --certificate {path}")
    text = printed(f"verify {path}")
    assert "measured  norms of trained weights; P1 adds " in text
    assert "stands alone" in text


def test_a_second_checker_that_disagrees_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gap.json"
    printed(f"eval --depth 1 --bound parameters --no-solve --certificate {path}")
    monkeypatch.setattr("boundcalc.proof.second._value._links", lambda *_, **__: 0.9)
    outcome = run_line("verify", str(path))
    assert outcome.exit_code == 1
    assert "stands alone, does not confirm it: the claim does not follow" in one_line(outcome)


def test_unreadable_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "noise.json").write_bytes(bytes(range(256)))
    for name, why in (("noise.json", "it is not text"), ("absent.json", "No such file")):
        outcome = run_line("verify", str(tmp_path / name))
        assert outcome.exit_code == 1
        assert why in one_line(outcome)
    for text in ("[" * 50_000, "[]", "null", "3", '"x"'):
        outcome = run_line("verify", written(tmp_path / "odd.json", text))
        assert outcome.exit_code == 1
        one_line(outcome)
