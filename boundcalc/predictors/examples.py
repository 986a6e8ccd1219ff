"""What a certificate says of its examples: how many, and their digest; and what does not fit that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate, object_of, sha256_text
from boundcalc.predictors.statements.base import positive_count


def named(data: Any) -> dict[str, Any]:
    """Which examples these are, as certificates say it."""
    return {"sha256": data.sha256, "examples": len(data)}


def data_evidence(name: str, value: object) -> Mapping[str, Any]:
    """The same as it is read."""
    raw = object_of(name, value, ("sha256", "examples"))
    sha256_text(f"sha256 of {name}", raw["sha256"])
    positive_count(f"examples of {name}", raw["examples"])
    return raw


def refuse_other_examples(certificate: PredictorCertificate, data: Any) -> None:
    """Facts are established again on the examples that they are about."""
    if dict(certificate.evidence["data"]) != named(data):
        raise CertificateError("these are not the examples of the certificate: their sha256 differs")


def of_another_count(certificate: PredictorCertificate) -> str | None:
    """What does not fit where all examples are tested on: as many are claimed as there are."""
    claimed, there = certificate.facts["n"], certificate.evidence["data"]["examples"]
    return None if claimed == there else f"{claimed} examples are claimed, the data have {there}"
