"""A command against the libraries it is made with: ratios of one run."""

from __future__ import annotations

import sys

import pytest

from tests.benchmarks.timing import fresh, least, of_processes

pytestmark = pytest.mark.benchmark

_ROUNDS = 15


def _report(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{text}\n")


def test_eval_takes_at_most_five_times_its_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-m", "boundcalc", "eval", "--depth", "2", "--T", "512")
    libraries, command = least(
        fresh("-c", "import click, rich.table"), fresh(*words), rounds=_ROUNDS, clock=of_processes
    )
    _report(capsys, f"eval: {command * 1e3:.0f} ms, {command / libraries:.2f} times `import click, rich.table`")
    assert command <= 5 * libraries


def test_a_large_model_takes_at_most_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    """A second of a machine on which the libraries take 40 ms, with the search for the smallest m."""
    words = ("-m", "boundcalc", "eval", "--preset", "llama")
    libraries, command = least(fresh("-c", "import click, rich.table"), fresh(*words), rounds=3, clock=of_processes)
    _report(capsys, f"eval --preset llama: {command:.2f} s, {command / libraries:.1f} times `import click, rich.table`")
    assert command <= 25 * libraries


def test_the_account_takes_at_most_three_and_a_half_times_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-m", "boundcalc", "eval", "--depth", "2", "--T", "512")
    bounds, account = least(fresh(*words), fresh(*words, "--why"), rounds=_ROUNDS, clock=of_processes)
    _report(capsys, f"eval --why: {account * 1e3:.0f} ms, {account / bounds:.2f} times eval")
    assert account <= 3.5 * bounds
