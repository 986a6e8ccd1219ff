"""Learning the desired parameter, in a class fixed before the data (X5).

A sequence has two hidden odds. Each of its L tokens names one of two keys, fairly, and shows +-1 by the key's odds,
uniform on [0, 1]; the question is a key, the answer y one more draw of it. The row of the question attends to all rows,
itself too:

    f(X) = sum_i softmax(x_0 A x_i)_i v x_i,   |A| <= C and |v| <= 1 in spectral norm,
    x_i = (key, shown, 0), x_0 = (0, 0, question).

The conditional mean of y is (sum of what the key showed)/(its tokens + 2): attention that gives the other key no
weight, what is shown the value, and the question's own row twice the weight of a token: the prior is where attention
rests. So the desired parameter is known, free of L, and in the class but for a weight exp(-C) of the other key. The
loss (y - f)^2/4, f cut at +-1, lies in [0, 1] and is 1-Lipschitz. Everything is a function of four counts, so risks are
exact sums over them.

Computed: bounds on the excess risk (X5 for a minimiser, what training lost against the desired parameter, that one's
own excess) and on the gap (X5). Measured: means over trained models, and how many models exceed a bound.

    python examples/zhang2022/desired.py
    python examples/zhang2022/desired.py --L 16 --m 1000 --seeds 1000 [--against]
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from common import Array, Values, mean_interval, run
from torch import Tensor

from boundcalc.lab.latent.bounds import learning_bound
from boundcalc.norms.matrix import as_stored, measure
from boundcalc.setting import Architecture, Attention, Budget, Norms, Pool, Sample, Setting

QUICK: dict[str, Any] = {"L": (6,), "m": (300,), "seeds": 40, "steps": 150}
_QUESTION, _WIDTH = 3, 5
"""Columns of a row: two for the key, one for what is shown, two for the question."""
_INSIDE = 1 - 1e-9
"""Projections stop this short of the balls, so that rounding does not leave them."""
TOKENS = torch.tensor([[1, 0, 1, 0, 0], [1, 0, -1, 0, 0], [0, 1, 1, 0, 0], [0, 1, -1, 0, 0]], dtype=torch.float64)
"""The rows that tokens are: a key, and what it shows."""
QUESTIONS = torch.eye(_WIDTH, dtype=torch.float64)[_QUESTION:]


class Law(NamedTuple):
    """All that can happen at one L, by cell: key in question, counts of each of `TOKENS`, chance, E[y | X]."""

    question: Array
    counts: Array
    chance: Array
    mean: Array

    @property
    def bayes(self) -> float:
        """The least risk."""
        return float((self.chance * (1 - self.mean**2)).sum()) / 4


class Drawn(NamedTuple):
    """Training sets of m sequences: of each how often every cell occurred, and the sum of its answers."""

    often: Array
    total: Array


@lru_cache(maxsize=8)
def law_of(length: int) -> Law:
    """Keys fall binomially; what a key shows n times has uniform odds, so that every number of +1 is as likely."""
    cells: list[Array] = []
    chances: list[Array] = []
    for first in range(length + 1):
        second = length - first
        a, b = (grid.ravel() for grid in np.meshgrid(np.arange(first + 1), np.arange(second + 1), indexing="ij"))
        cells.append(np.stack([a, first - a, b, second - b], axis=1))
        chances.append(np.full(len(a), math.comb(length, first) / 2**length / ((first + 1) * (second + 1))))
    counts, chance = np.tile(np.concatenate(cells), (2, 1)).astype(float), np.tile(np.concatenate(chances), 2) / 2
    question = np.repeat([0, 1], len(counts) // 2)
    plus = np.where(question == 0, counts[:, 0], counts[:, 2])
    minus = np.where(question == 0, counts[:, 1], counts[:, 3])
    return Law(question, counts, chance, (plus - minus) / (plus + minus + 2))


def drawn(law: Law, m: int, seeds: int) -> Drawn:
    """Training sets, one per seed."""
    sets: list[tuple[Array, Array]] = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, m, len(law.chance)])
        often = rng.multinomial(m, law.chance / law.chance.sum())
        sets.append((often, 2 * rng.binomial(often, (1 + law.mean) / 2) - often))
    return Drawn(np.stack([often for often, _ in sets]), np.stack([total for _, total in sets]))


def weights_of(a: Tensor) -> Tensor:
    """Attention weights of the tokens by question and kind, that of the question's own row being 1."""
    own = (QUESTIONS @ a * QUESTIONS).sum(-1, keepdim=True)
    return (QUESTIONS @ a @ TOKENS.T - own).exp()


def answers(a: Tensor, v: Tensor, law: Law, cells: Any = slice(None)) -> Tensor:
    """What models (..., 5, 5), (..., 5) answer, cut at +-1, by cell."""
    weights, counts = weights_of(a), torch.from_numpy(law.counts[cells])
    values, resting = TOKENS @ v[..., None], QUESTIONS @ v[..., None]
    outputs: list[Tensor] = []
    for question in (0, 1):
        one = weights[..., question, :, None]
        outputs.append(((counts @ (one * values))[..., 0] + resting[..., question, :]) / ((counts @ one)[..., 0] + 1))
    return torch.where(torch.from_numpy(law.question[cells] == 0), outputs[0], outputs[1]).clamp(-1, 1)


def excess(a: Tensor, v: Tensor, law: Law) -> Tensor:
    """Risk above the Bayes risk, exact: E(f - E[y | X])^2/4."""
    away = answers(a, v, law) - torch.from_numpy(law.mean)
    return (torch.from_numpy(law.chance) * away.square()).sum(-1) / 4


def seen_risk(a: Tensor, v: Tensor, law: Law, data: Drawn, cells: Any = slice(None)) -> Tensor:
    """Mean loss on the training sets."""
    often, total = (torch.from_numpy(x[..., cells].astype(float)) for x in data)
    f = answers(a, v, law, cells)
    return (often * (1 + f.square()) - 2 * total * f).sum(-1) / (4 * float(data.often[0].sum()))


def desired(C: float) -> tuple[Tensor, Tensor]:
    """The parameter, |A| = C: the other key gets -g, the question itself log 2, the key 0; v reads what is shown."""
    rest = math.log(2)
    a, v = torch.zeros(_WIDTH, _WIDTH, dtype=torch.float64), torch.zeros(_WIDTH, dtype=torch.float64)
    for key in (0, 1):
        a[_QUESTION + key, 1 - key], a[_QUESTION + key, _QUESTION + key] = -math.sqrt(C**2 - rest**2), rest
    v[2] = _INSIDE
    return a * _INSIDE, v


def attention(a: Tensor, law: Law) -> Tensor:
    """By cell: the weight on all tokens of each kind, and on the question's own row."""
    weights = weights_of(a)[..., torch.from_numpy(law.question), :] * torch.from_numpy(law.counts)
    rows = torch.cat([weights, torch.ones_like(weights[..., :1])], dim=-1)
    return rows / rows.sum(-1, keepdim=True)


def descend(
    law: Law, data: Drawn, C: float, steps: int, *, against: bool = False, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Projected Adam on all examples, a model per training set; `against`: to make the gap as large as it can be."""
    n, generator = len(data.often), torch.Generator().manual_seed(seed)
    a, v = (0.02 * torch.randn(n, *s, dtype=torch.float64, generator=generator) for s in ((_WIDTH, _WIDTH), (_WIDTH,)))
    cells = slice(None) if against else np.flatnonzero(data.often.any(0))
    optimiser = torch.optim.Adam([a.requires_grad_(), v.requires_grad_()], lr=0.3)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 0.3 * (1 - step / steps)
        optimiser.zero_grad()
        loss = seen_risk(a, v, law, data, cells)
        (loss - excess(a, v, law) if against else loss).sum().backward()
        optimiser.step()
        with torch.no_grad():
            left, sizes, right = torch.linalg.svd(a)
            a.copy_(left @ (sizes.clamp_max(C * _INSIDE)[..., None] * right))
            v.mul_((_INSIDE / v.norm(dim=-1, keepdim=True)).clamp_max(1))
    return a.detach(), v.detach()


def fitted(law: Law, data: Drawn, C: float, steps: int) -> tuple[Tensor, Tensor]:
    """Per training set the better, in training loss, of models from two starts."""
    first, second = (descend(law, data, C, steps, seed=seed) for seed in (0, 1))
    lower = seen_risk(*first, law, data) <= seen_risk(*second, law, data)
    return torch.where(lower[:, None, None], first[0], second[0]), torch.where(lower[:, None], first[1], second[1])


def is_member(a: Tensor, v: Tensor, C: float) -> bool:
    """Whether a model's certified norms keep the limits of the class."""
    sizes = [measure(as_stored(x.reshape(_WIDTH, -1).numpy()), np.random.default_rng(0)).op for x in (a, v)]
    return all(size is not None and size <= most for size, most in zip(sizes, (C, 1.0), strict=True))


def x5(length: int, m: int, C: float, delta: float, *, minimiser: bool = False) -> float:
    """X5 for the class: of the gap, or of a minimiser's excess risk (with probability 1 - 2 delta)."""
    layers = (Attention(d=_WIDTH, d_value=1, combine="concat"), Pool("cls"))
    architecture = Architecture(layers=layers, seq_len=length + 1, classes=1, input_radius=math.sqrt(2))
    norms = Norms(budgets={"W_QK": Budget(op=C), "W_V": Budget(op=1.0)})
    setting = Setting(architecture, norms, Sample(n_train=m, delta=delta, lipschitz=1.0))
    return learning_bound(setting, excess=minimiser).value


def main(
    L: tuple[int, ...] = (4, 16, 64),
    m: tuple[int, ...] = (100, 1000, 10_000, 100_000, 1_000_000),
    seeds: int = 5,
    C: float = 6.0,
    steps: int = 300,
    delta: float = 0.05,
    against: bool = False,
) -> tuple[Values, Values]:
    """Bounds and means by L and m; "exceeded" and "outside" count models above a bound and outside the class."""
    computed, measured = (Values({"exceeded": 0.0, "outside": 0.0}) for _ in range(2))
    best = desired(C)
    for length in L:
        law = law_of(length)
        for size in m:
            data = drawn(law, size, seeds)
            a, v = descend(law, data, C, steps, against=True) if against else fitted(law, data, C, steps)
            above, seen = excess(a, v, law), seen_risk(a, v, law, data)
            gaps = above + law.bayes - seen
            lost = (seen - seen_risk(*best, law, data)).clamp_min(0)
            bounds = x5(length, size, C, delta / 2, minimiser=True) + lost + float(excess(*best, law))
            of_gap = x5(length, size, C, delta)
            apart = (attention(a, law) - attention(best[0], law)).abs().sum(-1) @ torch.from_numpy(law.chance) / 2
            off = float((v - best[1]).norm(dim=-1).mean())
            for name, bound, values in (("excess", float(bounds.mean()), above), ("gap", of_gap, gaps)):
                computed[name, length, size], measured[name, length, size] = bound, float(values.mean())
            measured["exceeded"] += int(((above > bounds) | (gaps > of_gap)).sum())
            measured["outside"] += sum(not is_member(*pair, C) for pair in zip(a, v, strict=True))
            measured["attention apart", length, size] = float(apart.mean())
            distances = f"attention {mean_interval(apart)} apart in total variation, value map {off:.3g}"
            print(f"L = {length}, m = {size}: excess {mean_interval(above)}, {distances}")
    return computed, measured


if __name__ == "__main__":
    run(main)
