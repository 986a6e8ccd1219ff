"""G9 and G10r: predictors that learned from few picked examples and answer for all the others."""

from __future__ import annotations

from functools import lru_cache

from flint import arb

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import certainly_le
from boundcalc.predictors.statements.base import (
    ERRORS,
    Fact,
    Facts,
    N,
    PredictorStatement,
    count,
    shares,
)
from boundcalc.predictors.statements.joint import joint_limit
from boundcalc.predictors.tails import binomial_mass, binomial_tail, rounded_up, turn

_PICKS = Fact(count, "examples that were picked and learned from")


def _within(facts: Facts) -> str | None:
    picks, n = facts["picks"], facts["n"]
    if picks > n:
        return f"{picks} picks among {n} examples"
    if facts.get("errors", 0) > n - picks:
        return f"{facts['errors']} errors among the {n - picks} examples that were not picked"
    return None


@lru_cache(maxsize=4096)
def all_right_limit(picks: int, n: int, delta: float) -> float:
    """The root eps of (delta/n) sum_{j=k}^{n-1} C(j,k)/C(n,k) (1-eps)^-(n-j) = 1, rounded up.

    The sum is that of a negative binomial law: it is P(Bin(n, eps) > k) / (eps P(Bin(n, eps) = k)).
    """
    if picks >= n:
        return 1.0

    def reaches(eps: float) -> bool:
        above = 1 - binomial_tail(picks, n, eps)
        return certainly_le(n * arb(eps) * binomial_mass(picks, n, eps), delta * above)

    return rounded_up(turn(lambda eps: not reaches(eps), picks / n), reaches)


G9 = PredictorStatement(
    "G9",
    {"n": N, "picks": _PICKS},
    lambda facts, delta: all_right_limit(facts["picks"], facts["n"], delta),
    _within,
)


def _pairs(name: str, value: object) -> tuple[tuple[int, float], ...]:
    pairs = shares(name, value)
    if len({errors for errors, _ in pairs}) != len(pairs):
        raise CertificateError(f"{name} names a number of errors twice")
    return pairs


_REFERENCES = Fact(_pairs, "numbers of errors the bound was made for, each with its share of delta, fixed beforehand")


def _referenced(facts: Facts) -> str | None:
    wrong = _within(facts)
    others = facts["n"] - facts["picks"]
    if wrong is None and others and any(errors >= others for errors, _ in facts["references"]):
        return f"a reference of {max(e for e, _ in facts['references'])} errors, but only {others} others"
    return wrong


G10R = PredictorStatement(
    "G10r",
    {"errors": ERRORS, "n": N, "picks": _PICKS, "references": _REFERENCES},
    lambda facts, delta: joint_limit(facts["errors"], facts["n"], facts["picks"], facts["references"], delta),
    _referenced,
)
