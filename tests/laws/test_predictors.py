"""Kinds of certificates of one predictor, by the same checks that a user's own are put to."""

from __future__ import annotations

from dataclasses import make_dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boundcalc.base.schema import read, write
from boundcalc.predictors.certificate import METHODS, Method, PredictorCertificate, issue, known_methods
from boundcalc.testing import Cases
from tests.cases.predictors import cases
from tests.laws.kinds.predictors import LAWS, PredictorExample, World, check_predictor


@pytest.mark.parametrize("name", known_methods())
def test_laws(name: str) -> None:
    assert check_predictor(METHODS[name], cases(name)) == []


def broken(method: Method, *laws: str) -> None:
    """These laws fail, and no other, for what the method's name brought."""
    found = check_predictor(method, Cases(cases(method.name).examples, None, {"none": method}))
    assert [c.law for c in found if c.law != "wrong"] == list(laws)


def test_what_one_law_alone_sees() -> None:
    held_out = METHODS["held-out"]
    broken(held_out)
    (statement,) = held_out.statements
    too_small = replace(statement, value=lambda facts, delta: 0.98 * statement.value(facts, delta))
    broken(replace(held_out, statements=(too_small,)), "its_number_fails_no_more_often_than_it_says")
    silent = replace(held_out, establish=lambda *given: held_out.establish(*given) and "")
    broken(silent, "its_facts_are_established_from_its_examples")
    broken(
        replace(held_out, establish=lambda *_: "believed"),
        "other_examples_are_refused",
        "a_forged_count_is_refused_on_the_examples",
        "forged_evidence_is_refused_on_the_examples",
        "only_answers_above_zero_are_right",
    )
    always = replace(statement, value=lambda facts, delta: 0.9)
    broken(replace(held_out, statements=(always,)), "a_forged_number_is_refused")
    assert METHODS["held-out"] is held_out
    assert len(LAWS) == 9


def test_fields_that_nobody_reads_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a reader leaves unread: here all that its evidence lacks or has besides."""
    from boundcalc.predictors import certificate

    (example,) = cases("held-out").examples
    full = write(example.certificate.evidence, complete=True)

    def lax(kind: Any, what: str, data: Any) -> Any:
        more = {name: data[name] for name in full.keys() & data.keys()} if what == "evidence" else data
        return read(kind, full | more if what == "evidence" else more, what)

    monkeypatch.setattr(certificate, "read_as", lax)
    broken(METHODS["held-out"], "nothing_in_it_goes_unread")


def test_weights_that_nobody_compares_are_seen() -> None:
    held_out = METHODS["held-out"]

    def careless(certificate: PredictorCertificate, data: Any, learner_of: Any) -> str:
        own = replace(certificate.evidence, weights=learner_of(certificate.evidence.recipe).weights)
        return held_out.establish(replace(certificate, evidence=own), data, learner_of)

    broken(replace(held_out, establish=careless), "forged_evidence_is_refused_on_the_examples")


def test_answers_that_are_counted_as_right_without_being_above_zero_are_seen() -> None:
    """Counting the scores at most 0 takes NaN for right; the rest of the check is that of held-out."""
    held_out = METHODS["held-out"]

    def counted(certificate: PredictorCertificate, data: Any, learner_of: Any) -> str:
        predictor = learner_of(certificate.evidence.recipe)
        answers = predictor.scores(data)
        careless = SimpleNamespace(weights=predictor.weights, scores=lambda _: np.where(answers <= 0, -1.0, 1.0))
        return held_out.establish(certificate, data, lambda _: careless)

    broken(replace(held_out, establish=counted), "only_answers_above_zero_are_right")


def test_an_order_that_an_author_may_choose_is_seen() -> None:
    """As the split once was: evidence that facts follow from, in no alternative. The forger counts its facts anew."""
    held_out = METHODS["held-out"]
    evidence = make_dataclass("Ordered", [("order", int)], bases=(held_out.evidence,), frozen=True)
    free = replace(held_out, evidence=evidence)

    (example,) = cases("held-out").examples
    old = example.certificate

    class Ordered(PredictorExample):
        def issued_by(self, method: Method) -> PredictorCertificate:
            more = {**write(old.evidence, complete=True), "order": 0}
            return issue(method.name, old.errors, delta=0.05, alternatives=old.alternatives, evidence=more)

    ordered = Ordered(example.make, example.data, example.other, example.learner_of, example.worlds)
    found = check_predictor(free, Cases([ordered], None, {"none": free}))
    assert [c.law for c in found if c.law != "wrong"] == ["forged_evidence_is_refused_on_the_examples"]


def test_worlds_are_whole_and_every_statement_has_one() -> None:
    p2l, (first, *rest) = METHODS["p2l"], cases("p2l").examples
    for worlds, says in (([], "no world"), ([World([(0.5, None, 0.1)])], "come to 0.5")):
        (complaint,) = check_predictor(p2l, Cases([replace(first, worlds=worlds), *rest], None, {"none": p2l}))[:1]
        assert says in complaint.says
    missing = [c.example for c in check_predictor(p2l, Cases([first], None, {})) if c.law == "complete"]
    assert missing == ["", "G10r"]
