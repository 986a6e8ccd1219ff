"""What does not pay, by the numbers of docs/theory.md: covers of deep LayerNorm models."""

from __future__ import annotations

import math

import pytest

from boundcalc.base.intervals import INTERVAL, upper_log
from boundcalc.engine.solve import solve
from boundcalc.layers.base import of_class
from boundcalc.setting import LayerNorm, Setting
from boundcalc.statements.network import Network


def mean_gain(setting: Setting) -> float:
    """Log of how much the loss stretches an error of a weight's map, on average over the weights."""
    total, count = 0.0, 0
    for piece in Network(setting, INTERVAL).pieces:
        for member in piece.members:
            target = min(member.targets, key=lambda each: each.size)
            number = member.multiplicity * min(target.size, target.norms.rank * (target.d + target.k))
            total, count = total + number * upper_log(piece.gain), count + number
    return total / count


@pytest.mark.parametrize(
    ("preset", "gain", "of_norms", "m", "counted"),
    [("bert", 259.4, 0.79, 1.49e12, 1.215e11), ("gpt2", 145.8, 0.63, 9.76e11, 1.38e11)],
)
def test_what_dominates(preset: str, gain: float, of_norms: float, m: float, counted: float) -> None:
    setting = Setting.of(preset, margin=0.5)
    assert mean_gain(setting) == pytest.approx(gain, rel=1e-3)
    norms = list(of_class(setting.architecture.stages, LayerNorm))
    steep = sum(math.log(1 / math.sqrt(norm.eps)) for norm in norms)
    assert steep / upper_log(Network(setting, INTERVAL).amplification) == pytest.approx(of_norms, abs=0.01)
    assert solve(setting, "m", 0.1, digits=3).value <= m
    for bits, part in ((32, 1.0), (16, 0.5)):  # `boundcalc solve --for m --preset bert --bits 32`
        assert solve(setting.but(bits=bits), "m", 0.1, digits=4).value == pytest.approx(part * counted, rel=1e-3)
