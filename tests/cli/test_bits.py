"""`--bits`: the premise that a stored weight has so many bits, in what commands print and refuse."""

from __future__ import annotations

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
    assert "'best' rests on a premise: each of the 30 stored weights is a number of 4 bits" in text
    assert "fixed before the data (G13). Without it: gap <=" in text
    found = answer("eval", *SMALL, "--bits", "4", "--bound", "best", "--no-solve")
    assert found["results"][0]["strategy"] == "stored-gap"
    assert found["stored_weights"]["weights"] == 30
    assert found["stored_weights"]["without"]["gap"] == plain["gap"] > found["results"][0]["gap"]


def test_eval_says_where_the_premise_gains_nothing() -> None:
    words = ("eval", "--depth", "1", "--no-solve")
    assert "No bound here gains from the premise" in said(*words, "--bits", "64")
    with_bits, without = answer(*words, "--bits", "64"), answer(*words)
    for result in without["results"]:  # floors are about real weights
        result.pop("floor", None), result.pop("ratio", None)
    assert with_bits["results"] == without["results"]
    assert with_bits["stored_weights"]["without"] is None
    assert "stored_weights" not in without


def test_solve_has_both() -> None:
    words = ("solve", "--for", "m", *SMALL[:-2])
    text = said(*words, "--bits", "4")
    assert (
        "by stored-gap it rests on stored weights of 4 bits each, fixed before the data (G13); without that: m ="
        in text
    )
    found = answer(*words, "--bits", "4")
    assert found["without_bits"] == {"value": answer(*words)["value"], "reason": None}
    assert found["value"] < found["without_bits"]["value"]
    assert "would not help there" in said("solve", "--for", "m", "--depth", "1", "--bits", "64")


def test_without_an_answer_the_reason_is_said() -> None:
    found = answer("solve", "--for", "delta", *SMALL[:-2], "--m", "5000", "--bits", "4")
    assert found["value"] < 0.2
    assert found["without_bits"]["value"] is None
    assert "no delta gives a gap of at most 0.1" in found["without_bits"]["reason"]


def test_a_setting_file_keeps_it(tmp_path: Any) -> None:
    setting = answer("eval", *SMALL, "--bits", "4", "--bound", "best", "--no-solve")["setting"]
    assert setting["architecture"]["bits"] == 4
    (tmp_path / "s.json").write_text(json.dumps(setting))
    again = answer("eval", "--setting", str(tmp_path / "s.json"), "--bound", "best", "--no-solve")
    assert again["results"][0]["strategy"] == "stored-gap"


def test_sweeps_take_it() -> None:
    rows = answer("eval", *SMALL, "--sweep", "bits=2,4,8")["results"]
    gaps = [row["gap"] for row in rows]
    assert gaps == sorted(gaps)
    assert gaps[0] < gaps[1]


def test_certificates_carry_it(tmp_path: Any) -> None:
    file = str(tmp_path / "gap.json")
    said("eval", *SMALL, "--bits", "4", "--no-solve", "--certificate", file)
    text = said("verify", file)
    assert "bits 4" in text
    assert "strategy stored-gap" in text
    assert "confirmed by the checker that stands alone" in text


@pytest.mark.parametrize(
    "words",
    [
        ("eval", "--bits", "16", "--bound", "closed"),
        ("eval", "--bits", "16", "--bound", "trauger", "--sweep", "T=4,8"),
        ("eval", "--sweep", "bits=8,16", "--bound", "closed"),
        ("solve", "--for", "m", "--bits", "16", "--bound", "log-T"),
        ("eval", "--bits", "0"),
        ("eval", "--bits", "200"),
    ],
)
def test_what_would_change_nothing_is_refused_in_one_line(words: tuple[str, ...]) -> None:
    outcome = run(*words)
    assert outcome.exit_code == 2
    assert len(outcome.stderr.strip().splitlines()) == 1
    assert "bits" in outcome.stderr
