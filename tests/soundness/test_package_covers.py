"""The constructions in the proofs of T1-T6 and T9, held against the counts the package claims.

The oracle's constructions (`test_cover_constructions`) are run; what they use up (steps, units, centres, ranks, cells)
is counted exactly, and the package's log-count may not be below it. Each checker must reject a halved claim.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.covers.uniform import Schatten
from tests.oracle import covers_mp as covers
from tests.soundness import test_cover_constructions as constructions
from tests.soundness import test_tiny_exhaustion as exhaustion
from tests.soundness.claims import claim, closed_claim, subject

SYSTEMS = ("float", "interval")
ROOM = 1e-9
Scale = Callable[[float], float]


def honest(value: float) -> float:
    return value


def halved(value: float) -> float:
    return value / 2


def below(needed: float, claimed: float, what: str) -> list[str]:
    return [f"{what}: {needed} codes (log), {claimed} claimed"] if needed > claimed + ROOM * (1 + needed) else []


# ------------------------------------------------------------------------------------------------ T1, T2


def t1_shortfalls(system: str, scale: Scale, number: int) -> list[str]:
    """Integer vectors with as many units as the perceptron takes, against the claim."""
    found: list[str] = []
    for case in constructions.t1_cases(1, number):
        counts, steps = constructions.perceptron(
            case.points, case.matrix[:, 0], case.eps, case.b, lazy=True, cap=10_000
        )
        needed = float(covers.log_lattice(len(case.points), max(steps, int(np.abs(counts).sum()))))
        y = case.b * case.budget / case.eps
        found += below(needed, scale(claim("T1", y, len(case.points[0]), 1, len(case.points), system=system)), "T1")
    return found


def t2_shortfalls(system: str, scale: Scale, rho: Fraction, number: int) -> list[str]:
    """Units over (column, point), and the levels of the active columns in the code of the proof."""
    found: list[str] = []
    r = float(rho)
    for case in constructions.t2_cases(3, number):
        points, columns = len(case.points), case.matrix.shape[1]
        a = float(covers.ratio(case.b, case.budget, case.eps))
        top = covers.t2_levels(case.b, case.budget, case.eps, rho) - 1
        share = np.linalg.norm(case.matrix, axis=0) / case.budget
        total, active, code = 0, 0, 0.0
        for j in np.flatnonzero(share > 0):
            level = max(0, math.ceil(-math.log(share[j]) / math.log(r) - 1e-12))
            tolerance = case.eps * r ** (-level / 2)
            counts, steps = constructions.perceptron(
                case.points, case.matrix[:, j], tolerance, case.b, lazy=True, cap=10_000
            )
            total += max(steps, int(np.abs(counts).sum()))
            if steps:
                active += 1
                code += math.log(r / (r - 1)) + (top - level) * math.log(r)
        needed = float(covers.log_lattice(points * columns, total))
        needed += min(code, active * math.log(max(1, top + 1)))
        value = claim("T2", math.sqrt(a), case.points.shape[1], columns, points, system=system, params={"rho": r})
        found += below(needed, scale(value), f"T2 at {rho}")
    return found


@pytest.mark.parametrize("system", SYSTEMS)
def test_perceptrons_fit_the_claims(system: str) -> None:
    assert t1_shortfalls(system, honest, 400) == []
    for rho in (Fraction(21, 20), Fraction(6, 5), Fraction(3, 2), Fraction(3)):
        assert t2_shortfalls(system, honest, rho, 60) == []


def test_half_a_perceptron_is_noticed() -> None:
    assert t1_shortfalls("float", halved, 0)
    assert t2_shortfalls("float", halved, Fraction(6, 5), 0)


# ------------------------------------------------------------------------------------------------ T3


@cache
def units_of(n: int, most: int) -> tuple[float, ...]:
    """log D(n, s) for s = 0..most."""
    return tuple(float(covers.log_lattice(n, s)) for s in range(most + 1))


@cache
def weights_of(n: int, most: int) -> tuple[float, ...]:
    """Log of the number of integer vectors of total weight psi at most j/3, j = 0..most, exactly."""
    costs = [int(3 * covers.t3_weight(v)) for v in range(1, most + 2)]
    ways = [1] + [0] * most
    one = [1] + [0] * most
    for cost in costs:
        if cost <= most:
            one[cost] += 2
    for _ in range(n):
        ways = [sum(ways[j - i] * one[i] for i in range(j + 1) if one[i]) for j in range(most + 1)]
    return tuple(math.log(total) for total in itertools.accumulate(ways))


def t3_shortfalls(system: str, scale: Scale, number: int) -> list[str]:
    """As many units, or as much weight, as the claim pays for must round every vector within the tolerance."""
    found: list[str] = []
    for w, a in constructions.t3_cases(4, number):
        n = min(len(w), 24)
        v = w[:n] / max(1.0, float(w[:n].sum()))
        claimed = scale(claim("T3", math.sqrt(a), n, 1, system=system)) + ROOM
        units = max((s for s, log in enumerate(units_of(n, 60)) if log <= claimed), default=0)
        weight = max((j for j, log in enumerate(weights_of(n, 120)) if log <= claimed), default=0) / 3
        rounded = constructions.round_by_parts(v, units) / units if units else 0 * v
        by_units = float(np.linalg.norm(v - rounded)) <= constructions.SLACK / math.sqrt(a)
        by_weight = float(sum(covers.t3_weight(int(c)) for c in constructions.round_by_weight(v, a / 2)))
        if not by_units and by_weight > weight + ROOM:
            found.append(f"T3: {n} entries, a = {a}: {units} units or {weight} weight are not enough")
    return found


@pytest.mark.parametrize("system", SYSTEMS)
def test_roundings_fit_the_claims(system: str) -> None:
    assert t3_shortfalls(system, honest, 120) == []


def test_a_quarter_of_a_rounding_is_noticed() -> None:
    assert t3_shortfalls("float", lambda value: value / 4, 120)


# ------------------------------------------------------------------------------------------------ T4 and kin

NAMES = {("op", "op"): "T4r", ("21", "op"): "T4v", ("F", "op"): "T4f"}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("case", [c for c in constructions.VOLUME_CASES if c.metric == "op"], ids=str)
def test_as_many_random_centres_as_claimed_cover(case: constructions.VolumeCase, system: str) -> None:
    """Either the claimed number of random centres misses nothing, or the plain packing count is what is claimed."""
    lemma, y = NAMES[case.norm, case.metric], 1 / case.x
    claimed = claim(lemma, y, case.d, case.k, system=system, params={"t": case.t})
    drawn = case.log_count()
    packed = closed_claim(lemma, y, case.d, case.k)
    assert claimed == pytest.approx(min(drawn, packed), abs=0.05)  # log(1+x) <= log x + 1/x
    assert claimed >= min(drawn, packed) - ROOM
    assert constructions.random_cover_failures(case, 5) == []


def test_a_hundredth_of_the_centres_is_noticed() -> None:
    for case in constructions.VOLUME_CASES:
        assert constructions.random_cover_failures(case, 5, factor=0.01)


# ------------------------------------------------------------------------------------------------ T5, T6, T9


@pytest.mark.parametrize("system", SYSTEMS)
def test_products_of_random_covers_fit_the_claim(system: str) -> None:
    """Rank-one 2 x 2 matrices: the centres the two factors need, at the radii of the proof."""
    for eps in (0.3, 0.6):
        assert (
            constructions.rank_one_failures(
                eps, (eps / 2, float(covers.t5_second_radius(eps, eps / 2, 0.5))), 7, random=True
            )
            == []
        )
        for theta in (0.3, 0.5, 0.7):
            norms = Budget(op=1.0, rank=1)
            claimed = claim("T5", 1 / eps, 2, 2, system=system, params={"theta": theta}, norms=norms)
            x1 = theta * eps
            x2 = float(covers.t5_second_radius(eps, x1, 0.25))
            drawn = sum(math.log(covers.t4r_samples(2, x, 0.25)) for x in (x1, x2))
            assert claimed >= min(drawn, 4 * math.log(1 + 4 / eps)) - ROOM
            assert claimed <= drawn + 0.1


def package_rank(b: float, budget: float, eps: float, p: float, t: float, d: int, k: int) -> int:
    """T6's rank, from the package (the budget is of a matrix whose spectral norm follows from it)."""
    norms = subject("T6", d, k, Budget(schatten=(p, budget)), "map", "interval")
    y = arb(b) * norms.norms.op / arb(eps)
    return int(upper_float(Schatten._rank(INTERVAL, y, norms, arb(t))))


def test_ranks_kept_by_the_threshold() -> None:
    assert constructions.schatten_failures(package_rank, 8) == []
    assert constructions.schatten_failures(lambda *a: max(0, package_rank(*a) - 1), 8)


def test_cells_of_a_gain() -> None:
    def cells(b: float, half: float, eps: float) -> int:
        return max(1, round(math.exp(claim("T9", b * half / eps, 1, 1, kind="gain"))))

    assert constructions.gain_failures(cells, 9) == []
    assert constructions.gain_failures(lambda *a: max(1, cells(*a) - 1), 9)


# ------------------------------------------------------------------------------------------------ exhaustion


def tiny_cases(eps: float, system: str) -> list[exhaustion.TinyCase]:
    """Classes of at most two parameters, whose packings are listed, with what the package claims of them."""
    y, cases = 1 / eps, []
    for x in (
        np.array([[1.0, 0.0]]),
        np.eye(2),
        np.array([[1.0, 0.0], [-0.6, 0.8], [0.6, 0.8]]),
        exhaustion.ball_points(6),
    ):
        disc = x @ exhaustion.matrices(2, 1, exhaustion.l2, 161)
        counts = {name: claim(name, y, 2, 1, len(x), system=system) for name in ("T1", "T2")}
        cases.append(exhaustion.TinyCase(disc, eps, counts))
    pair = np.ones((1, 1)) @ exhaustion.matrices(1, 2, exhaustion.l21, 161)
    cases.append(exhaustion.TinyCase(pair, eps, {"T2 pair": claim("T2", y, 1, 2, 1, system=system)}))
    for d, k in ((1, 1), (2, 1), (1, 2)):
        x, steps = np.ones((1, 1)) if d == 1 else exhaustion.ball_points(), 2001 if d * k == 1 else 161
        for gauge, names in (
            (exhaustion.l2, ("T4", "T4r", "T4f", "T5", "T6", "T12", "T14")),
            (exhaustion.l21, ("T4v", "T13")),
            (exhaustion.l11, ("T3",)),
        ):
            extra = {"T5": Budget(op=1.0, rank=1), "T6": Budget(op=1.0, schatten=(1.0, 1.0))}
            counts = {name: claim(name, y, d, k, system=system, norms=extra.get(name)) for name in names}
            cases.append(exhaustion.TinyCase(x @ exhaustion.matrices(d, k, gauge, steps), eps, counts))
        vectors = np.ones((1, 1)) @ exhaustion.matrices(1, d * k, exhaustion.l2, steps)
        offset = {"T8": claim("T8", y, 1, d * k, kind="vector", system=system)}
        cases.append(exhaustion.TinyCase(vectors, eps, offset))
    gains = np.eye(2)[None] * np.swapaxes(exhaustion.matrices(2, 1, exhaustion.linf, 161), 1, 2)
    cases.append(exhaustion.TinyCase(gains, eps, {"T9": claim("T9", y, 1, 2, kind="gain", system=system)}))
    rows = np.eye(2) @ exhaustion.matrices(2, 1, exhaustion.linf, 161)
    cases.append(exhaustion.TinyCase(rows, eps, {"T10": claim("T10", y, 2, 1, kind="table", system=system)}))
    return cases


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("eps", exhaustion.TOLERANCES)
def test_no_claim_is_below_a_packing(eps: float, system: str) -> None:
    assert exhaustion.too_small(tiny_cases(eps, system)) == set()


def test_claims_that_are_too_small_are_noticed() -> None:
    bad = set[str]().union(*(exhaustion.too_small(tiny_cases(eps, "float"), 0.35) for eps in (0.5, 0.15)))
    assert {"T3", "T4", "T4f", "T4r", "T4v", "T8", "T9", "T10", "T12", "T13", "T14"} <= bad
    bad = set[str]().union(*(exhaustion.too_small(tiny_cases(eps, "float"), 0.15) for eps in (0.5, 0.23)))
    assert {"T1", "T2 pair"} <= bad


def test_every_lemma_is_held_against_something() -> None:
    names = {name.split()[0] for case in tiny_cases(0.5, "float") for name in case.counts}
    assert names == set(LEMMAS) - {"Tpub"}  # never below T1 and T2
    for y, n, k in itertools.product((1.1, 7.0, 300.0), (1, 10**6), (1, 30)):
        assert claim("Tpub", y, k, k, n, norms=Budget(two_one=1.0)) >= claim("T2", y, k, k, n)
        assert claim("Tpub", y, k, k, n, kind="score", norms=Budget(fro=1.0)) >= claim("T1", y, k, k, n, kind="score")
