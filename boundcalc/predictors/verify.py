"""The check of a predictor's certificate: its number from its facts, and its facts from the examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate, known_methods, rederive


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check did.

    Attributes:
        certificate: what was checked.
        risk: the value of its facts, in ball arithmetic.
        established: how the facts were established again, or None: then they were taken as they stand.
        proved: what was shown of the predictor itself, where its method can and something makes it.
    """

    certificate: PredictorCertificate
    risk: float
    established: str | None = None
    proved: str | None = None


def verify_predictor(
    certificate: PredictorCertificate,
    data: Any = None,
    learner_of: Callable[[Mapping[str, Any]], Any] | None = None,
) -> Verified:
    """Re-derive the number from the facts; with the examples, establish the facts again too.

    Args:
        certificate: as it was made, or read from a file.
        data: the examples; without them the facts are taken as they stand.
        learner_of: makes a learner from a recipe, where the method trains again.

    Returns:
        The risk in ball arithmetic, and how the facts were established.

    Raises:
        CertificateError: if the number does not follow from the facts, or the facts from the examples.
    """
    risk = rederive(certificate)
    method = known_methods()[certificate.method]
    if data is None:
        shown = None if learner_of is None or method.prove is None else method.prove(certificate, learner_of)
        return Verified(certificate, risk, proved=shown)

    def none(recipe: Mapping[str, Any]) -> Any:
        raise CertificateError(
            f"its learner is needed to train again: nothing makes one of kind {recipe.get('kind')!r}"
        )

    return Verified(certificate, risk, method.establish(certificate, data, learner_of or none))
