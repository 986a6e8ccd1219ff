"""Statements tried against exact laws: enumerations at small sizes, and the most unhelpful learners."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from scipy import stats

from boundcalc.base import theory
from boundcalc.base.errors import CertificateError
from boundcalc.predictors._statements import binomial_mass, binomial_tail, float_limit, limit
from boundcalc.predictors.certificate import known_methods

STATEMENTS = {statement.name: statement for method in known_methods().values() for statement in method.statements}


def failure(bounds: list[float], n: int, picks: int) -> float:
    """The largest failure probability any learner can bring about, given that phi and e have the laws of G10.

    Given phi, by quantiles of Beta(k, n-k+1), the adversary chooses the risk r >= phi; the claim fails if
    bounds[e] < r, e ~ Bin(n-k, (r-phi)/(1-phi)).
    """
    phi = stats.beta.ppf((np.arange(4000) + 0.5) / 4000, picks, n - picks + 1)
    worst = np.zeros_like(phi)
    for errors, bound in enumerate(bounds):
        if bound >= 1:
            break
        # just above bounds[e] the claim fails for e errors and fewer
        q = np.clip((bound - phi) / (1 - phi), 0, 1)
        worst = np.maximum(worst, stats.binom.cdf(errors, n - picks, q))
    return float(worst.mean())


def bounds_of(n: int, picks: int, delta: float, references: object) -> list[float]:
    facts = {"n": n, "picks": picks, "references": references}
    return [STATEMENTS["G10r"].risk({"errors": e, **facts}, delta) for e in range(n - picks + 1)]


@pytest.mark.parametrize(("n", "picks"), [(30, 1), (30, 6), (60, 15)])
@pytest.mark.parametrize("delta", [0.5, 0.05])
@pytest.mark.parametrize("name", ["one", "two"])
def test_no_learner_makes_a_fixed_number_of_picks_fail(name: str, n: int, picks: int, delta: float) -> None:
    made_for = [[0, 1.0]] if name == "one" else [[0, 0.5], [(n - picks) // 8 or 1, 0.5]]
    found = bounds_of(n, picks, delta, made_for)
    assert found == sorted(found)
    assert failure(found, n, picks) <= delta * 1.002
    # Control: bounds made at twice the failure probability are caught, so the adversary is strong enough to matter.
    if name == "one":
        assert failure(bounds_of(n, picks, min(0.99, 2 * delta), made_for), n, picks) > delta


def test_a_pick_costs_exactly_one_error_at_the_reference() -> None:
    holdout, picked = STATEMENTS["H"], STATEMENTS["G10r"]
    for n, picks, errors in ((300, 8, 0), (1000, 15, 3), (1200, 30, 30)):
        facts = {"errors": errors, "n": n, "picks": picks, "references": [[errors, 1.0]]}
        assert picked.risk(facts, 0.05) == holdout.risk({"errors": errors + picks, "n": n}, 0.05)


@pytest.mark.parametrize("errors", [0, 3, 10, 30, 60])
def test_two_references_are_near_the_floor(errors: int) -> None:
    n, picks = 600, 16
    found = STATEMENTS["G10r"].risk(
        {"errors": errors, "n": n, "picks": picks, "references": [[0, 0.5], [73, 0.5]]}, 0.05
    )
    floor = STATEMENTS["H"].risk({"errors": errors + picks, "n": n}, 0.05)
    assert floor < found < 1.09 * floor


FACTS: dict[str, dict[str, object]] = {
    "H": {"errors": 3, "n": 100},
    "G7": {"errors": 3, "n": 100, "bits": 20.5},
    "G15": {"errors": 3, "n": 100, "bits": 20.5},
    "G15p": {"errors": 3, "n": 100},
    "G10r": {"errors": 3, "n": 100, "picks": 8, "references": [[0, 0.5], [11, 0.5]]},
    "G6'": {"errors": 3, "n": 100, "nats": 12.5},
}


@pytest.mark.parametrize("name", FACTS)
def test_every_statement_reads_its_facts_and_nothing_else(name: str) -> None:
    statement, facts = STATEMENTS[name], FACTS[name]
    value = statement.risk(facts, 0.05)
    assert 0 < value < 1
    assert name in theory.page("certificates.md")
    assert statement.risk(facts, 0.01) > value
    for fact in {"errors", "picks", "bits", "nats"} & facts.keys():
        assert statement.risk({**facts, fact: facts[fact] + 1}, 0.05) > value  # type: ignore[operator]
    for missing in facts:
        with pytest.raises(CertificateError, match=missing):
            statement.risk({key: fact for key, fact in facts.items() if key != missing}, 0.05)
    with pytest.raises(CertificateError, match="no 'more'"):
        statement.risk({**facts, "more": 1}, 0.05)
    for wrong in (-1, 1.5, True, "3", None, math.nan, 10**19):
        for fact in ("errors", "n", "picks"):
            if fact in facts:
                with pytest.raises(CertificateError, match=fact):
                    statement.risk({**facts, fact: wrong}, 0.05)
    for delta in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(CertificateError, match="delta"):
            statement.risk(facts, delta)


@pytest.mark.parametrize(
    "shares", [[], [[0, 0.6], [3, 0.6]], [[0, -0.1]], [[0, 0.5], [0, 0.5]], [[0]], [[0, math.nan]], 3]
)
def test_references_share_what_there_is(shares: object) -> None:
    with pytest.raises(CertificateError):
        STATEMENTS["G10r"].risk({"errors": 0, "n": 50, "picks": 3, "references": shares}, 0.05)


def holds(ball: arb, exact: Fraction) -> bool:
    return ball.overlaps(arb(exact.numerator) / arb(exact.denominator)) and float(ball.rad()) <= 1e-9 * float(
        ball.mid()
    )


@pytest.mark.parametrize("n", [1, 2, 7, 40, 130])
def test_a_binomial_tail_encloses_the_exact_sum(n: int) -> None:
    for p in (Fraction(1, 1024), Fraction(1, 8), Fraction(1, 2), Fraction(15, 16), Fraction(1023, 1024)):
        masses = [math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n)]
        for errors in range(0, n, max(1, n // 9)):
            assert holds(binomial_tail(errors, n, float(p)), sum(masses[: errors + 1], Fraction(0)))
            assert holds(binomial_mass(errors, n, float(p)), masses[errors])


@pytest.mark.parametrize(
    ("errors", "n", "p"), [(0, 10**9, 1e-9), (10, 10**9, 3e-8), (400_000, 10**6, 0.401), (10**9 - 1, 10**9, 0.99)]
)
def test_a_binomial_tail_of_many_trials_is_narrow(errors: int, n: int, p: float) -> None:
    ball = binomial_tail(errors, n, p)
    assert bool(ball.rad() <= arb(1e-11) * ball.mid())
    assert float(ball) == pytest.approx(stats.binom.cdf(errors, n, p), rel=1e-8)


def test_a_limit_is_the_root_rounded_up() -> None:
    """Certainly enough, and not 1e-9 too much: at every failure probability, also where the limit lies below
    errors/n."""
    below, rng, cases = 0, np.random.default_rng(7), [(0, 5, 0.5), (39, 40, 1e-6), (12, 1000, 0.95)]
    for _ in range(300):
        n = int(10 ** rng.uniform(0, 6))
        cases.append((min(n - 1, int(n * rng.random() ** rng.choice([1, 3, 8]))), n, float(rng.random())))
    for errors, n, share in cases:
        log_delta = math.log(share) * (1 + errors % 40)
        found = limit(errors, n, arb(log_delta))
        assert bool(binomial_tail(errors, n, found) <= arb(log_delta).exp())
        if found < 1:
            below += 1
            assert bool(binomial_tail(errors, n, found - 1e-9 * min(found, 1 - found)) > arb(log_delta).exp())
    assert below > 250
    assert limit(7, 7, arb(0.05).log()) == 1.0


def test_tails_far_below_every_float_are_numbers() -> None:
    """At 3,000 bits the logarithm of a cumulative float is -inf, and a limit made from it is too small: it
    saturates."""
    errors, n, log_delta = 100, 1200, math.log(0.05) - 3383 * math.log(2)
    saturated = 0.5
    while math.isfinite(stats.binom.logcdf(errors, n, saturated)):
        saturated += 0.005
    found = limit(errors, n, arb(log_delta))
    assert saturated < 0.7 < 0.9 < found < 1  # what inverting logcdf would have certified, and what is true
    assert float(binomial_tail(errors, n, found).log()) <= log_delta
    assert float_limit(errors, n, log_delta) == pytest.approx(found, rel=1e-9)
