"""No output prints a trivial value as a number, in any format; what stands in its place says how far a statement is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from boundcalc import Setting, compare, evaluate
from boundcalc.base.rounding import upper
from boundcalc.engine.sweep import sweep

from .conftest import one_line, run_line

LINE = ("--depth", "2", "--m", "10000")
SETTING = Setting.of(depth=2, n_train=10**4)
TRIVIAL = ("best", "T-free", "parameters")
FORMATS = ("table", "json")


def numbers() -> set[str]:
    """The trivial values as they used to be printed."""
    found: set[str] = set()
    for value in compare(SETTING, TRIVIAL):
        assert value.trivial
        assert value.certificate.levels == () or value.log10 >= 0
        found |= {upper(value.log10), repr(value.log10), f"{10**value.log10:.4g}"}
    return found


def printed(text: str) -> set[str]:
    """The trivial values that a text shows."""
    return {number for number in numbers() if re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text)}


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_of_eval_prints_one(form: str) -> None:
    words = [word for name in TRIVIAL for word in ("--bound", name)]
    outcome = run_line("eval", *LINE, *words, "--no-solve", "--format", form)
    assert outcome.exit_code == 0
    assert printed(outcome.stdout) == set()
    assert "chain" not in outcome.stdout
    assert outcome.stdout.count("trivial" if form == "json" else "vacuous") >= len(TRIVIAL)


@pytest.mark.parametrize("form", ["table", "csv"])
def test_no_sweep_prints_one(form: str) -> None:
    outcome = run_line("eval", "--depth", "2", "--sweep", "m=100,10000", "--format", form)
    assert outcome.exit_code == 0
    assert printed(outcome.stdout) == set()
    assert "chain" not in outcome.stdout
    columns = sweep(SETTING, {"n_train": [100, 10**4]})
    assert columns["gap"] == columns["log10_gap"] == columns["strategy"] == [None, None]
    assert columns["trivial"] == [True, True]


def test_certificates_of_nothing_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "gap.json"
    outcome = run_line("eval", *LINE, "--bound", "best", "--certificate", str(path))
    assert outcome.exit_code == 1
    assert "trivial" in one_line(outcome)
    assert not path.exists()
    evaluate(SETTING).certificate.save(path)
    for form in ("table", "json"):
        outcome = run_line("verify", str(path), "--format", form)
        assert outcome.exit_code == 0
        assert "trivial" in outcome.stdout
        assert printed(outcome.stdout) == set()


def test_the_search_for_numbers_finds_one() -> None:
    """A negative control: what was printed before."""
    value = evaluate(SETTING)
    assert printed(f"best  bound  1 ({upper(value.log10)})")
    assert printed(json.dumps({"log10_gap": value.log10}))
    assert not printed("10139")
