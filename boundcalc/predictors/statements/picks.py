"""G10r: predictors that learned from few picked examples and answer for all the others."""

from __future__ import annotations

from boundcalc.base.errors import CertificateError
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

_PICKS = Fact(count, "examples that were picked and learned from")


def _within(facts: Facts) -> str | None:
    picks, n = facts["picks"], facts["n"]
    if picks > n:
        return f"{picks} picks among {n} examples"
    if facts["errors"] > n - picks:
        return f"{facts['errors']} errors among the {n - picks} examples that were not picked"
    return None


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
