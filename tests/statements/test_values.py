"""Values in every number system against 50 digits: T and V against the second checker, what no certificate reaches
here.

Every other statement decides certificates, which both checkers compute (tests/proof).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from boundcalc.base.numbers import FLOAT, NumberSystem
from boundcalc.proof.certificate import Choice
from boundcalc.proof.second.covers import Sizes, View, cost, single
from boundcalc.proof.second.noises import depth, divergence
from boundcalc.proof.second.noises import spread as exact_spread
from boundcalc.proof.second.numbers import MP, num
from boundcalc.proof.second.setting import Budget as Read
from boundcalc.setting import Budget
from boundcalc.statements import gap, general
from boundcalc.statements.capacity import least_split
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.general import GeneralAttention
from boundcalc.statements.noises import NOISES, spread
from boundcalc.statements.targets import Kind, MatrixNorms, Points, Target, matrix_norms
from tests.statements.inputs import ROUNDS, Check, Rng, Value, disagreements, some, whole

# ---------------------------------------------------------------- T and V, against the second checker

WITHOUT_MATRIX = ("vector", "gain", "table")


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
    params = dict(zip(law.names, some(rng, 2), strict=False))
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
    for _ in range(ROUNDS):
        value, truth = case(name, kind, rng)
        assert disagreements(value, truth, 1e-10) == []
    value, truth = case(name, kind, rng)
    assert disagreements(lambda ns: value(ns) * ns.number(1 - 1e-9), truth, 1e-10)
    assert set(NOISED) == set(NOISES)


def test_two_gaussians_move_a_point_as_one_does() -> None:
    t = num(3)
    assert exact_spread(View("map", num(1), 1, Sizes.of(Read(op=1.0), 4, 2)), t) == t
    assert exact_spread(View("map", num(1), 1, Sizes.of(Read(op=1.0), 4, 3)), t) > t


# ---------------------------------------------------------------- what no certificate reaches


def a1(rng: Rng) -> tuple[Value, Any]:
    """At its minimum all A_j/eps_j^2 are k_j eps_j times one number."""
    count = whole(rng, 1, 9)
    costs, gains = some(rng, count, 1e-3, 1e5), some(rng, count, 1e-3, 1e3)
    parts = [(num(a) / num(k)) ** (num(1) / 3) for a, k in zip(costs, gains, strict=True)]
    spent = MP.fsum(num(k) * e for k, e in zip(gains, parts, strict=True))
    truth = MP.fsum(num(a) * (spent / e) ** 2 for a, e in zip(costs, parts, strict=True))
    terms = [(a, k) for a, k in zip(costs, gains, strict=True)]
    return lambda ns: least_split(ns, [ns.number(a) * ns.number(k) ** 2 for a, k in terms]), truth


def e(rng: Rng) -> tuple[Value, Any]:
    """Log-counts 3 (2/eps)^2 and 5 (1.5/eps)^2 at the two shares of eps."""
    attention = GeneralAttention(
        score=lambda ns, x: 3 * (2 / x) ** 2,
        feature=lambda ns, x: 5 * (ns.number(1.5) / x) ** 2,
        lipschitz_out=1.7,
        bound_in=1.5,
        c=0.5,
        mu=1.2,
    )
    eps, share = float(rng.uniform(0.01, 3)), float(rng.uniform(0.01, 0.99))
    score = num(share) * eps / (num(0.5) * 1.7 * 1.5)
    feature = (1 - num(share)) * eps / (num(1.2) * 1.7)
    truth = 3 * (2 / score) ** 2 + 5 * (num(1.5) / feature) ** 2
    return lambda ns: general.log_count(ns, attention, ns.number(eps), share), truth


def g7(rng: Rng) -> tuple[Value, Any]:
    """Without errors: the p with (1-p)^m = delta 2^(-bits)."""
    bits, confidence, m = some(rng, 1, 1, 1e4)[0], float(rng.uniform(0.1, 20)), float(whole(rng, 400, 10**6))
    chance = num(2) ** -num(bits) * MP.exp(-num(confidence))
    return lambda ns: gap.occam_risk(
        ns, ns.number(0.0), ns.number(bits), ns.number(confidence), ns.number(m), None
    ), 1 - chance ** (1 / num(m))


def g8(rng: Rng) -> tuple[Value, Any]:
    s = whole(rng, 1, 6)
    seq_len = whole(rng, s + 20, 10**6)
    choices = MP.log(math.comb(seq_len, s))
    truth = {"log class size": choices + 2**s * MP.log(2), "label floor": choices / MP.log(2) - 1}

    def value(ns: NumberSystem) -> dict[str, Any]:
        whole_length = ns.number(seq_len)
        return {
            "log class size": gap.sparse_class_size(ns, s, whole_length),
            "label floor": gap.support_floor(ns, s, whole_length),
        }

    return value, truth


CHECKS: dict[str, Check] = {"A1": a1, "E": e, "G7": g7, "G8": g8}


@pytest.mark.parametrize("name", CHECKS)
def test_values_are_those_of_a_formula_written_out(name: str) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    for _ in range(ROUNDS):
        value, truth = CHECKS[name](rng)
        assert disagreements(value, truth) == []
    value, truth = CHECKS[name](rng)
    more = 1 + num(1e-9)
    assert disagreements(
        value, {key: x * more for key, x in truth.items()} if isinstance(truth, dict) else truth * more
    )


def test_occam_with_errors_is_just_above_the_exact_limit() -> None:
    """G7 at its best mu: not below the p whose binomial tail is delta 2^(-bits)."""
    for errors, m, bits in ((1, 50, 3.0), (7, 200, 20.0), (40, 300, 9.0)):
        exact = beta.isf(0.05 * 2**-bits, errors + 1, m - errors)
        values = [
            gap.occam_risk(FLOAT, errors / m, bits, math.log(20), m, float(mu)) for mu in np.geomspace(0.1, 20, 200)
        ]
        assert exact < min(values) < 1.05 * exact
