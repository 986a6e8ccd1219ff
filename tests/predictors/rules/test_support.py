"""B1 and B2: bounds of heads are never below the truth, and are it where floats see; lines lie below hidden units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from boundcalc.predictors.rules import support
from boundcalc.predictors.rules.hidden import offsets
from boundcalc.predictors.rules.rounded import Directions
from boundcalc.predictors.rules.support import HeadOn, Inputs
from boundcalc.predictors.rules.tables import HeadTable, float_phi, phi, phi_slope
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


def ends(ball: arb) -> tuple[fmpq, fmpq]:
    """The least and the largest number of a ball, exactly."""
    mid, rad = (fmpq(int(m)) * fmpq(2) ** int(e) for m, e in (ball.mid().man_exp(), ball.rad().man_exp()))
    return mid - rad, mid + rad


class Exact:
    """G in fractions, at the worst of all numbers that the balls hold: a sum of convex functions is largest at
    corners."""

    def __init__(self, part: HeadOn, w: Sequence[arb]) -> None:
        self.counts, self.corners = part.inputs.counts, []
        for corner in itertools.product(*map(ends, w)):

            def column(weight: arb, value: Sequence[arb], corner: Any = corner) -> tuple[fmpq, fmpq, fmpq]:
                reach = sum((max(a * x for x in ends(b)) for a, b in zip(corner, value, strict=True)), fmpq(0))
                return *ends(weight), reach

            table, free = part.table, part.inputs.free
            fixed = [(table.own_weight, table.own_value)]
            fixed += [(table.weights[c][t], table.values[c][t]) for t, c in part.inputs.fixed]
            sides = [[column(table.weights[c][t], table.values[c][t]) for t in free] for c in (0, 1)]
            self.corners.append(([column(*each) for each in fixed], *sides))

    def at(self, value: float, theta: float) -> fmpq:
        at, turn = (fmpq(*number.as_integer_ratio()) for number in (value, theta))

        def alpha(column: tuple[fmpq, fmpq, fmpq]) -> fmpq:
            return max(e * (column[2] - at) for e in column[:2])

        counted = max(count * turn for count in self.counts)
        return counted + max(
            sum((alpha(c) for c in fixed), fmpq(0))
            + sum((max(alpha(a), alpha(b) - turn) for a, b in zip(zero, one, strict=True)), fmpq(0))
            for fixed, zero, one in self.corners
        )

    def turns(self, theta: float, size: float) -> float:
        """The least float with G <= 0."""
        low, high = -size, size
        while low < (low + high) / 2 < high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.at(middle, theta) > 0 else (low, middle)
        return high


def wide(table: HeadTable, weights: float, values: float) -> HeadTable:
    """The head with balls of these relative radii; 0: as they are."""

    def widened(ball: arb, radius: float) -> arb:
        return arb(ball.mid(), abs(ball.mid()) * radius) if radius else ball

    return replace(
        table,
        weights=tuple([widened(e, weights) for e in side] for side in table.weights),
        values=tuple([[widened(x, values) for x in row] for row in side] for side in table.values),
        own_weight=widened(table.own_weight, weights),
        own_value=[widened(x, values) for x in table.own_value],
    )


@pytest.mark.parametrize("spread", [1.0, 150.0, 1500.0])
@pytest.mark.parametrize(
    ("radii", "careless"),
    [
        ((0, 0, 0), {"off": 0.0, "relative": 0.0, "half": 0.0}),
        ((1e-6, 0, 0), {"relative": 0.0}),
        ((0, 1e-6, 0), {"relative": 0.0}),
        ((0, 0, 1e-6), {"off": 0.0}),
        ((0.02, 0.01, 0.05), {"relative": 0.0, "off": 0.0}),
    ],
)
def test_what_floats_accept_is_true_in_fractions(
    spread: float, radii: tuple[float, float, float], careless: dict[str, float], monkeypatch: pytest.MonkeyPatch
):
    """Values as close to the least true one as floats are; the same code without one of its errors accepts false
    ones."""
    accepted, false = 0, 0
    for seed in range(3 if any(radii) else 12):
        g = np.random.default_rng(seed)
        scores, values, own_score, own_value, inputs, w = case(seed, spread)
        table, floats = head(scores, values * 10.0 ** g.integers(-3, 4), own_score, own_value)
        part = on(wide(table, *radii[:2]), floats, inputs)
        row = [arb(a, abs(a) * radii[2]) for a in (w[0] * 10.0 ** g.integers(-3, 4)).tolist()]
        directions, exact = Directions([row]), Exact(part, row)
        best = float(part.guesses(directions.floats)[1][0])
        size = 9.0 * (1 + np.abs(directions.floats).sum() * np.abs(floats.v).max())
        for theta in (best, 0.0, 1e6 * best + 1e4):
            if exact.at(size, theta) > 0:
                continue
            turn = exact.turns(theta, size)
            near = [turn - s * abs(turn) * 2.0**-k for s in (-1, 1) for k in (52, 49, 46, 40, 24, 20, 8, 2)]
            tried = np.array([turn, *(turn - size * 2.0**-k for k in (60, 58, 57, 56, 55, 54)), *near, size, 9 * size])
            true = np.array([exact.at(value, theta) <= 0 for value in tried.tolist()])
            at = np.broadcast_to(directions.floats, (len(tried), 3)), np.full(len(tried), theta)
            off = np.full(len(tried), directions.off[0])
            taken = part._holds_in_floats(at[0], off, tried, at[1])
            assert not (taken & ~true).any()
            accepted += int(taken.sum())
            monkeypatch.setattr(support, "HALF", careless.get("half", support.HALF))
            relative = careless.get("relative", part.table.rounded.relative)
            monkeypatch.setattr(part.table.rounded, "relative", relative)
            taken = part._holds_in_floats(at[0], off * careless.get("off", 1.0), tried, at[1])
            monkeypatch.undo()
            false += int((taken & ~true).sum())
    assert accepted > 5
    assert false > 0


def test_wide_balls_are_left_to_ball_arithmetic():
    """The error of a product is proved for relative errors up to 1/8."""
    for radius, wide_ in ((0.06, False), (0.13, True)):
        table = wide(head(*two_layers(1.0))[0], radius, 0)
        assert math.isinf(table.rounded.relative) == wide_


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
