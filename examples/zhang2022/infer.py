"""Attention's error falls with the input, and no bound of it is exceeded (X3, X3k, X4).

Keys are uniform on the unit sphere of R^d, |z| = 1, values are <z, k> plus uniform noise on [-s, s]: bounded, as the
bounds ask. Computed: the bounds, each with probability 1 - delta. Measured: the 1 - delta quantiles of the errors. All
that is needed of L pairs are d x d moments, so inputs of 65536 pairs are cheap.

    python examples/zhang2022/infer.py --repetitions 1000 -o figures/attention-error.png
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from common import Array, Values, rates, run, unit

from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.names import BROWN, DASHED, GREEN, GREY, SOLID
from boundcalc.lab.latent.bounds import key_bound, softmax_bound, sphere_shrinkage
from boundcalc.theorems import X3

QUICK = {"L": tuple(2**i for i in range(3, 10)), "repetitions": 100}
RIDGE, POSTERIOR, SOFTMAX = "CME, ridge of the bound", "CME, posterior mean", "softmax, tau = {:g}"
MOST = 3.0
"""Two means of values are never further apart."""
_CHUNK = 3 * 10**6
"""Numbers held at once."""


class Law(NamedTuple):
    """Dimension of the keys, noise s, temperatures of softmax attention, failure probability, seed."""

    d: int = 3
    noise: float = 0.5
    tau: tuple[float, ...] = (1.0, 0.2, 0.05)
    delta: float = 0.05
    seed: int = 0


class Errors(NamedTuple):
    """Errors of one estimator over inputs, its bound (of each input, where keys decide it), errors against z itself."""

    errors: Array
    bound: Array | float
    against_mean: Array


def errors_at(law: Law, length: int, repetitions: int) -> dict[str, Errors]:
    """Errors and bounds by estimator at one L. Softmax attention's are against its own limit."""
    rng = np.random.default_rng([law.seed, length])
    n, d, most = repetitions, law.d, 1 + law.noise
    z, q = unit(rng, n, d), unit(rng, n, d)
    gram, cross = np.zeros((n, d, d)), np.zeros((n, d))
    top, bottom = np.zeros((len(law.tau), n)), np.zeros((len(law.tau), n))
    step = max(1, _CHUNK // (n * d))
    for start in range(0, length, step):
        keys = unit(rng, n, min(step, length - start), d)
        values = np.einsum("nlp,np->nl", keys, z) + law.noise * rng.uniform(-1, 1, keys.shape[:2])
        gram += np.swapaxes(keys, 1, 2) @ keys
        cross += np.einsum("nl,nlp->np", values, keys)
        for i, tau in enumerate(law.tau):
            weights = np.exp(np.einsum("nlp,np->nl", keys, q) / tau)
            bottom[i] += weights.sum(-1)
            top[i] += (weights * values).sum(-1)
    truth, eye = (z * q).sum(-1), np.eye(d)
    # on the sphere L_K is 1/d on linear functions: f* = L_K^(3/2) g with |g| = d
    point = {"L": length, "kappa": 1.0, "M": most, "g": float(d), "smoothness": 1.5, "delta": law.delta}
    bound = X3.checked("best_error", **point).value
    reg = bound / (2 * d)  # at the best regularisation sampling and bias, reg |g|, are equal
    ridge = np.linalg.solve(gram + reg * length * eye, cross[..., None])[..., 0] - z
    lam = d * law.noise**2 / 3  # noise variance over prior variance
    solutions = np.linalg.solve(gram + lam * eye, np.stack([cross, q], axis=-1))
    posterior, pulled = (solutions[..., 0] * q).sum(-1) - truth, solutions[..., 1]
    alpha = np.sqrt(np.einsum("np,npq,nq->n", pulled, gram, pulled))
    missed = lam * np.linalg.norm(pulled, axis=-1)
    by_keys = [
        key_bound(float(a), float(p), noise=law.noise, norm=1.0, delta=law.delta)
        for a, p in zip(alpha, missed, strict=True)
    ]
    out = {
        RIDGE: Errors(np.linalg.norm(ridge, axis=-1), bound, np.abs((ridge * q).sum(-1))),
        POSTERIOR: Errors(np.abs(posterior), np.array(by_keys), np.abs(posterior)),
    }
    for tau, attended in zip(law.tau, top / bottom, strict=True):
        own = np.abs(attended - sphere_shrinkage(tau, d)[1] * truth)
        limit = softmax_bound(length, d, tau=tau, most=most, delta=law.delta)
        out[SOFTMAX.format(tau)] = Errors(own, limit, np.abs(attended - truth))
    return out


def main(
    L: tuple[int, ...] = tuple(2**i for i in range(3, 17)),
    repetitions: int = 1000,
    d: int = 3,
    tau: tuple[float, ...] = (1.0, 0.2, 0.05),
    seed: int = 0,
) -> tuple[Values, Values]:
    """Bounds and 1 - delta quantiles of errors, by estimator and L; bounds that depend on the keys as means."""
    law = Law(d=d, tau=tau, seed=seed)
    computed: Values = {}
    measured: Values = {}
    most = 0.0
    for length in L:
        for name, errors in errors_at(law, length, repetitions).items():
            computed[name, length] = float(np.mean(errors.bound))
            measured[name, length] = float(np.quantile(errors.errors, 1 - law.delta))
            most = max(most, float((errors.errors > errors.bound).mean()))
    print(f"a bound was exceeded by at most {most:.2%} of the inputs of a cell, where {law.delta:.0%} may")
    bounds = rates(computed)
    for name, rate in rates(measured).items():
        print(f"{name}: error like L^{rate}, bound like L^{bounds[name].value:.3g}")
    return computed, measured


def collect(computed: Values, measured: Values) -> Figure:
    """Errors and bounds over L, and the bias of softmax attention over the temperature."""
    series: list[Series] = []
    ratios: list[float] = []
    for name in (POSTERIOR, SOFTMAX.format(1.0)):
        lengths = sorted(length for other, length in computed if other == name)
        telling = [x for x in lengths if computed[name, x] < MOST]  # values are never further apart: vacuous
        ratios += [computed[name, x] / measured[name, x] for x in telling]
        for kind, values, kept in (("bound", computed, telling), ("measured", measured, lengths)):
            rows = [(float(x), values[name, x]) for x in kept]
            if rows:
                series.append(replace(Series.of_rows(name, kind, "error", rows), label=f"{name}: {kind}"))
    taus = np.geomspace(0.02, 2, 40)
    bias = [(float(tau), 1 - sphere_shrinkage(float(tau), 3)[0]) for tau in taus]
    series.append(Series.of_rows("bias", "reference", "bias", bias))
    within = f"{min(ratios):.0f}-{max(ratios):.0f}"
    return Figure(
        "attention-error",
        f"Attention finds the mean; bounds lie {within} times above",
        "keys on the unit sphere of R^3, values linear in the key plus bounded noise; 95% quantiles over inputs",
        "Left: error of attention as the posterior mean (CME) and of softmax attention against its own limit, with "
        "their bounds (X3k, X4; vacuous values are left out). Both fall like one over the square root of the number of "
        "pairs. Right: what softmax attention keeps as a bias at a fixed temperature, in closed form.",
        "Left, measured errors fall along straight lines on logarithmic axes with their bounds in parallel above. "
        "Right, the bias of softmax attention rises with the temperature from zero towards one.",
        tuple(series),
    )


def draw(figure: Figure) -> Any:
    """Left, errors (dots) and bounds (lines); right, the bias."""
    drawn, (left, right) = canvas.sheet(figure, 2, size=(6.8, 2.8))
    labels = []
    for style, name in ((SOLID, POSTERIOR), (DASHED, SOFTMAX.format(1.0))):
        for one in figure.of(key=name):
            rows = list(one.known().items())
            if one.kind == "bound":
                left.plot(*zip(*rows, strict=True), color=BROWN, ls=style, lw=1.5)
                labels.append((rows[-1], one.label, BROWN))
            else:
                filled = style == SOLID
                left.plot(*zip(*rows, strict=True), "o", color=GREEN, ms=3.5, mfc=GREEN if filled else "white")
                labels.append((rows[-1], one.label, GREEN))
    left.set(xscale="log", yscale="log", xlabel="pairs L", ylabel="error, 95% quantile")
    canvas.end_labels(left, labels)
    (bias,) = figure.of(key="bias")
    right.plot(bias.x, bias.known().values(), color=GREY, lw=1.5)
    right.set(xscale="log", xlabel="temperature", ylabel="bias, share of the conditional mean", ylim=(0, 1))
    canvas.percent(right.yaxis)
    return drawn


if __name__ == "__main__":
    run(main, collect, draw)
