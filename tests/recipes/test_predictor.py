"""How to add a kind of certificate of one predictor: a statement with the facts it rests on, and a method with its
evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from flint import arb

from boundcalc import PredictorCertificate
from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import upper_float
from boundcalc.predictors._statements import ErrorCount, PredictorStatement
from boundcalc.predictors.certificate import METHODS, Look, Method, issue
from boundcalc.testing import Cases
from tests.laws.kinds.predictors import PredictorExample, World, check_predictor


def hoeffding(facts: ErrorCount, delta: float) -> float:
    """R <= e/n + sqrt(log(1/delta)/(2n)) for a predictor that does not depend on the n examples, rounded up."""
    n = arb(facts.n)
    return upper_float(facts.errors / n + (-arb(delta).log() / (2 * n)).sqrt())


def too_small(facts: ErrorCount, delta: float) -> float:
    """The negative control: the root of a quarter of the variance."""
    return upper_float(arb(facts.errors) / facts.n + (-arb(delta).log() / (8 * arb(facts.n))).sqrt())


HOEFFDING = PredictorStatement("Hoeffding", ErrorCount, hoeffding)


def established(certificate: PredictorCertificate, data: Any, learner_of: Callable[[Mapping[str, Any]], Any]) -> str:
    """Counts the errors again."""
    del learner_of
    if sum(data) != certificate.errors or len(data) != certificate.facts["n"]:
        raise CertificateError("the examples have other errors")
    return "counted again"


@dataclass(frozen=True)
class Evidence:
    asked: int
    environment: Mapping[str, Any]


def needed(certificate: PredictorCertificate) -> tuple[str, Mapping[str, Any]]:
    """The statement, and its facts besides the errors."""
    return "Hoeffding", {"n": certificate.evidence.asked}


METHOD = Method("poll", "asked once", (HOEFFDING,), Evidence, needed, established)


def made() -> PredictorCertificate:
    evidence = Evidence(100, {"asked": "by post"})
    return issue("poll", 3, delta=0.05, alternatives=[Look()], evidence=evidence)


def poll(n: int, risk: float) -> World:
    """Everything that a poll of n may find where so many are of another opinion."""
    law = [math.comb(n, e) * risk**e * (1 - risk) ** (n - e) for e in range(n + 1)]
    return World([(chance, {"errors": e, "n": n}, risk) for e, chance in enumerate(law)], delta=0.05)


ANSWERS = [1] * 3 + [0] * 97
EXAMPLE = PredictorExample(made, ANSWERS, [1] * 4 + [0] * 96, worlds=[poll(20, 0.5), poll(40, 0.3)])


def cases() -> Cases:
    """A certificate with its examples, one that claims too little, and the negative control."""
    claimed = replace(EXAMPLE, make=lambda: replace(made(), risk=made().risk * 0.99))
    wrong = replace(METHOD, statements=(replace(HOEFFDING, value=too_small),))
    return Cases([EXAMPLE], [(claimed, "does not follow")], {"too small": wrong})


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    METHODS.register(METHOD)
    yield
    METHODS.remove(METHOD.name)


def test_its_laws_hold_and_a_number_that_is_too_small_is_seen() -> None:
    assert check_predictor(METHOD, cases()) == []


def test_a_reader_without_it_refuses_by_name() -> None:
    data = json.loads(json.dumps(made().to_json()))
    METHODS.remove("poll")
    with pytest.raises(CertificateError, match="unknown method 'poll'"):
        PredictorCertificate.from_json(data)
