"""The example of general attention: its constant, its covers, and its bound above what members show."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT
from tests.examples.scripts import load, quick

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load("", "general_attention")


def test_the_constant_is_right_and_tight(example: ModuleType) -> None:
    found = example.largest_ratio(3000, seed=3)
    assert found <= example.POWER * (1 + 1e-9)
    assert found > 0.97 * example.POWER  # a constant 3% smaller would be false, and seen to be


def test_covers_of_the_matrix_cover_the_scores(example: ModuleType) -> None:
    """What `score_cost` says of a tolerance: matrices this near give scores this near, and hardly nearer."""
    rng = np.random.default_rng(0)
    worst = 0.0
    inside = 1 + example.C_A
    for _ in range(3000):
        eps = 10 ** rng.uniform(-3, 1)
        near = eps * example.TAU / (inside + np.sqrt(inside**2 + eps * example.TAU))
        z = rng.standard_normal(example.D)
        z /= np.linalg.norm(z)
        a = rng.standard_normal((example.D, example.D))
        a *= example.C_A / np.linalg.norm(a, 2)
        if rng.random() < 0.5:  # the worst there is: all in one direction
            a = example.C_A * np.outer(z, z)
        other = a + near * np.outer(z, z @ a / np.linalg.norm(z @ a))
        x = -(z @ a) / np.linalg.norm(z @ a)
        moved = abs(np.square(x - z @ a).sum() - np.square(x - z @ other).sum()) / example.TAU
        worst = max(worst, moved / eps)
        assert moved <= eps * (1 + 1e-9)
    assert worst > 0.99
    assert example.score_cost(FLOAT, 0.1) > example.score_cost(FLOAT, 0.2) > 0


def test_the_bound_lies_above_members_of_the_class(example: ModuleType) -> None:
    predicted, measured = quick("", "general_attention")
    assert predicted.keys() == measured.keys()
    assert all(predicted[m] >= measured[m] for m in measured)
    assert predicted[100] > predicted[1000] > example.bound(10**5) > example.bound(10**7)
    assert example.bound(10**5) < 0.1  # and it says something


def fitted_to_coins(example: ModuleType, m: int, samples: int, seed: int) -> np.ndarray:
    """Gaps of members of the class that were trained to fit labels which nothing in their rows foretells."""
    import torch

    rng = np.random.default_rng([seed, m])
    draws = [example.sample(rng, m, np.eye(example.KEYS)) for _ in range(samples)]
    z, rows = (torch.stack([draw[k] for draw in draws]).float() for k in (0, 1))
    coins = torch.from_numpy(rng.choice([-1.0, 1.0], (samples, m))).float()
    a = torch.from_numpy(0.3 * rng.standard_normal((samples, example.D, example.D))).float().requires_grad_()
    v = torch.from_numpy(0.3 * rng.standard_normal((samples, example.D))).float().requires_grad_()

    def outputs(queries: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
        scores = (shown - (queries @ a)[:, :, None]).square().sum(-1) / example.TAU
        return ((example.weights(scores)[..., None] * shown).sum(2) * v[:, None]).sum(-1)

    def ramp(ahead: torch.Tensor) -> torch.Tensor:
        return (1 - ahead / example.GAMMA).clamp(0, 1).mean(1)

    optimiser = torch.optim.Adam([a, v], lr=0.1)
    for _ in range(40):
        optimiser.zero_grad()
        (1 - coins * outputs(z, rows) / example.GAMMA).clamp_min(0).mean(1).sum().backward()
        optimiser.step()
        with torch.no_grad():
            left, sizes, right = torch.linalg.svd(a)
            a.copy_(left @ torch.diag_embed(sizes.clamp_max(example.C_A)) @ right)
            v.mul_((example.C_V / v.norm(dim=1, keepdim=True)).clamp_max(1))
    with torch.no_grad():
        fresh = [example.sample(rng, 2000, np.eye(example.KEYS)) for _ in range(samples)]
        out = outputs(*(torch.stack([draw[k] for draw in fresh]).float() for k in (0, 1)))
        return ((ramp(out) + ramp(-out)) / 2 - ramp(coins * outputs(z, rows))).numpy()


@pytest.mark.parametrize("blocks", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_members_fitted_to_coins_never_exceed_the_bound(example: ModuleType, blocks: int) -> None:
    """Twenty samples a block. The control forgets the class: it holds for one function in every second sample."""
    m = 1000
    bound = example.bound(m)
    gaps = np.concatenate([fitted_to_coins(example, m, 20, seed) for seed in range(blocks)])
    assert len(gaps) == 20 * blocks
    assert gaps.max() < bound < 1
    assert (gaps > math.sqrt(math.log(2) / (2 * m))).mean() > 0.6


def test_no_scores_are_further_from_the_largest_than_said() -> None:
    """2(T - 1) exp(-ahead/tau), and not a tenth less: all others alike come near it."""
    rng = np.random.default_rng(1)
    nearest = 0.0
    for _ in range(3000):
        T, tau = int(rng.integers(2, 100)), 10 ** rng.uniform(-2, 1)
        below = tau * rng.exponential(10 ** rng.uniform(-1, 1.2), T - 1)
        if rng.random() < 0.5:
            below[:] = below[0]
        soft = np.exp(-np.concatenate([[0.0], below]) / tau)
        soft /= soft.sum()
        away = 2 * soft[1:].sum()
        most = 2 * (T - 1) * math.exp(-below.min() / tau)
        assert away <= most * (1 + 1e-12)
        nearest = max(nearest, away / most)
    assert nearest > 0.9


def test_softmax_tends_to_the_largest_score_as_the_temperature_falls(example: ModuleType) -> None:
    found = example.cooling()
    assert all(away <= most for _, away, most in found)
    assert [away for _, away, _ in found] == sorted((away for _, away, _ in found), reverse=True)
    assert found[-1][1] < 0.01
