"""Costs of T and V in every number system against 50 digits of the second checker.

Every other statement decides certificates, which both checkers compute (tests/proof).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT, NumberSystem
from boundcalc.proof.certificate import Choice
from boundcalc.proof.second._covers import Sizes, View, cost, single
from boundcalc.proof.second._noises import depth, divergence
from boundcalc.proof.second._noises import spread as exact_spread
from boundcalc.proof.second._numbers import num
from boundcalc.proof.second._setting import Budget as Read
from boundcalc.setting import Budget
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.noises import NOISES, spread
from boundcalc.statements.targets import Kind, MatrixNorms, Points, Target, matrix_norms

Rng = np.random.Generator
Value = Callable[[NumberSystem], Any]
WITHOUT_MATRIX = ("vector", "gain", "table")


def some(rng: Rng, count: int, low: float, high: float) -> list[float]:
    """Numbers spread evenly in their logarithm."""
    return [float(x) for x in np.exp(rng.uniform(np.log(low), np.log(high), count))]


def whole(rng: Rng, low: int, high: int) -> int:
    """A whole number, both ends included."""
    return int(rng.integers(low, high + 1))


def exactly(x: arb) -> Any:
    """An exact ball (of radius 0) in 50 digits."""
    mantissa, exponent = x.man_exp()
    return num(int(mantissa)) * num(2) ** int(exponent)


def disagree(value: Value, truth: Any) -> bool:
    """Whether floats are off by more than 1e-10, or the interval misses the truth or is wide."""
    low, high = (exactly(end) for end in (arb(value(INTERVAL)).lower(), arb(value(INTERVAL)).upper()))
    slack = abs(truth) * num(10) ** -40  # the 50 digits are rounded too
    encloses = low <= truth + slack and truth - slack <= high and high - low <= abs(truth) * num(10) ** -25
    return not encloses or abs(num(value(FLOAT)) - truth) > num(1e-10) * abs(truth)


def seen_twice(kind: Kind, d: int, k: int, radius: float, sizes: dict[str, Any]) -> tuple[Any, View]:
    """The target of a class of maps as the package sees it, in any number system, and as the second checker does."""
    op = sizes["op"]
    if kind in WITHOUT_MATRIX:
        d = d if kind == "table" else 1
        whole_norm = num(op)
        view = View(kind, num(radius), 1, Sizes(d, k, *(whole_norm,) * 6, rank=k), d)
        view = view if kind == "table" else single(kind, k, whole_norm, num(radius))
    else:
        view = View(kind, num(radius), 1, Sizes.of(Read(**sizes), d, k))

    def target(ns: NumberSystem) -> Target:
        x = ns.number(op)
        alone = MatrixNorms(x, x, x, x, x, x, 1)
        known = alone if kind in WITHOUT_MATRIX else matrix_norms(ns, Budget(**sizes), d, k)
        assert known is not None
        return Target(kind, d, k, ns.number(radius), known, Points(1))

    return target, view


def lemma_case(name: str, kind: Kind, rng: Rng) -> tuple[Value, Any]:
    """What a cover costs of a random shape, budget, tolerance and number of points."""
    lemma = LEMMAS[name]
    most = int(rng.choice([12, 300]))
    d, k = whole(rng, 4, most), whole(rng, 4, most)
    k = d if kind in ("score", "key") else 1 if name == "T1" else k
    radius, size = some(rng, 2, 0.3, 3.0)
    sizes: dict[str, Any] = {"op": size, "fro": 1.2 * size, "two_one": 1.5 * size, "two_one_t": 1.3 * size}
    power = float(rng.choice([0.5, 1.0, 2.0]))
    sizes |= {"one_one": 2.1 * size, "schatten": (power, 1.4 * size**power), "rank": 1 if name == "T5" else None}
    target, view = seen_twice(kind, d, k, radius, sizes)
    reach = lemma.reach(target(FLOAT))
    eps, n = reach / (1 + float(rng.exponential(3.0))), int(10 ** rng.uniform(0, 9))
    params = dict(lemma.params(math.log(reach / eps), target(FLOAT), n))

    def value(ns: NumberSystem) -> Any:
        y = lemma.reach(target(ns)) / ns.number(eps)
        points = 1 if kind in ("vector", "gain") else min(n, d) if kind == "table" else n
        return lemma.sharp(ns, y, target(ns), ns.number(points), params)

    return value, cost(Choice(name, 0, params), view, num(eps), n)


def noise_case(name: str, kind: Kind, rng: Rng) -> tuple[Value, Any]:
    """What the noise that leaves eps costs, of a random shape and budget."""
    law = NOISES[name]
    radius, size, eps = some(rng, 3, 0.3, 2.0)
    eps *= 1e-3
    sizes: dict[str, Any] = {"op": size, "two_one": 1.5 * size, "two_one_t": 1.3 * size, "schatten": (1.0, 1.2 * size)}
    target, view = seen_twice(kind, whole(rng, 2, 9), whole(rng, 2, 9), radius, sizes)
    params = dict(zip(law.ranges, some(rng, 2, 0.2, 4.0), strict=False))
    seen, eta = whole(rng, 1, 10**6), 2.0 ** -whole(rng, 1, 40)

    def value(ns: NumberSystem) -> Any:
        t = gap.noise_depth(ns, ns.number(eta), ns.number(seen))
        y = law.reach(target(ns)) / ns.number(eps) * spread(ns, target(ns), t)
        return law.sharp(ns, y, target(ns), ns.number(1), params)

    return value, divergence(Choice(name, 0, params), view, num(eps), depth(seen, eta))


NOISED: dict[str, tuple[Kind, ...]] = {
    "V1": ("map", "score", "numbers", "pooled", "vector", "gain", "table"),
    "V2": ("map", "score"),
    "V3": ("map", "score", "numbers", "pooled"),
}
CASES = [(name, kind, lemma_case) for name, lemma in LEMMAS.items() for kind in sorted(lemma.kinds)]
CASES += [(name, kind, noise_case) for name, kinds in NOISED.items() for kind in kinds]


@pytest.mark.parametrize(("name", "kind", "case"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_costs_are_those_of_the_second_checker(name: str, kind: Kind, case: Any) -> None:
    rng = np.random.default_rng(sum(map(ord, name + kind)))
    for _ in range(12):
        value, truth = case(name, kind, rng)
        assert not disagree(value, num(truth))
    value, truth = case(name, kind, rng)
    assert disagree(lambda ns: value(ns) * ns.number(1 - 1e-9), num(truth))
    assert set(NOISED) == set(NOISES)


def test_two_gaussians_move_a_point_as_one_does() -> None:
    t = num(3)
    assert exact_spread(View("map", num(1), 1, Sizes.of(Read(op=1.0), 4, 2)), t) == t
    assert exact_spread(View("map", num(1), 1, Sizes.of(Read(op=1.0), 4, 3)), t) > t
