"""The posterior of the latent variable narrows like L^(-1/2) and is honest about its error.

Computed: the posterior's deviation over many sequences. Measured: the root mean square error of its mean. So a long
input leaves next to nothing of z to know but its posterior mean, which is what attention computes.

    python examples/zhang2022/contraction.py [-o contraction.png]
"""

from __future__ import annotations

import numpy as np
from common import Values, axes, rates, run
from scipy.special import betaincinv

from boundcalc.lab.latent.models import BetaBernoulli, GaussianLinear

QUICK = {"L": (64, 128, 256), "repetitions": 100}


def main(L: tuple[int, ...] = tuple(2**i for i in range(13)), repetitions: int = 400) -> tuple[Values, Values]:
    """Deviations and errors by model and L."""
    computed: Values = {}
    measured: Values = {}
    for index, model in enumerate((BetaBernoulli(1.0, 1.0), GaussianLinear(width=3))):
        rng = np.random.default_rng([index, repetitions])
        latent, sequences = model.draw(rng, max(L), repetitions)
        for length in L:
            squares, variances = [], []
            for z, tokens in zip(latent, sequences, strict=True):
                found = model.posterior(tokens[:length])
                if model.name == "beta-bernoulli":  # coordinate 1 is the probability of a one
                    mean, variance = found.mean[1:], found.variance[1]
                else:
                    mean, variance = found.mean, np.trace(found.covariance) / len(found.covariance)
                squares.append(np.square(mean - z).mean())
                variances.append(variance)
            computed[model.name, length] = float(np.sqrt(np.mean(variances)))
            measured[model.name, length] = float(np.sqrt(np.mean(squares)))
    for name, rate in rates(computed).items():
        print(f"{name}: the posterior's deviation is like L^{rate}")
    return computed, measured


def draw(path: str, computed: Values, measured: Values) -> None:
    """The posterior of one sequence of bits, which closes in on the probability that drew it."""
    figure, (panel,) = axes()
    bits = np.random.default_rng(1).random(1024) < 0.3
    lengths = 2 ** np.arange(11)
    ones = np.array([bits[:length].sum() for length in lengths])
    low, middle, high = (betaincinv(1 + ones, 1 + lengths - ones, level) for level in (0.1, 0.5, 0.9))
    panel.fill_between(lengths, low, high, color="#0072B2", alpha=0.2, lw=0, label="middle 80% of the posterior")
    panel.plot(lengths, middle, color="#0072B2", lw=1, label="its median")
    panel.axhline(0.3, color="#555555", lw=0.8, ls="--", label="true z")
    panel.set(xscale="log", xlabel="L, bits seen", ylabel="z, probability of a one", ylim=(0, 1))
    panel.set_title("The posterior closes in on z")
    panel.legend(frameon=False)
    figure.savefig(path, dpi=200)


if __name__ == "__main__":
    run(main, QUICK, draw)
