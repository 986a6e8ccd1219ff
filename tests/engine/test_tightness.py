"""What every ingredient is worth: the best bounds without it."""

from __future__ import annotations

import math

import pytest

from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.tightness import Left, without
from boundcalc.setting import Setting

SETTING = Setting.of(depth=2, d=64, seq_len=64, n_train=10**6, margin=0.5)


@pytest.fixture(scope="module")
def table() -> dict[str, Left]:
    return {left.name: left for left in without(SETTING)}


def test_the_first_row_is_the_best_bound(table: dict[str, Left]) -> None:
    best, first = evaluate(SETTING), next(iter(table.values()))
    assert first.gap == pytest.approx(best.log10, abs=1e-4)  # `best` looks at the narrower policies too
    assert first.risk == pytest.approx(best.log_risk / math.log(10), abs=1e-4)


def test_nothing_gets_better_without_something(table: dict[str, Left]) -> None:
    whole, *others = table.values()
    assert whole.gap is not None
    assert whole.risk is not None
    for left in others:
        assert left.gap is None or left.gap >= whole.gap - 1e-3, left
        assert left.risk is None or left.risk >= whole.risk - 1e-3, left


@pytest.mark.parametrize(
    ("name", "gap", "risk"),
    [
        ("all centres of a chosen law", 1.1, 1.0),
        ("maps that meet", 1.2, 1.5),
        ("levels that refine one another", 1.06, 1.0),
        ("all noise", 1.0, 1.1),
    ],
)
def test_what_a_large_part_is_worth(table: dict[str, Left], name: str, gap: float, risk: float) -> None:
    whole, left = next(iter(table.values())), table[name]
    for value, best, factor in ((left.gap, whole.gap, gap), (left.risk, whole.risk, risk)):
        assert value is not None
        assert best is not None
        assert 10 ** (value - best) >= factor - 1e-6


@pytest.mark.parametrize(("depth", "before", "now"), [(1, 0.1002, 0.056), (2, 0.1760, 0.115), (4, 0.3234, 0.24)])
def test_the_last_row_is_what_was_before_all_of_them(depth: int, before: float, now: float) -> None:
    """docs/theory.md has the table."""
    rows = list(without(Setting.of(depth=depth, n_train=10**6, margin=1.0)))
    assert rows[0].gap is not None
    assert rows[-1].gap is not None
    assert 10 ** rows[-1].gap == pytest.approx(before, abs=1.5e-4)
    assert 10 ** rows[0].gap <= now
