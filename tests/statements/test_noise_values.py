"""V: divergences and spreads in every number system, against the second checker's in 50 digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boundcalc.base.numbers import NumberSystem
from boundcalc.proof.certificate import Choice
from boundcalc.proof.second.covers import Sizes, View, single
from boundcalc.proof.second.noises import depth, divergence
from boundcalc.proof.second.noises import spread as exact_spread
from boundcalc.proof.second.numbers import num
from boundcalc.proof.second.setting import Budget as Read
from boundcalc.setting import Budget
from boundcalc.statements import gap
from boundcalc.statements.noises import NOISES, spread
from boundcalc.statements.targets import Kind, MatrixNorms, Points, Target, matrix_norms
from tests.oracle.agreement import disagreements
from tests.statements.inputs import ROUNDS, Rng, Value, some, whole

KINDS: dict[str, tuple[Kind, ...]] = {name: ("map", "score") for name in ("V2", "V2t", "V3")}
KINDS["V3"] += ("numbers", "pooled")
KINDS["V1"] = ("map", "score", "vector", "gain", "table", "numbers", "pooled")


def case(law: str, kind: Kind, rng: Rng) -> tuple[Value, Any]:
    """What the noise that leaves eps costs, of a random shape and budget."""
    d, k = whole(rng, 2, 9), whole(rng, 2, 9)
    radius, size, eps = some(rng, 3, 0.3, 2.0)
    eps *= 1e-3
    sizes: dict[str, Any] = {"op": size, "two_one": 1.5 * size, "two_one_t": 1.3 * size, "schatten": (1.0, 1.2 * size)}
    budget = Budget(**sizes)
    params = dict(zip(NOISES[law].names, some(rng, 2), strict=False))
    seen, eta = whole(rng, 1, 10**6), 2.0 ** -whole(rng, 1, 40)
    if kind in ("vector", "gain"):
        d, view = 1, single(kind, k, num(size), num(radius))
    elif kind == "table":
        view = View(kind, num(radius), 1, Sizes(d, k, *(num(size),) * 6, rank=k), d)
    else:
        view = View(kind, num(radius), 1, Sizes.of(Read(**sizes), d, k))
    truth = divergence(Choice(law, 0, params), view, num(eps), depth(seen, eta))

    def value(ns: NumberSystem) -> Any:
        x = ns.number(size)
        known = (
            matrix_norms(ns, budget, d, k)
            if kind not in ("vector", "gain", "table")
            else MatrixNorms(x, x, x, x, x, x, 1)
        )
        assert known is not None
        target = Target(kind, d, k, ns.number(radius), known, Points(1))
        t = gap.noise_depth(ns, ns.number(eta), ns.number(seen))
        y = NOISES[law].reach(target) / ns.number(eps) * spread(ns, target, t)
        return NOISES[law].sharp(ns, y, target, ns.number(1), params)

    return value, truth


@pytest.mark.parametrize(("law", "kind"), [(law, kind) for law, kinds in KINDS.items() for kind in kinds])
def test_values_are_those_of_the_second_checker(law: str, kind: Kind) -> None:
    rng = np.random.default_rng(sum(map(ord, law + kind)))
    for _ in range(ROUNDS):
        value, truth = case(law, kind, rng)
        assert disagreements(value, truth, 1e-10) == []


@pytest.mark.parametrize("law", KINDS)
def test_the_comparison_rejects_values_a_billionth_too_small(law: str) -> None:
    value, truth = case(law, "map", np.random.default_rng(1))
    assert disagreements(lambda ns: value(ns) * ns.number(1 - 1e-9), truth, 1e-10)


def test_two_gaussians_move_a_point_as_one_does() -> None:
    t = num(3)
    assert exact_spread(View("map", num(1), 1, Sizes.of(Read(op=1.0), 4, 2)), t) == t
    assert exact_spread(View("map", num(1), 1, Sizes.of(Read(op=1.0), 4, 3)), t) > t
