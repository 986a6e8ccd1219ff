"""Statistics of m*: how many examples a task needs at each length, and which law of growth with the length fits.

m* is where a logistic curve in log m reaches a share of successful trials. Three laws of m* in T are fitted to log m*,
and one number tells a power law from a logarithm without choosing between fits. m* = a T^b is a straight line in log T.
m* = a + b log T has the slope p = b/m* and the second derivative -p^2: it bends down by its own slope squared, whatever
a and b are. So the second derivative of a weighted parabola through (log T, log m*) is compared with 0 and with minus
its slope squared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from boundcalc.base.errors import NoSolution

_Array = Any
_RIDGE = 1e-3
"""A trace of a prior on the slope: where successes are separated from failures, the likelihood has no maximum."""
_STEEPEST = 40.0
_MODELS = ("log", "power", "linear")


@dataclass(frozen=True)
class Cell:
    """Trials of one T and one m."""

    T: int
    m: int
    n: int
    successes: int


@dataclass(frozen=True)
class Threshold:
    """m* of one T: where the fitted success probability reaches the level; an interval by bootstrap."""

    T: int
    m_star: float
    low: float
    high: float
    trials: int
    inside: bool
    """Whether m* lies within the m that were tried."""


@dataclass(frozen=True)
class Fit:
    """One law of m* in T, fitted to log m* by least squares.

    log: a + b log2 T; power: a T^b; linear: a + b T. The AIC takes residuals in units of the bootstrap errors of m*, so
    a law counts as worse only by what sampling noise does not explain.
    """

    model: str
    a: float
    b: float
    r2: float
    aic: float

    def __call__(self, T: float) -> float:
        """The fitted m*."""
        return float(_curve(self.model, self.a, self.b, np.asarray(float(T))))


@dataclass(frozen=True)
class Analysis:
    """Thresholds, fits, and what may be said of them."""

    level: float
    thresholds: tuple[Threshold, ...]
    fits: tuple[Fit, ...] = ()
    exponent: tuple[float, float] = (0.0, 0.0)
    """The 95% bootstrap interval of the power law's b."""
    bend: Bend | None = None
    """Power law or logarithm, where there are lengths enough to tell."""

    def fit(self, model: str) -> Fit:
        """One of the fits."""
        return next(f for f in self.fits if f.model == model)


def cells(records: Iterable[Any], success: float) -> list[Cell]:
    """Trials counted by T and m; a diverged trial is a failure."""
    counts: dict[tuple[int, int], list[int]] = {}
    for record in records:
        learned = record.result["status"] == "done" and 1 - record.result["test"]["error"] >= success
        place = int(record.config["task"]["T"]), int(record.config["m"])
        counts.setdefault(place, []).append(int(learned))
    return [Cell(T, m, len(successes), sum(successes)) for (T, m), successes in sorted(counts.items())]


def analyse(counted: Sequence[Cell], *, level: float = 0.8, draws: int = 1000, seed: int = 0) -> Analysis:
    """m* of every T, with bootstrap intervals (trials resampled within each T and m), and fits of its growth."""
    by_length: dict[int, list[Cell]] = {}
    for cell in counted:
        by_length.setdefault(cell.T, []).append(cell)
    if not by_length:
        raise NoSolution("no trials of a fixed number of examples to find a threshold in: boundcalc sweep conjunction")
    rng = np.random.default_rng(seed)
    thresholds: list[Threshold] = []
    tables: list[_Array] = []
    for T, group in sorted(by_length.items()):
        m = np.array([c.m for c in group], float)
        n = np.array([c.n for c in group])
        k = np.array([c.successes for c in group])
        if len(group) < 2 or k.sum() == 0 or k.sum() == n.sum():
            which = "every" if k.sum() else "no"
            raise NoSolution(
                f"T = {T}: {which} trial succeeds at {len(group)} values of m, so no threshold can be fitted: "
                "try other m (in the grid of the sweep)"
            )
        star = float(_m_star(m, n, k[None], level)[0])
        stars = _m_star(m, n, rng.binomial(n, k / n, size=(draws, len(n))), level)
        low, high = np.quantile(stars, [0.025, 0.975])
        thresholds.append(Threshold(T, star, float(low), float(high), int(n.sum()), bool(m.min() <= star <= m.max())))
        tables.append(stars)
    if len(thresholds) < 3:
        return Analysis(level, tuple(thresholds))
    lengths = np.array([t.T for t in thresholds], float)
    point = np.log([t.m_star for t in thresholds])
    boot = np.log(np.stack(tables, 1))
    low, high = np.quantile(boot, [0.025, 0.975], axis=0)
    noise = np.maximum(high - low, 1e-6) / (2 * 1.96)
    fits: list[Fit] = []
    for model in _MODELS:
        a, b = _fit(model, lengths, point)
        fits.append(Fit(model, a, b, *_quality(model, a, b, lengths, point, noise)))
    low, high = (float(end) for end in np.quantile(np.polyfit(np.log(lengths), boot.T, 1)[0], [0.025, 0.975]))
    bend = measure(lengths.tolist(), point, boot, noise) if len(lengths) >= LEAST_LENGTHS else None
    return Analysis(level, tuple(thresholds), tuple(fits), (low, high), bend)


def _m_star(m: _Array, n: _Array, k: _Array, level: float) -> _Array:
    """Where logistic curves in log m, fitted to rows of counts, reach the level: Newton's method on all rows."""
    x = np.log(m)
    centre = x.mean()
    x = x - centre
    a, b = np.zeros(len(k)), np.full(len(k), 4.0)
    for _ in range(60):
        p = 1 / (1 + np.exp(-np.clip(a[:, None] + b[:, None] * x, -35, 35)))
        weight = np.maximum(n * p * (1 - p), 1e-9)
        rest = k - n * p
        slope_a, slope_b = rest.sum(1), (rest * x).sum(1) - _RIDGE * b
        aa, ab, bb = weight.sum(1) + 1e-9, (weight * x).sum(1), (weight * x**2).sum(1) + _RIDGE
        determinant = aa * bb - ab**2
        step_a, step_b = (bb * slope_a - ab * slope_b) / determinant, (aa * slope_b - ab * slope_a) / determinant
        damping = np.minimum(1.0, 5.0 / np.maximum(1e-12, np.maximum(np.abs(step_a), np.abs(step_b))))
        now = _likelihood(a, b, x, n, k)
        new_a, new_b = a, b
        for _ in range(30):  # the likelihood is concave, but a full step may overshoot it for ever
            new_a, new_b = a + damping * step_a, np.clip(b + damping * step_b, 0.05, _STEEPEST)
            worse = _likelihood(new_a, new_b, x, n, k) < now - 1e-12
            if not worse.any():
                break
            damping = np.where(worse, damping / 2, damping)
        step_a, step_b, a, b = new_a - a, new_b - b, new_a, new_b
        if max(np.abs(step_a).max(), np.abs(step_b).max()) < 1e-9:
            break
    stars = np.exp(
        np.clip((math.log(level / (1 - level)) - a) / b + centre, math.log(m.min() / 10), math.log(m.max() * 10))
    )
    # a resample without any contrast: m* lies beyond the grid
    stars = np.where(k.sum(1) == 0, m.max() * 2, stars)
    return np.where(k.sum(1) == n.sum(), m.min() / 2, stars)


def _likelihood(a: _Array, b: _Array, x: _Array, n: _Array, k: _Array) -> _Array:
    """What the fit maximises, by row of counts."""
    at = a[:, None] + b[:, None] * x
    return (k * at - n * np.logaddexp(0.0, at)).sum(1) - _RIDGE * b**2 / 2


def _curve(model: str, a: Any, b: Any, T: Any) -> _Array:
    if model == "log":
        return a + b * np.log2(T)
    if model == "power":
        return a * np.power(T, b)
    return a + b * T


def _fit(model: str, T: _Array, log_m: _Array) -> tuple[float, float]:
    """Least squares of log m*."""
    if model == "power":
        b, log_a = np.polyfit(np.log(T), log_m, 1)
        return math.exp(log_a), float(b)
    x = np.log2(T) if model == "log" else T
    start = np.polyfit(x, np.exp(log_m), 1)[::-1]
    best = least_squares(lambda at: np.log(np.maximum(at[0] + at[1] * x, 1e-6)) - log_m, start, x_scale=abs(start))
    return float(best.x[0]), float(best.x[1])


def _quality(model: str, a: float, b: float, T: _Array, log_m: _Array, noise: _Array) -> tuple[float, float]:
    """R^2, and the AIC of normal residuals with these standard deviations."""
    residuals = np.log(np.maximum(_curve(model, a, b, T), 1e-9)) - log_m
    rss = max(float((residuals**2).sum()), 1e-12)
    total = max(float(((log_m - log_m.mean()) ** 2).sum()), 1e-12)
    return 1 - rss / total, float(((residuals / noise) ** 2).sum()) + 2 * 2


def words_of(analysis: Analysis) -> list[str]:
    """What the numbers support, and no more."""
    lines: list[str] = []
    outside = [t.T for t in analysis.thresholds if not t.inside]
    if outside:
        lines.append(
            f"m* is extrapolated at T = {', '.join(map(str, outside))}: it lies outside the m that were tried."
        )
    if not analysis.fits:
        return [*lines, "Fewer than three lengths: no law is fitted."]
    lengths = [t.T for t in analysis.thresholds]
    power = analysis.fit("power")
    lines.append(
        f"For T from {lengths[0]} to {lengths[-1]} the exponent of a power law is {power.b:.3f}, 95% bootstrap "
        f"interval [{analysis.exponent[0]:.3f}, {analysis.exponent[1]:.3f}]."
    )
    if analysis.bend is not None:
        return [*lines, analysis.bend.words()]
    ordered = sorted(analysis.fits, key=lambda f: f.aic)
    worse = [f"{f.model} by {f.aic - ordered[0].aic:.3g}" for f in ordered[1:]]
    return [*lines, f"The {ordered[0].model} law has the smallest AIC; larger: {', '.join(worse)}."]


LEAST_LENGTHS = 5
"""Of a parabola's points two are left to disagree."""


@dataclass(frozen=True)
class Bend:
    """The parabola's numbers, with 95% bootstrap intervals.

    Attributes:
        slope: the local exponent p in the middle of the lengths.
        bend: the second derivative of log m* in log T; 0 for a power law.
        bend_low, bend_high: its interval.
        beyond: bend + p^2; 0 for a + b log T.
        beyond_low, beyond_high: its interval.
    """

    slope: float
    bend: float
    bend_low: float
    bend_high: float
    beyond: float
    beyond_low: float
    beyond_high: float

    @property
    def verdict(self) -> str:
        """Which law is not rejected: "power", "log", both ("open") or none ("neither")."""
        power = self.bend_low <= 0 <= self.bend_high
        log = self.beyond_low <= 0 <= self.beyond_high
        if power and log:
            return "open"
        return "power" if power else "log" if log else "neither"

    def words(self) -> str:
        """One sentence."""
        said = {
            "open": "so both a power law and a logarithm remain possible",
            "power": "so a power law remains possible and a logarithm does not",
            "log": "so a logarithm remains possible and a power law does not",
            "neither": "so neither a power law nor a logarithm describes them",
        }[self.verdict]
        return (
            f"log m* bends by {self.bend:+.4f} [{self.bend_low:+.4f}, {self.bend_high:+.4f}] per unit of log T (a "
            f"power law: 0), which is {self.beyond:+.4f} [{self.beyond_low:+.4f}, {self.beyond_high:+.4f}] beyond what "
            f"a + b log T of its slope {self.slope:.3f} has: {said}."
        )


def measure(lengths: Sequence[float], logs: Any, draws: Any, noise: Any) -> Bend:
    """From log m* by length, bootstrap draws of it (draws, lengths) and its standard errors."""
    x, weight = np.log(np.asarray(lengths, float)), np.asarray(noise, float) ** -2
    x = x - (weight * x).sum() / weight.sum()
    design = np.stack([np.ones_like(x), x, x**2 / 2], 1)
    solver = np.linalg.solve(design.T @ (weight[:, None] * design), design.T * weight)
    _, slope, bend = solver @ np.asarray(logs, float)
    _, slopes, bends = solver @ np.asarray(draws, float).T
    low, high = np.quantile(bends, [0.025, 0.975])
    far_low, far_high = np.quantile(bends + slopes**2, [0.025, 0.975])
    numbers = (slope, bend, low, high, bend + slope**2, far_low, far_high)
    return Bend(*(float(value) for value in numbers))
