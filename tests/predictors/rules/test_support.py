"""B1 and B2: bounds of heads are never below the truth, and are it where floats see; lines lie below hidden units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import arb

from boundcalc.predictors.rules import support
from boundcalc.predictors.rules.hidden import offsets
from boundcalc.predictors.rules.rounded import Directions
from boundcalc.predictors.rules.support import Inputs
from boundcalc.predictors.rules.tables import float_phi, phi, phi_slope
from tests.predictors.rules.networks import head, largest_by_listing, on

T = 10
ONE = Directions([[arb(1)]])


def balls(w: Any) -> Directions:
    """Rows of floats as directions."""
    return Directions([[arb(float(a)) for a in row] for row in w])


def case(seed: int, spread: float):
    """A random head, a set of inputs with counts and fixed positions, and directions."""
    g = np.random.default_rng(seed)
    scores = spread * g.random((T, 2))
    if seed % 3 == 0:  # two layers, far apart
        scores = spread * np.round(g.random((T, 2)))
    values, own_value = g.standard_normal((T, 2, 3)), g.standard_normal(3)
    if seed % 4 == 0:
        values = np.round(values)
    fixed = tuple((int(t), int(g.integers(2))) for t in g.permutation(T)[: g.integers(0, 4)])
    n = T - len(fixed)
    low, high = sorted(g.integers(0, n + 1, 2).tolist())
    if seed % 2:
        low, high = 0, n
    return (
        scores,
        values,
        float(spread * g.random()),
        own_value,
        Inputs(T, fixed, low, high),
        g.standard_normal((12, 3)),
    )


@pytest.mark.parametrize("spread", [1.0, 20.0, 60.0, 150.0, 400.0, 800.0])
def test_no_bound_lies_below_the_largest_value_of_all_inputs(spread: float):
    for seed in range(25):
        scores, values, own_score, own_value, inputs, w = case(seed, spread)
        truth = largest_by_listing(scores, values, own_score, own_value, w, inputs)
        bound = np.array(on(*head(scores, values, own_score, own_value), inputs).bounds(balls(w)))
        assert np.isfinite(bound).all()
        assert (bound >= truth - 1e-15).all(), (seed, spread)
        if spread <= 300:
            assert (bound <= truth + 1e-8 * (1 + abs(truth))).all(), (seed, spread)


def two_layers(gap: float):
    """Zeros weigh 1 and are worth 0; ones weigh exp(-gap) and are worth 1; so does the row that is read."""
    scores = np.zeros((T, 2))
    scores[:, 1] = -gap
    values = np.zeros((T, 2, 1))
    values[:, 1] = 1.0
    return scores, values, -gap, np.ones(1)


@pytest.mark.parametrize("gap", [50.0, 400.0, 740.0, 760.0, 800.0])
def test_all_ones_are_found_where_a_single_zero_hides_them(gap: float):
    """The search for the largest quotient stops at one zero among ones unless it looks a little higher."""
    bound = on(*head(*two_layers(gap)), Inputs(T, (), 0, T)).bounds(ONE)[0]
    assert 1.0 <= bound < math.inf


@pytest.mark.parametrize("gap", [50.0, 760.0, 800.0])
def test_a_value_below_the_truth_is_refused_however_small_the_weights(gap: float):
    part = on(*head(*two_layers(gap)), Inputs(T, (), 0, T))
    for value in (0.0, 1e-12, 0.5, 1 - 1e-9):
        assert part.holds(ONE, [value], [0.0]) == [False]
    assert part.holds(ONE, [1 + 1e-12], [0.0]) == [True]


def test_what_is_not_a_number_is_refused():
    part = on(*head(*two_layers(1.0)), Inputs(T, (), 0, T))
    for value, theta in ((math.nan, 0.0), (math.inf, 0.0), (2.0, math.nan)):
        assert part.holds(ONE, [value], [theta]) == [False]
    assert part.holds(Directions([[arb.nan()]]), [2.0], [0.0]) == [False]
    assert part.holds(Directions([[arb(1)], [arb(1)]]), [2.0, math.nan], [0.0, 0.0]) == [True, False]
    assert part.bounds(Directions([[arb.nan()]])) == [math.inf]


def test_any_multiplier_gives_a_bound_and_none_a_false_one():
    g = np.random.default_rng(5)
    for seed in range(20):
        scores, values, own_score, own_value, inputs, w = case(2 * seed, 5.0)
        truth = largest_by_listing(scores, values, own_score, own_value, w, inputs)
        part = on(*head(scores, values, own_score, own_value), inputs)
        directions = balls(w)
        for _ in range(5):
            below = truth - np.abs(g.standard_normal(len(w))) * 0.1 - 1e-12
            assert not any(part.holds(directions, below.astype(float).tolist(), g.standard_normal(len(w)).tolist()))


@pytest.mark.parametrize("spread", [1.0, 30.0, 150.0, 700.0, 1500.0])
def test_what_floats_accept_balls_accept(spread: float, monkeypatch: pytest.MonkeyPatch):
    """Values as close to the largest as floats can tell; without their error floats would accept some that are below it."""
    accepted, false = 0, 0
    for seed in range(30):
        g = np.random.default_rng(seed)
        scores, values, own_score, own_value, inputs, w = case(seed, spread)
        part = on(*head(scores, values * 10.0 ** g.integers(-3, 4), own_score, own_value), inputs)
        w = w * 10.0 ** g.integers(-3, 4, (len(w), 1))
        directions = balls(w)
        guess, theta = part.guesses(w)
        step = 2.0**-53 * np.abs(w).sum(1) * np.abs(part.floats.v).max()
        for steps in (-8, -2, -1, -0.5, -0.2, 0, 0.2, 0.5, 1, 8, 64, 1e4, 1e6):
            tried = guess - 1e-10 * (1 + np.abs(guess)) + steps * step
            with np.errstate(all="ignore"):
                taken = part._holds_in_floats(directions.floats, directions.off, tried, theta)
                monkeypatch.setattr(support, "HALF", 0.0)
                monkeypatch.setattr(part.table.rounded, "relative", 0.0)
                careless = part._holds_in_floats(directions.floats, 0 * directions.off, tried, theta)
                monkeypatch.undo()
            held = [part._holds_in_balls(*each) for each in zip(directions.balls, tried, theta, strict=True)]
            assert not (taken & ~np.array(held)).any()
            accepted += int(taken.sum())
            false += int((careless & ~np.array(held)).sum())
    assert accepted > 500
    assert false > 0 or spread >= 700


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
