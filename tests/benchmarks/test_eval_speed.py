"""Speed of `eval` and `derive`, as ratios measured in the same run: `pytest tests/benchmarks/test_eval_speed.py -s`.

The yardstick is a loop of plain Python, which takes `YARDSTICK` seconds on the machine that the limits are meant for.
"""

from __future__ import annotations

import math

import pytest

from boundcalc.engine.evaluate import evaluate
from boundcalc.setting import Budget, Norms, Setting
from tests.benchmarks.timing import fresh, least, of_processes

pytestmark = pytest.mark.benchmark

YARDSTICK = 0.1
"""Seconds that `plain_python` is meant to take."""


def plain_python() -> float:
    """Floats, logarithms and calls, as the search has them."""
    total = 0.0
    for i in range(1, 1_600_000):
        total += math.log(i) if i % 3 else math.sqrt(i)
    return total


def uniform_budgets() -> Setting:
    return Setting.of(depth=12, heads=12, d=768, n_train=10**9)


def distinct_budgets() -> Setting:
    """300 and more distinct maps: W_QK and W_V of 12 heads in 12 blocks, and W_1."""
    given = {
        f"{kind}[{block},{head}]": Budget(op=1 + 0.001 * (12 * block + head), two_one=2 + 0.002 * (12 * block + head))
        for kind in ("W_QK", "W_V")
        for block in range(12)
        for head in range(12)
    }
    given |= {f"W_1[{block}]": Budget(op=1 + 0.01 * block, two_one=2.0) for block in range(12)}
    return Setting.of(depth=12, heads=12, d=768, n_train=10**9, norms=Norms(C=1.0, budgets=given))


@pytest.mark.parametrize(
    ("setting", "limit"), [(uniform_budgets(), 0.3), (distinct_budgets(), 3.0)], ids=["uniform", "300 pieces"]
)
def test_a_best_certificate_with_its_check(setting: Setting, limit: float) -> None:
    evaluate(setting)
    yardstick, taken = least(plain_python, lambda: evaluate(setting), rounds=3)
    print(f"\nbest, depth 12, heads 12: {taken:.3f} s, {taken / yardstick:.2f} times the yardstick")
    assert taken / yardstick <= limit / YARDSTICK


def test_cost_is_linear_in_depth() -> None:
    shallow, deep = (Setting.of(depth=depth, n_train=10**9) for depth in (100, 1000))
    evaluate(shallow)
    one, ten = least(lambda: evaluate(shallow), lambda: evaluate(deep), rounds=2)
    print(f"\nbest, depth 1000: {ten:.3f} s, {ten / one:.2f} times depth 100")
    assert ten <= 15 * one


def test_the_yardstick_and_the_clock() -> None:
    """A benchmark that cannot fail is none: ten times the yardstick is noticed."""
    once, often = least(plain_python, lambda: [plain_python() for _ in range(10)], rounds=2)
    assert 5 < often / once < 20


# -- commands, against the libraries they are made with

_LIBRARIES = ("-c", "import click, rich.table")
_EVAL = ("-m", "boundcalc", "eval", "--depth", "2", "--T", "512")
_LLAMA = ("-m", "boundcalc", "eval", "--preset", "llama")
"""A second of a machine on which the libraries take 40 ms, with the search for the smallest m."""


@pytest.mark.parametrize(
    ("yardstick", "words", "most", "rounds"),
    [(_LIBRARIES, _EVAL, 5, 15), (_LIBRARIES, _LLAMA, 25, 3), (_EVAL, (*_EVAL, "--why"), 3.5, 15)],
    ids=["eval", "a large model", "why"],
)
def test_commands_in_a_new_interpreter(
    yardstick: tuple[str, ...], words: tuple[str, ...], most: float, rounds: int
) -> None:
    usual, command = least(fresh(*yardstick), fresh(*words), rounds=rounds, clock=of_processes)
    print(f"\n{' '.join(words)}: {command * 1e3:.0f} ms, {command / usual:.2f} times {' '.join(yardstick)}")
    assert command <= most * usual


@pytest.mark.parametrize(
    ("words", "most"), [(("-m", "boundcalc", "derive"), 3), (("-c", "import boundcalc.theorems"), 0.5)]
)
def test_theorems_are_quick_from_cold(words: tuple[str, ...], most: float) -> None:
    (seconds,) = least(fresh(*words), rounds=3)
    print(f"\n{' '.join(words)}: {seconds:.2f} s")
    assert seconds < most
