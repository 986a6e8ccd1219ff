"""Covers on finitely many rows that are fixed in advance, which the library does not use yet: what they would gain.

A table that is looked up is a linear map on V one-hot points, and there are no others. T2's cover of its rows is the same
for every sample, so it is uniform at N = V (docs/theory.md, Limitations).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from boundcalc import Setting
from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems.policies import POLICIES, Policy
from boundcalc.statements.covers import LEMMAS, MatrixPerceptron, Profile
from boundcalc.statements.targets import Target


class AllRows(MatrixPerceptron):
    """T2 on all the points that there are."""

    name = "T2 on all rows"
    uniform = True

    def applies(self, target: Target) -> Refusal | None:
        if target.points.cap is None:
            return Refusal(self.name, "points without end", "finitely many, fixed in advance")
        return super().applies(target)

    def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Mapping[str, float]) -> Number:
        return super().sharp(ns, y, target, ns.number(target.points.cap or 0), params)

    def params(self, log_y: float, target: Target, n: int) -> Mapping[str, float]:
        return super().params(log_y, target, target.points.cap or 0)

    def profile(self, target: Target, n: int) -> Profile:
        return super().profile(target, target.points.cap or 0)


WITH = replace(POLICIES["best"], lemmas=POLICIES["best"].lemmas | {AllRows.name}, refining=False)
"""Without levels that refine: no ball of matrices holds what such a cover leaves."""


def least(setting: Setting, policy: Policy) -> tuple[float, float]:
    """The gap and the risk that a search expects."""
    search = Search(setting, policy)
    gap = min(found.log_value for found in search.gaps() if not found.certificate.trivial)
    return math.exp(gap), math.exp(min(found.log_value for found in search.risks()))


@pytest.mark.parametrize(
    ("changes", "gap", "risk"),
    [
        ({"depth": 1, "d": 256, "n_train": 10**7, "margin": 0.3}, 0.973, 0.621),
        ({"depth": 1, "d": 16, "n_train": 10**6, "margin": 0.3, "vocabulary": 100}, 1.0, 1.0),
    ],
)
def test_large_tables_would_gain_and_small_ones_would_not(changes: dict[str, Any], gap: float, risk: float) -> None:
    setting = Setting.of(**{"seq_len": 512, "vocabulary": 30_000, **changes})
    before = least(setting, POLICIES["best"])
    LEMMAS.ours(AllRows())
    try:
        now = least(setting, WITH)
    finally:
        del LEMMAS[AllRows.name]
    assert min(1.0, now[0] / before[0]) == pytest.approx(gap, abs=0.005)
    assert min(1.0, now[1] / before[1]) == pytest.approx(risk, abs=0.005)
