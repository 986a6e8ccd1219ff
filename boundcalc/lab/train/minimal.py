"""Is a trained representation the posterior, and no more? Probes of what a network keeps of its input, and what it drops.

The sequence has two hidden odds; the label depends on the first (task `coins`). Without positions a network sees three
numbers: how often each coin fell heads, and how often both did. The posterior of what matters is a function of the first.
The representation is what the read-out reads, its rows centred, scaled to root mean square 1, and seen through normal noise
(else a map that is one to one loses nothing, however little of it there is). A probe is the share of the variance of a number
that a non-linear regression on it explains on fresh sequences; log(1/(1 - share))/2 nats of it are at least known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from boundcalc.lab.latent.experiments.numbers import Numbers
from boundcalc.lab.latent.experiments.statistics import Interval, mean_interval
from boundcalc.lab.train.layers import through
from boundcalc.lab.train.parameters import read_row
from boundcalc.lab.train.source import NumpySource
from boundcalc.lab.train.tasks.latent import CoinsTask
from boundcalc.lab.train.trainer import Outcome, train
from boundcalc.lab.train.trial import Optimisation, Trial
from boundcalc.setting import Architecture, validate

_Array = NDArray[Any]
TARGETS = ("posterior", "other coin", "both")
"""What is looked for: the posterior mean of what matters, of what does not, and the co-occurrence of the two."""
_FEATURES = 200
_RIDGE = 1e-3


@dataclass(frozen=True)
class MinimalPlan:
    """What is run.

    Attributes:
        length: L, tosses of each coin.
        steps: when training is stopped and the representation looked at.
        seeds: networks.
        d: width.
        decay: weight decay of the training.
        noise: of the eye that looks at a representation of root mean square 1.
        n: sequences to fit a probe, and as many to judge it.
    """

    length: int = 32
    steps: tuple[int, ...] = (1, 10, 100, 1000, 3000)
    seeds: int = 5
    d: int = 16
    noise: float = 0.1
    decay: float = 0.3
    n: int = 4000

    def __post_init__(self) -> None:
        for name, least in (("length", 2), ("seeds", 2), ("d", 2), ("n", 500)):
            validate.size(name, getattr(self, name), least=least)
        for steps in self.steps:
            validate.size("steps", steps)
        validate.positive("noise", self.noise)
        validate.positive("decay", self.decay, zero=True)

    def trials(self, steps: int) -> list[Trial]:
        """One per seed: fresh sequences at every step, so that nothing is memorised."""
        task = CoinsTask(self.length)
        architecture = Architecture(
            style="post",
            residual=True,
            seq_len=self.length + 1,
            d=self.d,
            heads=2,
            d_head=self.d // 2,
            depth=1,
            vocabulary=5,
        )
        rule = Optimisation(lr=3e-3, batch=64, steps=steps, stop_loss=0.0, weight_decay=self.decay, optimiser="adamw")
        return [Trial(task, architecture, 0, seed, 2048, optimisation=rule) for seed in range(self.seeds)]


@dataclass(frozen=True)
class Row(Numbers):
    """Networks after some steps.

    Attributes:
        steps: of training; None for the posterior itself in place of a representation.
        error: test error, mean over networks.
        bayes: the least there is.
        shares: how much of each target a representation tells: means over networks, with 95% intervals.
    """

    steps: int | None
    error: float
    bayes: float
    shares: Mapping[str, Interval]


def minimal(plan: MinimalPlan) -> list[Row]:
    """The representation while it is trained, and the posterior beside it."""
    bayes = CoinsTask(plan.length).bayes_risk().value
    rows: list[Row] = []
    for steps in plan.steps:
        outcomes = train(plan.trials(steps))
        found = [_shares(plan, seed, *_looked_at(plan, outcome, seed)) for seed, outcome in enumerate(outcomes)]
        error = float(np.mean([outcome.result["test"]["error"] for outcome in outcomes]))
        rows.append(Row(steps, error, bayes, _mean(found)))
    known = [_shares(plan, seed, numbers[:, :1], numbers) for seed, numbers in _inputs(plan)]
    rows.append(Row(None, bayes, bayes, _mean(known)))
    return rows


def _sequences(plan: MinimalPlan, seed: int) -> tuple[_Array, _Array]:
    """Fresh sequences, and the numbers that are looked for in what networks make of them."""
    tokens, _ = CoinsTask(plan.length).sample({}, NumpySource(10**6 + seed), 2 * plan.n)
    tosses = tokens[:, 1:] - 1
    first, second = tosses % 2, tosses // 2
    means = [(heads.sum(1) + 1) / (plan.length + 2) for heads in (first, second)]
    both = (first * second).mean(1) - first.mean(1) * second.mean(1)
    return tokens, np.stack([*means, both], axis=1)


def _inputs(plan: MinimalPlan) -> list[tuple[int, _Array]]:
    return [(seed, _sequences(plan, seed)[1]) for seed in range(plan.seeds)]


@torch.no_grad()
def _looked_at(plan: MinimalPlan, outcome: Outcome, seed: int) -> tuple[_Array, _Array]:
    """What the read-out of a network reads, and the numbers."""
    tokens, numbers = _sequences(plan, seed)
    architecture = outcome.trial.architecture
    rows = through(architecture.stages[:-1], outcome.weights, torch.from_numpy(tokens), read_row(architecture))
    return rows.squeeze(-2).double().numpy(), numbers


def _shares(plan: MinimalPlan, seed: int, seen: _Array, numbers: _Array) -> dict[str, float]:
    rng = np.random.default_rng([seed, 3])
    seen = seen - seen[: plan.n].mean(0)
    seen = seen / max(math.sqrt(float(np.square(seen[: plan.n]).sum(1).mean())), 1e-12)
    seen = seen + plan.noise * rng.standard_normal(seen.shape)
    turned = seen @ rng.standard_normal((seen.shape[1], _FEATURES)) + rng.uniform(-1, 1, _FEATURES)
    features = np.concatenate([np.ones((len(seen), 1)), seen, np.maximum(turned, 0)], axis=1)
    return {name: _explained(features, numbers[:, i], plan.n) for i, name in enumerate(TARGETS)}


def _explained(features: _Array, target: _Array, n: int) -> float:
    """Share of a number's variance that ridge regression on the first n rows explains on the others; never below 0."""
    fit, judged = features[:n], features[n:]
    centre = target[:n].mean()
    weights = np.linalg.solve(fit.T @ fit / n + _RIDGE * np.eye(fit.shape[1]), fit.T @ (target[:n] - centre) / n)
    left = np.square(target[n:] - centre - judged @ weights).mean()
    return float(max(0.0, 1 - left / target[n:].var()))


def _mean(found: list[dict[str, float]]) -> dict[str, Interval]:
    return {name: mean_interval([one[name] for one in found]) for name in TARGETS}
