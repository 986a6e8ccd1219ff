"""m* and its fits, on counts whose truth is known. NumPy alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.examples.scripts import load

module = load("edelman2022", "thresholds")
Bend, Cell, analyse, measure = module.Bend, module.Cell, module.analyse, module.measure

LENGTHS = (32, 64, 128, 256, 512, 1024)


NEAR, NEARER = (0.5, 0.65, 0.8, 1.0, 1.25, 1.6, 2.0), (0.7, 0.85, 1.0, 1.2, 1.45)


def counts(truth: dict[int, float], n: int = 40, seed: Any = 0, factors: tuple[float, ...] = NEAR) -> list[Any]:
    """Trials that succeed with a logistic probability in log m, 80% at the true m*, at m near it."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for T, star in truth.items():
        for factor in factors:
            m = round(star * factor)
            p = 1 / (1 + math.exp(-(math.log(4) + 8 * math.log(m / star))))
            found.append(Cell(T, m, n, int(rng.binomial(n, p))))
    return found


@pytest.mark.parametrize("runs", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_m_star_is_found_and_its_intervals_cover(runs: int) -> None:
    hits, total = 0, 0
    for seed in range(runs):
        truth = {64: 50.0, 256: 90.0}
        for t in analyse(counts(truth, seed=seed), draws=200, seed=seed).thresholds:
            hits += t.low <= truth[t.T] <= t.high
            total += 1
            assert 0.75 < t.m_star / truth[t.T] < 1.3
    assert hits / total > 0.85


def test_a_logarithm_and_a_power_are_recognised() -> None:
    log = analyse(counts({T: 8.0 * math.log2(T) for T in LENGTHS}, n=400), draws=200)
    assert log.fit("log").b == pytest.approx(8.0, rel=0.15)
    assert log.exponent[1] < 0.35
    assert log.fit("linear").aic > log.fit("log").aic + 4
    power = analyse(counts({T: 3.0 * T**0.72 for T in LENGTHS}, n=400), draws=200)
    fit = power.fit("power")
    low, high = power.exponent
    assert 0.5 < low < 0.72 < high
    assert fit.aic == min(f.aic for f in power.fits)


def test_a_law_is_not_called_worse_for_what_noise_explains() -> None:
    """The AIC of the true law exceeds the least by 4 as rarely as chance allows, although others fit the noise."""
    blamed = 0
    for seed in range(40):
        found = analyse(counts({T: 8.0 * math.log2(T) for T in LENGTHS}, seed=seed), draws=100, seed=seed)
        blamed += found.fit("log").aic - min(fit.aic for fit in found.fits) >= 4
    assert blamed <= 3


@pytest.mark.parametrize("runs", [16, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "truth"), [("power", lambda T: 17.3 * T**0.2), ("log", lambda T: 0.8 + 6.6 * math.log2(T))]
)
def test_the_bend_tells_a_power_from_a_logarithm(name: str, truth: Callable[[int], float], runs: int) -> None:
    """The test fixed in docs/learning.md, on simulated trials like those of conjunction-long."""
    verdicts: list[str] = []
    for seed in range(runs):
        found = counts({T: truth(T) for T in (*LENGTHS, 2048, 4096)}, seed=[seed, 5], factors=NEARER)
        bend = analyse(found, draws=200, seed=seed).bend
        assert bend is not None
        verdicts.append(bend.verdict)
    other = {"power": "log", "log": "power"}[name]
    assert verdicts.count(name) >= 0.6 * runs
    assert verdicts.count(other) + verdicts.count("neither") <= (3 if runs == 16 else 0.08 * runs)  # 0.05 may


def test_the_bend_of_exact_laws_is_theirs() -> None:
    lengths = np.array([32.0, 64, 128, 256, 512, 1024, 2048, 4096])
    power, log = np.log(3 * lengths**0.7), np.log(0.8 + 6.6 * np.log2(lengths))
    for logs, bent, beyond in ((power, 0.0, 0.49), (log, -0.0307, 0.0)):
        found = measure(lengths.tolist(), logs, logs[None], np.full(8, 0.04))
        assert found.bend == pytest.approx(bent, abs=0.003)
        assert found.beyond == pytest.approx(beyond, abs=0.003)
    assert Bend(0.2, 0.0, -0.1, 0.1, 0.04, -0.06, 0.14).verdict == "open"
    assert Bend(0.2, 0.1, 0.05, 0.15, 0.14, 0.09, 0.2).verdict == "neither"
    assert analyse(counts({32: 30.0, 64: 36.0, 128: 42.0}), draws=50).bend is None
