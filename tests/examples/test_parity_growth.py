"""Growth of a waiting time, on times whose law is known and which are seen at looks only, until there are no more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import NoSolution
from tests.examples.scripts import load

module = load("edelman2022", "parity_growth")
Waited, _within, growth = module.Waited, module._within, module.growth

LENGTHS = (10, 20, 30, 40, 60)
TRUE, LOOK, LAST = 1.5, 25.0, 2000.0


def seen(seed: int, n: int = 10, spread: float = 0.9) -> dict[float, list[Any]]:
    """Trials at every length: a quarter to a half of those at the longest do not learn in time."""
    rng = np.random.default_rng(seed)
    return {T: [_look(5 * T**TRUE * math.exp(spread * rng.standard_normal())) for _ in range(n)] for T in LENGTHS}


def _look(step: float) -> Any:
    until = LOOK * math.ceil(step / LOOK)
    return Waited(until - LOOK, until) if until <= LAST else Waited(LAST, math.inf)


@pytest.mark.parametrize("runs", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_intervals_cover_and_those_that_leave_out_who_never_learned_do_not(runs: int) -> None:
    hits, blind = 0, 0
    for seed in range(runs):
        found = seen(seed)
        law = growth(found, draws=200, seed=seed)
        hits += law.low <= TRUE <= law.high
        learned = {T: [one for one in some if math.isfinite(one.until)] for T, some in found.items()}
        only = {T: some for T, some in learned.items() if some}
        without = growth(only, draws=200, seed=seed)
        blind += without.low <= TRUE <= without.high
    assert hits >= 0.88 * runs  # bootstrap intervals of fifty trials are a little short
    assert blind < 0.6 * runs


def test_the_law_is_found() -> None:
    law = growth(seen(0, n=400), draws=100)
    assert law.exponent == pytest.approx(TRUE, abs=0.08)
    assert law.spread == pytest.approx(0.9, rel=0.05)
    assert law(20) == pytest.approx(5 * 20**TRUE, rel=0.1)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.5), (0.3, math.inf), (-2.0, -1.0), (1.0, 1.1), (4.0, math.inf)])
def test_moments_of_what_is_known_to_lie_between(low: float, high: float) -> None:
    """Against sums over a fine grid."""
    x = np.linspace(low, min(high, low + 12), 400_001)
    weight = np.exp(-(x**2 - low**2) / 2)
    mean = float((x * weight).sum() / weight.sum())
    variance = float(((x - mean) ** 2 * weight).sum() / weight.sum())
    found = _within(np.zeros(1), np.ones(1), np.array([low]), np.array([high]))
    assert found[0][0] == pytest.approx(mean, abs=2e-5)
    assert found[1][0] == pytest.approx(variance, rel=5e-3)


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(NoSolution, match="two lengths"):
        growth({10: [Waited(0, 25)]})
    with pytest.raises(NoSolution, match="train longer"):
        growth({10: [Waited(0, 25)], 20: [Waited(100, math.inf)]})


def test_networks_that_never_learn_are_drawn_as_arrows_at_the_budget() -> None:
    """Not as steps: the median of ten seeds of which five learn is no number."""
    pytest.importorskip("matplotlib")
    from boundcalc.lab.figures.canvas import house_style, sheet
    from boundcalc.lab.figures.data import Figure, Series

    one = Series("s = 3", "measured", "steps", (10.0, 20.0), (100.0, None), (50.0, 300.0), (400.0, None))
    facts = {"laws": {}, "learned": {"3": [[10, 10], [5, 10]]}, "budget": 6000}
    with house_style():
        figure = Figure("parity", series=(one,), facts=facts)
        _, (axes,) = sheet(figure)
        module.draw_growth(axes, figure)
    marks = [(line.get_marker(), line.get_ydata()[0]) for line in axes.lines if line.get_marker() not in ("None", "")]
    assert [mark for mark, _ in marks] == ["o", "^"]
    assert marks[1][1] > 6000
    assert "5/10" in [text.get_text() for text in axes.texts]
