"""Attempts to falsify section A: an enumerated cover of whole networks (A0), other splits (A1), random matrices (A5).

Whole networks with every map replaced within the levels of certificates are attacked in test_networks.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT
from boundcalc.setting import Activation, Budget, Linear, Norms, Pool, Setting
from boundcalc.statements.network import Network
from boundcalc.statements.targets import matrix_norms

LINE = (
    Linear("A", 1, 1),
    Activation("relu"),
    Linear("B", 1, 1),
    Activation("relu"),
    Pool(),
    Linear("readout", 1, 1),
)


def enumerated_violations(inflate: float) -> list[str]:
    """Every member of a one-parameter-per-layer class against the whole finite composite cover.

    f(x) = relu(relu(x a) b) c with |a|,|b|,|c| <= 2: the product of three grids, its size the
    product of their sizes, covers the class within the predicted error divided by ``inflate``.
    """
    budget, spent = 2.0, {"A": 0.1, "B": 0.2, "readout": 0.4}
    x = np.linspace(-1, 1, 9)
    radii = (1.0, budget, budget**2)
    grids = []
    for eps, radius in zip(spent.values(), radii, strict=True):
        step = 2 * eps / radius
        count = math.ceil(2 * budget / step)
        grids.append(-budget + (np.arange(count) + 0.5) * (2 * budget / count))

    def run(a: float, b: float, c: float) -> np.ndarray:
        return np.maximum(np.maximum(x * a, 0) * b, 0) * c

    cover = np.array([run(*p) for p in product(*(g.tolist() for g in grids))])
    assert len(cover) == math.prod(len(g) for g in grids)
    norms = Norms(budgets=dict.fromkeys(spent, Budget(op=budget)))
    setting = Setting.of(layers=LINE, seq_len=1, margin=1.0, norms=norms)
    predicted = sum(piece.gain * spent[piece.key] for piece in Network(setting, FLOAT).pieces) / inflate
    rng = np.random.default_rng(3)
    found = []
    for _ in range(300):
        p = np.where(rng.random(3) < 0.3, rng.choice((-budget, budget), 3), rng.uniform(-2, 2, 3))
        error = float(np.abs(cover - run(*p.tolist())).max(axis=1).min())
        if error > predicted * (1 + 1e-9):
            found.append(f"{p}: {error} > {predicted}")
    return found


def test_an_enumerated_composite_cover() -> None:
    assert enumerated_violations(1.0) == []
    assert enumerated_violations(4.0)


def closure_violations(names: tuple[str, ...], shrink: float = 1.0) -> list[str]:
    """Random matrices with a norm above what follows from the norms in ``names``."""
    rng = np.random.default_rng(12)
    found = []
    for _ in range(150):
        d, k = (int(v) for v in rng.integers(1, 6, 2))
        w = rng.standard_normal((d, k)) * np.exp(2 * rng.standard_normal(k))
        if rng.random() < 0.5:
            w = w * (rng.random((d, k)) < 0.4)
        if rng.random() < 0.2:
            w = np.eye(d, k)
        if not w.any():
            continue
        truth: dict[str, Any] = {
            "op": float(np.linalg.norm(w, 2)),
            "fro": float(np.linalg.norm(w)),
            "two_one": float(np.linalg.norm(w, axis=0).sum()),
            "two_one_t": float(np.linalg.norm(w, axis=1).sum()),
            "one_one": float(np.abs(w).sum()),
            "rank": int(np.linalg.matrix_rank(w)),
        }
        given, least = {name: truth[name] for name in names}, 0.0
        for name in ("op", "fro", "two_one", "one_one"):  # computed norms may contradict each other in their last bit
            if name in given:
                given[name] = least = max(least, given[name])
        known = matrix_norms(FLOAT, Budget(**given), d, k)
        assert known is not None
        found += [
            f"{name} from {names}: {value} > {getattr(known, name)}"
            for name, value in truth.items()
            if value > shrink * float(getattr(known, name)) * (1 + 1e-9)
        ]
    return found


GIVEN = ("op", "fro", "two_one", "two_one_t", "one_one", "op two_one", "op rank", "fro one_one rank")


@pytest.mark.parametrize("given", GIVEN)
def test_norms_that_follow_are_above_those_of_random_matrices(given: str) -> None:
    names = tuple(given.split())
    assert closure_violations(names) == []
    assert closure_violations(names, 0.99)
