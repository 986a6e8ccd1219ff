"""The bound of a class fixed before the examples, for one of its members: whichever risk bound the checker proved."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.statements.base import Fact, Facts, N, PredictorStatement, count, errors_within


def _proof(name: str, value: object) -> Mapping[str, Any]:
    from boundcalc.proof.certificate import Certificate

    if not isinstance(value, Mapping):
        raise CertificateError(f"{name} must be the JSON object of a class's certificate, got {type(value).__name__}")
    Certificate.from_json(value)
    return value


def _of_its_class(facts: Facts, delta: float) -> float:
    from boundcalc.proof.certificate import Certificate
    from boundcalc.proof.checker import verify
    from boundcalc.proof.trivial import covers_nothing

    proof = Certificate.from_json(facts["proof"])
    sample = proof.setting.sample
    if proof.quantity != "risk":
        raise CertificateError(f"the proof bounds the {proof.quantity} of its class, not the risk")
    if sample.n_train != facts["n"]:
        raise CertificateError(f"the proof is for {sample.n_train} examples, the facts for n = {facts['n']}")
    if sample.delta > delta:
        raise CertificateError(f"the proof fails with probability {sample.delta!r}, its share is {delta!r}")
    if Fraction(facts["errors"], facts["n"]) > Fraction(sample.train_error):
        raise CertificateError(
            f"{facts['errors']} margin errors of {facts['n']}, but the proof is for a share of {sample.train_error!r}"
        )
    checked = verify(proof)
    return 1.0 if covers_nothing(proof) else min(1.0, checked.value)


CLASS = PredictorStatement(
    "Class",
    {
        "errors": Fact(count, "margins at most gamma among the n"),
        "n": N,
        "proof": Fact(_proof, "the certificate of the class: setting, covers, claim"),
    },
    _of_its_class,
    errors_within,
)
