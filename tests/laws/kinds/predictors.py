"""Laws of kinds of certificates of one predictor: what is written is read, what is forged is refused, and the number
holds."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from boundcalc.base.errors import BoundcalcError
from boundcalc.predictors.certificate import (
    Method,
    PredictorCertificate,
    issue,
    known_methods,
    verify_predictor,
)
from boundcalc.testing._judge import Cases, Complaint, judge
from tests.proof import both
from tests.proof.both import Place, put

_CLOSE = 1e-9
_ON_RECORD = ("environment", "proof")
"""Evidence that may be anything: where it was made, and a proof that is checked whole (its own tests forge it)."""


@dataclass(frozen=True, slots=True)
class World:
    """A law of examples so simple that everything a run may find, and how likely that is, can be listed.

    Attributes:
        outcomes: (probability, facts, true risk of what is certified then). Facts of None say that no certificate is
            issued. Where the risk is not known exactly, what it is at the least.
        delta: what the number may fail with.
    """

    outcomes: Sequence[tuple[float, Mapping[str, Any] | None, float]]
    delta: float = 0.05


@dataclass(frozen=True)
class PredictorExample:
    """A certificate that was issued, and what it was issued for.

    Attributes:
        make: issues it.
        data: its examples, as `verify_predictor` takes them.
        other: other examples, of which it does not speak.
        learner_of: makes a learner from its recipe, where its facts are established by one.
        worlds: for its statement: where the risk is known exactly, or by a binomial argument.
    """

    make: Callable[[], PredictorCertificate]
    data: Any
    other: Any
    learner_of: Callable[[Mapping[str, Any]], Any] | None = None
    worlds: Sequence[World] = ()

    @cached_property
    def certificate(self) -> PredictorCertificate:
        """As it was first issued."""
        return self.make()

    def __str__(self) -> str:
        return str(self.certificate.statement)

    def issued_by(self, method: Method) -> PredictorCertificate:
        """The certificate with the number that this method's statement gives."""
        c = self.certificate
        return issue(
            method.name, c.errors, delta=c.delta, alternatives=c.alternatives, chosen=c.chosen, evidence=c.evidence
        )


def _known(method: Method) -> AbstractContextManager[Any]:
    """The reader knows this method for a while, instead of another of its name."""
    return patch.dict(known_methods(), {method.name: method})


def _refused(raw: Mapping[str, Any], at: PredictorExample, data: Any) -> bool:
    """Whether what was forged is refused by the reader, by its number, or on the examples."""
    try:
        verify_predictor(PredictorCertificate.from_json(raw), data, at.learner_of)
    except (BoundcalcError, TypeError):
        return True
    return False


def _with_its_own_number(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was forged with the number that follows from it, or as it is where no run has such facts."""
    try:
        forged = PredictorCertificate.from_json({**raw, "risk": 1.0})
        return replace(forged, risk=forged.value).to_json()
    except BoundcalcError:
        return raw


def a_certificate_survives_its_file(method: Method, at: PredictorExample) -> str | None:
    """What is written is read back, follows from its facts, and says whose risk it bounds."""
    with _known(method), tempfile.TemporaryDirectory() as folder:
        made = at.issued_by(method)
        made.save(Path(folder) / "certificate.json")
        found = PredictorCertificate.load(Path(folder) / "certificate.json")
        if found != made or verify_predictor(found).risk != made.risk:
            return "what is read back is another certificate"
        return None if 0 < found.risk < 1 and found.certified else f"it says nothing: {found}"


def its_facts_are_established_from_its_examples(method: Method, at: PredictorExample) -> str | None:
    """With the examples, the facts are established again, and what was done is said."""
    with _known(method):
        done = verify_predictor(at.issued_by(method), at.data, at.learner_of).established
    return None if done else "nothing is said to have been done"


def other_examples_are_refused(method: Method, at: PredictorExample) -> str | None:
    """A certificate speaks of the examples it was made from."""
    with _known(method):
        return None if _refused(at.issued_by(method).to_json(), at, at.other) else "it is established on other examples"


def a_forged_number_is_refused(method: Method, at: PredictorExample) -> str | None:
    """The claim is that of its facts and of its failure probability, neither less nor more."""
    with _known(method):
        raw = at.issued_by(method).to_json()
        for scale in (0.999, 1.01):
            if not _refused({**raw, "risk": raw["risk"] * scale}, at, None):
                return f"{scale} of its number is taken"
        if not _refused({**raw, "delta": raw["delta"] / 4}, at, None):
            return "the same number is taken with a quarter of its failure probability"
    return None


def a_forged_count_is_refused_on_the_examples(method: Method, at: PredictorExample) -> str | None:
    """A forger who changes the errors and computes the number anew is found out where the examples are."""
    with _known(method):
        raw = at.issued_by(method).to_json()
        for errors in (raw["errors"] - 1, raw["errors"] + 1):
            if not _refused(_with_its_own_number({**raw, "errors": errors}), at, at.data):
                return f"{errors} errors are established, where {raw['errors']} were found"
    return None


def forged_evidence_is_refused_on_the_examples(method: Method, at: PredictorExample) -> str | None:
    """What is in the evidence and in no alternative has one admissible value, but for what is on record only."""
    with _known(method):
        raw = at.issued_by(method).to_json()
        for path, value in leaves(raw["evidence"]):
            forged = put(raw, ("evidence", *path), _other(value))
            forged = _with_its_own_number(forged) if path[0] == "data" else forged
            if path[0] not in _ON_RECORD and not _refused(forged, at, at.data):
                return f"{'.'.join(map(str, path))} may be anything"
    return None


def leaves(data: Any) -> Iterator[tuple[Place, Any]]:
    """Numbers, texts and empty lists of a JSON value, with the path to each."""
    pairs = ((path, both.at(data, path)) for path in both.places(data))
    return ((path, value) for path, value in pairs if not value or not isinstance(value, dict | list))


def _other(value: Any) -> Any:
    """A value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if isinstance(value, int) else value * 1.01 or 1.0
    return ("0" if value[:1] != "0" else "1") + value[1:] if isinstance(value, str) else [0]


@dataclass
class _Answering:
    """A learner, or what it makes, whose right answers become another number."""

    learner: Any
    answer: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    def scores(self, *given: Any) -> Any:
        scores = np.array(self.learner.scores(*given), dtype=float)
        scores[scores > 0] = self.answer
        return scores


def only_answers_above_zero_are_right(method: Method, at: PredictorExample) -> str | None:
    """A certificate whose right answers become NaN, -inf or a zero is refused; infinity is above 0."""
    make = at.learner_of
    if make is None or not hasattr(make(at.certificate.evidence.recipe), "scores"):
        return None
    with _known(method):
        raw = at.issued_by(method).to_json()
        for answer in (math.nan, -math.inf, -0.0, 0.0):
            if not _refused(raw, replace(at, learner_of=lambda r, a=answer: _Answering(make(r), a)), at.data):
                return f"an answer of {answer} counts as right"
    return None


def nothing_in_it_goes_unread(method: Method, at: PredictorExample) -> str | None:
    """Fields that nobody knows are refused, and so are missing ones, and failure probability spent twice."""
    with _known(method):
        raw = at.issued_by(method).to_json()
        more: list[tuple[str, dict[str, Any]]] = [("a further field", {**raw, "nobody knows this": 1})]
        evidence = raw["evidence"]
        more.append(("a further field of evidence", {**raw, "evidence": {**evidence, "nobody knows this": 1}}))
        for name in evidence:
            rest = {n: v for n, v in evidence.items() if n != name}
            more.append((f"evidence without {name}", {**raw, "evidence": rest}))
        entry = raw["alternatives"][raw["chosen"]]
        more.append(("an alternative taken twice", {**raw, "alternatives": [*raw["alternatives"], entry]}))
        return next((f"{what} is taken" for what, forged in more if not _refused(forged, at, None)), None)


def its_number_fails_no_more_often_than_it_says(method: Method, at: PredictorExample) -> str | None:
    """In worlds where all outcomes can be listed, those with a smaller number than the true risk come to delta at
    most."""
    if not at.worlds:
        return "it brings no world in which the risk is known exactly"
    statement = next(one for one in method.statements if one.name == at.certificate.statement)
    for world in at.worlds:
        whole = math.fsum(chance for chance, _, _ in world.outcomes)
        if abs(whole - 1) > _CLOSE:
            return f"the chances of a world come to {whole!r}"
        failed = math.fsum(
            chance
            for chance, facts, truth in world.outcomes
            if facts is not None and statement.risk(facts, world.delta) < truth
        )
        if failed > world.delta * (1 + _CLOSE):
            return f"its number is smaller than the risk with probability {failed:.4g}, and delta is {world.delta:g}"
    return None


LAWS = (
    a_certificate_survives_its_file,
    its_facts_are_established_from_its_examples,
    other_examples_are_refused,
    a_forged_number_is_refused,
    a_forged_count_is_refused_on_the_examples,
    forged_evidence_is_refused_on_the_examples,
    only_answers_above_zero_are_right,
    nothing_in_it_goes_unread,
    its_number_fails_no_more_often_than_it_says,
)


def _refuses(method: Method, what: PredictorExample) -> str | None:
    with _known(method):
        forged = PredictorCertificate.from_json(what.make().to_json())
        verify_predictor(forged, what.data, what.learner_of)
    return None


def check_predictor(method: Method, cases: Cases) -> list[Complaint]:
    """Tries every law on an issued certificate for every statement that the method's certificates may rest on."""
    complaints = judge(method, cases, LAWS, _refuses)
    tried = {example.certificate.statement for example in cases.examples}
    untried = [
        Complaint("complete", statement.name, "no certificate that rests on it was brought, so nothing shows it holds")
        for statement in method.statements
        if statement.name not in tried
    ]
    return complaints + untried
