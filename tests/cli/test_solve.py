"""`boundcalc solve` answers with a value at which the bound meets the target."""

from __future__ import annotations

import json

import pytest

from .conftest import Run, one_line

_OPTIONS = {"m": "--m", "T": "--T", "C": "--C", "depth": "--depth", "gamma": "--gamma", "delta": "--delta"}


@pytest.mark.parametrize(
    ("variable", "target", "worse"),
    [("m", 0.2, 0.98), ("T", 0.37, 1.1), ("C", 0.3, 1.02), ("depth", 0.3, 2), ("gamma", 0.2, 0.98)],
)
def test_the_value_is_enough_and_beyond_it_is_not(run: Run, variable: str, target: float, worse: float) -> None:
    bound = "closed" if variable == "T" else "best"
    at = ("--m", "2.5e9") if variable == "T" else ()
    outcome = run("solve", "--for", variable, "--target", str(target), *at, "--bound", bound, "--format", "json")
    assert outcome.exit_code == 0
    found = json.loads(outcome.stdout)
    assert found["result"]["gap"] <= target
    assert found["at_end"] is False
    beyond = found["value"] * worse if variable != "depth" else found["value"] + worse
    beyond = round(beyond) if variable in ("m", "T", "depth") else beyond
    for value, enough in ((found["value"], True), (beyond, False)):
        line = ("eval", _OPTIONS[variable], f"{value:.15g}", *at, "--bound", bound, "--format", "json")
        (result,) = json.loads(run(*line).stdout)["results"]
        assert (result["gap"] <= target) is enough


def test_no_solution_is_a_failure_with_its_reason(run: Run) -> None:
    outcome = run("solve", "--for", "m", "--target", "1e-30")
    assert outcome.exit_code == 1
    assert "no m gives a gap of at most 1e-30" in one_line(outcome)
    outcome = run("solve", "--for", "m", "--quantity", "risk", "--train-error", "0.2", "--target", "0.2")
    assert outcome.exit_code == 1
    assert "above the train error, here 0.2" in one_line(outcome)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("--for", "delta", "--target", "0.25"), 1e-300),
        (("--for", "m", "--quantity", "risk", "--train-error", "0.2", "--target", "0.20001"), None),
    ],
)
def test_where_a_bound_hardly_moves_the_range_is_still_searched_to_its_end(
    run: Run, words: tuple[str, ...], value: float | None
) -> None:
    outcome = run("solve", *words, "--format", "json")
    assert outcome.exit_code == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    assert found["at_end"] is (value is not None)
    assert value in (None, found["value"])


def test_a_bound_that_rises_and_falls_again_is_followed_to_the_deepest_network(run: Run) -> None:
    """Where C < 1 the bound of depth 12 is above the target, and that of the deepest networks with the margin is
    not."""
    at = ("--C", "0.8", "--gamma", "1e-4", "--d", "16")
    found = [run("eval", *at, "--depth", depth, "--format", "json", "--bound", "best") for depth in ("12", "17")]
    middle, deep = (json.loads(each.stdout)["results"][0]["gap"] for each in found)
    assert deep < middle
    target = f"{(deep + middle) / 2:.4f}"
    outcome = run("solve", "--for", "depth", "--target", target, *at)
    assert outcome.stdout.startswith(f"largest depth with gap <= {float(target):g}: 17\n")
    assert "beyond it no network has the margin; smaller ones do not all meet the target" in outcome.stdout


def test_where_no_network_has_the_margin_the_place_that_comes_nearest_is_named(run: Run) -> None:
    outcome = run("solve", "--for", "depth", "--C", "0.5", "--quantity", "risk")
    assert outcome.exit_code == 1
    assert "no network with these norms has a margin above 0.0441" in one_line(outcome)
    assert one_line(outcome).endswith("(at depth 1)")
    assert "gamma below 0" not in one_line(run("solve", "--for", "m", "--quantity", "risk", "--C", "1e-300"))


def test_a_risk_ends_where_networks_are_no_longer_built(run: Run) -> None:
    outcome = run("solve", "--for", "depth", "--target", "0.1", "--quantity", "risk", "--m", "1e8", "--d", "8")
    assert outcome.stdout.startswith("largest depth with risk <= 0.1 at train error 0 (default): 2\n")
    assert "beyond it no network with the margin is built" in " ".join(outcome.stdout.split())


def test_what_would_help_a_gap_asks_for_no_network(run: Run) -> None:
    text = run("eval", "--depth", "4", "--m", "1e5", "--bound", "best", "--why", "--no-solve").stdout
    assert "One change that would" in text
