"""Attention against a conditional mean that is not linear, with the kernel that softmax has.

Keys are angles, uniform on the circle. The truth is a draw of the Gaussian process whose covariance is softmax's own
kernel, exp(kappa (cos - 1)): f = sum_n sqrt(l_n) (a_n cos n x + b_n sin n x) with a_n, b_n standard normal, l_0 =
I_0(kappa)/e^kappa, l_n = 2 I_n(kappa)/e^kappa. Values are f plus normal noise. So (a, b) is the latent variable, and CME
attention with the exponential kernel and lam = noise variance is the posterior mean exactly (X2). Softmax attention at
temperature tau tends to f with its n-th wave shrunk by I_n(1/tau)/I_0(1/tau): its bias is known in closed form, apart from
its sampling error.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.experiments.numbers import Numbers
from boundcalc.lab.latent.experiments.statistics import Interval, mean_interval
from boundcalc.setting import validate

_Array = NDArray[Any]
LENGTHS = tuple(2**i for i in range(3, 15))
_COLDEST = 0.002
_GRID = tuple(_COLDEST * 1.35**i for i in range(24))
"""Temperatures among which the best is looked for: 0.002 to 2."""
_TAIL = 1e-12
_CHUNK = 2 * 10**6


@dataclass(frozen=True)
class SmoothPlan:
    """What is run.

    Attributes:
        lengths: numbers of pairs.
        repetitions: independent inputs per length; half of them choose the best temperature, the others judge it.
        sharpness: kappa, of the truth and of CME attention's kernel.
        noise: standard deviation of a value around its mean.
        taus: temperatures of softmax attention that stay the same at every length.
        seed: of everything.
    """

    lengths: tuple[int, ...] = LENGTHS
    repetitions: int = 400
    sharpness: float = 4.0
    noise: float = 0.5
    taus: tuple[float, ...] = (1.0, 0.25)
    seed: int = 0

    def __post_init__(self) -> None:
        for length in self.lengths:
            validate.size("L", length)
        validate.size("repetitions", self.repetitions, least=20)
        validate.positive("noise", self.noise)
        validate.size("seed", self.seed, least=0)
        if not 0.1 <= validate.positive("sharpness", self.sharpness) <= 100:
            raise InvalidSetting(f"sharpness must be between 0.1 and 100, got {self.sharpness:g}")
        for tau in self.taus:
            if validate.positive("temperature tau", tau) < _COLDEST:
                raise InvalidSetting(f"temperature tau must be at least {_COLDEST}, got {tau:g}")

    @cached_property
    def spectrum(self) -> _Array:
        """l_0 .. l_N, which sum to 1 but for less than 1e-12."""
        n = np.arange(400)
        sizes = ive(n, self.sharpness) * np.where(n, 2.0, 1.0)
        last = int(np.argmax(1 - np.cumsum(sizes) < _TAIL))
        return sizes[: last + 1]

    def shrinkage(self, tau: float) -> _Array:
        """What softmax attention leaves of each wave: I_n(1/tau)/I_0(1/tau)."""
        n = np.arange(len(self.spectrum))
        return ive(n, 1 / tau) / ive(0, 1 / tau)

    def bias(self, tau: float) -> float:
        """Root mean square distance of softmax attention's limit from the truth, over draws of the truth."""
        return math.sqrt(float((self.spectrum * (1 - self.shrinkage(tau)) ** 2).sum()))

    @property
    def linear_bias(self) -> float:
        """The same for the best affine function of the key (cos x, sin x): all waves from the second on are missed."""
        return math.sqrt(float(self.spectrum[2:].sum()))


@dataclass(frozen=True)
class SmoothPoint(Numbers):
    """One estimator at one length: root mean squares over inputs, with 95% intervals.

    Attributes:
        name: the estimator.
        length: L.
        error: distance from the conditional mean f(q).
        sampling: distance from what the estimator tends to; None where that is the conditional mean.
        bias: from there to the conditional mean, by formula.
        tau: the temperature, of softmax attention.
        expected: the error as the theory has it, where it has one (the posterior's own deviation).
    """

    name: str
    length: int
    error: Interval
    sampling: Interval | None = None
    bias: float = 0.0
    tau: float | None = None
    expected: float | None = None


EXACT, LINEAR, BEST = "CME, exponential kernel", "CME, linear kernel", "softmax, best tau"


def smooth(plan: SmoothPlan) -> list[SmoothPoint]:
    """Every estimator at every length."""
    return [point for length in plan.lengths for point in _at(plan, length)]


def document(plan: SmoothPlan, points: list[SmoothPoint]) -> dict[str, Any]:
    """As JSON."""
    return {"experiment": "infer", "truth": "smooth", "plan": asdict(plan), "points": [p.to_json() for p in points]}


def waves(angles: _Array, last: int) -> _Array:
    """1, cos x, .., cos Nx, sin x, .., sin Nx: (..., 2N + 1)."""
    inside = angles[..., None] * np.arange(1, last + 1)
    return np.concatenate([np.ones((*angles.shape, 1)), np.cos(inside), np.sin(inside)], axis=-1)


def _both(per_wave: _Array) -> _Array:
    """A number of each wave, for its cosine and its sine."""
    return np.concatenate([per_wave, per_wave[1:]])


@dataclass(frozen=True)
class _Errors:
    exact: _Array
    deviation: _Array
    linear: _Array
    away: _Array
    """(inputs, temperatures): of softmax attention from the conditional mean."""
    inside: _Array
    """The same from its own limit."""


def _at(plan: SmoothPlan, length: int) -> list[SmoothPoint]:
    rng = np.random.default_rng([plan.seed, length, 2])
    taus = (*plan.taus, *_GRID)
    found = [_one(plan, rng, length, taus) for _ in range(plan.repetitions)]
    exact, deviation, linear = (
        np.array([getattr(one, key) for one in found]) for key in ("exact", "deviation", "linear")
    )
    away, inside = (np.stack([getattr(one, key) for one in found]) for key in ("away", "inside"))
    fixed, half = len(plan.taus), plan.repetitions // 2
    best = fixed + int(np.square(away[:half, fixed:]).mean(0).argmin())
    points = [
        SmoothPoint(EXACT, length, _root_mean(exact), expected=math.sqrt(float(np.square(deviation).mean()))),
        SmoothPoint(LINEAR, length, _root_mean(linear), bias=plan.linear_bias),
    ]
    for at, rows in [*((i, slice(None)) for i in range(fixed)), (best, slice(half, None))]:
        name = BEST if at == best and rows.start else f"softmax, tau = {taus[at]:g}"
        error, sampling = _root_mean(away[rows, at]), _root_mean(inside[rows, at])
        points.append(SmoothPoint(name, length, error, sampling, plan.bias(taus[at]), taus[at]))
    return points


def _root_mean(errors: _Array) -> Interval:
    """Root mean square, with the interval of the mean square."""
    found = mean_interval(np.square(errors))
    return Interval(*(math.sqrt(max(0.0, x)) for x in (found.value, found.low, found.high)))


def _one(plan: SmoothPlan, rng: np.random.Generator, length: int, taus: tuple[float, ...]) -> _Errors:
    """One truth, one input of so many pairs, one query."""
    last = len(plan.spectrum) - 1
    scale = np.sqrt(_both(plan.spectrum))
    latent = scale * rng.standard_normal(2 * last + 1)
    query = rng.uniform(-math.pi, math.pi)
    asked = waves(np.array(query), last)
    gram, cross = np.zeros((2 * last + 1,) * 2), np.zeros(2 * last + 1)
    top, bottom = np.zeros(len(taus)), np.zeros(len(taus))
    cold = np.array(taus)[:, None]
    angles = rng.uniform(-math.pi, math.pi, length)
    nearest = np.cos(angles - query).max()  # so that some weight is 1, however cold
    step = max(1, _CHUNK // (2 * last + 1 + len(taus)))
    for start in range(0, length, step):
        keys = angles[start : start + step]
        seen = waves(keys, last)
        values = seen @ latent + plan.noise * rng.standard_normal(len(keys))
        gram += seen.T @ seen
        cross += seen.T @ values
        weights = np.exp((np.cos(keys - query) - nearest) / cold)
        top += weights @ values
        bottom += weights.sum(1)
    truth = float(asked @ latent)
    limits = np.array([float(asked @ (_both(plan.shrinkage(tau)) * latent)) for tau in taus])
    attended = top / bottom
    mean, deviation = _posterior(gram, cross, asked, scale, plan.noise)
    affine = [0, 1, last + 1]
    flat, _ = _posterior(gram[np.ix_(affine, affine)], cross[affine], asked[affine], scale[affine], plan.noise)
    return _Errors(
        np.array(mean - truth), np.array(deviation), np.array(flat - truth), attended - truth, attended - limits
    )


def _posterior(gram: _Array, cross: _Array, asked: _Array, scale: _Array, noise: float) -> tuple[float, float]:
    """Mean and deviation of f(q) given the pairs, if these waves were all there are."""
    precision = scale[:, None] * gram * scale + noise**2 * np.eye(len(scale))
    solved = np.linalg.solve(precision, np.stack([scale * cross, scale * asked], axis=1))
    inside = scale * asked
    return float(inside @ solved[:, 0]), noise * math.sqrt(max(0.0, float(inside @ solved[:, 1])))
