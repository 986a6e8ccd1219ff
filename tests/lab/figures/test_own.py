"""A theorem and measurements of one's own, in the library's figures (docs/tutorials/own-theorem.md is walked
through)."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from boundcalc.base.answers import clopper_pearson
from boundcalc.base.errors import NoSolution
from boundcalc.cli import main
from boundcalc.lab.figures import runs

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorials" / "own-theorem.md"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the tutorial has one write."""
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(line: str) -> Result:
    return CliRunner().invoke(main, shlex.split(line))


def lines() -> list[str]:
    blocks = re.findall(r"<!-- run -->\n```sh\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    return [line.removeprefix("boundcalc ") for block in blocks for line in block.splitlines()]


def test_the_walk_of_the_tutorial(here: Path) -> None:
    for line in lines():
        result = run(line)
        assert result.exit_code == 0, result.output
        assert "contradicted" not in result.stderr
    drawn = json.loads((here / "mine.json").read_text())["series"]
    by_key = {(one["key"], one["kind"]): one for one in drawn}
    mine, best = by_key["mine", "bound"], by_key["best", "bound"]
    assert "as its author states" in mine["label"]
    assert mine["x"] == best["x"]
    for x, y in zip(mine["x"], mine["y"], strict=True):
        right = 2 * math.sqrt(64 * math.log(64) / x) + 3 * math.sqrt(math.log(2 / 0.05) / (2 * x))
        assert y == pytest.approx(right, rel=1e-12)
    every, middle = by_key["run", "measured"], by_key["median", "measured"]
    assert middle["x"] == [100, 1000, 10000]
    assert middle["y"][0] == pytest.approx(0.3)
    ends = clopper_pearson(620, 2000, 1 - 0.05 / 6)  # six runs share the chance of a miss
    assert (every["low"][0], every["high"][0]) == pytest.approx(ends)
    assert (here / "sections" / "mine.tex").exists()


def test_a_bound_that_measurements_contradict_is_named(here: Path) -> None:
    (here / "wrong.py").write_text('from boundcalc import Bound\nbound = Bound("false", "1/m")\n')
    result = run("plot gap-vs-m --points mine.csv --bound wrong.py:bound --sweep m=100,1000 -o x.png")
    assert result.exit_code == 0
    assert "contradicted: false, as its author states at 100" in result.stderr


# ------------------------------------------------------------------------------------------- runs


def run_of(test: float, n: int, train: float = 0.0, m: float = 10.0) -> runs.Run:
    return runs.Run({"m": m}, train, test, n, train == 0, "")


def test_intervals_are_exact_for_counts_and_safe_for_the_rest() -> None:
    for test, n, exact in (
        (0.03, 2000, True),
        (0.0312, 2048, True),
        (0.123456, 1000, False),
        (0.3, 7, True),
        (0.2, 7, False),
    ):
        low, high = run_of(test, n).interval(0.05)
        right = clopper_pearson(round(test * n), n)
        assert ((low, high) == pytest.approx(right)) is exact
        assert low <= round(test * n) / n <= high


def test_risk_is_of_runs_without_training_error() -> None:
    every, _ = runs.measured([run_of(0.25, 100, train) for train in (0.0, 0.1)], "m", "risk")
    assert every.x == (10.0,)
    with pytest.raises(NoSolution, match="training error 0"):
        runs.measured([run_of(0.25, 100, 0.1)], "m", "risk")


def test_medians_are_of_runs_and_their_intervals_cover_the_median_of_other_runs() -> None:
    """Seeds differ by much more than their test sets allow for, which pooled test errors would hide."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(100):
        gaps = rng.exponential(0.1, size=20)
        middle, low, high = runs.median(gaps.tolist())
        assert middle == pytest.approx(float(np.median(gaps)))
        assert low is not None
        assert high is not None
        hits += low <= 0.1 * math.log(2) <= high
    assert 88 <= hits <= 99
    assert runs.median([0.1, 0.3]) == (pytest.approx(0.2), None, None)
