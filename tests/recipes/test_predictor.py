"""How to add a kind of certificate of one predictor: a statement with the facts it rests on, and a method with its evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flint import arb

from boundcalc import PredictorCertificate, verify_predictor
from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import upper_float
from boundcalc.predictors.certificate import METHODS, Method, issue, json_object, register
from boundcalc.predictors.statements import STATEMENTS, PredictorStatement
from boundcalc.predictors.statements.base import ERRORS, Facts, N, errors_within


def hoeffding(facts: Facts, delta: float) -> float:
    """R <= e/n + sqrt(log(1/delta)/(2n)) for a predictor that does not depend on the n examples, rounded up."""
    n = arb(facts["n"])
    return upper_float(facts["errors"] / n + (-arb(delta).log() / (2 * n)).sqrt())


HOEFFDING = PredictorStatement("Hoeffding", {"errors": ERRORS, "n": N}, hoeffding, errors_within)


def established(certificate: PredictorCertificate, data: Any, learner_of: Callable[[Mapping[str, Any]], Any]) -> str:
    """Counts the errors again."""
    del learner_of
    if sum(data) != certificate.facts["errors"] or len(data) != certificate.facts["n"]:
        raise CertificateError("the examples have other errors")
    return "counted again"


METHOD = Method(
    "poll",
    ("Hoeffding",),
    "asked once",
    {"asked": json_object},
    lambda entry: entry,
    lambda certificate: None,
    established,
)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    STATEMENTS[HOEFFDING.name] = HOEFFDING
    register(METHOD)
    yield
    del METHODS[METHOD.name], STATEMENTS[HOEFFDING.name]


def made() -> PredictorCertificate:
    facts = {"errors": 3, "n": 100}
    return issue(
        "poll",
        "Hoeffding",
        facts,
        delta=0.05,
        alternatives=({"delta": 0.05},),
        chosen=0,
        evidence={"asked": {"whom": "all"}},
    )


def test_it_is_written_read_and_checked(tmp_path: Path) -> None:
    certificate = made()
    assert certificate.risk == pytest.approx(0.03 + math.sqrt(math.log(20) / 200))
    certificate.save(tmp_path / "poll.json")
    again = PredictorCertificate.load(tmp_path / "poll.json")
    assert verify_predictor(again).risk == certificate.risk
    answers = [1] * 3 + [0] * 97
    assert verify_predictor(again, answers).established == "counted again"


def test_what_does_not_follow_is_refused() -> None:
    certificate = made()
    with pytest.raises(CertificateError, match="does not follow"):
        verify_predictor(replace(certificate, risk=certificate.risk * 0.99))
    with pytest.raises(CertificateError, match="other errors"):
        verify_predictor(certificate, [1] * 4 + [0] * 96)
    with pytest.raises(CertificateError, match="errors"):
        HOEFFDING.risk({"errors": 101, "n": 100}, 0.05)


def test_a_reader_without_it_refuses_by_name() -> None:
    data = json.loads(json.dumps(made().to_json()))
    del METHODS["poll"]
    with pytest.raises(CertificateError, match="poll"):
        PredictorCertificate.from_json(data)
    METHODS["poll"] = METHOD


def test_a_method_rests_on_statements_that_exist() -> None:
    with pytest.raises(ValueError, match="no statement"):
        register(replace(METHOD, name="other", statements=("G99",)))
