"""What is done to all limits of a budget at once."""

from __future__ import annotations

from dataclasses import fields

import pytest

from boundcalc.setting import Budget
from boundcalc.setting.norms import SIZES

SMALL = Budget(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, rank=2, sup=7.0, row=8.0, heads=8.5, distance=Budget(op=0.25))
LARGE = Budget(2.0, 2.5, 2.75, 9.0, 9.5, 7.0, rank=1, sup=6.0, row=9.0, heads=9.5, distance=Budget(op=0.5))


def test_every_limit_is_a_size_or_known_not_to_be_one() -> None:
    """A further limit must be mapped and joined too."""
    assert {f.name for f in fields(Budget)} == {*SIZES, "rank", "distance"}
    assert all(getattr(SMALL, f.name) is not None for f in fields(Budget))


def test_mapping_reaches_every_limit() -> None:
    doubled = SMALL.map(lambda x: 2 * x)
    assert doubled == Budget(
        2.0,
        4.0,
        6.0,
        8.0,
        10.0,
        12.0,
        rank=2,
        sup=14.0,
        row=16.0,
        heads=17.0,
        distance=Budget(op=0.5),
    )
    assert SMALL.map(lambda x: x) == SMALL
    assert Budget().map(lambda x: x + 1) == Budget()


def test_joined_budgets_fit_both() -> None:
    found = SMALL.join(LARGE)
    assert found == LARGE.join(SMALL)
    assert found == Budget(2.0, 2.5, 3.0, 9.0, 9.5, 7.0, rank=2, sup=7.0, row=9.0, heads=9.5, distance=Budget(op=0.5))


@pytest.mark.parametrize("name", [f.name for f in fields(Budget)])
def test_what_one_leaves_open_is_open(name: str) -> None:
    """A limit of one matrix is no limit of another."""
    one = Budget(**{name: getattr(SMALL, name)})
    assert one.join(Budget()) == Budget().join(one) == Budget()
    assert getattr(one.join(SMALL), name) == getattr(SMALL, name)
