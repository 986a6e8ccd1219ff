"""General attention: your own score and normaliser, their constants checked, bounded and trained.

    python examples/general_attention.py [--quick]

Attention by distance instead of by product. A query z looks at rows x_t with scores s_t = |x_t - zA|^2/tau and weights
(1 + s_t)^-p over their sum: a Student kernel, not softmax. What statement E asks of a normaliser is a constant c with
|w(s) - w(s')|_1 <= c max|s - s'|, for any number of rows. Here c = p: along a segment of scores w_t changes by
w_t (a_t - sum_u w_u a_u) with a_t = -p ds_t/(1 + s_t), so |a_t| <= p max|ds|, and numbers within [-a, a] have a mean
distance of at most a from their mean. A search below comes close to it and never above.

The second table lets softmax's temperature fall: attention tends to the largest score, at the rate 2(T - 1)
exp(-ahead/tau), while its constant 1/tau grows beyond every bound: that is why hardmax is refused.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from example_script import Values, run

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.numbers import FLOAT, Number, NumberSystem, golden
from boundcalc.layers.facts import Points, Target
from boundcalc.setting import Budget
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.weights import matrix_norms

QUICK = {"quick": True}
ROWS, KEYS = 16, 4
D = KEYS + 1
"""A row is a point of R^4 of norm sqrt(1/2), and an answer of size sqrt(1/2)."""
POWER, TAU = 3.0, 0.05
C_A, C_V = 1.5, 2.0
"""Spectral norm of A and length of v allowed, fixed before the data."""
GAMMA, DELTA = 0.25, 0.05


def weights(scores: Any) -> Any:
    """Student weights of scores that are not negative."""
    kernel = (1 + scores) ** -POWER
    return kernel / kernel.sum(-1)[..., None]


def largest_ratio(rounds: int, seed: int = 0) -> float:
    """The most that a search finds of |w(s) - w(s')|_1/max|s - s'|: at most POWER, however many rows."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(rounds):
        rows = int(rng.integers(2, 200))
        scores = rng.exponential(10.0 ** rng.uniform(-4, 1), rows) * (rng.random(rows) < rng.random())
        scores[rng.random(rows) < rng.random()] += 10.0 ** rng.uniform(0, 4)
        step = 10.0 ** rng.uniform(-6, 0)
        near = weights(scores)
        other = np.maximum(scores + step * np.where(rng.random(rows) < near, 1, rng.choice([-1, 1], rows)), 0)
        moved = np.abs(other - scores).max()
        if moved > 0:
            worst = max(worst, float(np.abs(weights(other) - near).sum() / moved))
        half = np.cumsum(near) <= 0.5  # the two halves of the mass pulled apart
        other = np.maximum(scores + np.where(half, step, -step), 0)
        moved = np.abs(other - scores).max()
        worst = max(worst, float(np.abs(weights(other) - near).sum() / max(moved, 1e-300)))
    return worst


def cover(ns: NumberSystem, size: float, d: int, k: int, eps: Number) -> Number:
    """T4: log-count of the d x k matrices of spectral norm at most `size`, on points of norm 1."""
    lemma, norms = LEMMAS["T4"], matrix_norms(ns, Budget(op=size), d, k)
    if norms is None:
        raise ValueError("a spectral norm is a norm")
    target = Target("map", d, k, ns.number(1), norms, Points(1))
    y = lemma.reach(target) / eps
    if y <= 1:
        return ns.number(0)
    return lemma.sharp(ns, y, target, ns.number(1), lemma.params(float(ns.log(y)), target, 1))


def score_cost(ns: NumberSystem, eps: Number) -> Number:
    """E's first count.

    |s - s'| <= e (2(1 + C_A) + e)/tau where |zA - zA'| <= e, as |x - zA| <= 1 + C_A: covers of A do.
    """
    inside = ns.number(1 + C_A)
    room = eps * ns.number(TAU)
    return cover(ns, C_A, D, D, room / (inside + ns.sqrt(inside * inside + room)))


def log_count(ns: NumberSystem, eps: Number, share: float) -> Number:
    """E: log N_score(t eps/(c B_in)) + log N_in((1-t) eps), c = POWER and B_in = C_V, at t = `share`."""
    t = ns.number(share)
    return score_cost(ns, t * eps / (POWER * C_V)) + cover(ns, C_V, D, 1, (1 - t) * eps)


def chain(ns: NumberSystem, levels: int, m: int) -> Number:
    """G2 on E: the gap of the ramp loss of margin GAMMA, by so many scales on the loss, each half of the one before."""
    scales = [ns.number(0.5**level) for level in range(1, levels + 2)]
    counts: list[Number] = []
    for scale in scales[1:]:
        eps = scale * ns.number(GAMMA)
        share = golden(lambda t, e=float(eps): log_count(FLOAT, e, t), 1e-6, 1 - 1e-6, 30)  # any share is valid
        counts.append(log_count(ns, eps, share))
    links = sum(gap.chain_links(ns, scales, counts, ns.number(m)), start=ns.number(0))
    return 2 * scales[-1] + links + gap.deviation(ns, ns.log(1 / ns.number(DELTA)), ns.number(m))


def bound(m: int) -> float:
    """The gap of every A and v of the class, in intervals."""
    levels = min(range(1, 25), key=lambda levels: chain(FLOAT, levels, m))
    return upper_float(chain(INTERVAL, levels, m))


def sample(rng: np.random.Generator, n: int, turn: np.ndarray) -> tuple[torch.Tensor, ...]:
    """Queries, rows and answers: one row's key is near the turned query, and its answer is the label."""

    def unit(*shape: int) -> np.ndarray:
        x = rng.standard_normal(shape)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    query = unit(n, KEYS)
    keys = unit(n, ROWS, KEYS)
    signs = rng.choice([-1.0, 1.0], (n, ROWS))
    target = rng.integers(0, ROWS, n)
    near = query @ turn + 0.2 * rng.standard_normal((n, KEYS))
    keys[np.arange(n), target] = near / np.linalg.norm(near, axis=-1, keepdims=True)
    half = math.sqrt(0.5)
    rows = np.concatenate([keys, signs[..., None]], axis=-1) * half
    z = np.concatenate([query, np.zeros((n, 1))], axis=-1) * half
    return tuple(torch.from_numpy(x) for x in (z, rows, signs[np.arange(n), target]))


def outputs(a: torch.Tensor, v: torch.Tensor, z: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The network."""
    scores = (rows - (z @ a)[:, None]).square().sum(-1) / TAU
    return (weights(scores)[..., None] * rows).sum(1) @ v


def ramp(ahead: torch.Tensor) -> float:
    """The loss that the bound is about."""
    return float((1 - ahead / GAMMA).clamp(0, 1).mean())


def train(m: int, steps: int, seed: int) -> tuple[float, float]:
    """Ramp loss on m training examples and on fresh ones, of a network of the class."""
    rng = np.random.default_rng([seed, m])
    turn = np.linalg.qr(rng.standard_normal((KEYS, KEYS)))[0]
    z, rows, y = sample(rng, m, turn)
    a = (0.3 * torch.from_numpy(rng.standard_normal((D, D)))).requires_grad_()
    v = (0.3 * torch.from_numpy(rng.standard_normal(D))).requires_grad_()
    optimiser = torch.optim.Adam([a, v], lr=0.03)
    for _ in range(steps):
        some = torch.from_numpy(rng.integers(0, m, min(m, 128)))
        optimiser.zero_grad()
        torch.nn.functional.softplus(-8 * y[some] * outputs(a, v, z[some], rows[some])).mean().backward()
        optimiser.step()
        with torch.no_grad():
            left, sizes, right = torch.linalg.svd(a)
            a.copy_(left @ torch.diag(sizes.clamp_max(C_A)) @ right)
            v.mul_(min(1.0, C_V / float(v.norm())))
    with torch.no_grad():
        q, x, signs = sample(rng, 20_000, turn)
        return ramp(y * outputs(a, v, z, rows)), ramp(signs * outputs(a, v, q, x))


def cooling(taus: tuple[float, ...] = (1.0, 0.1, 0.01, 0.003)) -> list[tuple[float, float, float]]:
    """(tau, distance of softmax weights from the largest score's, and what bounds it), at random scores."""
    scores = np.sort(np.random.default_rng(0).uniform(0, 1, 32))
    ahead = float(scores[-1] - scores[-2])
    distances: list[tuple[float, float, float]] = []
    for tau in taus:
        soft = np.exp((scores - scores[-1]) / tau)
        soft /= soft.sum()
        distances.append((tau, float(np.abs(soft - np.eye(32)[-1]).sum()), min(2.0, 62 * math.exp(-ahead / tau))))
    return distances


def main(quick: bool = False) -> tuple[Values, Values]:
    """Bounds and measured gaps by m."""
    sizes = (100, 1000) if quick else (30, 100, 300, 1000, 3000, 10_000)
    seeds, steps = (1, 60) if quick else (3, 400)
    predicted = {m: bound(m) for m in sizes}
    runs = {m: [train(m, steps, seed) for seed in range(seeds)] for m in sizes}
    measured = {m: float(np.mean([test - fit for fit, test in losses])) for m, losses in runs.items()}
    if not quick:
        for m, losses in runs.items():
            fit = np.mean([fit for fit, _ in losses])
            print(f"m = {m:6d}: training loss {fit:.3f}, gap {measured[m]:.4f}, bound {predicted[m]:.3g}")
        print("bound further on: " + ", ".join(f"{bound(m):.3g} at m = {m:.0e}" for m in (10**5, 10**6, 10**7, 10**8)))
    return predicted, measured


if __name__ == "__main__":
    print(f"|w(s) - w(s')|_1/max|s - s'|: at most {POWER:g}; a search finds {largest_ratio(20_000):.4f}")
    for tau, away, most in cooling():
        print(
            f"softmax at tau = {tau:g}: {away:.3g} from the largest score's row (at most {most:.3g}), constant "
            f"{1 / tau:.3g}"
        )
    run(main, words=("bound", "gap"))
