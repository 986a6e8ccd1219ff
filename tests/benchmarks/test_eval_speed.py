"""Speed of `eval`, as ratios measured in the same run: `pytest tests/benchmarks/test_eval_speed.py -s`.

Seconds are printed beside the ratios. The yardstick is a loop of plain Python, which takes `YARDSTICK` seconds on the
machine that the limits in seconds are meant for.
"""

from __future__ import annotations

import math

import pytest

from boundcalc.engine.evaluate import evaluate
from boundcalc.setting import Budget, Norms, Setting
from tests.benchmarks.timing import least

pytestmark = pytest.mark.benchmark

YARDSTICK = 0.1
"""Seconds that `plain_python` is meant to take."""


def plain_python() -> float:
    """Floats, logarithms and calls, as the search has them."""
    total = 0.0
    for i in range(1, 1_600_000):
        total += math.log(i) if i % 3 else math.sqrt(i)
    return total


def report(what: str, time_taken: float, limit: float, ratio: float) -> None:
    print(f"\n{what}: {time_taken:.3f} s, ratio {ratio:.2f} (at most {limit:g})")


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
    ratio = taken / yardstick
    report(
        f"best, depth 12, heads 12 (limit {limit:g} s where plain Python takes {YARDSTICK} s)",
        taken,
        limit / YARDSTICK,
        ratio,
    )
    assert ratio <= limit / YARDSTICK


def test_cost_is_linear_in_depth() -> None:
    shallow, deep = (Setting.of(depth=depth, n_train=10**9) for depth in (100, 1000))
    evaluate(shallow)
    one, ten = least(lambda: evaluate(shallow), lambda: evaluate(deep), rounds=2)
    report("best, depth 1000 over depth 100", ten, 15, ten / one)
    assert ten <= 15 * one


def test_the_yardstick_and_the_clock() -> None:
    """A benchmark that cannot fail is none: ten times the yardstick is noticed."""
    once, often = least(plain_python, lambda: [plain_python() for _ in range(10)], rounds=2)
    assert 5 < often / once < 20
