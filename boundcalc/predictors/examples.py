"""What a certificate records besides its facts: its examples by number and digest, and what answered them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate, json_object, object_of, sha256_text
from boundcalc.predictors.statements import positive_count


def named(data: Any) -> dict[str, Any]:
    """Which examples these are, as certificates say it."""
    return {"sha256": data.sha256, "examples": len(data)}


def data_evidence(name: str, value: object) -> Mapping[str, Any]:
    """The same as it is read."""
    raw = object_of(name, value, ("sha256", "examples"))
    sha256_text(f"sha256 of {name}", raw["sha256"])
    positive_count(f"examples of {name}", raw["examples"])
    return raw


class Answers(Protocol):
    """What turns weights, or examples, into answers."""

    @property
    def recipe(self) -> Mapping[str, Any]:
        """All that determines it, as JSON."""
        ...

    @property
    def environment(self) -> Mapping[str, Any]:
        """What bit-equal answers also need, as JSON: versions, threads, the processor."""
        ...


def evidence_of(data: Any, by: Answers, **more: Any) -> dict[str, Any]:
    """The evidence of a certificate: the examples, what answered them, and what else its method needs."""
    return {"data": named(data), "recipe": by.recipe, **more, "environment": by.environment}


def readers(**more: Callable[[str, object], Any]) -> dict[str, Callable[[str, object], Any]]:
    """How such evidence is read."""
    return {"data": data_evidence, "recipe": json_object, **more, "environment": json_object}


def refuse_other_examples(certificate: PredictorCertificate, data: Any) -> None:
    """Facts are established again on the examples that they are about."""
    if dict(certificate.evidence["data"]) != named(data):
        raise CertificateError("these are not the examples of the certificate: their sha256 differs")


def of_another_count(certificate: PredictorCertificate) -> str | None:
    """What does not fit where all examples are tested on: as many are claimed as there are."""
    claimed, there = certificate.facts["n"], certificate.evidence["data"]["examples"]
    return None if claimed == there else f"{claimed} examples are claimed, the data have {there}"
