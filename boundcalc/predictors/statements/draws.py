"""G6': PAC-Bayes for weights drawn once from a posterior and tested on the examples the posterior was made from."""

from __future__ import annotations

from flint import arb

from boundcalc.base.intervals import certainly_le
from boundcalc.predictors.statements.base import (
    ERRORS,
    Fact,
    Facts,
    N,
    PredictorStatement,
    errors_within,
    real,
)
from boundcalc.predictors.tails import binomial_mass, rounded_up, turn


def _log_weight(errors: int) -> arb:
    """Log of q(e) = 6 / (pi (e + 1))^2, a law on the counts fixed before any data."""
    return (6 / (arb.pi() * (errors + 1)) ** 2).log()


def _single_draw(facts: Facts, delta: float) -> float:
    errors, n = facts["errors"], facts["n"]
    if errors >= n:
        return 1.0
    level = arb(delta).log() + _log_weight(errors) - arb(facts["nats"])
    high = turn(lambda p: bool(binomial_mass(errors, n, p).log() >= level), errors / n)

    def holds(p: float) -> bool:
        beyond = certainly_le(arb(errors), arb(p) * n)  # from there on the mass falls
        return beyond and certainly_le(binomial_mass(errors, n, p).log(), level)

    return rounded_up(high, holds)


G6_PRIME = PredictorStatement(
    "G6'",
    {"errors": ERRORS, "n": N, "nats": Fact(real, "log of dQ_S/dP at the weights drawn, and log of the draws made")},
    _single_draw,
    errors_within,
)
