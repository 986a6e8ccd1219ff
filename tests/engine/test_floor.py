"""What does not pay, by the numbers of docs/theory.md: deep LayerNorm models, and separate maps for scores."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from boundcalc.base.intervals import INTERVAL, upper_log
from boundcalc.engine.search import Search
from boundcalc.engine.solve import solve
from boundcalc.layers.base import of_class
from boundcalc.setting import Architecture, Attention, Budget, LayerNorm, Normaliser, Setting
from boundcalc.statements.network import Network
from boundcalc.theorems.policies import POLICIES
from tests.soundness.network import merged


def mean_gain(setting: Setting) -> float:
    """Log of how much the loss stretches an error of a weight's map, on average over the weights."""
    total, count = 0.0, 0
    for piece in Network(setting, INTERVAL).pieces:
        for member in piece.members:
            target = min(member.targets, key=lambda each: each.size)
            number = member.multiplicity * min(target.size, target.norms.rank * (target.d + target.k))
            total, count = total + number * upper_log(piece.gain), count + number
    return total / count


def normalisations(setting: Setting) -> int:
    return len(list(of_class(setting.architecture.stages, LayerNorm)))


@pytest.mark.parametrize(
    ("preset", "gain", "of_norms", "m", "counted"),
    [("bert", 259.4, 0.79, 1.49e12, 1.215e11), ("gpt2", 145.8, 0.63, 9.76e11, 1.38e11)],
)
def test_what_dominates(preset: str, gain: float, of_norms: float, m: float, counted: float) -> None:
    setting = Setting.of(preset, margin=0.5)
    assert mean_gain(setting) == pytest.approx(gain, rel=1e-3)
    (eps,) = {layer.eps for layer in of_class(setting.architecture.stages, LayerNorm)}
    steep = normalisations(setting) * math.log(1 / math.sqrt(eps))
    assert steep / upper_log(Network(setting, INTERVAL).amplification) == pytest.approx(of_norms, abs=0.01)
    assert solve(setting, "m", 0.1, digits=3).value <= m
    for bits, part in ((32, 1.0), (16, 0.5)):  # `boundcalc solve --for m --preset bert --bits 32`
        assert solve(setting.but(bits=bits), "m", 0.1, digits=4).value == pytest.approx(part * counted, rel=1e-3)


def least(setting: Setting) -> float:
    """Log of the least gap by covers."""
    search = Search(setting, replace(POLICIES["best"], comparison=False))
    return min(candidate.log_value for candidate in search.candidates("gap"))


def test_separate_maps_for_products_of_scores_cost_more() -> None:
    """A6: a query map A W_QK and a key map A, in place of A W_QK A'."""
    setting = Setting.of(depth=2, seq_len=512, n_train=10**6, margin=0.5)
    whole = merged(setting)
    assert whole is not None
    budgets = {key: budget for key, budget in whole.norms.budgets.items() if key != "W_QK[1]"}
    apart = {"W_Q[1]": Budget(op=1.0, two_one=1.0), "W_K[1]": Budget(op=1.0, two_one=1.0)}
    layers = tuple(
        replace(layer, qk="split", d_head=64, normaliser=Normaliser("softmax", 1.0))
        if isinstance(layer, Attention) and layer.block == 1
        else layer
        for layer in whole.architecture.stages
    )
    architecture = Architecture(seq_len=512, layers=layers)
    other = least(Setting(architecture, replace(whole.norms, budgets={**budgets, **apart}), setting.sample))
    assert math.exp(other - least(setting)) == pytest.approx(1.15, abs=0.01)
