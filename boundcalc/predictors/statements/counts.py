"""H and G7: a predictor fixed before the examples, or one of countably many that share delta."""

from __future__ import annotations

from functools import lru_cache

from flint import arb

from boundcalc.base.errors import CertificateError
from boundcalc.base.statement import Statement
from boundcalc.predictors.statements.base import ERRORS, Fact, Facts, N, PredictorStatement, errors_within, real
from boundcalc.predictors.tails import limit


@lru_cache(maxsize=4096)
def confidence_limit(errors: int, n: int, delta: float) -> float:
    """CP(errors; n; delta), rounded up."""
    return limit(errors, n, arb(delta).log())


def _holdout(facts: Facts, delta: float) -> float:
    return confidence_limit(facts["errors"], facts["n"], delta)


H = PredictorStatement(
    Statement(
        "H",
        "holdout: examples the predictor has not met",
        r"R(h)\le\mathrm{CP}(e;n;\delta)=\max\{p:\ P(\mathrm{Bin}(n,p)\le e)\ge\delta\}",
        "The predictor does not depend on the n examples that test it (it may depend on others); these are independent "
        "draws of the law R speaks of.",
        "If R > CP(e; n; delta) then P(Bin(n, R) <= e) < delta, since the tail falls in p. Let e' be the largest such "
        "e. The event is {e <= e'}, of probability less than delta.",
        compute=None,
    ),
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
    Statement(
        "G7",
        "Occam: a predictor written in few bits",
        r"R(h)\le\mathrm{CP}(e;n;\delta\,2^{-B(h)})\quad\text{for all }h\text{ at once},\qquad\sum_h2^{-B(h)}\le1",
        "The code (its reference weights, tables, the decoder's float arithmetic) is fixed before the n examples; no "
        "word of it is the beginning of another. e counts errors of the DECODED predictor. The search is free.",
        "H with delta 2^-B(h) for each h; by Kraft's inequality these sum to at most delta. Lengths that are -log2 of a "
        "sub-probability need no rounding up to whole bits.",
        compute=None,
    ),
    {"errors": ERRORS, "n": N, "bits": Fact(_bits, "length of the predictor's code word")},
    _occam,
    errors_within,
)
