"""B1 and B2: bounds of heads are never below the truth, and are it where floats see; lines lie below hidden units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_mat, fmpq

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules import heads
from boundcalc.predictors.rules._hidden import float_phi, offset
from boundcalc.predictors.rules.heads import Heads, HeadsOn, Inputs, weights_of_scores
from tests.predictors.rules.networks import all_inputs

T = 10
ONE = np.ones((1, 1))


def head(scores: Array, values: Array, radii: tuple[float, float] = (0, 0)) -> tuple[arb_mat, arb_mat]:
    """The weights and values of a head at 2 T + 1 places, in balls with these relative radii beside their own."""

    def widened(ball: arb, radius: float) -> arb:
        return arb(ball.mid(), ball.rad() + abs(ball.mid()) * radius)

    weights = weights_of_scores(list(map(arb, scores.tolist()))).entries()
    return (
        arb_mat([[widened(e, radii[0])] for e in weights]),
        arb_mat([[widened(arb(v), radii[1]) for v in row] for row in values.tolist()]),
    )


def on(inputs: Inputs, weights: arb_mat, values: arb_mat) -> HeadsOn:
    """This one head on a set of inputs."""
    return HeadsOn(Heads.of([weights], [values]), [inputs])


def largest_by_listing(scores: Array, values: Array, w: Array, inputs: Inputs) -> Array:
    """The largest <w, p(x)> over the inputs, each listed, in extended precision; one per row of w."""
    e, x = np.exp((scores - scores.max()).astype(np.longdouble)), all_inputs(T)
    counted = (x.sum(1) >= inputs.low) & (x.sum(1) <= inputs.high)
    x = x[np.all([counted, *(x[:, t] == c for t, c in inputs.fixed.items())], axis=0)]
    places = np.concatenate([np.arange(T) + T * x, np.full((len(x), 1), 2 * T)], 1)
    mass, rows = e[places], values[places].astype(np.longdouble)
    return ((mass[..., None] * rows).sum(1) / mass.sum(1)[:, None] @ w.T.astype(np.longdouble)).max(0)


def holds(part: HeadsOn, w: Array, values: Any, thetas: Any, off: float = 0.0) -> Array:
    """Which of these bounds hold, for directions off by so much."""
    shape = (1, len(w))
    return part.holds(w[None], np.full(shape, off), np.reshape(values, shape), np.broadcast_to(thetas, shape))[0]


def bounds(part: HeadsOn, w: Array) -> Array:
    return part.bounds(w[None], np.zeros((1, len(w))))[0]


def case(seed: int, spread: float):
    """A random head, a set of inputs with counts and fixed positions, and directions."""
    g = np.random.default_rng(seed)
    scores = g.random(2 * T + 1)
    scores = spread * (np.round(scores) if seed % 3 == 0 else scores)  # two layers, far apart
    values = g.standard_normal((2 * T + 1, 3))
    values = np.round(values) if seed % 4 == 0 else values
    fixed = {int(t): int(g.integers(2)) for t in g.permutation(T)[: g.integers(0, 4)]}
    low, high = sorted((g.integers(0, T - len(fixed) + 1, 2) + sum(fixed.values())).tolist())
    if seed % 2:
        low, high = 0, T
    return scores, values, Inputs(T, fixed, low, high), g.standard_normal((12, 3))


@pytest.mark.parametrize("spread", [1.0, 20.0, 150.0, 400.0, 800.0, 5000.0])
def test_no_bound_lies_below_the_largest_value_of_all_inputs(spread: float):
    for seed in range(25):
        scores, values, inputs, w = case(seed, spread)
        truth, bound = largest_by_listing(scores, values, w, inputs), bounds(on(inputs, *head(scores, values)), w)
        assert np.isfinite(bound).all()
        assert (bound >= truth - 1e-15).all(), (seed, spread)
        if spread <= 400:
            assert (bound <= truth + 1e-8 * (1 + abs(truth))).all(), (seed, spread)


def two_layers(gap: float) -> HeadsOn:
    """Zeros weigh 1 and are worth 0; ones weigh exp(-gap) and are worth 1; so does the row that is read."""
    worth = np.repeat([0.0, 1.0], [T, T + 1])
    return on(Inputs(T, {}, 0, T), *head(-gap * worth, worth[:, None]))


@pytest.mark.parametrize("gap", [50.0, 400.0, 740.0, 800.0, 5000.0])
def test_layers_of_tiny_weight_are_not_missed(gap: float):
    """The search for the largest quotient stops at one zero among ones unless it looks a little higher."""
    part = two_layers(gap)
    assert 1.0 <= bounds(part, ONE)[0] <= 1 + 1e-8
    for value in (0.0, 1e-12, 0.5, 1 - 1e-9):
        assert not holds(part, ONE, [value], 0.0)[0]
    assert holds(part, ONE, [1 + 1e-9], 0.0)[0] == (gap <= 800)


def test_what_is_not_a_number_is_refused():
    part = two_layers(1.0)
    for value, theta in ((math.nan, 0.0), (math.inf, 0.0), (2.0, math.nan)):
        assert not holds(part, ONE, [value], theta)[0]
    for bad in (math.nan, math.inf):
        assert not holds(part, bad * ONE, [2.0], 0.0)[0]
        assert bounds(part, bad * ONE).tolist() == [math.inf]
    assert holds(part, np.ones((2, 1)), [2.0, math.nan], 0.0).tolist() == [True, False]


def ends(ball: arb) -> tuple[fmpq, fmpq]:
    """The least and the largest number of a ball, exactly."""
    mid, rad = (fmpq(int(m)) * fmpq(2) ** int(e) for m, e in (ball.mid().man_exp(), ball.rad().man_exp()))
    return mid - rad, mid + rad


class Exact:
    """G in fractions, at the worst of all numbers that the balls hold: a sum of convex functions is largest at
    corners."""

    def __init__(self, inputs: Inputs, weights: arb_mat, values: arb_mat, w: Sequence[arb]) -> None:
        self.counts, self.corners = inputs.counts, []
        for corner in itertools.product(*map(ends, w)):

            def column(weight: arb, value: Sequence[arb], corner: Any = corner) -> tuple[fmpq, fmpq, fmpq]:
                reach = sum((max(a * x for x in ends(b)) for a, b in zip(corner, value, strict=True)), fmpq(0))
                return *ends(weight), reach

            free, fixed = inputs.places
            zero, one = free[: len(free) // 2], free[len(free) // 2 :]
            columns = list(map(column, weights.entries(), values.tolist()))
            self.corners.append([[columns[place] for place in places] for places in (fixed, zero, one)])

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


@pytest.mark.parametrize("spread", [1.0, 150.0, 1000.0])
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
        scores, values, inputs, w = case(seed, spread)
        balls = head(scores, values * 10.0 ** g.integers(-3, 4), radii[:2])
        part, w = on(inputs, *balls), w[:1] * 10.0 ** g.integers(-3, 4)
        row = [arb(a, abs(a) * radii[2]) for a in w[0].tolist()]
        off, exact = radii[2] * np.abs(w).sum(), Exact(inputs, *balls, row)
        best = float(part.largest(w[None, None])[1][0, 0, 0])
        size = 9.0 * (1 + np.abs(w).sum() * np.abs(part.heads.values).max())
        for theta in (best, 0.0, 1e6 * best + 1e4):
            if exact.at(size, theta) > 0:
                continue
            turn = exact.turns(theta, size)
            near = [turn - s * abs(turn) * 2.0**-k for s in (-1, 1) for k in (52, 49, 46, 40, 24, 20, 8, 2)]
            tried = np.array([turn, *(turn - size * 2.0**-k for k in (60, 58, 57, 56, 55, 54)), *near, size, 9 * size])
            true = np.array([exact.at(value, theta) <= 0 for value in tried.tolist()])
            at = np.broadcast_to(w, (len(tried), 3))
            taken = holds(part, at, tried, theta, off * (1 + 1e-9))
            assert not (taken & ~true).any()
            accepted += int(taken.sum())
            monkeypatch.setattr(heads, "HALF", careless.get("half", heads.HALF))
            monkeypatch.setattr(
                part, "heads", replace(part.heads, relative=part.heads.relative * careless.get("relative", 1.0))
            )
            taken = holds(part, at, tried, theta, off * careless.get("off", 1.0))
            monkeypatch.undo()
            false += int((taken & ~true).sum())
    assert accepted > 5
    assert false > 0


def test_wide_balls_decide_nothing():
    """The error of a product is proved for relative errors up to 1/8."""
    for radius, wide in ((0.06, False), (0.13, True)):
        worth = np.repeat([0.0, 1.0], [T, T + 1])
        part = on(Inputs(T, {}, 0, T), *head(worth, worth[:, None], (radius, 0)))
        assert math.isinf(part.heads.relative[0]) == wide
        assert math.isinf(bounds(part, ONE)[0]) == wide


@pytest.mark.parametrize("name", ["gelu", "relu"])
def test_offsets_lie_below_and_touch(name: str):
    random = np.random.default_rng(1)
    for _ in range(60):
        n = 8
        g = random.standard_normal(n) * random.choice([1e-3, 1.0, 30.0])
        a = g * random.uniform(-0.5, 1.5, n)
        ends = np.sort(random.standard_normal((n, 2)) * random.choice([0.1, 2.0, 30.0], (n, 1)), 1)
        low, high = ends[:, 0], ends[:, 1]
        units = zip(map(arb, g.tolist()), a.tolist(), low.tolist(), high.tolist(), strict=True)
        found = np.array([float(offset(name, *unit)) for unit in units])
        z = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 4001)
        least = (g[:, None] * float_phi(name, z) - a[:, None] * z).min(1)
        size = np.abs(g) + np.abs(a)
        assert (found <= least + 1e-12 * size * (1 + np.abs(ends).max(1))).all()
        assert (found >= least - 2e-3 * size * (1 + np.abs(ends).max(1))).all()


def test_offsets_of_unknown_sign_and_of_what_is_no_interval():
    both = arb(0.0, 1e-3)
    assert float(offset("gelu", both, 0.5, -2.0, 4.0).lower()) <= -2.0 - 4e-3 + 1e-9
    for bad in ((math.nan, 0.0, 1.0), (0.0, math.nan, 1.0), (0.0, 0.0, math.inf), (0.0, 1.0, 0.0)):
        for name in ("gelu", "relu"):
            assert not bool(offset(name, arb(1), *bad) > -1e300)
