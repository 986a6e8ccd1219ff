"""The posterior is a sufficient representation: given it, the tokens tell nothing more of the next one (X1).

Measured: I(y; X | summary) in nats, summed over every sequence X of so many tokens, y being one more. Computed: 0 for
the posterior and for the sufficient statistic of two models.

    python examples/zhang2022/sufficient.py
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Array, Values, run

from boundcalc.lab.latent.models import CategoricalMixture, DirichletCategorical

QUICK = {"L": 6}
MODELS = (
    DirichletCategorical((0.5, 1.0, 1.5)),
    CategoricalMixture(((0.6, 0.3, 0.1), (0.1, 0.2, 0.7)), (0.4, 0.6)),
)


def information(model: Any, summary: Callable[[Array], Any], length: int) -> float:
    """I(y; X | summary) by going through every sequence of this length. Summaries that differ by rounding are one."""
    groups: dict[Any, list[tuple[float, Array]]] = defaultdict(list)
    for word in itertools.product(range(model.values), repeat=length):
        tokens = np.array(word)
        key = tuple(np.round(np.asarray(summary(tokens), dtype=float), 9).ravel().tolist())
        groups[key].append((math.exp(model.log_joint(tokens)), model.predictive(tokens)))
    total = 0.0
    for members in groups.values():
        weights, laws = np.array([weight for weight, _ in members]), np.stack([law for _, law in members])
        if weights.sum() > 0:
            mean = weights @ laws / weights.sum()
            with np.errstate(divide="ignore", invalid="ignore"):
                total += float(weights @ np.where(laws > 0, laws * np.log(laws / mean), 0.0).sum(-1))
    return max(0.0, total)


def main(L: int = 8) -> tuple[Values, Values]:
    """0, and the information left, for the posterior and a sufficient statistic; what others leave is printed."""
    measured: Values = {}
    for model in MODELS:
        measured[model.name, "posterior"] = information(model, model.posterior, L)
        measured[model.name, "statistic"] = information(model, model.statistic, L)
        half, nothing = (information(model, lambda x, n=n: np.sort(x[:n]), L) for n in (L // 2, 0))
        print(f"{model.name}: the first half of the tokens leaves {half:.3g} nats, no token {nothing:.3g}")
    return dict.fromkeys(measured, 0.0), measured


if __name__ == "__main__":
    run(main)
