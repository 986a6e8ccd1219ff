"""V4: noise on a hidden layer, seen through the sum of its units, by drawing it; and what is dropped is missed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints.forward import ACTIVATIONS
from boundcalc.engine.evaluate import evaluate
from boundcalc.layers import merged as rule
from boundcalc.layers.rows import ACTIVATION_LIPSCHITZ
from boundcalc.proof.checker import check
from boundcalc.setting import Architecture, Budget, Hidden, Norms, Sample, Setting
from boundcalc.testing._drawing import Array, projected
from tests.proof import alone
from tests.proof.both import with_choices

Move = Callable[[str, int, float, float, float], float]
UNITS = [name for name in (*rule._CURVATURE, *rule._KINKED) if name != "quick_gelu"]


def move(activation: str, units: int, reach: float, seen: float, t: float) -> float:
    """V4: how far noise `seen` in a unit moves the sum of the units, but for a chance of 2 e^(-t^2/2)."""
    slope = ACTIVATION_LIPSCHITZ[activation]
    added = rule.averaged(FLOAT, activation, slope, units, reach)
    assert added is not None
    return slope * seen * (t + added[0] + added[1] * seen)


def rows_and_columns(rng: np.random.Generator, units: int, reach: float) -> list[tuple[Array, Array]]:
    """Rows before the activation and columns v: at the kink or bend, at the edge of the ball, anywhere."""
    flat, one = np.ones(units) / math.sqrt(units), np.eye(units)[0]
    anywhere, column = projected(reach * rng.standard_normal((1, units)), reach)[0], rng.standard_normal(units)
    edges = [(reach * v, sign * v) for v in (flat, one) for sign in (1, -1)]
    return [(0 * flat, flat), *edges, (anywhere, column / np.linalg.norm(column))]


def escapes(activation: str, rule_of: Move = move) -> list[str]:
    """Where noise moves the sum farther than is said with more than the chance that is said, or in the mean."""
    rng, act, found = np.random.default_rng(8), ACTIVATIONS[activation], list[str]()
    for units, reach, seen in itertools.product((2, 40), (0.5, 20.0), (0.02, 0.4)):
        for z, v in rows_and_columns(rng, units, reach):
            g = rng.standard_normal((10_000, units))
            moved = projected(act(z + seen * g), reach) @ v - act(z) @ v
            if abs(moved.mean()) - 4 * moved.std() / math.sqrt(len(g)) > rule_of(activation, units, reach, seen, 0.0):
                found.append(f"units {units}, reach {reach}, noise {seen}: {moved.mean()} in the mean")
            for t in (1.5, 2.5):
                most, share = (
                    2 * math.exp(-(t**2) / 2),
                    np.mean(abs(moved) > rule_of(activation, units, reach, seen, t)),
                )
                if share > most + 5 * math.sqrt(most / len(g)):
                    found.append(f"units {units}, reach {reach}, noise {seen}, t {t}: {share} > {most}")
    return found


@pytest.mark.parametrize("activation", UNITS)
def test_the_sum_of_units_moves_no_farther(activation: str) -> None:
    assert escapes(activation) == []


def test_without_kinks_or_curvature_it_does() -> None:
    """Many units at the bend of GELU: their mean alone moves the sum by M s^2 sqrt(k)/2."""
    assert escapes("relu", lambda _, *where: move("identity", *where))
    g = np.random.default_rng(8).standard_normal((8, 10_000))
    moved = float((ACTIVATIONS["gelu"](g / 2) / 100).sum(axis=1).mean())
    assert move("identity", 10_000, 1e9, 0.5, 2.5) < moved <= move("gelu", 10_000, 1e9, 0.5, 2.5)


@pytest.mark.parametrize("activation", rule._CURVATURE)
def test_no_second_derivative_is_larger(activation: str) -> None:
    act, x, h = ACTIVATIONS[activation], np.linspace(-6, 6, 120_001), 1e-3
    steepest, claimed = float((np.abs(act(x + h) - 2 * act(x) + act(x - h)) / h**2).max()), rule._CURVATURE[activation]
    assert steepest <= claimed + 1e-5
    assert claimed == 0 or steepest >= 0.99 * claimed


def test_the_search_sees_the_noise_through_the_sum() -> None:
    """Of many units it is cheaper so, and both checkers follow."""
    layers = (Hidden("W_1", "v", 16, 256, "gelu"),)
    norms = Norms(budgets={"W_1": Budget(op=5.0, fro=12.0), "v": Budget(op=2.0)})
    certificate = evaluate(
        Setting(Architecture(seq_len=1, layers=layers), norms, Sample(10**6, margin=1.0))
    ).risk_certificate
    assert certificate.strategy == "noise-margin"
    (choice,) = certificate.levels[0].covers["W_1"].choices
    assert choice.target > 0
    as_row = with_choices(certificate, 0, "W_1", (replace(choice, target=0),))
    values = [check(each).log_value for each in (certificate, as_row)]
    assert values[0] < values[1]
    assert values == [pytest.approx(float(alone.log_value(each)), abs=1e-9) for each in (certificate, as_row)]
