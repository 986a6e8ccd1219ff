"""CME attention is the posterior mean; softmax attention finds the conditional mean if its temperature falls with L.

Keys are angles, uniform on the circle. The conditional mean f is a draw of the Gaussian process with softmax's own
kernel, exp(sharpness (cos - 1)): wave n has variance l_n = 2 I_n(sharpness)/e^sharpness (n = 0: half of that). Values
are f plus normal noise. CME attention with the exponential kernel and lam = noise variance is the posterior mean (X2),
so its root mean square error is the posterior's deviation. With a linear kernel it misses all waves from the second on.
Softmax attention at temperature tau tends to f with wave n shrunk by I_n(1/tau)/I_0(1/tau): at a fixed temperature a
known bias stays.

    python examples/zhang2022/smooth.py
"""

from __future__ import annotations

import math

import numpy as np
from common import Array, Values, run
from scipy.special import ive

QUICK = {"L": (32, 2048), "repetitions": 200, "seed": 5}
EXACT, LINEAR, SOFTMAX, BEST = (
    "CME, exponential kernel",
    "CME, linear kernel",
    "softmax, tau = {:g}",
    "softmax, best tau",
)
GRID = tuple(0.002 * 1.35**i for i in range(24))
"""Temperatures among which the best is looked for: 0.002 to 2."""
_CHUNK = 2 * 10**6


def spectrum(sharpness: float) -> Array:
    """l_0 .. l_N, which sum to 1 but for less than 1e-12."""
    n = np.arange(400)
    sizes = ive(n, sharpness) * np.where(n, 2.0, 1.0)
    return sizes[: int(np.argmax(1 - np.cumsum(sizes) < 1e-12)) + 1]


def shrinkage(tau: float, waves: int) -> Array:
    """What softmax attention leaves of each wave."""
    return ive(np.arange(waves), 1 / tau) / ive(0, 1 / tau)


def waves(angles: Array, last: int) -> Array:
    """1, cos x, .., cos Nx, sin x, .., sin Nx: (..., 2N + 1)."""
    inside = angles[..., None] * np.arange(1, last + 1)
    return np.concatenate([np.ones((*angles.shape, 1)), np.cos(inside), np.sin(inside)], axis=-1)


def both(per_wave: Array) -> Array:
    """A number of each wave, for its cosine and its sine."""
    return np.concatenate([per_wave, per_wave[1:]])


def posterior(gram: Array, cross: Array, features: Array, scale: Array, noise: float) -> tuple[float, float]:
    """Mean and deviation of f(q) given the pairs, if these waves were all there are."""
    precision = scale[:, None] * gram * scale + noise**2 * np.eye(len(scale))
    inside = scale * features
    mean, spread = np.linalg.solve(precision, np.stack([scale * cross, inside], axis=1)).T
    return float(inside @ mean), noise * math.sqrt(max(0.0, float(inside @ spread)))


def one_input(rng: np.random.Generator, length: int, sizes: Array, noise: float, taus: Array) -> list[float]:
    """Errors on one truth, input and query: exact CME, its posterior deviation, linear CME, softmax at every tau."""
    last, scale = len(sizes) - 1, np.sqrt(both(sizes))
    latent, query = scale * rng.standard_normal(2 * last + 1), rng.uniform(-math.pi, math.pi)
    features = waves(np.array(query), last)
    gram, cross = np.zeros((2 * last + 1,) * 2), np.zeros(2 * last + 1)
    top, bottom = np.zeros(len(taus)), np.zeros(len(taus))
    angles = rng.uniform(-math.pi, math.pi, length)
    nearest = np.cos(angles - query).max()  # so that some weight is 1, however cold
    step = max(1, _CHUNK // (2 * last + 1 + len(taus)))
    for start in range(0, length, step):
        keys = angles[start : start + step]
        seen = waves(keys, last)
        values = seen @ latent + noise * rng.standard_normal(len(keys))
        gram += seen.T @ seen
        cross += seen.T @ values
        weights = np.exp((np.cos(keys - query) - nearest) / taus[:, None])
        top += weights @ values
        bottom += weights.sum(1)
    truth = float(features @ latent)
    mean, deviation = posterior(gram, cross, features, scale, noise)
    affine = [0, 1, last + 1]
    linear, _ = posterior(gram[np.ix_(affine, affine)], cross[affine], features[affine], scale[affine], noise)
    return [mean - truth, deviation, linear - truth, *(top / bottom - truth)]


def main(
    L: tuple[int, ...] = tuple(2**i for i in range(3, 15)),
    repetitions: int = 400,
    sharpness: float = 4.0,
    noise: float = 0.5,
    tau: tuple[float, ...] = (1.0, 0.25),
    seed: int = 0,
) -> tuple[Values, Values]:
    """Posterior deviations and biases, and root mean square errors; of the best temperature also the temperature."""
    sizes, taus = spectrum(sharpness), np.array([*tau, *GRID])
    computed: Values = {}
    measured: Values = {}
    for length in L:
        rng = np.random.default_rng([seed, length, 2])
        squares = np.square([one_input(rng, length, sizes, noise, taus) for _ in range(repetitions)])
        exact, deviation, linear, *cold = np.sqrt(squares.mean(0))
        computed[EXACT, length], measured[EXACT, length] = float(deviation), float(exact)
        half = repetitions // 2  # half of the inputs chooses the temperature, the other half judges it
        best = len(tau) + int(squares[:half, 3 + len(tau) :].mean(0).argmin())
        best_error = math.sqrt(squares[half:, 3 + best].mean())
        print(
            f"L = {length}: softmax at its best temperature {taus[best]:.3g} has error {best_error:.3g}, "
            f"CME {exact:.3g}"
        )
        measured["best tau", length] = float(taus[best])  # chosen: nothing is computed for it
        measured[BEST, length], computed[BEST, length] = best_error, float(deviation)
        if length == max(L):
            computed[LINEAR, length], measured[LINEAR, length] = math.sqrt(float(sizes[2:].sum())), float(linear)
            for one, error in zip(tau, cold, strict=False):
                bias = math.sqrt(float((sizes * (1 - shrinkage(one, len(sizes))) ** 2).sum()))
                computed[SOFTMAX.format(one), length], measured[SOFTMAX.format(one), length] = bias, float(error)
    return computed, measured


if __name__ == "__main__":
    run(main)
