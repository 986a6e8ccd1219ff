"""Speed of `eval` and `derive`, as ratios measured in the same run: `pytest tests/benchmarks/test_eval_speed.py -s`.

Seconds are printed beside the ratios. The yardstick is a loop of plain Python, which takes `YARDSTICK` seconds on the
machine that the limits in seconds are meant for.
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


# -- commands, against the libraries they are made with

_WORDS = ("-m", "boundcalc", "eval", "--depth", "2", "--T", "512")
_LIBRARIES = ("-c", "import click, rich.table")


def test_eval_takes_at_most_five_times_its_libraries() -> None:
    libraries, command = least(fresh(*_LIBRARIES), fresh(*_WORDS), rounds=15, clock=of_processes)
    print(f"\neval: {command * 1e3:.0f} ms, {command / libraries:.2f} times `import click, rich.table`")
    assert command <= 5 * libraries


def test_a_large_model_takes_at_most_a_second() -> None:
    """A second of a machine on which the libraries take 40 ms, with the search for the smallest m."""
    words = ("-m", "boundcalc", "eval", "--preset", "llama")
    libraries, command = least(fresh(*_LIBRARIES), fresh(*words), rounds=3, clock=of_processes)
    print(f"\neval --preset llama: {command:.2f} s, {command / libraries:.1f} times `import click, rich.table`")
    assert command <= 25 * libraries


def test_the_account_takes_at_most_three_and_a_half_times_the_bounds() -> None:
    bounds, account = least(fresh(*_WORDS), fresh(*_WORDS, "--why"), rounds=15, clock=of_processes)
    print(f"\neval --why: {account * 1e3:.0f} ms, {account / bounds:.2f} times eval")
    assert account <= 3.5 * bounds


def test_derive_in_symbolic_depth_is_quick_from_cold() -> None:
    (seconds,) = least(fresh("-m", "boundcalc", "derive"), rounds=3)
    print(f"\nboundcalc derive: {seconds:.2f} s")
    assert seconds < 3


def test_importing_the_theorems_is_quick() -> None:
    (seconds,) = least(fresh("-c", "import boundcalc.theorems"), rounds=3)
    print(f"\nimport boundcalc.theorems: {seconds:.2f} s")
    assert seconds < 0.5
