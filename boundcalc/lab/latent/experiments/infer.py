"""How fast attention finds the conditional mean: CME and softmax attention over growing inputs, beside its bounds.

Keys are uniform on the unit sphere of R^p, z has norm 1, values are <z, k> plus uniform noise on [-s, s]: bounded, as
the bounds ask. All that is needed of L pairs are p x p moments, so inputs of 65536 pairs are cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting
from boundcalc.formulas.theorems.attention_bounds import cme_bound, key_bound, softmax_bound, sphere_shrinkage
from boundcalc.lab.latent.experiments.numbers import Numbers
from boundcalc.lab.latent.experiments.statistics import (
    Interval,
    fit_rate,
    fit_slope,
    mean_interval,
    quantile_interval,
    share_interval,
)
from boundcalc.setting import validate

_Array = NDArray[Any]
_CHUNK = 3 * 10**6
"""Numbers held at once."""
LENGTHS = tuple(2**i for i in range(3, 17))
NAMES = {
    "ridge": "CME, ridge of the bound",
    "posterior": "CME, posterior mean",
    "own": "softmax tau={:g}, own limit",
    "mean": "softmax tau={:g}, conditional mean",
}
"""Estimators, and what their errors are measured against."""
_COLDEST = 0.002
"""Least temperature: weights exp(<q, k>/tau) and sums of 10^9 of them are floats."""


@dataclass(frozen=True)
class InferPlan:
    """What is run.

    Attributes:
        lengths: numbers of pairs.
        repetitions: independent inputs per length.
        width: p.
        noise: s; values are within 1 + s.
        taus: temperatures of softmax attention.
        delta: failure probability of the bounds.
        seed: of everything.
    """

    lengths: tuple[int, ...] = LENGTHS
    repetitions: int = 200
    width: int = 3
    noise: float = 0.5
    taus: tuple[float, ...] = (1.0, 0.5, 0.2, 0.05)
    delta: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for length in self.lengths:
            validate.size("L", length)
        validate.size("repetitions", self.repetitions, least=10)
        validate.size("width", self.width, least=2)
        validate.positive("noise", self.noise)
        validate.size("seed", self.seed, least=0)
        validate.fraction("delta", self.delta, ends=False)
        for tau in self.taus:
            if validate.positive("temperature tau", tau) < _COLDEST:
                raise InvalidSetting(f"temperature tau must be at least {_COLDEST}, or exp(1/tau) overflows; got {tau}")

    @property
    def most(self) -> float:
        """Largest value: |z| + s."""
        return 1.0 + self.noise

    @property
    def source(self) -> float:
        """|g| with f* = L_K^(3/2) g: on the sphere L_K is 1/p on linear functions, so |g| = p |z|."""
        return float(self.width)

    @property
    def lam(self) -> float:
        """Noise variance over prior variance: s^2/3 over 1/p."""
        return self.width * self.noise**2 / 3


@dataclass(frozen=True)
class Point(Numbers):
    """One estimator at one length.

    Attributes:
        name: the estimator and what its error is measured against.
        length: L.
        mean: of the error, with its interval.
        quantile: at 1 - delta, with its interval.
        bound: at this length; None where the theory has none (then it is a bias that stays).
        by: the statement that bounds it.
        failures: share of inputs whose error exceeds their bound, with its interval.
        limit: what the error tends to, where that is not 0.
    """

    name: str
    length: int
    mean: Interval
    quantile: Interval
    bound: float | None
    failures: Interval | None
    limit: float = 0.0
    by: str = ""


@dataclass(frozen=True)
class InferResult:
    """All points, and the powers of L fitted from L = 64 on.

    Attributes:
        plan: what was run.
        points: by length and estimator.
        rates: powers fitted to mean errors that tend to 0.
        bound_rates: the same fitted to their bounds.
    """

    plan: InferPlan
    points: tuple[Point, ...]
    rates: dict[str, Interval] = field(default_factory=dict[str, Interval])
    bound_rates: dict[str, float] = field(default_factory=dict[str, float])

    def to_json(self) -> dict[str, Any]:
        """The document."""
        return {
            "experiment": "infer",
            "plan": asdict(self.plan),
            "points": [point.to_json() for point in self.points],
            "rates": {name: rate.to_json() for name, rate in self.rates.items()},
            "bound_rates": self.bound_rates,
        }


def unit(rng: np.random.Generator, *shape: int) -> _Array:
    """Uniform points of the unit sphere."""
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@dataclass
class Moments:
    """What all estimators need of a batch of inputs: sums over pairs."""

    gram: _Array
    cross: _Array
    weighted: _Array
    weight: _Array


def _draw_moments(plan: InferPlan, rng: np.random.Generator, length: int, z: _Array, q: _Array) -> Moments:
    """Draws the pairs of a batch of inputs piece by piece and adds up what matters."""
    n, p = z.shape
    taus = np.array(plan.taus)
    sums = Moments(np.zeros((n, p, p)), np.zeros((n, p)), np.zeros((n, len(taus))), np.zeros((n, len(taus))))
    step = max(1, _CHUNK // (n * p))
    for start in range(0, length, step):
        keys = unit(rng, n, min(step, length - start), p)
        values = np.einsum("nlp,np->nl", keys, z) + plan.noise * rng.uniform(-1, 1, keys.shape[:2])
        sums.gram += np.swapaxes(keys, 1, 2) @ keys
        sums.cross += (values[:, None] @ keys)[:, 0]
        scores = (keys @ q[:, :, None])[..., 0]
        for i, tau in enumerate(taus):
            weights = np.exp(scores / tau)
            sums.weight[:, i] += weights.sum(-1)
            sums.weighted[:, i] += (weights * values).sum(-1)
    return sums


def infer(plan: InferPlan) -> InferResult:
    """Runs the plan."""
    points = [point for length in plan.lengths for point in _at(plan, length)]
    rates: dict[str, Interval] = {}
    bound_rates: dict[str, float] = {}
    for name in dict.fromkeys(point.name for point in points):
        late = [point for point in points if point.name == name and point.length >= 64 and not point.limit]
        if len(late) >= 3:
            lengths = [point.length for point in late]
            rates[name] = fit_rate(lengths, [point.mean for point in late])
            bounds = [point.bound for point in late if point.bound is not None]
            bound_rates[name] = fit_slope(np.log(lengths), np.log(bounds)).value
    return InferResult(plan, tuple(points), rates, bound_rates)


class Errors(NamedTuple):
    """Of one estimator: on every input, the bound (of each input, where keys decide it), the limit, whose bound it is."""

    errors: _Array
    bound: _Array | float | None
    limit: float
    by: str = ""


def errors_at(plan: InferPlan, length: int) -> dict[str, Errors]:
    """Errors by estimator."""
    rng = np.random.default_rng([plan.seed, length])
    n, p = plan.repetitions, plan.width
    z, q = unit(rng, n, p), unit(rng, n, p)
    sums = _draw_moments(plan, rng, length, z, q)
    truth = (z * q).sum(-1)
    out: dict[str, Errors] = {}
    bound = cme_bound(length, source=plan.source, smoothness=1.5, kappa=1.0, most=plan.most, delta=plan.delta)
    ridge = bound.parameters["reg"] * length * np.eye(p)
    found = np.linalg.solve(sums.gram + ridge, sums.cross[..., None])[..., 0]
    out[NAMES["ridge"]] = Errors(np.linalg.norm(found - z, axis=-1), bound.value, 0.0, bound.name)
    precision = sums.gram + plan.lam * np.eye(p)
    found = np.linalg.solve(precision, sums.cross[..., None])[..., 0]
    pulled = np.linalg.solve(precision, q[..., None])[..., 0]
    alpha = np.sqrt(np.einsum("np,npq,nq->n", pulled, sums.gram, pulled))
    power = plan.lam * np.linalg.norm(pulled, axis=-1)
    given = [
        key_bound(float(a), float(d), noise=plan.noise, norm=1.0, delta=plan.delta)
        for a, d in zip(alpha, power, strict=True)
    ]
    by_keys = np.array([one.value for one in given])
    out[NAMES["posterior"]] = Errors(np.abs((found * q).sum(-1) - truth), by_keys, 0.0, given[0].name)
    for i, tau in enumerate(plan.taus):
        attended = sums.weighted[:, i] / sums.weight[:, i]
        shrunk = sphere_shrinkage(tau, p)[1]
        own = softmax_bound(length, tau=tau, most=plan.most, delta=plan.delta, sphere=p)
        out[NAMES["own"].format(tau)] = Errors(np.abs(attended - shrunk * truth), own.value, 0.0, own.name)
        bias = float((1 - shrunk) * np.abs(truth).mean())
        out[NAMES["mean"].format(tau)] = Errors(np.abs(attended - truth), None, bias)
    return out


def _at(plan: InferPlan, length: int) -> Iterator[Point]:
    for name, (errors, bound, limit, by) in errors_at(plan, length).items():
        failures = None
        if bound is not None:
            failures = share_interval(int((errors > bound).sum()), len(errors))
        yield Point(
            name,
            length,
            mean_interval(errors),
            quantile_interval(errors, 1 - plan.delta),
            None if bound is None else float(np.mean(bound)),
            failures,
            limit,
            by,
        )


def best_temperatures(result: InferResult) -> dict[int, float]:
    """At every length the temperature whose softmax attention came closest to the conditional mean."""
    best: dict[int, tuple[float, float]] = {}
    for point in result.points:
        if point.name.endswith("conditional mean"):
            tau = float(point.name.split("tau=")[1].split(",")[0])
            if point.length not in best or point.mean.value < best[point.length][0]:
                best[point.length] = point.mean.value, tau
    return {length: tau for length, (_, tau) in best.items()}
