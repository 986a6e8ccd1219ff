"""`--bits`: the premise that a stored weight has so many bits, in what commands print and refuse."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from boundcalc.cli import main

SMALL = ("--depth", "1", "--d", "3", "--T", "4", "--C", "30", "--gamma", "0.2", "--m", "1e5")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def said(*words: str) -> str:
    outcome = run(*words)
    assert outcome.exit_code == 0, outcome.output
    return " ".join(outcome.stdout.split())


def answer(*words: str) -> dict[str, Any]:
    outcome = run(*words, "--format", "json")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def test_eval_says_which_premise_it_rests_on_and_what_is_left_without() -> None:
    text = said("eval", *SMALL, "--bits", "4", "--no-solve")
    plain = answer("eval", *SMALL, "--bound", "best", "--no-solve")["results"][0]
    assert "'best' is based on a premise: each of the 30 stored weights is a number of 4 bits" in text
    assert "fixed before the data (G13); leave out --bits for the bound without it" in text
    found = answer("eval", *SMALL, "--bits", "4", "--bound", "best", "--no-solve")
    assert found["results"][0]["strategy"] == "stored-gap"
    assert found["stored_weights"] == {"weights": 30, "bits": 4}
    assert plain["gap"] > found["results"][0]["gap"]


def test_sweeps_take_it() -> None:
    outcome = run("eval", *SMALL, "--sweep", "bits=2,4,8", "--format", "csv")
    gaps = [float(row["gap"]) for row in csv.DictReader(io.StringIO(outcome.stdout))]
    assert gaps == sorted(gaps)
    assert gaps[0] < gaps[1]


@pytest.mark.parametrize(
    "words",
    [
        ("eval", "--bits", "16", "--bound", "closed"),
        ("eval", "--bits", "16", "--bound", "T-free", "--sweep", "T=4,8"),
        ("eval", "--sweep", "bits=8,16", "--bound", "closed"),
        ("solve", "--for", "m", "--bits", "16", "--bound", "T-free"),
        ("eval", "--bits", "0"),
        ("eval", "--bits", "200"),
    ],
)
def test_what_would_change_nothing_is_refused_in_one_line(words: tuple[str, ...]) -> None:
    outcome = run(*words)
    assert outcome.exit_code == 2
    assert len(outcome.stderr.strip().splitlines()) == 1
    assert "bits" in outcome.stderr
