"""Theorem objects: their numbers against the checker and against written-out sums, their uses, their refusals."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest

import boundcalc.theorems as theorems
from boundcalc.base.numbers import FLOAT
from boundcalc.setting import Setting
from boundcalc.statements.network import Network

POINT: dict[str, Any] = {"C": 1.5, "m": 10**7, "d": 16, "heads": 2, "gamma": 1, "delta": 0.05}


def test_x5_in_symbolic_depth_is_at_least_the_sum() -> None:
    """X5 of the calculus on the pieces of a network in numbers, a little less (for one block equal: test_closed.py)."""
    setting = Setting.of(C=1.5, depth=4, d=16, heads=2, n_train=10**7, margin=1.0)
    dimensions: list[float] = []
    stretches: list[float] = []
    for piece in Network(setting, FLOAT).pieces:
        (member,) = piece.members
        target = next(t for t in member.targets if t.kind in ("map", "query"))
        dimensions.append(member.multiplicity * target.size)
        stretches.append(2 * piece.gain * target.radius * target.norms.op)
    inverse = float(mpmath.log(20))
    counts = (p * math.log1p(len(stretches) * 10**7 * s) for p, s in zip(dimensions, stretches, strict=True))
    want = 2e-7 + math.sqrt((sum(counts) + inverse) / 2e7)
    values = POINT | {"depth": 4}
    got = theorems.zhang2022.gap.value(**values)
    assert want <= got * (1 + 1e-12)
    assert got == pytest.approx(want, rel=0.05)
    excess = theorems.zhang2022.formula("excess").value(**values)
    assert excess == pytest.approx(got + math.sqrt(inverse / 2e7), rel=1e-12)
    count = theorems.zhang2022.covering_number.value(
        epsilon=1e-7, **{k: v for k, v in values.items() if k in ("C", "d", "heads", "depth")}
    )
    assert got == pytest.approx(2e-7 + math.sqrt((count + inverse) / 2e7), rel=1e-12)
