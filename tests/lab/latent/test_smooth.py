"""A conditional mean that is not linear: the identity, the parts of softmax attention's error, and who finds it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.attention import attend, softmax_weights
from boundcalc.lab.latent.experiments import smooth as experiment
from boundcalc.lab.latent.experiments.smooth import BEST, EXACT, LINEAR, SmoothPlan, smooth, waves
from boundcalc.lab.latent.kernels import Exponential

PLAN = SmoothPlan(lengths=(32, 2048), repetitions=200, seed=5)


def on_circle(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def test_the_truth_has_softmax_s_own_kernel() -> None:
    for sharpness in (0.5, 4.0, 40.0):
        plan = replace(PLAN, sharpness=sharpness)
        last = len(plan.spectrum) - 1
        angles = np.linspace(-3, 3, 7)
        seen = waves(angles, last) * np.sqrt(np.concatenate([plan.spectrum, plan.spectrum[1:]]))
        kernel = np.exp(sharpness * (np.cos(angles[:, None] - angles) - 1))
        assert np.abs(seen @ seen.T - kernel).max() < 1e-11


def test_cme_attention_with_the_exponential_kernel_is_the_posterior_mean() -> None:
    """The features of the experiment against the kernel itself, as a matrix of keys by keys."""
    rng = np.random.default_rng(0)
    keys, query = rng.uniform(-math.pi, math.pi, 40), 0.3
    last = len(PLAN.spectrum) - 1
    scale = np.sqrt(np.concatenate([PLAN.spectrum, PLAN.spectrum[1:]]))
    seen = waves(keys, last)
    values = seen @ (scale * rng.standard_normal(2 * last + 1)) + PLAN.noise * rng.standard_normal(40)
    mean, deviation = experiment._posterior(
        seen.T @ seen, seen.T @ values, waves(np.array(query), last), scale, PLAN.noise
    )
    grown = math.exp(PLAN.sharpness)
    found = attend(
        on_circle(np.array([query])),
        on_circle(keys),
        values[:, None],
        lam=PLAN.noise**2 * grown,
        kernel=Exponential(1 / PLAN.sharpness),
    )
    assert mean == pytest.approx(float(found.mean[0, 0]), abs=1e-9)
    # the prior's variance is that of the kernel e^(-sharpness) k: the share of it that is left
    assert deviation == pytest.approx(math.sqrt(float(found.variance[0]) / grown), rel=1e-9)


@pytest.mark.parametrize("tau", [1.0, 0.25, 0.05])
def test_softmax_attention_tends_to_shrunk_waves(tau: float) -> None:
    rng = np.random.default_rng(1)
    last = len(PLAN.spectrum) - 1
    latent = np.sqrt(np.concatenate([PLAN.spectrum, PLAN.spectrum[1:]])) * rng.standard_normal(2 * last + 1)
    keys = (np.arange(20000) + 0.5) / 20000 * 2 * math.pi  # a grid: the integral, not a sample
    query = np.array([0.7])
    attended = softmax_weights(on_circle(query), on_circle(keys), tau) @ (waves(keys, last) @ latent)[:, None]
    shrunk = np.concatenate([PLAN.shrinkage(tau), PLAN.shrinkage(tau)[1:]])
    assert float(attended[0, 0]) == pytest.approx(float(waves(query, last)[0] @ (shrunk * latent)), abs=1e-9)


def test_who_finds_the_conditional_mean() -> None:
    points = {(point.name, point.length): point for point in smooth(PLAN)}
    for length in PLAN.lengths:
        exact = points[EXACT, length]
        assert exact.expected is not None
        assert exact.error.low <= 1.1 * exact.expected
        assert exact.error.high >= 0.9 * exact.expected  # the posterior is honest about its error
    cold, linear, exact, best = (points[name, 2048] for name in ("softmax, tau = 0.25", LINEAR, EXACT, BEST))
    assert cold.error.low < cold.bias < cold.error.high  # all that is left is bias, and it is the formula's
    assert linear.error.low < linear.bias < linear.error.high
    assert cold.sampling is not None
    assert cold.sampling.high < 0.1 * cold.bias
    assert best.error.high < 0.3 * cold.error.low
    assert exact.error.high < best.error.high
    assert best.tau is not None
    early = points[BEST, 32].tau
    assert early is not None
    assert best.tau < early


def test_a_plan_without_sense_is_refused() -> None:
    for changes in ({"sharpness": 0.0}, {"sharpness": 1e3}, {"taus": (1e-5,)}, {"noise": -1.0}, {"repetitions": 3}):
        with pytest.raises(InvalidSetting):
            replace(PLAN, **changes)
