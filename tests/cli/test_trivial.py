"""No output prints a trivial value as a number, in any format; what stands in its place says how far a statement is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from boundcalc import Setting, compare, evaluate
from boundcalc.base.rounding import upper

from .conftest import one_line, printed, run_line

LINE = "eval --depth 2 --m 10000"
SETTING = Setting.of(depth=2, n_train=10**4)
TRIVIAL = ("best", "T-free", "parameters")
BOUNDS = " ".join(f"--bound {name}" for name in TRIVIAL)


VALUES = compare(SETTING, TRIVIAL)
NUMBERS = {text for v in VALUES for text in (upper(v.log10), repr(v.log10), f"{10**v.log10:.4g}")}


def shown(text: str) -> set[str]:
    """The trivial values that a text shows."""
    return {number for number in NUMBERS if re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text)}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (f"{LINE} {BOUNDS} --no-solve --format table", "vacuous"),
        (f"{LINE} {BOUNDS} --no-solve --format json", "trivial"),
        ("eval --depth 2 --sweep m=100,10000 --format table", "vacuous"),
        ("eval --depth 2 --sweep m=100,10000 --format csv", "trivial"),
    ],
)
def test_no_format_prints_one(line: str, word: str) -> None:
    text = printed(line)
    assert shown(text) == set()
    assert "chain" not in text
    assert text.count(word) >= (len(TRIVIAL) if BOUNDS in line else 1)


def test_certificates_of_nothing_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "gap.json"
    outcome = run_line(f"{LINE} --bound best --certificate {path}")
    assert outcome.exit_code == 1
    assert "trivial" in one_line(outcome)
    assert not path.exists()
    evaluate(SETTING).certificate.save(path)
    for form in ("table", "json"):
        text = printed(f"verify {path} --format {form}")
        assert "trivial" in text
        assert shown(text) == set()


def test_the_search_for_numbers_finds_one() -> None:
    """A negative control: what was printed before."""
    assert all(v.trivial for v in VALUES)
    value = evaluate(SETTING)
    assert shown(f"best  bound  1 ({upper(value.log10)})")
    assert shown(json.dumps({"log10_gap": value.log10}))
    assert not shown("10139")
