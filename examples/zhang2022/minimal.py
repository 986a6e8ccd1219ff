"""A trained representation is the posterior, and no more.

Tokens are tosses of two coins with hidden odds; the label is the next toss of the first. Without positions a network
sees three numbers: how often each coin fell heads, and how often both did. The posterior is a function of the first.
The representation is what the read-out reads, centred, scaled to size 1, and seen through noise. A probe is the share
of the variance of a number that a non-linear regression on it explains on fresh sequences. Computed: the shares of the
posterior itself, seen through the same noise. Measured: those of networks after their last step.

    python examples/zhang2022/minimal.py
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from common import Array, Values, mean_interval, run

from boundcalc.lab.train.model import through
from boundcalc.lab.train.parameters import read_row
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks.base import Shape, Task
from boundcalc.lab.train.trainer import Outcome, train
from boundcalc.lab.train.trial import Optimisation, Trial
from boundcalc.setting import Architecture

QUICK = {"steps": (1, 800), "seeds": 3, "n": 2000}
TARGETS = ("posterior", "other coin", "both together")
"""Posterior mean of the coin that decides the label, of the other coin, and their co-occurrence."""
_FEATURES = 200
_RIDGE = 1e-3


@dataclass(frozen=True)
class Coins(Task):
    """A token is one toss of each coin: 1 + first + 2 second. Token 0 asks. Odds are uniform, new in every sequence."""

    kind: ClassVar[str] = "coins"
    L: int = 32

    @property
    def shape(self) -> Shape:
        return Shape("tokens", self.L + 1, "binary", vocabulary=5)

    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        odds = source.uniform(n, 1, 2)
        tosses = (source.uniform(n, self.L + 1, 2) < odds) * 1
        y = tosses[:, 0, 0] * 1
        tokens = 1 + tosses[..., 0] + 2 * tosses[..., 1]
        tokens[:, 0] = 0
        return tokens, y

    def least_error(self) -> float:
        """E min(p, 1 - p), p = (k + 1)/(L + 2): every number k of heads is as likely as any other."""
        chances = (np.arange(self.L + 1) + 1) / (self.L + 2)
        return float(np.minimum(chances, 1 - chances).mean())


def sequences(task: Coins, seed: int, n: int) -> tuple[Array, Array]:
    """2n fresh sequences, and the numbers that are looked for in what networks make of them."""
    tokens = task.sample({}, Source(10**6 + seed), 2 * n)[0].numpy()
    tosses = tokens[:, 1:] - 1
    first, second = tosses % 2, tosses // 2
    means = [(heads.sum(1) + 1) / (task.L + 2) for heads in (first, second)]
    return tokens, np.stack([*means, (first * second).mean(1) - first.mean(1) * second.mean(1)], axis=1)


@torch.no_grad()
def representation(outcome: Outcome, tokens: Array) -> Array:
    """What the read-out of a network reads."""
    architecture = outcome.trial.architecture
    rows = through(architecture.stages[:-1], outcome.weights, torch.from_numpy(tokens), read_row(architecture))
    return rows.squeeze(-2).double().numpy()


def shares(seen: Array, numbers: Array, noise: float, seed: int) -> list[float]:
    """What probes, fitted to the first half of the rows, explain of each number on the second half."""
    n, rng = len(seen) // 2, np.random.default_rng([seed, 3])
    seen = seen - seen[:n].mean(0)
    seen = seen / max(math.sqrt(float(np.square(seen[:n]).sum(1).mean())), 1e-12)
    seen = seen + noise * rng.standard_normal(seen.shape)
    turned = seen @ rng.standard_normal((seen.shape[1], _FEATURES)) + rng.uniform(-1, 1, _FEATURES)
    features = np.concatenate([np.ones((len(seen), 1)), seen, np.maximum(turned, 0)], axis=1)
    fit, judged = features[:n], features[n:]
    centred = numbers - numbers[:n].mean(0)
    weights = np.linalg.solve(fit.T @ fit / n + _RIDGE * np.eye(fit.shape[1]), fit.T @ centred[:n] / n)
    left = np.square(centred[n:] - judged @ weights).mean(0)
    return np.maximum(0.0, 1 - left / numbers[n:].var(0)).tolist()


def main(
    steps: tuple[int, ...] = (1, 10, 100, 1000, 3000),
    seeds: int = 5,
    L: int = 32,
    d: int = 16,
    decay: float = 0.3,
    noise: float = 0.1,
    n: int = 4000,
) -> tuple[Values, Values]:
    """Shares by target: of the posterior, and of networks; measured ones of earlier steps under (target, steps)."""
    task, measured = Coins(L), Values()
    fresh = [sequences(task, seed, n) for seed in range(seeds)]
    model = Architecture(style="post", residual=True, seq_len=L + 1, d=d, heads=2, d_head=d // 2, depth=1, vocabulary=5)
    for count in steps:
        rule = Optimisation(lr=3e-3, batch=64, steps=count, stop_loss=0.0, weight_decay=decay)
        outcomes = train([Trial(task, model, 0, seed, 2048, optimisation=rule) for seed in range(seeds)])
        seen = [representation(outcome, tokens) for outcome, (tokens, _) in zip(outcomes, fresh, strict=True)]
        pairs = enumerate(zip(seen, fresh, strict=True))
        network_shares = np.array([shares(rows, numbers, noise, seed) for seed, (rows, (_, numbers)) in pairs])
        error = np.mean([outcome.result["test"]["error"] for outcome in outcomes])
        summary = ", ".join(f"{name} {mean_interval(x)}" for name, x in zip(TARGETS, network_shares.T, strict=True))
        print(f"{count} steps: error {error:.3f}, shares {summary}")
        for name, value in zip(TARGETS, network_shares.mean(0), strict=True):
            measured[name, count] = measured[name] = float(value)
    posterior_shares = np.mean([shares(x[:, :1], x, noise, seed) for seed, (_, x) in enumerate(fresh)], axis=0)
    print(f"least possible error {task.least_error():.3f}")
    return dict(zip(TARGETS, map(float, posterior_shares), strict=True)), measured


if __name__ == "__main__":
    run(main)
