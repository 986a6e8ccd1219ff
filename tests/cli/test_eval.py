"""What `boundcalc eval` prints is what the library computes, with everything assumed marked."""

from __future__ import annotations

import json
import random
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from boundcalc import Setting, compare
from boundcalc.base.rounding import upper
from boundcalc.cli.setting import ENTRIES
from boundcalc.setting import Architecture, Sample
from boundcalc.theorems import BOUNDS, POLICIES

from .conftest import Run, written


def test_every_field_of_a_setting_has_an_option() -> None:
    settable = {entry.field for entry in ENTRIES} | {"layers", "measured"}  # lists of layers come in files
    assert {f.name for part in (Architecture, Sample) for f in fields(part)} <= settable


def test_the_table_shows_what_compare_finds(run: Run) -> None:
    outcome = run("eval", "--depth", "1", "--T", "128", "--m", "1e8", "--no-solve")
    assert outcome.exit_code == 0
    rows = {line.split()[0]: line for line in outcome.stdout.splitlines() if line.strip()}
    for value in compare(Setting.of(depth=1, seq_len=128, n_train=10**8)):
        assert value.strategy in rows[value.name]
        assert upper(value.log10) in rows[value.name]
    assert set(POLICIES) <= set(rows)
    assert len(outcome.stdout.splitlines()) <= 24  # one screen


def test_values_beyond_floats_are_powers_of_ten(run: Run) -> None:
    line = ("eval", "--depth", "150", "--C", "500", "--bound", "closed", "--no-solve")
    outcome = run(*line)
    assert outcome.exit_code == 0
    assert re.search(r"vacuous \(10\^\d{3,}\.\d\)", outcome.stdout)
    (row,) = json.loads(run(*line, "--format", "json").stdout)["results"]
    assert row["log10_gap"] > 1000


def test_the_smallest_m_is_enough_and_not_much_less_is(run: Run) -> None:
    document = json.loads(run("eval", "--depth", "1", "--format", "json").stdout)
    for quantity, needed in document["smallest_m"].items():
        assert needed["bound"] == "best"
        for m, enough in ((needed["m"], True), (needed["m"] * 0.98 // 1, False)):
            outcome = run("eval", "--depth", "1", "--m", f"{m:.0f}", "--bound", "best", "--format", "json")
            found = json.loads(outcome.stdout)["results"][0][quantity]
            assert found <= 0.102 if enough else found > 0.1  # a search from another m may end 2% higher


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> str:
    """A policy whose one lemma covers no matrix."""
    for registry in (POLICIES, BOUNDS):
        monkeypatch.setitem(registry, "parameters", replace(POLICIES["parameters"], lemmas=frozenset({"T1"})))
    return "parameters"


def test_refused_policies_are_rows_with_the_reason(run: Run, narrow: str) -> None:
    outcome = run("eval", "--depth", "1", "--format", "json")
    assert outcome.exit_code == 0
    (refused,) = [row for row in json.loads(outcome.stdout)["results"] if "refusal" in row]
    assert refused["name"] == narrow
    assert refused["gap"] is None
    assert "that none of T1 covers" in refused["refusal"]
    text = run("eval", "--depth", "1", "--no-solve").stdout
    assert f"{narrow} refused: policy" in text


def test_files_options_and_presets_agree(run: Run, tmp_path: Path) -> None:
    line = (
        "--depth",
        "1",
        "--d",
        "32",
        "--heads",
        "2",
        "--set",
        "activation=gelu",
        "--set",
        "causal=yes",
        "--m",
        "10^5",
    )
    line += ("--set", "normaliser=sigmoid", "--set", "temperature=2", "--C", "1.5", "--gamma", "0.5", "--bound", "best")
    first = json.loads(run("eval", *line, "--format", "json").stdout)
    path = written(tmp_path / "setting.json", first["setting"])
    second = json.loads(run("eval", "--setting", path, "--bound", "best", "--format", "json").stdout)
    assert second["setting"] == first["setting"]
    assert second["results"] == first["results"]
    assert second["assumed"] == []
    changed = json.loads(run("eval", "--setting", path, "--depth", "2", "--bound", "best", "--format", "json").stdout)
    assert changed["setting"]["architecture"]["depth"] == 2
    assert changed["setting"]["architecture"]["d"] == 32


def test_norms_come_from_a_file(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "norms.json", {"C": 1, "budgets": {"W_V": {"op": 0.5, "21": 2}}})
    document = json.loads(run("eval", "--norms", path, "--bound", "best", "--format", "json").stdout)
    assert document["setting"]["norms"]["budgets"]["W_V"] == {"op": 0.5, "21": 2}
    assert "C" not in document["assumed"]
    measured = written(tmp_path / "measured.json", {"C": 1, "measured": True})
    document = json.loads(run("eval", "--norms", measured, "--bound", "best", "--format", "json").stdout)
    assert document["results"][0]["kind"] == "a_posteriori"


def test_a_train_error_that_was_seen_is_paid_for(run: Run) -> None:
    line = ("eval", "--train-error", "0.02", "--bound", "best", "--format", "json")
    (chosen,) = json.loads(run(*line).stdout)["results"]
    (seen,) = json.loads(run(*line, "--measured", "train-error").stdout)["results"]
    assert (chosen["kind"], seen["kind"]) == ("bound", "a_posteriori")
    assert seen["log10_risk"] > chosen["log10_risk"]
    assert "chosen from the data: margin" in run("eval", "--measured", "margin", "--no-solve").stdout


def test_custom_normalisers(run: Run) -> None:
    line = (
        "eval",
        "--m",
        "1e9",
        "--set",
        "normaliser=custom",
        "--set",
        "normaliser_c=1",
        "--set",
        "normaliser_mu=1",
        "--bound",
        "T-free",
    )
    custom = json.loads(run(*line, "--format", "json").stdout)["results"][0]
    plain = json.loads(run("eval", "--m", "1e9", "--bound", "T-free", "--format", "json").stdout)["results"][0]
    assert custom["gap"] >= plain["gap"]  # softmax has a sharper head constant than its (c, mu) = (1, 1)


def test_a_divergence_is_not_called_a_log_count(run: Run) -> None:
    """What noise costs is I (G11); covers have a log N."""
    text = run("eval", "--depth", "1", "--bound", "best", "--no-solve", "--why").stdout
    gap, _, risk = text.partition("Why the risk")
    assert "noise-margin" in risk
    assert "[K2]" in gap
    assert "log N" not in risk
    covers = run("eval", "--depth", "1", "--bound", "T-free", "--m", "1e9", "--no-solve", "--why").stdout
    assert "log N" in covers


ENDS = {
    "--C": ("1e-300", "0", "1e6", "1e150"),
    "--depth": ("1", "60"),
    "--m": ("1", "1e18", "1e300"),
    "--d": ("4", "64"),
    "--T": ("1", "1e6"),
    "--gamma": ("1e-300", "1e300"),
    "--delta": ("1e-300", "0.999999"),
}


@pytest.mark.parametrize("seed", range(12))
def test_the_ends_of_ranges_give_an_answer_or_a_refusal(run: Run, seed: int) -> None:
    dice = random.Random(seed)
    given = [word for name in ENDS if dice.random() < 0.5 for word in (name, dice.choice(ENDS[name]))]
    outcome = run("eval", "--no-solve", "--bound", "closed", *given)
    assert "internal error" not in outcome.output, given
    assert outcome.exit_code in (0, 1, 2)


def test_norms_beyond_floats_have_no_floor_and_no_internal_error(run: Run) -> None:
    assert "vacuous" in run("eval", "--depth", "60", "--C", "1e6", "--bound", "closed", "--no-solve").stdout
