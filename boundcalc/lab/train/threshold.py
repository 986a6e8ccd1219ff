"""How many examples a task needs at each length, and what its growth with the length is consistent with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.lab.train.bend import LEAST_LENGTHS, Bend, measure
from boundcalc.lab.train.record import Record, summary_columns

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
    b_low: float
    b_high: float

    def __call__(self, T: float) -> float:
        """The fitted m*."""
        return float(_curve(self.model, self.a, self.b, np.asarray(float(T))))

    @property
    def formula(self) -> str:
        """In words a person would write."""
        if self.model == "log":
            return f"{self.a:.3g} {'+' if self.b >= 0 else '-'} {abs(self.b):.3g} log2 T"
        if self.model == "power":
            return f"{self.a:.3g} T^{self.b:.3f}"
        return f"{self.a:.3g} {'+' if self.b >= 0 else '-'} {abs(self.b):.3g} T"


@dataclass(frozen=True)
class Analysis:
    """Thresholds, fits, and what may be said of them."""

    level: float
    thresholds: tuple[Threshold, ...]
    fits: tuple[Fit, ...] = ()
    held_out: tuple[Threshold, ...] = ()
    """Lengths the fits have not seen."""
    samples: Mapping[str, _Array] = field(default_factory=dict[str, _Array], repr=False)
    """Bootstrap draws of (a, b) per model."""
    bend: Bend | None = None
    """Power law or logarithm, where there are lengths enough to tell."""

    def fit(self, model: str) -> Fit:
        """One of the fits."""
        return next(f for f in self.fits if f.model == model)

    def prediction(self, model: str, T: float, level: float = 0.95) -> tuple[float, float]:
        """An interval for m* at another T: uncertainty of the fit, and the spread of single thresholds around it."""
        fit = self.fit(model)
        draws = self.samples[model]
        logs = np.log(np.maximum(_curve(model, draws[:, 0], draws[:, 1], float(T)), 1e-9))
        residuals = np.array([math.log(t.m_star / max(fit(t.T), 1e-9)) for t in self.thresholds])
        freedom = max(1, len(residuals) - 2)
        spread = math.sqrt(float((residuals**2).sum()) / freedom)
        noise = np.random.default_rng(0).standard_t(freedom, len(logs)) * spread
        low, high = np.quantile(logs + noise, [(1 - level) / 2, (1 + level) / 2])
        return math.exp(low), math.exp(high)

    def words(self) -> list[str]:
        """What the numbers support, and no more."""
        return _words(self)

    def to_json(self) -> dict[str, Any]:
        """All numbers."""
        return {
            "level": self.level,
            "thresholds": [vars(t) for t in self.thresholds],
            "held_out": [vars(t) for t in self.held_out],
            "fits": [
                {**vars(f), "formula": f.formula, "delta_aic": f.aic - min(g.aic for g in self.fits)} for f in self.fits
            ],
            "bend": None if self.bend is None else {**vars(self.bend), "verdict": self.bend.verdict},
            "words": self.words(),
        }


def cells(records: Iterable[Record], success: float) -> list[Cell]:
    """Trials counted by T and m; a diverged trial is a failure."""
    counts: dict[tuple[int, int], list[int]] = {}
    for record in records:
        length = summary_columns(record.config, record.result)["T"]
        if length is None or record.config["m"] == 0:
            continue
        learned = record.result["status"] == "done" and 1 - record.result["test"]["error"] >= success
        counts.setdefault((int(length), int(record.config["m"])), []).append(int(learned))
    return [Cell(T, m, len(found), sum(found)) for (T, m), found in sorted(counts.items())]


def analyse(
    found: Sequence[Cell], *, level: float = 0.8, draws: int = 1000, seed: int = 0, held_out: Sequence[int] = ()
) -> Analysis:
    """m* of every T, with bootstrap intervals (trials resampled within each T and m), and fits over those not held out."""
    by_length: dict[int, list[Cell]] = {}
    for cell in found:
        by_length.setdefault(cell.T, []).append(cell)
    if not by_length:
        raise NoSolution("no trials of a fixed number of examples to find a threshold in: boundcalc sweep conjunction")
    absent = sorted(set(held_out) - set(by_length))
    if absent:
        raise InvalidSetting(f"there are no trials of T = {absent[0]} to hold out: there are {sorted(by_length)}")
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
    kept = [k for k, t in enumerate(thresholds) if t.T not in held_out]
    left_out = tuple(t for t in thresholds if t.T in held_out)
    thresholds = [thresholds[k] for k in kept]
    if len(thresholds) < 3:
        return Analysis(level, tuple(thresholds), held_out=left_out)
    lengths = np.array([t.T for t in thresholds], float)
    point = np.log([t.m_star for t in thresholds])
    boot = np.log(np.stack([tables[k] for k in kept], 1))
    low, high = np.quantile(boot, [0.025, 0.975], axis=0)
    noise = np.maximum(high - low, 1e-6) / (2 * 1.96)
    fits: list[Fit] = []
    samples: dict[str, _Array] = {}
    for model in _MODELS:
        a, b = (float(value) for value in _fit(model, lengths, point[None])[0])
        samples[model] = _fit(model, lengths, boot)
        low, high = np.quantile(samples[model][:, 1], [0.025, 0.975])
        fits.append(Fit(model, a, b, *_quality(model, a, b, lengths, point, noise), float(low), float(high)))
    bend = measure(lengths.tolist(), point, boot, noise) if len(lengths) >= LEAST_LENGTHS else None
    return Analysis(level, tuple(thresholds), tuple(fits), left_out, samples, bend)


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


def _fit(model: str, T: _Array, log_m: _Array) -> _Array:
    """Least squares of rows of log m*; (a, b) per row: closed for the power law, else Gauss-Newton."""
    x = {"power": np.log(T), "log": np.log2(T), "linear": T}[model]
    unit = 1.0 if model == "power" else float(x.max())
    x = x / unit
    design = np.stack([np.ones_like(x), x], 1)
    if model == "power":
        theta = np.linalg.lstsq(design, log_m.T, rcond=None)[0].T
        return np.stack([np.exp(theta[:, 0]), theta[:, 1]], 1)
    theta = np.linalg.lstsq(design, np.exp(log_m).T, rcond=None)[0].T

    def loss(at: _Array) -> _Array:
        return ((np.log(np.maximum(at @ design.T, 1e-6)) - log_m) ** 2).sum(1)

    best = loss(theta)
    for _ in range(40):
        value = np.maximum(theta @ design.T, 1e-6)
        slope = design[None] / value[:, :, None]
        wrong = np.log(value) - log_m
        normal = np.einsum("rni,rnj->rij", slope, slope)
        normal += 1e-9 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(2)
        step = np.linalg.solve(normal, np.einsum("rni,rn->ri", slope, wrong)[..., None])[..., 0]
        for half in range(12):
            trial = theta - step * 0.5**half
            new = loss(trial)
            better = new < best
            theta[better], best[better] = trial[better], new[better]
            step[better] = 0.0
    return theta / np.array([1.0, unit])


def _quality(model: str, a: float, b: float, T: _Array, log_m: _Array, noise: _Array) -> tuple[float, float]:
    """R^2, and the AIC of normal residuals with these standard deviations."""
    residuals = np.log(np.maximum(_curve(model, a, b, T), 1e-9)) - log_m
    rss = max(float((residuals**2).sum()), 1e-12)
    total = max(float(((log_m - log_m.mean()) ** 2).sum()), 1e-12)
    return 1 - rss / total, float(((residuals / noise) ** 2).sum()) + 2 * 2


def _words(found: Analysis) -> list[str]:
    lines: list[str] = []
    outside = [t.T for t in found.thresholds if not t.inside]
    if outside:
        lines.append(f"m* lies outside the m that were tried at T = {', '.join(map(str, outside))}: an extrapolation.")
    if len(found.fits) == 0:
        lines.append("Fewer than three lengths: no law is fitted.")
        return lines
    lengths = [t.T for t in found.thresholds]
    ordered = sorted(found.fits, key=lambda f: f.aic)
    best = ordered[0]
    close = [f.model for f in ordered[1:] if f.aic - best.aic < 4]
    worse = [f.model for f in ordered[1:] if f.aic - best.aic >= 4]
    power = found.fit("power")
    where = f"for T from {lengths[0]} to {lengths[-1]} ({len(lengths)} lengths)"
    lines.append(
        f"{where}, the power law's exponent is {power.b:.3f}, 95% bootstrap interval "
        f"[{power.b_low:.3f}, {power.b_high:.3f}]."
    )
    if close:
        lines.append(
            f"The fits {best.model} and {', '.join(close)} cannot be told apart here (AIC within 4 of each other)."
        )
    else:
        lines.append(f"The {best.model} fit describes these points best.")
    if worse:
        lines.append(f"Described worse by: {', '.join(worse)}.")
    if found.bend is not None:
        lines.append(found.bend.words())
    lines += [_against(found, t) for t in found.held_out]
    lines.append("These fits describe the range measured; they prove nothing about larger T.")
    return [line[0].upper() + line[1:] if not line.startswith("log m*") else line for line in lines]


def _against(found: Analysis, t: Threshold) -> str:
    """A length that was held out beside what the fits say of it, the best fit first."""
    parts: list[str] = []
    for fit in sorted(found.fits, key=lambda f: f.aic):
        low, high = found.prediction(fit.model, t.T)
        where = "inside" if low <= t.m_star <= high else "above" if t.m_star > high else "below"
        parts.append(f"{where} [{low:.1f}, {high:.1f}] of the {fit.model} fit")
    return f"held out, T = {t.T} has m* = {t.m_star:.1f} [{t.low:.1f}, {t.high:.1f}]: {', '.join(parts)}."
