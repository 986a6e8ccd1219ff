"""Learning the desired parameter: how near training comes to it and to the Bayes risk, in a class fixed before the data.

A sequence has two hidden odds. Each of its L tokens names one of two keys, fairly, and shows +-1 by the key's odds, uniform
on [0, 1]; the question is a key, the answer y one more draw of it. The row of the question attends to all rows, itself too:

    f(X) = sum_i softmax(x_0 A x_i)_i v x_i,   |A| <= C and |v| <= 1 in spectral norm,
    x_i = (key, shown, 0), x_0 = (0, 0, question).

The conditional mean of y is (sum of what the key showed)/(its tokens + 2): attention that gives the other key no weight, what
is shown the value, and the question's own row twice the weight of a token: the prior is where attention rests when it has seen
nothing. So the desired parameter is known, lies in the class but for a weight exp(-C) of the other key, and depends on no L.

The loss (y - f)^2/4, f cut at +-1, lies in [0, 1] and is 1-Lipschitz: one uniform cover bounds the gap of the whole class.
Everything is a function of four counts, so risks are sums over all of them: exact, and training on m sequences is training
on their counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.experiments.numbers import Numbers
from boundcalc.lab.latent.experiments.statistics import Interval, mean_interval
from boundcalc.lab.latent.learning import learning_bound
from boundcalc.lab.train.optim import nearest
from boundcalc.norms.matrix import held, measure
from boundcalc.setting import Architecture, Attention, Budget, Norms, Pool, Sample, Setting, validate

_Array = NDArray[Any]
_SHOWN, _QUESTION, _WIDTH = 2, 3, 5
"""Columns of a row: two for the key, one for what is shown, two for the question."""
_INSIDE = 1 - 1e-9
"""Projections stop this short of the balls, so that rounding does not leave them."""
_START = 0.02
"""Deviation of the weights at the start: attention to all rows alike."""
_KINDS = ((0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0))
"""The tokens: key and what it shows."""


@dataclass(frozen=True)
class DesiredPlan:
    """What is run.

    Attributes:
        lengths: L.
        samples: m.
        seeds: trained models per place.
        C: largest spectral norm of A.
        steps: of projected Adam on all examples.
        rate: of learning, falling to 0.
        delta: failure probability of the bound on the excess risk, and of that of the gap.
        against: whether models are trained to make the gap as large as they can instead.
    """

    lengths: tuple[int, ...] = (4, 16, 64)
    samples: tuple[int, ...] = (100, 1000, 10_000, 100_000, 1_000_000)
    seeds: int = 5
    C: float = 6.0
    steps: int = 300
    rate: float = 0.3
    delta: float = 0.05
    against: bool = False

    def __post_init__(self) -> None:
        for length in self.lengths:
            if validate.size("L", length) > _MOST_LENGTH:
                raise InvalidSetting(
                    f"L must be at most {_MOST_LENGTH}, since all counts are summed over; got {length}"
                )
        for m in self.samples:
            validate.size("m", m)
        for name, least in (("seeds", 2), ("steps", 1)):
            validate.size(name, getattr(self, name), least=least)
        validate.positive("rate", self.rate)
        validate.fraction("delta", self.delta, ends=False)
        if validate.positive("C", self.C) <= 1:
            raise InvalidSetting(f"C must exceed 1, or the desired parameter is not near the class; got {self.C:g}")

    def setting(self, length: int, m: int, delta: float) -> Setting:
        """The class, for the bounds."""
        layers = (Attention(d=_WIDTH, d_value=1, combine="concat"), Pool("cls"))
        architecture = Architecture(layers=layers, seq_len=length + 1, classes=1, input_radius=math.sqrt(2))
        budgets = {"W_QK": Budget(op=self.C), "W_V": Budget(op=1.0)}
        return Setting(architecture, Norms(budgets=budgets), Sample(n_train=m, delta=delta, lipschitz=1.0))


_MOST_LENGTH = 256


@dataclass(frozen=True, eq=False)
class Law:
    """All that can happen at one L.

    Attributes:
        asked: the key in question, by cell.
        counts: how often each of `_KINDS` occurs, by cell.
        chance: of each cell.
        mean: E[y | X].
    """

    asked: _Array
    counts: _Array
    chance: _Array
    mean: _Array

    @property
    def bayes(self) -> float:
        """The least risk."""
        return float((self.chance * (1 - self.mean**2)).sum()) / 4

    @property
    def ignorant(self) -> float:
        """How much more the constant 0 has."""
        return float((self.chance * self.mean**2).sum()) / 4


@lru_cache(maxsize=8)
def law_of(length: int) -> Law:
    """Keys fall binomially; what a key shows n times has uniform odds, so that every number of +1 is as likely."""
    cells: list[_Array] = []
    chances: list[_Array] = []
    for first in range(length + 1):
        second = length - first
        a, b = (grid.ravel() for grid in np.meshgrid(np.arange(first + 1), np.arange(second + 1), indexing="ij"))
        cells.append(np.stack([a, first - a, b, second - b], axis=1))
        ways = math.comb(length, first) / 2**length
        chances.append(np.full(len(a), ways / ((first + 1) * (second + 1))))
    counts, chance = np.concatenate(cells).astype(float), np.concatenate(chances)
    asked = np.repeat([0, 1], len(counts))
    counts, chance = np.concatenate([counts, counts]), np.concatenate([chance, chance]) / 2
    plus = np.where(asked == 0, counts[:, 0], counts[:, 2])
    minus = np.where(asked == 0, counts[:, 1], counts[:, 3])
    return Law(asked, counts, chance, (plus - minus) / (plus + minus + 2))


@dataclass(frozen=True, eq=False)
class Drawn:
    """Training sets of m sequences: of each how often every cell occurred, and the sum of its answers."""

    often: _Array
    total: _Array


def drawn(law: Law, m: int, seeds: list[int] | range) -> Drawn:
    """Training sets, one per seed."""
    sets: list[tuple[_Array, _Array]] = []
    for seed in seeds:
        rng = np.random.default_rng([seed, m, len(law.chance)])
        often = rng.multinomial(m, law.chance / law.chance.sum())
        sets.append((often, 2 * rng.binomial(often, (1 + law.mean) / 2) - often))
    return Drawn(np.stack([often for often, _ in sets]), np.stack([total for _, total in sets]))


def rows_of_tokens() -> Tensor:
    """The rows that tokens are, in the order of `_KINDS`."""
    rows = torch.zeros(len(_KINDS), _WIDTH, dtype=torch.float64)
    for i, (key, shown) in enumerate(_KINDS):
        rows[i, key], rows[i, _SHOWN] = 1.0, shown
    return rows


def answers(a: Tensor, v: Tensor, law: Law, cells: _Array | slice = slice(None)) -> Tensor:
    """What models (..., 5, 5), (..., 5) answer, cut at +-1, by cell: attention over as many equal rows as a count says."""
    rows = rows_of_tokens()
    questions = torch.eye(_WIDTH, dtype=torch.float64)[_QUESTION:]
    weights = _beside_own(a)
    values, resting = rows @ v[..., None], questions @ v[..., None]
    counts = torch.from_numpy(law.counts[cells])
    found: list[Tensor] = []
    for asked in (0, 1):
        one = weights[..., asked, :, None]
        top = (counts @ (one * values))[..., 0] + resting[..., asked, :]
        found.append(top / ((counts @ one)[..., 0] + 1))
    first = torch.from_numpy(law.asked[cells] == 0)
    return torch.where(first, found[0], found[1]).clamp(-1, 1)


def _beside_own(a: Tensor) -> Tensor:
    """Attention weights of the tokens by question and kind, that of the question's own row being 1."""
    questions = torch.eye(_WIDTH, dtype=torch.float64)[_QUESTION:]
    own = (questions @ a * questions).sum(-1, keepdim=True)
    return (questions @ a @ rows_of_tokens().T - own).exp()


def excess(a: Tensor, v: Tensor, law: Law) -> Tensor:
    """Risk above the Bayes risk, exact: E(f - E[y | X])^2/4."""
    away = answers(a, v, law) - torch.from_numpy(law.mean)
    return (torch.from_numpy(law.chance) * away.square()).sum(-1) / 4


def seen_risk(a: Tensor, v: Tensor, law: Law, data: Drawn, cells: _Array | slice = slice(None)) -> Tensor:
    """Mean loss on the training sets."""
    often, total = (torch.from_numpy(x[..., cells].astype(float)) for x in (data.often, data.total))
    f = answers(a, v, law, cells)
    m = float(data.often[0].sum())
    return (often * (1 + f.square()) - 2 * total * f).sum(-1) / (4 * m)


def desired(C: float) -> tuple[Tensor, Tensor]:
    """The parameter: the other key gets -g, the question itself log 2, the key 0; v reads what is shown. |A| = C exactly."""
    rest = math.log(2)
    g = math.sqrt(C**2 - rest**2)
    a = torch.zeros(_WIDTH, _WIDTH, dtype=torch.float64)
    for key in (0, 1):
        a[_QUESTION + key, 1 - key], a[_QUESTION + key, _QUESTION + key] = -g, rest
    v = torch.zeros(_WIDTH, dtype=torch.float64)
    v[_SHOWN] = _INSIDE
    return a * _INSIDE, v


def attention_apart(a: Tensor, b: Tensor, law: Law) -> Tensor:
    """How far the attention of models is from that of another: total variation, mean over the law, exact."""
    mine, other = _attention(a, law), _attention(b, law)
    return (torch.from_numpy(law.chance) * (mine - other).abs().sum(-1)).sum(-1) / 2


def _attention(a: Tensor, law: Law) -> Tensor:
    """By cell: the weight on all tokens of each kind, and on the question's own row."""
    weights = _beside_own(a)[..., torch.from_numpy(law.asked), :] * torch.from_numpy(law.counts)
    all_rows = torch.cat([weights, torch.ones_like(weights[..., :1])], dim=-1)
    return all_rows / all_rows.sum(-1, keepdim=True)


def fitted(plan: DesiredPlan, law: Law, data: Drawn) -> tuple[Tensor, Tensor]:
    """Per training set the better, in training loss, of models from two starts."""
    first, second = (_descended(plan, law, data, seed=seed) for seed in (0, 1))
    lower = seen_risk(*first, law, data) <= seen_risk(*second, law, data)
    return torch.where(lower[:, None, None], first[0], second[0]), torch.where(lower[:, None], first[1], second[1])


def opposed(plan: DesiredPlan, law: Law, data: Drawn) -> tuple[Tensor, Tensor]:
    """Models of the class whose gap is made as large as it can be: what the bound must still hold for."""
    return _descended(plan, law, data, against=True)


def _descended(
    plan: DesiredPlan, law: Law, data: Drawn, *, against: bool = False, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Projected Adam on all examples, a model per training set."""
    n = len(data.often)
    generator = torch.Generator().manual_seed(seed)
    a = _START * torch.randn(n, _WIDTH, _WIDTH, dtype=torch.float64, generator=generator)
    v = _START * torch.randn(n, _WIDTH, dtype=torch.float64, generator=generator)
    cells = slice(None) if against else np.flatnonzero(data.often.any(0))
    optimiser = torch.optim.Adam([a.requires_grad_(), v.requires_grad_()], lr=plan.rate)
    for step in range(plan.steps):
        for group in optimiser.param_groups:
            group["lr"] = plan.rate * (1 - step / plan.steps)
        optimiser.zero_grad()
        loss = seen_risk(a, v, law, data, cells)
        if against:
            loss = loss - excess(a, v, law)
        loss.sum().backward()
        optimiser.step()
        with torch.no_grad():
            a.copy_(nearest(a, "op", plan.C * _INSIDE))
            v.copy_(nearest(v, "F", _INSIDE))
    return a.detach(), v.detach()


def is_member(plan: DesiredPlan, a: Tensor, v: Tensor) -> bool:
    """Whether a model's certified norms keep the limits of the class."""
    rng = np.random.default_rng(0)  # for large matrices only
    sizes = [measure(held(x.reshape(_WIDTH, -1).numpy()), rng).op for x in (a, v)]
    return all(size is not None and size <= most for size, most in zip(sizes, (plan.C, 1.0), strict=True))


@dataclass(frozen=True)
class Row(Numbers):
    """Trained models of one L and m.

    Attributes:
        length: L.
        m: training sequences.
        excess: risk above the Bayes risk, over seeds; exact for each model.
        gap: risk less mean training loss, over seeds.
        apart: mean total variation of attention from that of the desired parameter, over seeds; exact for each model.
        map_apart: distance of the value map from the desired one, over seeds.
        bound: on the excess risk: that of a minimiser, what training lost against the desired parameter, that one's own excess.
        x5: the bound on the gap.
        bayes: the least risk.
        ignorant: excess risk of the constant 0.
        exceeded: models whose excess or gap lies above its bound.
        members: models whose certified norms keep the limits.
    """

    length: int
    m: int
    excess: Interval
    gap: Interval
    apart: Interval
    map_apart: Interval
    bound: float
    x5: float
    bayes: float
    ignorant: float
    exceeded: int
    members: int


def learned(plan: DesiredPlan) -> list[Row]:
    """All places."""
    return [_row(plan, length, m) for length in plan.lengths for m in plan.samples]


def _row(plan: DesiredPlan, length: int, m: int) -> Row:
    law = law_of(length)
    data = drawn(law, m, range(plan.seeds))
    best_a, best_v = desired(plan.C)
    a, v = opposed(plan, law, data) if plan.against else fitted(plan, law, data)
    above = excess(a, v, law)
    seen = seen_risk(a, v, law, data)
    lost = (seen - seen_risk(best_a, best_v, law, data)).clamp_min(0)
    gaps = above + law.bayes - seen
    away = attention_apart(a, best_a, law)
    off = (v - best_v).norm(dim=-1)
    # the bound for a minimiser holds with probability 1 - 2 delta, for the gap alone with 1 - delta
    minimiser = learning_bound(plan.setting(length, m, plan.delta / 2), excess=True).value
    x5 = learning_bound(plan.setting(length, m, plan.delta)).value
    bounds = minimiser + lost + float(excess(best_a, best_v, law))
    return Row(
        length,
        m,
        mean_interval(above),
        mean_interval(gaps),
        mean_interval(away),
        mean_interval(off),
        float(bounds.mean()),
        x5,
        law.bayes,
        law.ignorant,
        int(((above > bounds) | (gaps > x5)).sum()),
        sum(is_member(plan, *pair) for pair in zip(a, v, strict=True)),
    )
