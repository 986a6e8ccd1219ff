"""B2: lines below hidden units lie below them, and bounds of the output below every value of a small network."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb

from boundcalc.predictors.rules.hidden import offsets
from boundcalc.predictors.rules.tables import float_phi, phi, phi_slope


@pytest.mark.parametrize("name", ["gelu", "relu"])
def test_offsets_lie_below_and_touch(name: str):
    random = np.random.default_rng(1)
    for _ in range(60):
        n = 8
        g = random.standard_normal(n) * random.choice([1e-3, 1.0, 30.0])
        a = g * random.uniform(-0.5, 1.5, n)
        ends = np.sort(random.standard_normal((n, 2)) * random.choice([0.1, 2.0, 30.0], (n, 1)), 1)
        low, high = ends[:, 0], ends[:, 1]
        found = np.array(
            [float(b) for b in offsets(name, [arb(x) for x in g], a.tolist(), low.tolist(), high.tolist())]
        )
        z = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 4001)
        least = (g[:, None] * float_phi(name, z) - a[:, None] * z).min(1)
        size = np.abs(g) + np.abs(a)
        assert (found <= least + 1e-12 * size * (1 + np.abs(ends).max(1))).all()
        assert (found >= least - 2e-3 * size * (1 + np.abs(ends).max(1))).all()


def test_offsets_of_unknown_sign_and_of_what_is_no_interval():
    both = arb(0.0, 1e-3)
    assert float(offsets("gelu", [both], [0.5], [-2.0], [4.0])[0].lower()) <= -2.0 - 4e-3 + 1e-9
    for bad in ((math.nan, 0.0, 1.0), (0.0, math.nan, 1.0), (0.0, 0.0, math.inf), (0.0, 1.0, 0.0)):
        for name in ("gelu", "relu"):
            assert not bool(offsets(name, [arb(1)], [bad[0]], [bad[1]], [bad[2]])[0] > -1e300)


def test_gelu_and_its_slope():
    for z in (-9.0, -1.5, -0.1, 0.0, 0.7, math.sqrt(2), 6.0):
        exact = z * 0.5 * math.erfc(-z / math.sqrt(2))
        assert abs(float(phi("gelu", arb(z)).mid()) - exact) <= 1e-15 * (1 + abs(z))
        rise = (phi("gelu", arb(z + 1e-12)) - phi("gelu", arb(z - 1e-12))) / 2e-12
        assert abs(float((rise - phi_slope(arb(z))).mid())) < 1e-3
