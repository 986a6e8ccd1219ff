"""Representation and inference: the posterior is what attention computes, with an error that falls with the input.

    python examples/latent_inference.py [tiny]

First the identity: CME attention is the posterior mean of a Gaussian linear model. Then errors against the conditional
mean over L, beside the bounds X3k and X4.
"""

from __future__ import annotations

import sys

import numpy as np

from boundcalc.lab.latent.attention import attend
from boundcalc.lab.latent.experiments.infer import InferPlan, infer
from boundcalc.lab.latent.models import GaussianLinear
from boundcalc.lab.latent.symbolic import gaussian_mean

Values = dict[tuple[str, int], float]
PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""


def identity() -> float:
    """Largest difference between CME attention and the posterior mean."""
    model = GaussianLinear(width=4, values=2)
    rng = np.random.default_rng(0)
    _, tokens = model.draw(rng, length=50)
    keys, values = model.split(tokens[0])
    queries = model.draw_keys(rng, 10)
    mean, variance = model.posterior(tokens[0]).predictive(queries)
    found = attend(queries, keys, values, lam=model.lam)
    own = model.noise_variance + model.prior_variance * found.variance
    return float(max(np.abs(found.mean - mean).max(), np.abs(own - variance).max()))


def main(scale: str = "full") -> tuple[Values, Values]:
    """Bounds, and measured 1 - delta quantiles of the errors, by estimator and L."""
    tiny = scale == "tiny"
    plan = InferPlan(lengths=tuple(2**i for i in range(3, 10 if tiny else 17)), repetitions=100 if tiny else 1000)
    result = infer(plan)
    bounded = [point for point in result.points if point.bound is not None]
    predicted = {(point.name, point.length): point.bound for point in bounded if point.bound is not None}
    return predicted, {(point.name, point.length): point.quantile.value for point in bounded}


if __name__ == "__main__":
    print(f"E[z|X] of a Gaussian mean: {gaussian_mean().parameters['mean']}")
    print(f"CME attention against the posterior mean: off by {identity():.1e}")
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for (name, length), value in predicted.items():
        print(f"L = {length:5d}  {name:28} 95% of errors below {measured[name, length]:.4f}, bound {value:.4f}")
