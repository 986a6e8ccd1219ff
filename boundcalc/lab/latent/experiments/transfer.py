"""From a pretext task to a downstream task: diversity of the pretext tasks decides what their error costs.

z ~ N(0, I_p); a sequence is L tokens z + noise, so h = E[z|X] is the shrunken mean. The pretext tasks predict M z from
X, by least squares on m labelled sequences; the downstream task is w z, through the head w M^+ on the pretext outputs.
As the law is known, the error of what was learned is known exactly, and measured too.

The bound takes the errors of the pretext task as hostile. They need not be: those of least squares are linear in X and betray
directions that M hides, so a head fitted to downstream labels (last column) may do better than any bound from e_pre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import Unsupported
from boundcalc.lab.latent.experiments.numbers import Numbers
from boundcalc.lab.latent.experiments.statistics import Interval, mean_interval
from boundcalc.lab.latent.transfer import best_head, condition, head_bound, transfer_bound
from boundcalc.setting import validate

_Array = NDArray[Any]


@dataclass(frozen=True)
class TransferPlan:
    """What is run.

    Attributes:
        diversities: least singular value of M (the greatest is 1); 0 means that a direction of w is missed.
        latent: p.
        tasks: rows of M.
        length: L.
        pretrain: m, labelled sequences for the pretext tasks.
        downstream: labelled sequences for the fitted head.
        test: fresh sequences that errors are measured on.
        noise: deviation of the tokens and of the labels.
        repetitions: independent runs per diversity.
        seed: of everything.
    """

    diversities: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0)
    latent: int = 4
    tasks: int = 6
    length: int = 32
    pretrain: int = 2000
    downstream: int = 100
    test: int = 20000
    noise: float = 1.0
    repetitions: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for diversity in self.diversities:
            validate.fraction("diversity", diversity, ends=True)
        for name in ("latent", "length", "downstream"):
            validate.size(name, getattr(self, name))
        validate.size("tasks", self.tasks, least=self.latent)
        validate.size("pretrain", self.pretrain, least=2 * self.latent)
        validate.size("test", self.test, least=100)
        validate.size("repetitions", self.repetitions, least=3)
        validate.positive("noise", self.noise)
        validate.size("seed", self.seed, least=0)


@dataclass(frozen=True)
class TransferRow(Numbers):
    """One diversity.

    Attributes:
        diversity: least singular value of M.
        kappa: |w M^+|; infinite where w leaves the row space.
        pretext: E|yhat - M h|^2 of what was learned, exact, over runs.
        induced: measured E|w M^+ yhat - w h|^2; None where there is no such head.
        bound: the limit for it, mean over runs; None where refused.
        best: measured error of the head with the least bound.
        best_bound: the limit for that head, mean over runs.
        fitted: measured error of a head fitted to downstream labels.
        violations: runs in which an exact downstream error exceeds its bound.
        reason: why there is no bound.
    """

    diversity: float
    kappa: float
    pretext: Interval
    induced: Interval | None
    bound: float | None
    best: Interval
    best_bound: float
    fitted: Interval
    violations: int
    reason: str = ""


@dataclass(frozen=True)
class Run:
    """One pretrained predictor: yhat(X) = learned @ (mean of the tokens), and the exact errors it has."""

    learned: _Array
    pretext_error: float


def _shrink(plan: TransferPlan) -> tuple[float, float]:
    """C with h = c * mean of the tokens, and the variance of that mean."""
    variance = 1 + plan.noise**2 / plan.length
    return 1 / variance, variance


def pretext_matrix(plan: TransferPlan, diversity: float, rng: np.random.Generator) -> _Array:
    """M with singular values from 1 down to `diversity`, evenly in logs (one of them 0 for diversity 0)."""
    p = plan.latent
    left = np.linalg.qr(rng.standard_normal((plan.tasks, p)))[0]
    right = np.linalg.qr(rng.standard_normal((p, p)))[0]
    if diversity == 0:
        sigma = np.append(np.ones(p - 1), 0.0)
    else:
        sigma = np.geomspace(1.0, diversity, p) if p > 1 else np.array([diversity])
    return left * sigma @ right.T


def downstream_task(m: _Array, plan: TransferPlan) -> _Array:
    """W: an equal part of every right singular direction of M."""
    return np.linalg.svd(m)[2].sum(0) / math.sqrt(plan.latent)


def pretrain(plan: TransferPlan, m: _Array, rng: np.random.Generator) -> Run:
    """Least squares of noisy labels M z on the mean of the tokens."""
    c, variance = _shrink(plan)
    z = rng.standard_normal((plan.pretrain, plan.latent))
    means = z + plan.noise / math.sqrt(plan.length) * rng.standard_normal(z.shape)
    labels = z @ m.T + plan.noise * rng.standard_normal((plan.pretrain, plan.tasks))
    learned = np.linalg.lstsq(means, labels, rcond=None)[0].T
    return Run(learned, float(np.square(learned - c * m).sum()) * variance)


def _fit_head(plan: TransferPlan, run: Run, w: _Array, rng: np.random.Generator) -> _Array:
    """A head on the pretext outputs fitted to downstream labels (minimum norm)."""
    z = rng.standard_normal((plan.downstream, plan.latent))
    means = z + plan.noise / math.sqrt(plan.length) * rng.standard_normal(z.shape)
    labels = z @ w + plan.noise * rng.standard_normal(plan.downstream)
    return np.linalg.lstsq(means @ run.learned.T, labels, rcond=1e-10)[0]


def downstream_error(plan: TransferPlan, run: Run, head: _Array, w: _Array) -> float:
    """E(head yhat - w h)^2, exactly."""
    c, variance = _shrink(plan)
    return float(np.square(head @ run.learned - c * w).sum()) * variance


def measure(plan: TransferPlan, run: Run, head: _Array, w: _Array, rng: np.random.Generator) -> float:
    """Mean of (head yhat - w h)^2 over fresh sequences."""
    c, variance = _shrink(plan)
    means = math.sqrt(variance) * rng.standard_normal((plan.test, plan.latent))
    return float(np.square(means @ (head @ run.learned - c * w)).mean())


def transfer(plan: TransferPlan) -> list[TransferRow]:
    """Runs the plan."""
    return [_row(plan, diversity, i) for i, diversity in enumerate(plan.diversities)]


def _row(plan: TransferPlan, diversity: float, index: int) -> TransferRow:
    c, variance = _shrink(plan)
    spread = c * math.sqrt(variance)  # E hh^T = c^2 variance I
    pretext: list[float] = []
    induced: list[float] = []
    fitted: list[float] = []
    bounds: list[float] = []
    best: list[float] = []
    best_bounds: list[float] = []
    kappas: list[float] = []
    violations, reason = 0, ""
    for repetition in range(plan.repetitions):
        rng = np.random.default_rng([plan.seed, index, repetition])
        m = pretext_matrix(plan, diversity, rng)
        w = downstream_task(m, plan)
        run = pretrain(plan, m, rng)
        pretext.append(run.pretext_error)
        safe = best_head(m, w, run.pretext_error, spread=spread)
        best.append(measure(plan, run, safe, w, rng))
        best_bounds.append(head_bound(m, w, safe, run.pretext_error, spread=spread).value)
        violations += downstream_error(plan, run, safe, w) > best_bounds[-1] * (1 + 1e-9)
        fitted.append(measure(plan, run, _fit_head(plan, run, w, rng), w, rng))
        try:
            head = condition(m, w).head
            bound = transfer_bound(m, w, run.pretext_error).value
        except Unsupported as error:
            reason = str(error)
            kappas.append(math.inf)
            continue
        kappas.append(float(np.linalg.norm(head)))
        bounds.append(bound)
        induced.append(measure(plan, run, head, w, rng))
        violations += downstream_error(plan, run, head, w) > bound * (1 + 1e-9)
    return TransferRow(
        diversity,
        float(np.mean(kappas)),
        mean_interval(pretext),
        mean_interval(induced) if induced else None,
        float(np.mean(bounds)) if bounds else None,
        mean_interval(best),
        float(np.mean(best_bounds)),
        mean_interval(fitted),
        violations,
        reason,
    )
