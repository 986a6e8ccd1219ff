"""The posterior of the latent variable narrows like L^(-1/2) and is honest about its error.

Computed: the posterior's deviation over many sequences. Measured: the root mean square error of its mean. So a long
input leaves next to nothing of z to know but its posterior mean, which is what attention computes.

    python examples/zhang2022/contraction.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Values, rates, run

from boundcalc.lab.latent.models import DirichletCategorical, GaussianLinear

QUICK = {"L": (64, 128, 256), "repetitions": 100}


def main(L: tuple[int, ...] = tuple(2**i for i in range(13)), repetitions: int = 400) -> tuple[Values, Values]:
    """Deviations and errors by model and L."""
    computed: Values = {}
    measured: Values = {}
    for index, model in enumerate((DirichletCategorical((1.0, 1.0)), GaussianLinear(width=3))):
        rng = np.random.default_rng([index, repetitions])
        latent, sequences = model.draw(rng, max(L), repetitions)
        for length in L:
            squares, variances = [], []
            for z, tokens in zip(latent, sequences, strict=True):
                posterior: Any = model.posterior(tokens[:length])
                if isinstance(model, DirichletCategorical):
                    variance = posterior.variance.mean()
                else:
                    variance = np.trace(posterior.covariance) / len(posterior.covariance)
                squares.append(np.square(posterior.mean - z).mean())
                variances.append(variance)
            computed[model.name, length] = float(np.sqrt(np.mean(variances)))
            measured[model.name, length] = float(np.sqrt(np.mean(squares)))
    for name, rate in rates(computed).items():
        print(f"{name}: the posterior's deviation is like L^{rate}")
    return computed, measured


if __name__ == "__main__":
    run(main)
