"""What `boundcalc eval` prints is what the library computes, with everything assumed marked; what it refuses."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from boundcalc import Setting, compare
from boundcalc.base.rounding import upper
from boundcalc.cli._options import number
from boundcalc.theorems import BOUNDS, POLICIES, THEOREMS

from .conftest import answer, one_line, printed, run_line, written

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e6", 1e6), ("10^6", 1e6), ("1_000", 1e3), ("0.05", 0.05), ("10^-3", 1e-3)]
    + [(text, None) for text in ("", "abc", "1e", "10^", "2^x", "0^-1", "1,5")],
)
def test_numbers_are_read_as_people_write_them(text: str, value: float | None) -> None:
    assert number(text) == (value if value is None else pytest.approx(value, rel=1e-15))


def test_the_table_shows_what_compare_finds() -> None:
    text = printed("eval --depth 1 --T 128 --m 1e8 --no-solve")
    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    for value in compare(Setting.of(depth=1, seq_len=128, n_train=10**8)):
        assert value.strategy in rows[value.name]
        assert upper(value.log10) in rows[value.name]
    assert set(POLICIES) <= set(rows)
    assert len(text.splitlines()) <= 24  # one screen


def test_values_beyond_floats_are_powers_of_ten() -> None:
    line = "eval --depth 150 --C 500 --bound closed --no-solve"
    assert re.search(r"vacuous \(10\^\d{3,}\.\d\)", printed(line))
    assert answer(line)["results"][0]["log10_gap"] > 1000


def test_the_smallest_m_is_enough_and_not_much_less_is() -> None:
    for quantity, needed in answer("eval --depth 1")["smallest_m"].items():
        assert needed["bound"] == "best"
        for m, enough in ((needed["m"], True), (needed["m"] * 0.98 // 1, False)):
            value = answer(f"eval --depth 1 --m {m:.0f} --bound best")["results"][0][quantity]
            assert value <= 0.102 if enough else value > 0.1  # a search from another m may end 2% higher


def test_refused_policies_are_rows_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (POLICIES, BOUNDS):
        monkeypatch.setitem(registry, "parameters", replace(POLICIES["parameters"], lemmas=frozenset({"T1"})))
    (refused,) = [row for row in answer("eval --depth 1")["results"] if "refusal" in row]
    assert refused["name"] == "parameters"
    assert refused["gap"] is None
    assert "that none of T1 covers" in refused["refusal"]
    assert "parameters refused: policy" in printed("eval --depth 1 --no-solve")


def test_files_options_and_presets_agree(tmp_path: Path) -> None:
    line = "eval --depth 1 --d 32 --heads 2 --set activation=gelu --set causal=yes --m 10^5 --set normaliser=sigmoid "
    first = answer(line + "--set temperature=2 --C 1.5 --gamma 0.5 --bound best")
    path = written(tmp_path / "setting.json", first["setting"])
    second = answer(f"eval --setting {path} --bound best")
    assert (second["setting"], second["results"]) == (first["setting"], first["results"])
    assert second["assumed"] == []
    changed = answer(f"eval --setting {path} --depth 2 --bound best")["setting"]["architecture"]
    assert (changed["depth"], changed["d"]) == (2, 32)


def test_measured_norms_are_said_to_be_so(tmp_path: Path) -> None:
    measured = written(tmp_path / "measured.json", {"C": 1, "measured": True})
    document = answer(f"eval --norms {measured} --bound best")
    assert document["results"][0]["kind"] == "a_posteriori"
    assert "C" not in document["assumed"]


@pytest.mark.parametrize(
    ("key", "options"),
    [("W_V[3]", "--depth 4"), ("W_V[0,1]", "--heads 2"), ("W_O", "--style pre"), ("W_Q", "--set d_head=8")],
)
def test_norms_are_for_the_setting_asked_for(tmp_path: Path, key: str, options: str) -> None:
    path = written(tmp_path / "norms.json", {"C": 1, "budgets": {key: {"op": 2}}})
    for order in (f"{options} --norms {path}", f"--norms {path} {options}"):
        assert printed(f"eval --bound edelman2022 {order}")
    assert run_line(f"eval --norms {path}").exit_code == 2


def test_a_knob_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    full = {kind: {"op": 1} for kind in ("W_QK", "W_V", "W_1", "readout")}
    path = written(tmp_path / "norms.json", {"budgets": full})
    assert printed(f"eval --bound edelman2022 --norms {path}")
    assert "--C would change nothing" in one_line(run_line(f"eval --norms {path} --C 2"))


def test_a_train_error_that_was_seen_is_paid_for() -> None:
    line = "eval --train-error 0.02 --bound best"
    (chosen,), (seen,) = (answer(f"{line}{more}")["results"] for more in ("", " --measured train-error"))
    assert (chosen["kind"], seen["kind"]) == ("bound", "a_posteriori")
    assert seen["log10_risk"] > chosen["log10_risk"]
    assert "chosen from the data: margin" in printed("eval --measured margin --no-solve")


def test_custom_normalisers() -> None:
    line = "eval --m 1e9 --bound T-free"
    custom = answer(f"{line} --set normaliser=custom --set normaliser_c=1 --set normaliser_mu=1")["results"][0]
    assert custom["gap"] >= answer(line)["results"][0]["gap"]  # softmax has a sharper head constant than its (1, 1)


def test_a_divergence_is_not_called_a_log_count() -> None:
    """What noise costs is I (G11); covers have a log N."""
    gap, _, risk = printed("eval --depth 1 --bound best --no-solve --why").partition("Why the risk")
    assert "noise-margin" in risk
    assert "[K2]" in gap
    assert "log N" not in risk
    assert "log N" in printed("eval --depth 1 --bound T-free --m 1e9 --no-solve --why")


ENDS = {
    "--C": ("1e-300", "0", "1e6", "1e150"),
    "--depth": ("1", "60", "150"),
    "--m": ("1", "1e18", "1e300"),
    "--d": ("4", "64"),
    "--T": ("1", "1e6"),
    "--gamma": ("1e-300", "1e300"),
    "--delta": ("1e-300", "0.999999"),
}


@pytest.mark.parametrize("seed", range(12))
def test_the_ends_of_ranges_give_an_answer_or_a_refusal(seed: int) -> None:
    dice = random.Random(seed)
    line = [word for name in ENDS if dice.random() < 0.5 for word in (name, dice.choice(ENDS[name]))]
    outcome = run_line("eval", "--no-solve", "--bound", "closed", *line)
    assert "internal error" not in outcome.output, line
    assert outcome.exit_code in (0, 1, 2)


# -- --bits: the premise that a stored weight has so many bits

SMALL = "eval --depth 1 --d 3 --T 4 --C 30 --gamma 0.2 --m 1e5"


def test_eval_says_which_premise_it_rests_on() -> None:
    text = " ".join(printed(f"{SMALL} --bits 4 --no-solve").split())
    assert "'best' is based on a premise: each of the 30 stored weights is a number of 4 bits" in text
    assert "fixed before the data (G13); leave out --bits for the bound without it" in text
    with_bits, plain = (answer(f"{SMALL}{bits} --bound best --no-solve") for bits in (" --bits 4", ""))
    assert with_bits["stored_weights"] == {"weights": 30, "bits": 4}
    assert with_bits["results"][0]["strategy"] == "stored-gap"
    assert plain["results"][0]["gap"] > with_bits["results"][0]["gap"]


def test_sweeps_take_bits() -> None:
    rows = csv.DictReader(io.StringIO(printed(f"{SMALL} --sweep bits=2,4,8 --format csv")))
    gaps = [float(row["gap"]) for row in rows]
    assert gaps == sorted(gaps)
    assert gaps[0] < gaps[1]


@pytest.mark.parametrize(
    "line",
    [
        "eval --bits 16 --bound closed",
        "eval --bits 16 --bound T-free --sweep T=4,8",
        "eval --sweep bits=8,16 --bound closed",
        "solve --for m --bits 16 --bound T-free",
        "eval --bits 0",
        "eval --bits 200",
    ],
)
def test_bits_that_would_change_nothing_are_refused(line: str) -> None:
    assert "bits" in one_line(run_line(line))


# -- JSON is what its schema says

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8")))
QUESTIONS = (
    "eval --depth 1",
    "eval --preset llama --depth 1 --m 10^9 --bound best",
    "eval --depth 400 --C 30 --bound closed",
    "eval --train-error 0.05 --set classes=10",
)


@pytest.mark.parametrize("line", QUESTIONS)
def test_json_is_as_the_schema_says(line: str) -> None:
    document = answer(line)
    SCHEMA.validate(document)
    assert line != QUESTIONS[0] or Setting.from_json(document["setting"]) == Setting.of(depth=1)


def test_the_schema_refuses_broken_documents() -> None:
    """Negative control."""
    document = answer(QUESTIONS[0])
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
        assert not SCHEMA.is_valid(broken)


# -- theorems that are not about a setting

POINT = {"C_V": 1, "K_V": 4, "K_QK": 2, "L_s": 1, "epsilon": 0.1, "kappa_w": 3, "e_pre": 0.01}
ALONE = [name for name in THEOREMS if name not in BOUNDS and name != "K1"]
"""K1 is a formula for each depth: tests/theorems."""


@pytest.mark.parametrize("name", ALONE)
def test_every_theorem_that_is_not_about_a_setting_has_checked_values(name: str) -> None:
    theorem = THEOREMS[name]
    options = " ".join(f"--set {key}={value}" for key, value in POINT.items() if key in sum(theorem.needed, ()))
    for row in answer(f"eval --bound {name} {options}")["results"]:
        assert (row["kind"], row["value"] > 0) == ("bound", True)
        value = theorem.formula(row["form"]).value(**row["inputs"])
        assert value <= row["value"] == pytest.approx(value, rel=1e-12)


def test_values_are_of_the_formulas_whose_inputs_are_given() -> None:
    for more, forms in (("", ["best_error"]), (" --set reg=0.1", ["best_error", "error"])):
        rows = answer(f"eval --bound X3 --set L=4096{more}")["results"]
        assert [row["form"] for row in rows] == forms
