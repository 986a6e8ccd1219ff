"""Evidence of given predictors, of holdout and of Pick-to-Learn, and how its facts are established again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import (
    METHODS,
    Method,
    PredictorCertificate,
    json_object,
    object_of,
    sha256_text,
)
from boundcalc.predictors.examples import data_evidence, readers, refuse_other_examples
from boundcalc.predictors.plans import Member
from boundcalc.predictors.statements import G10R, H, count


def _picks(name: str, value: object) -> list[int]:
    if not isinstance(value, list):
        raise CertificateError(f"{name} must be a list of places in the data, got {value!r}")
    picks = [count("a pick", place) for place in cast("list[object]", value)]
    if len(set(picks)) != len(picks):
        raise CertificateError("an example is picked twice")
    return picks


_EVIDENCE = readers(picks=_picks, weights=sha256_text)


def _consistent(certificate: PredictorCertificate) -> str | None:
    member = Member.from_json(certificate.taken)
    examples, picks = certificate.evidence["data"]["examples"], certificate.evidence["picks"]
    facts = certificate.facts
    if facts["n"] != examples - member.prefix:
        return f"{facts['n']} candidates, but {examples} examples without a prefix of {member.prefix} are others"
    if any(place >= examples for place in picks):
        return f"a pick lies beyond the {examples} examples"
    if facts.get("picks", 0) != len(picks):
        return f"{facts.get('picks', 0)} picks in the facts, {len(picks)} in the evidence"
    if certificate.statement != member.statement:
        return f"the alternative taken is one of {member.statement}, not of {certificate.statement}"
    if len(picks) != member.stop:
        return f"{len(picks)} picks, but the alternative taken stops at {member.stop}"
    if "references" in facts and member.batches and tuple(facts["references"]) != member.references:
        return "the references are not those of the alternative taken"
    return None


def _holdout(certificate: PredictorCertificate) -> str | None:
    if any(entry["batches"] for entry in certificate.alternatives):
        return "holdout picks no examples: a list with picks is method p2l"
    return _consistent(certificate)


def _establish(certificate: PredictorCertificate, data: Any, learner_of: Callable[[Mapping[str, Any]], Any]) -> str:
    from boundcalc.predictors.picking import rerun

    rerun(learner_of(certificate.evidence["recipe"]), data, certificate)
    picks = len(certificate.evidence["picks"])
    what = f"the same {picks} picks" if picks else "the same split"
    return f"trained again on these examples: {what}, the same errors, weights equal to the bit"


HOLDOUT = METHODS.register_builtin(
    Method("holdout", (H,), "trained on the prefix", _EVIDENCE, Member.from_json, _holdout, _establish)
)
P2L = METHODS.register_builtin(
    Method(
        "p2l",
        (H, G10R),
        "trained on the prefix and the picks",
        _EVIDENCE,
        Member.from_json,
        _consistent,
        _establish,
    )
)


def _given(certificate: PredictorCertificate) -> str | None:
    if certificate.facts["n"] != certificate.evidence["data"]["examples"]:
        return f"{certificate.facts['n']} tested, but the data hold {certificate.evidence['data']['examples']} examples"
    return None


def _answers_alike(certificate: PredictorCertificate, data: Any, learner_of: Callable[[Mapping[str, Any]], Any]) -> str:
    """Establish that the same predictor makes the same errors; `learner_of` gives its `weights` and `scores`."""
    refuse_other_examples(certificate, data)
    predictor = learner_of(certificate.evidence["recipe"])
    if predictor.weights != certificate.evidence["weights"]:
        raise CertificateError("this is not the predictor of the certificate: the sha256 of its weights differs")
    errors = count_wrong(predictor.scores(data), len(data))
    if errors != certificate.facts["errors"]:
        raise CertificateError(f"{errors} errors on these examples, the certificate says {certificate.facts['errors']}")
    return "the same weights answered the same examples: the same errors"


def _no_choice(raw: Mapping[str, Any]) -> object:
    return object_of("an alternative of a given predictor", raw, ())


HELD_OUT = METHODS.register_builtin(
    Method(
        "held-out",
        (H,),
        "given, with its weights",
        {"data": data_evidence, "recipe": json_object, "weights": sha256_text},
        _no_choice,
        _given,
        _answers_alike,
    )
)
