"""One attention model, from a masked pretext to a task it never saw (X6).

Task `masked-token`: the answer to the mask, given what is shown, has law M h with h = E[z | X], and both are known
exactly. A network trained on masks alone is frozen and gives yhat(X); its pretext error e = E|yhat - M h|^2 has an
upper limit from fresh sequences. Downstream one asks for w z, the share of even words less that of their odd twins. The
head w M^+ on the frozen outputs needs no downstream label, and its error about w h is at most kappa^2 e, kappa = |w
M^+|. `blur` lets the pretext answer with a word's twin: kappa = 1/(1 - 2 blur) grows, and nothing else changes.

Computed: kappa^2 times the limit. Measured: the error of the head. "short" and "over": in which share of draws of 500
sequences (--draws) the limit fell short of the pretext error, or kappa^2 times it of the downstream error; delta may.

    python examples/zhang2022/pretrain.py
    python examples/zhang2022/pretrain.py --blur 0 0.4 --L 32 --draws 1000
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from common import Array, Values, mean_interval, run
from scipy.optimize import root_scalar
from scipy.special import rel_entr

from boundcalc.lab.latent.transfer import condition, transfer_bound
from boundcalc.lab.train.model import forward_last_row
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.tasks.latent import MaskedTokenTask
from boundcalc.lab.train.trainer import Outcome, train
from boundcalc.lab.train.trial import Optimisation, Trial, model_for

QUICK: dict[str, Any] = {
    "blur": (0.0, 0.4),
    "length": 8,
    "L": (4,),
    "words": 4,
    "seeds": 2,
    "steps": 250,
    "fresh": 4000,
    "draws": 100,
}
_LONGEST_SQUARE = 2.0
"""|p - q|^2 of two laws is at most this."""


def divergence_limit(q: float, nats: float) -> float:
    """The largest p with kl(q || p) <= nats, to 1e-12 and rounded up."""

    def beyond(p: float) -> float:
        return float(rel_entr(q, p) + rel_entr(1 - q, 1 - p)) - nats

    top = 1 - 1e-15
    if q >= top or beyond(top) <= 0:
        return 1.0
    return min(1.0, float(root_scalar(beyond, bracket=(q, top), xtol=1e-15).root) + 1e-12)


def wanted(words: int) -> Array:
    """The direction w of length 1: even words against odd ones."""
    return np.where(np.arange(words) % 2, -1.0, 1.0) / math.sqrt(words)


def trained(task: MaskedTokenTask, seeds: int, steps: int, d: int = 16) -> list[Outcome]:
    """Networks after so many steps on fresh sequences."""
    rule = Optimisation(lr=1.5e-3, warmup=50, batch=128, steps=steps, stop_loss=0.0, curve_every=steps)
    model = model_for(task, d=d, heads=2, d_ff=4 * d, positions="none")
    return train([Trial(task, model, m=0, seed=seed, n_test=256, optimisation=rule) for seed in range(seeds)])


@torch.no_grad()
def outputs(outcome: Outcome, tokens: Array) -> Array:
    """What a network says the masked token is: laws on the words."""
    parts = torch.from_numpy(tokens).split(2048)
    logits = [forward_last_row(outcome.trial.architecture, dict(outcome.weights), part) for part in parts]
    return torch.softmax(torch.cat(logits).double(), -1).numpy()


def drawn(task: MaskedTokenTask, seed: int, use: int, n: int) -> tuple[Array, Array]:
    """Fresh sequences and answers; none meets those of training."""
    tokens, y = task.sample({}, Source(10**6 + 10 * seed + use), n)
    return tokens.numpy(), y.numpy()


def error_limit(square: Array, delta: float) -> float:
    """An upper limit of the mean of such numbers with probability 1 - delta: kl limit of a mean in [0, 1], scaled."""
    mean = min(1.0, float(square.mean()) / _LONGEST_SQUARE)
    return _LONGEST_SQUARE * divergence_limit(mean, math.log(1 / delta) / len(square))


def left_unknown(task: MaskedTokenTask, h: Array, w: Array) -> Array:
    """Var(w z | X) of the Dirichlet posterior: what no answer can know."""
    return (h @ w**2 - (h @ w) ** 2) / (task.L + task.V * task.alpha + 1)


def fitted_error(outcome: Outcome, labelled: Array, labels: Array, tokens: Array, goal: Array) -> float:
    """The error of a head fitted to downstream labels on a network's outputs."""
    fit, judged = (np.c_[outputs(outcome, x), np.ones(len(x))] for x in (labelled, tokens))
    head = np.linalg.lstsq(fit, labels, rcond=1e-8)[0]
    return float(np.square(judged @ head - goal).mean())


def short_and_over(square: Array, kappa: float, error: float, delta: float, draws: int, seed: int) -> Array:
    """Shares of draws in which the limit misses the mean of these numbers, and kappa^2 times it the downstream
    error."""
    rng = np.random.default_rng([seed, 7])
    limits = np.array([error_limit(square[rng.integers(0, len(square), 500)], delta) for _ in range(draws)])
    return np.array([(limits < square.mean()).mean(), (kappa**2 * limits < error).mean()])


def main(
    blur: tuple[float, ...] = (0.0, 0.25, 1 / 3, 0.4, 0.45),
    length: int = 32,
    L: tuple[int, ...] = (4, 16, 128),
    words: int = 6,
    seeds: int = 4,
    steps: int = 1000,
    labels: int = 2000,
    fresh: int = 20_000,
    delta: float = 0.05,
    draws: int = 0,
) -> tuple[Values, Values]:
    """X6 and errors of the head, the worst network of each, by blur (at `length`) and by L (without blur)."""
    computed, measured = Values(), Values()
    w, missed = wanted(words), np.zeros(2)
    places = dict.fromkeys([*((one, length) for one in blur), *((0.0, one) for one in L)])
    for one, size in places:
        task, plain = MaskedTokenTask(size, words, blur=one), MaskedTokenTask(size, words)
        conditioning = condition(task.channel, w)
        rows: list[tuple[float, ...]] = []
        for seed, (late, early) in enumerate(zip(trained(task, seeds, steps), trained(task, seeds, 1), strict=True)):
            tokens, _ = drawn(task, seed, 1, fresh)
            square = np.square(outputs(late, tokens) - task.posterior_mean(tokens) @ task.channel.T).sum(1)
            limit = error_limit(square, delta)
            tokens, _ = drawn(plain, seed, 2, fresh)
            h = plain.posterior_mean(tokens)
            error = float(np.square(outputs(late, tokens) @ conditioning.head - h @ w).mean())
            labelled, y = drawn(plain, seed, 3, labels)
            heads = [fitted_error(network, labelled, w[y], tokens, h @ w) for network in (late, early)]
            bound = transfer_bound(task.channel, w, limit).value
            unknown = float(left_unknown(plain, h, w).mean())
            rows.append((error, bound, float(square.mean()), *heads, float((h @ w).var()), unknown))
            if draws:
                missed += short_and_over(square, conditioning.kappa, error, delta, draws, seed) / (seeds * len(places))
        worst = max(rows, key=lambda row: row[0] / row[1])
        key = f"blur {one:.3g}, L = {size}"
        measured[key], computed[key] = worst[:2]
        errors, bounds, pretext, late_head, early_head, nothing, unknown = map(mean_interval, zip(*rows, strict=True))
        print(
            f"{key}: kappa {conditioning.kappa:.3g}, pretext error {pretext}, head w M^+ {errors}, "
            f"X6 {bounds.value:.3g}, "
        )
        print(
            f"  fitted head {late_head}, on an untrained network {early_head}, constant {nothing.value:.3g}, ", end=""
        )
        print(f"unknown to all {unknown.value:.3g}")
        measured[key, "unknown"], measured[key, "constant"] = unknown.value, nothing.value
        measured[key, "kappa"] = conditioning.kappa
    if draws:
        computed |= {"short": delta, "over": delta}
        measured |= {"short": float(missed[0]), "over": float(missed[1])}
    return computed, measured


if __name__ == "__main__":
    run(main)
