"""Attention estimators: exact equalities with the posterior, between forms, and refusals that name what is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boundcalc.base.errors import Unsupported
from boundcalc.lab.latent.attention import attend, linear_weights, power_function, softmax_weights
from boundcalc.lab.latent.bounds import key_bound
from boundcalc.lab.latent.kernels import RBF, Exponential, Kernel, Linear
from boundcalc.lab.latent.models import GaussianLinear
from boundcalc.setting import Normaliser


def test_cme_attention_is_the_posterior_mean_at_its_ridge_alone() -> None:
    """X2 to 1e-10: means and variances, in keys (few of them) and in features (many)."""
    model = GaussianLinear(3, 2, prior_variance=1.4, noise_variance=0.35)
    rng = np.random.default_rng(0)
    for length in (1, 5, 60):
        tokens = model.draw(rng, length)
        keys, values = model.split(tokens)
        q = model.draw_keys(rng, 7)
        mean, variance = model.predictive(tokens, q)
        found = attend(q, keys, lam=model.lam)
        assert np.abs(found.weights @ values - mean).max() < 1e-10
        assert np.abs(model.noise_variance + model.prior_variance * found.variance - variance).max() < 1e-10
        assert np.abs(attend(q, keys, lam=1.1 * model.lam).weights @ values - mean).max() > 1e-4


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.7), Exponential(0.5)])
def test_the_power_function_and_the_weights_give_the_variance(kernel: Kernel) -> None:
    rng = np.random.default_rng(5)
    q, k = rng.standard_normal((4, 3)), rng.standard_normal((12, 3))
    found = attend(q, k, lam=0.2, kernel=kernel)
    power = power_function(q, k, found.weights, kernel)
    # k(q, q) - k(q, K) (k(K, K) + lam)^(-1) k(K, q) = P^2 + lam |alpha|^2
    assert found.variance == pytest.approx(power**2 + 0.2 * np.square(found.weights).sum(-1), rel=1e-9)
    softmax = softmax_weights(q, k)
    assert (power_function(q, k, softmax, kernel) ** 2 + 0.2 * np.square(softmax).sum(-1) > found.variance).all()


def test_the_power_function_is_not_rounded_to_less_than_it_is() -> None:
    """A query that is a key, less a little: the terms cancel but for 1e-16, and P is 1e-8 and not 0."""
    k = np.array([[0.3], [1.0]])
    for off in (1e-8, 1e-9):
        q = k[:1] + off  # |phi(q) - phi(k)|^2 = 2 - 2 exp(-off^2/2)
        assert float(power_function(q, k, np.array([[1.0, 0.0]]), RBF())[0]) >= off * (1 - 1e-6)


def test_keys_far_from_the_origin_have_the_kernel_of_their_distances() -> None:
    """|x|^2 + |y|^2 - 2 <x, y> is rounded to nothing there."""
    near = np.array([[0.0, 0.5], [1.0, -1.0], [2.5, 0.0], [3.0, 2.0]])
    weights = attend(near, near, lam=1.0, kernel=RBF()).weights
    here, far = (power_function(x, x, weights, RBF()) for x in (near, near + 2.0**27))
    assert far == pytest.approx(here, rel=1e-12)


def test_p_is_rounded_up_where_features_are_few() -> None:
    """Three times a third, and its like: what is left is 0 or more, and not less than it is."""
    from fractions import Fraction

    rng = np.random.default_rng(2)
    for _ in range(20):
        q, k, alpha = rng.standard_normal((1, 1)), rng.standard_normal((5, 1)), rng.standard_normal((1, 5))
        alpha[0, 0] = (q[0, 0] - float(alpha[0, 1:] @ k[1:, 0])) / k[0, 0]
        left = Fraction(q[0, 0]) - sum(Fraction(a) * Fraction(x) for a, x in zip(alpha[0], k[:, 0], strict=True))
        assert Fraction(float(power_function(q, k, alpha)[0])) >= abs(left)


def test_x3k_holds_for_the_weights_of_every_attention() -> None:
    """Noise at the ends of what is allowed, a conditional mean in the kernel's space.

    A third of the bound must fail.
    """
    rng = np.random.default_rng(15)
    kernel, noise, delta, n = RBF(0.6), 0.5, 0.1, 4000
    q, k = rng.uniform(-1, 1, (3, 2)), rng.uniform(-1, 1, (25, 2))
    centres, sizes = rng.uniform(-1, 1, (4, 2)), rng.standard_normal(4)
    norm = math.sqrt(float(sizes @ kernel.gram(centres, centres) @ sizes))
    truth, seen = kernel.gram(q, centres) @ sizes, kernel.gram(k, centres) @ sizes
    values = seen[:, None] + noise * rng.choice([-1.0, 1.0], (25, n))
    weights = (attend(q, k, lam=0.3, kernel=kernel).weights, softmax_weights(q, k, 0.1), linear_weights(q, k))
    assert weights[1][0, 0] / weights[1][0, 1] == pytest.approx(math.exp(q[0] @ (k[0] - k[1]) / 0.1))
    exceeded = []
    for alpha in weights:
        errors = np.abs(alpha @ values - truth[:, None])
        for i, missed in enumerate(power_function(q, k, alpha, kernel)):
            bound = key_bound(float(np.linalg.norm(alpha[i])), float(missed), noise=noise, norm=norm, delta=delta)
            assert (errors[i] > bound).mean() <= delta
            exceeded.append((errors[i] > bound / 3).mean() > delta)
    assert any(exceeded)


def test_the_mass_of_cme_weights_grows_with_the_input() -> None:
    """Why no Transformer with it is bounded: L equal keys of squared norm lam/L give a unit query mass
    sqrt(L/lam)/2."""
    masses = []
    for length in (10, 1000):
        k = np.full((length, 1), 1 / np.sqrt(length))  # k(K, K) has the eigenvalue 1 = lam
        masses.append(np.abs(attend([[1.0]], k, lam=1.0).weights).sum())
    assert masses == pytest.approx([np.sqrt(10) / 2, np.sqrt(1000) / 2])
    with pytest.raises(Unsupported, match=r"'cme' needs a constant independent of T"):
        Normaliser("cme")


def test_a_singular_system_is_refused() -> None:
    keys = np.ones((5, 3))
    for lam in (0.0, 1e-14):
        with pytest.raises(Unsupported, match="Raise lam"):
            attend(keys, keys, lam=lam, kernel="rbf")
