"""`boundcalc solve` answers with a value at which the bound meets the target."""

from __future__ import annotations

import pytest

from .conftest import answer, one_line, printed, run_line


@pytest.mark.parametrize(
    ("variable", "target", "worse"),
    [("m", 0.2, 0.98), ("T", 0.37, 1.1), ("C", 0.3, 1.02), ("depth", 0.3, 2), ("gamma", 0.2, 0.98)],
)
def test_the_value_is_enough_and_beyond_it_is_not(variable: str, target: float, worse: float) -> None:
    at = "--m 2.5e9 --bound closed" if variable == "T" else "--bound best"
    found = answer(f"solve --for {variable} --target {target} {at}")
    assert found["result"]["gap"] <= target
    assert found["at_end"] is False
    beyond = found["value"] * worse if variable != "depth" else found["value"] + worse
    beyond = round(beyond) if variable in ("m", "T", "depth") else beyond
    for value, enough in ((found["value"], True), (beyond, False)):
        (result,) = answer(f"eval --{variable} {value:.15g} {at}")["results"]
        assert (result["gap"] <= target) is enough


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--for m --target 1e-30", "no m gives a gap of at most 1e-30"),
        ("--for m --quantity risk --train-error 0.2 --target 0.2", "above the train error, here 0.2"),
        ("--for depth --C 0.5 --quantity risk", "has a margin above 0.0441"),
    ],
)
def test_no_solution_is_a_failure_with_its_reason(line: str, why: str) -> None:
    outcome = run_line(f"solve {line}")
    assert outcome.exit_code == 1
    assert why in one_line(outcome)
    assert one_line(outcome).endswith("(at depth 1)") is ("depth" in line)  # the place that comes nearest


@pytest.mark.parametrize(
    ("line", "value"),
    [("--for delta --target 0.25", 1e-300), ("--for m --quantity risk --train-error 0.2 --target 0.20001", None)],
)
def test_where_a_bound_hardly_moves_the_range_is_still_searched_to_its_end(line: str, value: float | None) -> None:
    found = answer(f"solve {line}")
    assert found["at_end"] is (value is not None)
    assert value in (None, found["value"])


def test_a_bound_that_rises_and_falls_again_is_followed_to_the_deepest_network() -> None:
    """Where C < 1 the bound of depth 12 is above the target, and that of the deepest networks with the margin is
    not."""
    at = "--C 0.8 --gamma 1e-4 --d 16"
    middle, deep = (answer(f"eval {at} --depth {depth} --bound best")["results"][0]["gap"] for depth in (12, 17))
    assert deep < middle
    target = f"{(deep + middle) / 2:.4f}"
    text = printed(f"solve --for depth --target {target} {at}")
    assert text.startswith(f"largest depth with gap <= {float(target):g}: 17\n")
    assert "beyond it no network has the margin; smaller ones do not all meet the target" in text


def test_no_gamma_below_zero_is_advised() -> None:
    assert "gamma below 0" not in one_line(run_line("solve --for m --quantity risk --C 1e-300"))


def test_a_risk_ends_where_networks_are_no_longer_built() -> None:
    text = printed("solve --for depth --target 0.1 --quantity risk --m 1e8 --d 8")
    assert text.startswith("largest depth with risk <= 0.1 at train error 0 (default): 2\n")
    assert "beyond it no network with the margin is built" in " ".join(text.split())


def test_what_would_help_a_gap_asks_for_no_network() -> None:
    assert "One change that would" in printed("eval --depth 4 --m 1e5 --bound best --why --no-solve")
