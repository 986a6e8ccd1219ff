"""Histograms of attention: whole, told apart by position, and different where few positions matter and where all do."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
from boundcalc.lab.train.attending import CASES, EDGES, AttendingPlan, Looked, attending, histogram


def test_a_histogram_sorts_weights_by_size_and_place() -> None:
    sparse = np.zeros((2, 2, 8))
    sparse[:, 0, 3] = 1.0  # one head looks at place 3, the other everywhere
    sparse[:, 1] = 1 / 8
    seen = Looked(sparse, np.array([0.75, 0.25]), (3,))
    mass, rest = histogram(seen)
    assert mass.sum() + rest.sum() == pytest.approx(1)
    assert mass[np.searchsorted(EDGES, 8, side="right") - 1] == pytest.approx(0.75)  # 8 times the even weight
    even = np.searchsorted(EDGES, 1, side="right") - 1
    assert (mass[even], rest[even]) == pytest.approx((0.25 / 8, 0.25 * 7 / 8))
    assert seen.share == pytest.approx(0.75 + 0.25 / 8)
    assert seen.looks_at == pytest.approx(0.75 * 1 + 0.25 * 8)
    other = Looked(sparse, seen.sizes, (4,))
    assert other.share == pytest.approx(0.25 / 8)  # the negative control: another place holds hardly anything


def test_trained_attention_is_sparse_where_few_matter_and_even_where_all_do() -> None:
    chosen = tuple(case for case in CASES if case.name.startswith(("majority", "two pairs")))
    few, pairs, every = attending(AttendingPlan(seeds=2), chosen)
    assert max(few.error, pairs.error, every.error) < 0.02
    assert few.on_them > 0.6 > 3 * few.even
    assert pairs.on_them > 0.6 > 3 * pairs.even
    assert every.looks_at > 0.9 * every.positions
    for row in (few, pairs, every):
        assert sum(row.mass) + sum(row.rest) == pytest.approx(1, abs=1e-5)
        assert sum(row.mass) == pytest.approx(row.on_them, abs=0.1)
    (start,) = attending(AttendingPlan(seeds=2, steps=1), chosen[:1])
    assert start.on_them < 2 * start.even  # training does it
