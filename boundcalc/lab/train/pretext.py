"""One attention model, pretrained on masked tokens and then frozen: what it is worth for a task it never saw.

Task `masked-token`: the answer to the mask, given what is shown, has law M h with h = E[z | X], and both are known exactly. A
network trained on masks alone gives yhat(X); its pretext error e = E|yhat - M h|^2 is bounded from above by fresh sequences
(kl limit of the mean of a bounded number). Downstream one asks for w z, the share of even words less that of their odd twins:
w h is what X tells of it. The head w M^+ on the frozen outputs needs no downstream label, and its error is at most kappa^2 e,
kappa = |w M^+|. `blur` hides twins from the pretext and leaves the sequences as they are: kappa grows, nothing else
changes.
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
from boundcalc.lab.latent.transfer import condition, transfer_bound
from boundcalc.lab.train.model import read_only
from boundcalc.lab.train.source import NumpySource
from boundcalc.lab.train.tasks.latent import MaskedTokenTask
from boundcalc.lab.train.trainer import train
from boundcalc.lab.train.trial import Optimisation, Trial, model_for
from boundcalc.predictors.tails import divergence_limit
from boundcalc.setting import validate

_Array = NDArray[np.float64]
_LONGEST_SQUARE = 2.0
"""|p - q|^2 of two laws is at most this."""
_AT_ONCE = 2048
_DRAWN = 500


@dataclass(frozen=True)
class PretextPlan:
    """What is run.

    Attributes:
        blurs: of the pretext, at `length`.
        length: L, where blurs differ.
        lengths: L, where there is no blur.
        words: V.
        seeds: networks per place.
        steps: of pretraining, each on fresh sequences.
        batch: of a step.
        rate: of learning.
        d: width.
        labels: downstream labels for the fitted head.
        fresh: sequences that errors are measured on; as many others bound the pretext error.
        delta: failure probability of a bound.
        draws: sets of `_DRAWN` fresh sequences with which the limits of every network are tried; 0 for none.
    """

    blurs: tuple[float, ...] = (0.0, 0.25, 1 / 3, 0.4, 0.45)
    length: int = 32
    lengths: tuple[int, ...] = (4, 16, 32, 128)
    words: int = 6
    seeds: int = 4
    steps: int = 1000
    batch: int = 128
    rate: float = 1.5e-3
    d: int = 16
    labels: int = 2000
    fresh: int = 20_000
    delta: float = 0.05
    draws: int = 0

    def __post_init__(self) -> None:
        for name, least in (("seeds", 2), ("steps", 1), ("d", 2), ("labels", 10), ("fresh", 20)):
            validate.size(name, getattr(self, name), least=least)
        validate.fraction("delta", self.delta, ends=False)
        for blur in self.blurs:
            self.task(self.length, blur)
            if blur == 0.5:
                condition(self.task(self.length, blur).channel, self.wanted)  # refuses, with the reason

    def task(self, length: int, blur: float = 0.0) -> MaskedTokenTask:
        """The pretext; without blur also the law of the downstream task."""
        return MaskedTokenTask(length, self.words, blur=blur)

    @property
    def wanted(self) -> _Array:
        """The direction w of length 1: even words against odd ones."""
        return np.where(np.arange(self.words) % 2, -1.0, 1.0) / math.sqrt(self.words)

    def trials(self, task: MaskedTokenTask, steps: int) -> list[Trial]:
        """One per seed."""
        rule = Optimisation(
            lr=self.rate, warmup=50, batch=self.batch, steps=steps, stop_loss=0.0, curve_every=max(steps, 1)
        )
        model = model_for(task, d=self.d, heads=2, d_ff=4 * self.d, positions="none")
        return [Trial(task, model, m=0, seed=seed, n_test=256, optimisation=rule) for seed in range(self.seeds)]


@dataclass(frozen=True)
class Row(Numbers):
    """Networks of one blur and length.

    Attributes:
        blur: of the pretext.
        length: L.
        kappa: |w M^+|.
        pretext: E|yhat - M h|^2, over networks.
        limit: upper limits of it, each with probability 1 - delta; mean over networks.
        induced: E(w M^+ yhat - w h)^2 of the head without labels, over networks.
        bound: kappa^2 times the limit, mean over networks.
        fitted: the same error of a head fitted to downstream labels on the frozen outputs.
        untrained: of a head fitted likewise to the outputs of networks after one step.
        nothing: of the best constant: Var(w h).
        unknown: E Var(w z | X), which no one can know from X.
        exceeded: networks whose measured error lies above their bound.
        short: of the draws, in how many the limit fell short of the pretext error.
        over: in how many kappa^2 times that limit fell short of the downstream error.
    """

    blur: float
    length: int
    kappa: float
    pretext: Interval
    limit: float
    induced: Interval
    bound: float
    fitted: Interval
    untrained: Interval
    nothing: float
    unknown: float
    exceeded: int
    short: int = 0
    over: int = 0


def pretrained(plan: PretextPlan) -> list[Row]:
    """All places: the blurs at one length, then the other lengths without blur."""
    places = [(blur, plan.length) for blur in plan.blurs]
    places += [(0.0, length) for length in plan.lengths if (0.0, length) not in places]
    return [_row(plan, blur, length) for blur, length in places]


def _row(plan: PretextPlan, blur: float, length: int) -> Row:
    task, w = plan.task(length, blur), plan.wanted
    found = condition(task.channel, w)
    errors: list[tuple[float, ...]] = []
    unknown = nothing = 0.0
    short = over = 0
    late = train(plan.trials(task, plan.steps))
    early = train(plan.trials(task, 1))
    for seed, (outcome, raw) in enumerate(zip(late, early, strict=True)):

        def answers(tokens: Any, outcome: Any = outcome) -> _Array:
            return outputs(outcome.trial, outcome.weights, tokens)

        square = pretext_errors(task, answers, seed_of(seed, 1), plan.fresh)
        limit = error_limit(square, plan.delta)
        tokens, _ = plan.task(length).sample({}, NumpySource(seed_of(seed, 2)), plan.fresh)
        h = task.posterior_mean(tokens)
        seen = answers(tokens)
        before = outputs(raw.trial, raw.weights, tokens)
        asked, y = plan.task(length).sample({}, NumpySource(seed_of(seed, 3)), plan.labels)
        told = w[y]
        head = _fitted(answers(asked), told)
        other = _fitted(outputs(raw.trial, raw.weights, asked), told)
        errors.append(
            (
                float(square.mean()),
                limit,
                float(np.square(seen @ found.head - h @ w).mean()),
                transfer_bound(task.channel, w, limit).value,
                float(np.square(_with_one(seen) @ head - h @ w).mean()),
                float(np.square(_with_one(before) @ other - h @ w).mean()),
            )
        )
        tried = coverage(plan, square, found.kappa, errors[-1][2], seed)
        short, over = short + tried[0], over + tried[1]
        nothing += float((h @ w).var()) / plan.seeds
        unknown += float(left_unknown(task, h, w).mean()) / plan.seeds
    pretext, limits, induced, bounds, fitted, untrained = zip(*errors, strict=True)
    return Row(
        blur,
        length,
        found.kappa,
        mean_interval(pretext),
        float(np.mean(limits)),
        mean_interval(induced),
        float(np.mean(bounds)),
        mean_interval(fitted),
        mean_interval(untrained),
        nothing,
        unknown,
        sum(error > bound for error, bound in zip(induced, bounds, strict=True)),
        short,
        over,
    )


def coverage(plan: PretextPlan, square: _Array, kappa: float, downstream: float, seed: int) -> tuple[int, int]:
    """How often the limit from few draws misses the mean of these numbers, and kappa^2 times it the downstream error.

    The numbers are the law that is drawn from, so their mean is what the limit is of.
    """
    rng = np.random.default_rng([seed, 7])
    short = over = 0
    for _ in range(plan.draws):
        limit = error_limit(square[rng.integers(0, len(square), _DRAWN)], plan.delta)
        short += int(limit < square.mean())
        over += int(kappa**2 * limit < downstream)
    return short, over


def seed_of(seed: int, use: int) -> int:
    """Seeds of fresh sequences: none meets those of training."""
    return 10**6 + 10 * seed + use


@torch.no_grad()
def outputs(trial: Trial, weights: Mapping[str, torch.Tensor], tokens: Any) -> _Array:
    """What a network says the masked token is: laws on the words."""
    parts = torch.from_numpy(np.ascontiguousarray(tokens)).split(_AT_ONCE)
    found = [read_only(trial.architecture, dict(weights), part) for part in parts]
    return torch.softmax(torch.cat(found).double(), -1).numpy()


def pretext_errors(task: MaskedTokenTask, answers: Any, seed: int, n: int) -> _Array:
    """|yhat - M h|^2 on fresh sequences."""
    tokens, _ = task.sample({}, NumpySource(seed), n)
    return np.square(answers(tokens) - task.posterior_mean(tokens) @ task.channel.T).sum(1)


def error_limit(square: _Array, delta: float) -> float:
    """An upper limit of the mean of such numbers with probability 1 - delta: kl limit of a mean in [0, 1], scaled."""
    mean = min(1.0, float(square.mean()) / _LONGEST_SQUARE)
    return _LONGEST_SQUARE * divergence_limit(mean, math.log(1 / delta) / len(square))


def left_unknown(task: MaskedTokenTask, h: _Array, w: _Array) -> _Array:
    """Var(w z | X) of the Dirichlet posterior."""
    total = task.L + task.V * task.alpha
    return (h @ w**2 - (h @ w) ** 2) / (total + 1)


def _with_one(x: _Array) -> _Array:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def _fitted(seen: _Array, labels: _Array) -> _Array:
    return np.asarray(np.linalg.lstsq(_with_one(seen), labels, rcond=1e-8)[0], dtype=np.float64)
