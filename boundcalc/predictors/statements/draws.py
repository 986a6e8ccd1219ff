"""G6' and G6: weights drawn from a posterior, once or anew for every answer, tested on the examples it was made from."""

from __future__ import annotations

import math
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
    errors_within,
    positive_count,
    real,
)
from boundcalc.predictors.tails import binomial_mass, divergence_limit, rounded_up, turn


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


_SUMMED = 10_000
"""Up to so many examples Maurer's sum is taken as it is."""


@lru_cache(maxsize=64)
def log_mean_ratio(n: int) -> arb:
    """Log of sum_k Bin(k; n, k/n), or of 2 sqrt(n), which it never exceeds."""
    if n > _SUMMED:
        return (2 * arb(n).sqrt()).log()
    total = arb(2)  # k = 0 and k = n
    for k in range(1, n):
        total = total + binomial_mass(k, n, arb(k) / n)
    return total.log()


def _drawn_anew(facts: Facts, delta: float) -> float:
    n, draws = facts["n"], facts["draws"]
    sampled = arb(facts["sampling"]) * arb(delta)
    mean = facts["errors"] / (draws * facts["tested"])
    while arb(mean) * (draws * facts["tested"]) < facts["errors"]:
        mean = math.nextafter(mean, 2.0)
    train = divergence_limit(mean, -sampled.log() / draws)
    rest = (arb(1) - arb(facts["sampling"])) * arb(delta)
    nats = arb(facts["nats"]) + log_mean_ratio(n) - rest.log()
    return divergence_limit(train, nats / n)


def _share(name: str, value: object) -> float:
    share = real(name, value)
    if not 0 < share < 1:
        raise CertificateError(f"{name} is a share of delta, between 0 and 1; got {share!r}")
    return share


def _divergence(name: str, value: object) -> float:
    nats = real(name, value)
    if nats < 0:
        raise CertificateError(f"{name} is a divergence and cannot be negative, got {nats!r}")
    return nats


def _within_draws(facts: Facts) -> str | None:
    if facts["tested"] > facts["n"]:
        return f"{facts['tested']} examples tested per draw, of {facts['n']}"
    if facts["errors"] > facts["draws"] * facts["tested"]:
        return f"{facts['errors']} errors of {facts['draws']} draws on {facts['tested']} examples each"
    return None


G6 = PredictorStatement(
    "G6",
    {
        "errors": Fact(ERRORS.read, "wrong answers of all draws together"),
        "n": N,
        "draws": Fact(positive_count, "independent draws that the posterior's training error is estimated by"),
        "tested": Fact(positive_count, "examples that each draw answers, drawn without looking"),
        "sampling": Fact(_share, "the share of delta that the estimate may fail with"),
        "nats": Fact(_divergence, "divergence of the posterior from the prior"),
    },
    _drawn_anew,
    _within_draws,
    speaks_of="a fresh example, answered by weights drawn anew",
)
