"""JSON is what its schema says; the other formats carry the same numbers."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from boundcalc import Setting

from .conftest import Run

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "results.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


@pytest.fixture(scope="module")
def document(run: Run) -> dict[str, Any]:
    outcome = run("eval", "--depth", "1", "--format", "json")
    assert outcome.exit_code == 0
    return json.loads(outcome.stdout)


def test_json_is_as_the_schema_says(document: dict[str, Any]) -> None:
    VALIDATOR.validate(document)
    assert Setting.from_json(document["setting"]) == Setting.of(depth=1)


@pytest.mark.parametrize(
    "words",
    [
        ["--preset", "llama", "--depth", "1", "--m", "10^9", "--bound", "best"],
        ["--depth", "400", "--C", "30", "--bound", "closed"],
        ["--train-error", "0.05", "--set", "classes=10"],
    ],
)
def test_other_questions_have_the_same_schema(run: Run, words: list[str]) -> None:
    outcome = run("eval", *words, "--format", "json")
    assert outcome.exit_code == 0
    VALIDATOR.validate(json.loads(outcome.stdout))


def test_the_schema_refuses_broken_documents(document: dict[str, Any]) -> None:
    """Negative control."""
    for break_it in (
        lambda d: d.pop("setting"),
        lambda d: d["results"][0].pop("log10_risk"),
        lambda d: d["results"][0].update(gap=1.5),
        lambda d: d["results"][0].update(gap=None),
        lambda d: d["results"][0].update(kind="guess"),
        lambda d: d["results"][0].update(surprise=1),
        lambda d: d["results"][0].update(refusal="no"),
        lambda d: d["setting"]["sample"].update(delta=0),
        lambda d: d["smallest_m"]["gap"].update(m=0.5),
    ):
        broken = copy.deepcopy(document)
        break_it(broken)
        assert not VALIDATOR.is_valid(broken)
