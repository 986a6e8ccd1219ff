"""H and G7: a predictor fixed before the examples, or one of countably many that share delta."""

from __future__ import annotations

from functools import lru_cache

from flint import arb

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.statements.base import (
    ERRORS,
    Fact,
    Facts,
    N,
    PredictorStatement,
    count,
    errors_within,
    positive_count,
    real,
)
from boundcalc.predictors.tails import limit


@lru_cache(maxsize=4096)
def _confidence_limit(errors: int, n: int, delta: float) -> float:
    """CP(errors; n; delta), rounded up."""
    return limit(errors, n, arb(delta).log())


def _holdout(facts: Facts, delta: float) -> float:
    return _confidence_limit(facts["errors"], facts["n"], delta)


H = PredictorStatement(
    "H",
    {"errors": ERRORS, "n": N},
    _holdout,
    errors_within,
)


def _bits(name: str, value: object) -> float:
    bits = real(name, value)
    if bits < 0:
        raise CertificateError(f"{name} is a code's length and cannot be negative, got {bits!r}")
    return bits


def _occam(facts: Facts, delta: float) -> float:
    return limit(facts["errors"], facts["n"], arb(delta).log() - arb(facts["bits"]) * arb.const_log2())


G7 = PredictorStatement(
    "G7",
    {"errors": ERRORS, "n": N, "bits": Fact(_bits, "length of the predictor's code word")},
    _occam,
    errors_within,
)

RULE_ERRORS = Fact(count, "examples on which the rule answers something else, or nothing")

G15 = PredictorStatement(
    "G15",
    {"errors": RULE_ERRORS, "n": N, "bits": Fact(_bits, "length of the rule's code word")},
    _occam,
    errors_within,
)

G15P = PredictorStatement(
    "G15p",
    {"errors": RULE_ERRORS, "n": Fact(positive_count, "examples behind the prefix that the rule is read off")},
    _holdout,
    errors_within,
)
