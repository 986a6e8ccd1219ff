"""V4: noise on a hidden layer, seen through the sum of its units, by drawing it; and what is dropped is missed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from boundcalc.base.errors import CertificateError
from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints.forward import ACTIVATIONS
from boundcalc.engine.evaluate import evaluate
from boundcalc.layers import merged as rule
from boundcalc.layers.activation import ACTIVATION_LIPSCHITZ
from boundcalc.layers.facts import Context
from boundcalc.proof.checker import verify
from boundcalc.setting import Architecture, Budget, Hidden, Norms, Sample, Setting
from boundcalc.statements.network import claimed as facts
from boundcalc.statements.noises import events, spread
from boundcalc.statements.targets import Target
from boundcalc.statements.weights import Weights
from boundcalc.testing._drawing import projected
from tests.proof import alone

Array = NDArray[np.float64]
Move = Callable[[str, int, float, float, float, float], float]
KNOWN = [*rule._CURVATURE, *rule._KINKED]
DRAWS = 20_000
RNG = np.random.default_rng(8)


def move(activation: str, units: int, reach: float, size: float, seen: float, t: float) -> float:
    """V4: how far noise `seen` in a unit moves the sum of the units, but for a chance of 2 e^(-t^2/2)."""
    slope = ACTIVATION_LIPSCHITZ[activation]
    added = rule.averaged(FLOAT, activation, slope, units, reach)
    assert added is not None
    return slope * size * seen * (t + added[0] + added[1] * seen)


def cases(activation: str, units: int, reach: float) -> list[tuple[Array, Array]]:
    """Rows before the activation and columns v: at the kink or bend, at the edge of the ball, anywhere."""
    flat = np.ones(units) / math.sqrt(units)
    one = np.eye(units)[0]
    anywhere = projected(RNG.standard_normal((1, units)) * reach, reach)[0]
    spread_out = RNG.standard_normal(units)
    return [
        (np.zeros(units), flat),
        (reach * flat, flat),
        (reach * flat, -flat),
        (reach * one, one),
        (reach * one, -one),
        (anywhere, spread_out / np.linalg.norm(spread_out)),
    ]


def too_often(activation: str, rule_of: Move) -> list[str]:
    """Where the noise moves the sum farther than is said with more than the chance that is said."""
    found: list[str] = []
    act = ACTIVATIONS[activation]
    for units, reach, seen in itertools.product((2, 40), (0.5, 20.0), (0.02, 0.4)):
        for z, v in cases(activation, units, reach):
            g = RNG.standard_normal((DRAWS // units, units))
            at = projected(act(z[None] + seen * g), reach) @ v - float((act(z[None]) @ v)[0])
            for t in (1.5, 2.5):
                chance = 2 * math.exp(-(t**2) / 2)
                share = float(np.mean(np.abs(at) > rule_of(activation, units, reach, 1.0, seen, t)))
                if share > chance + 5 * math.sqrt(chance / len(g)):
                    found.append(f"units {units}, reach {reach}, noise {seen}, t {t}: {share:.3g} > {chance:.3g}")
    return found


@pytest.mark.parametrize("activation", [name for name in KNOWN if name != "quick_gelu"])
def test_the_sum_of_units_moves_no_farther(activation: str) -> None:
    assert too_often(activation, move) == []


def mean_moves(activation: str, units: int, reach: float, seen: float) -> float:
    """How much farther the mean of the sum moves than V4 says of it: no concentration hides its terms."""
    act, known = (
        ACTIVATIONS[activation],
        rule.averaged(FLOAT, activation, ACTIVATION_LIPSCHITZ[activation], units, reach),
    )
    assert known is not None
    allowed = ACTIVATION_LIPSCHITZ[activation] * seen * (known[0] + known[1] * seen)
    worst = -math.inf
    for z, v in cases(activation, units, reach):
        g = RNG.standard_normal((DRAWS, units))
        moved = projected(act(z[None] + seen * g), reach) @ v - float((act(z[None]) @ v)[0])
        noise = 4 * float(moved.std()) / math.sqrt(DRAWS)
        worst = max(worst, abs(float(moved.mean())) - noise - allowed)
    return worst


@pytest.mark.parametrize("activation", ["relu", "identity", "gelu"])
def test_the_mean_moves_no_farther(activation: str) -> None:
    for units, reach, seen in ((2, 20.0, 0.02), (2, 0.5, 0.02), (40, 20.0, 0.02), (40, 20.0, 0.4)):
        assert mean_moves(activation, units, reach, seen) <= 0


def test_without_the_kinks_it_does() -> None:
    def dropped(activation: str, units: int, reach: float, size: float, seen: float, t: float) -> float:
        return move("identity", units, reach, size, seen, t)

    assert too_often("relu", dropped)


def test_without_curvature_it_does() -> None:
    """Many units at the bend of GELU: their mean alone moves the sum by M s^2 sqrt(k)/2."""
    units, seen = 10_000, 0.5
    flat = np.ones(units) / math.sqrt(units)
    moved = float((ACTIVATIONS["gelu"](seen * RNG.standard_normal((8, units))) @ flat).mean())
    assert moved > move("identity", units, 1e9, 1.0, seen, 2.5)
    assert moved <= move("gelu", units, 1e9, 1.0, seen, 2.5)


@pytest.mark.parametrize("activation", rule._CURVATURE)
def test_no_second_derivative_is_larger(activation: str) -> None:
    act = ACTIVATIONS[activation]
    claimed = rule._CURVATURE[activation]
    x = np.linspace(-6, 6, 4001)
    h = 1e-3

    def bend(x: Array) -> Array:
        return np.abs(act(x + h) - 2 * act(x) + act(x - h)) / h**2

    most = float(bend(x).max())
    near = x[int(bend(x).argmax())]
    best: Any = minimize_scalar(
        lambda y: -float(bend(np.array([y]))[0]), bounds=(near - 0.1, near + 0.1), method="bounded"
    )
    assert max(most, -float(best.fun)) <= claimed + 1e-5
    assert claimed == 0 or most >= 0.99 * claimed


def parts(activation: str = "gelu") -> tuple[Target, ...]:
    layer = Hidden("W_1", "v", 4, 30, activation, "b_1")
    norms = Norms(budgets={"W_1": Budget(op=2.0, fro=3.0), "v": Budget(op=0.5), "b_1": Budget(op=0.1)})
    slots = facts(layer, Context(Weights(FLOAT, norms), 1.5, 1, 7)).slots
    assert [slot.kind for slot in slots] == ["W_1", "b_1", "v"]
    return slots[0].members[0].targets


def test_targets_say_what_the_statement_says() -> None:
    row, *summed = parts()
    slope = ACTIVATION_LIPSCHITZ["gelu"]
    assert row.kind == "map"
    assert len(summed) == len(rule.ROOM)
    for target in summed:
        assert target.most is not None
        assert events(target) == 2
        for t in (2.0, 6.0):
            mine = slope * 0.5 * target.most * spread(FLOAT, target, t)
            assert mine == pytest.approx(move("gelu", 30, 1.5 * 2 + 0.1, 0.5, target.most, t))
            assert spread(FLOAT, target, t) < spread(FLOAT, row, t) or t == 2.0
    assert [t.kind for t in parts("gelu_tanh")] == ["map"]


def test_the_search_sees_the_noise_through_the_sum() -> None:
    """Of many units it is cheaper so, and both checkers follow."""
    layers = (Hidden("W_1", "v", 16, 256, "gelu"),)
    norms = Norms(budgets={"W_1": Budget(op=5.0, fro=12.0), "v": Budget(op=2.0)})
    setting = Setting(Architecture(seq_len=1, layers=layers), norms, Sample(10**6, margin=1.0))
    found = evaluate(setting)
    certificate = found.risk_certificate
    assert certificate is not None
    assert certificate.strategy == "noise-margin"
    (choice,) = certificate.levels[0].covers["W_1"].choices
    assert choice.target > 0
    assert found.log_risk == pytest.approx(float(alone.log_value(certificate)), abs=1e-9)
    as_row = replace(choice, target=0)
    covers = {**certificate.levels[0].covers}
    covers["W_1"] = replace(covers["W_1"], choices=(as_row,))
    forged = replace(certificate, levels=(replace(certificate.levels[0], covers=covers),))
    with pytest.raises(CertificateError):
        verify(forged)
