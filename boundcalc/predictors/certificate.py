"""Certificates of one predictor: claims and facts as JSON, a reader that trusts none, and `verify_predictor`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from boundcalc.base import files
from boundcalc.base.errors import CertificateError
from boundcalc.base.output import write_json
from boundcalc.base.registry import Registry
from boundcalc.base.rounding import up
from boundcalc.base.schema import ClosedShare, Count, Share, check_fields, write
from boundcalc.predictors._statements import PredictorStatement, read_as

_FORMAT = "boundcalc-predictor-certificate/6"
_TOLERANCE = 1e-6
"""By how much, relative to it, a claim may exceed the value of its facts: another version may search a little
better."""
LearnerOf = Callable[[Mapping[str, Any]], Any]
"""Makes a learner, or a network, from a recipe."""


@dataclass(frozen=True)
class Look:
    """One of the predictors, or looks at the examples, that were fixed beforehand: its number among them."""

    number: Count = 0


@dataclass(frozen=True, slots=True)
class Method:
    """A way to certify a predictor.

    Attributes:
        name: as on the command line.
        certified: which predictor the number is about.
        statements: what its certificates may be based on, a user's own too.
        evidence: a dataclass of what a certificate records.
        facts: the name of the statement that a certificate is based on, and what this needs besides the errors, from
            the alternative that was taken and the evidence; refuses those that do not fit together.
        establish: counts the errors of the examples again: says what was done, or raises. The last argument makes a
            learner from a recipe, where the method needs one.
        alternative: a dataclass of one of the alternatives that share delta.
        prove: what is shown of the predictor without examples, from what the last argument makes of the recipe.
    """

    name: str
    certified: str
    statements: tuple[PredictorStatement, ...]
    evidence: type
    facts: Callable[[PredictorCertificate], tuple[str, Mapping[str, Any]]]
    establish: Callable[[PredictorCertificate, Any, LearnerOf], str]
    alternative: type = Look
    prove: Callable[[PredictorCertificate, LearnerOf], str] | None = None


SHORT = ("errors", "n", "picks", "bits", "nats")
"""Facts that a certificate in short tells."""

_OURS = ("picking", "occam", "pac_bayes", "rules.certify")
"""Modules that have methods. They need arrays, which statements do not: they are loaded when a certificate is read."""


METHODS: Registry[Method] = Registry("predictor")
"""How predictors are certified, the library's own from the first call of `known_methods` on.

`METHODS.register` adds one for the reader and for `verify`.
"""


def known_methods() -> Registry[Method]:
    """Every method by name, a user's own included."""
    for module in _OURS:
        import_module(f"boundcalc.predictors.{module}")
    return METHODS


@dataclass(frozen=True)
class PredictorCertificate:
    """With probability at least 1 - delta over the examples, the risk of one predictor is at most `risk`.

    Attributes:
        method: how it was made.
        delta: the failure probability of all alternatives together.
        alternatives: everything that was fixed beforehand and shares delta, in equal parts.
        chosen: which of them this certificate is about.
        evidence: the examples and the recipe, digests of data and weights, and what else the method needs.
        errors: how many examples are answered wrongly.
        risk: the claim.
    """

    method: str
    delta: Share
    alternatives: tuple[Any, ...]
    chosen: Count
    evidence: Any
    errors: Count
    risk: ClosedShare

    def __post_init__(self) -> None:
        """Refuse what does not fit together; whether the risk follows is for `verify_predictor`."""
        method = self._method
        check_fields(self)
        typed = [_typed(method.alternative, "an alternative", entry) for entry in self.alternatives]
        object.__setattr__(self, "alternatives", tuple(typed))
        object.__setattr__(self, "evidence", _typed(method.evidence, "evidence", self.evidence))
        if len({text_of(entry) for entry in typed}) != len(typed):
            raise CertificateError("one alternative is listed twice")
        if self.chosen >= len(typed):
            raise CertificateError(
                f"chosen must be a place in the list of {len(typed)} alternatives, got {self.chosen!r}"
            )
        _ = self._based_on

    @property
    def _method(self) -> Method:
        method = known_methods().get(self.method)
        if method is None:
            raise CertificateError(f"unknown method {self.method!r}; known: {', '.join(METHODS)}")
        return method

    @cached_property
    def _based_on(self) -> tuple[PredictorStatement, dict[str, Any]]:
        name, facts = self._method.facts(self)
        statement = next(statement for statement in self._method.statements if statement.name == name)
        return statement, vars(statement.read(write({"errors": self.errors, **facts})))

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {self.facts[name]}" for name in SHORT if name in self.facts)
        what = f"risk <= {up(self.risk, 4)}, predictor {self.certified}, by {self.statement}"
        return f"PredictorCertificate({what}: {facts})"

    @property
    def statement(self) -> str:
        """The name of the statement that it follows from."""
        return self._based_on[0].name

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the statement needs: the errors, and what follows from the alternative taken and the evidence."""
        return self._based_on[1]

    @property
    def value(self) -> float:
        """The bound that the facts give."""
        return self._based_on[0].risk(write(self.facts), self.share)

    @property
    def share(self) -> float:
        """The part of delta that each alternative has."""
        return equal_shares(self.delta, len(self.alternatives))

    @property
    def alternative(self) -> Any:
        """The alternative it is about, of the type that its method declares."""
        return self.alternatives[self.chosen]

    @property
    def certified(self) -> str:
        """Which predictor the number is about."""
        return self._method.certified

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {"format": _FORMAT, **write(self, complete=True)}

    def summary(self) -> dict[str, Any]:
        """One entry of `certificates` in the JSON of a command."""
        facts = {name: self.facts[name] for name in SHORT if name in self.facts}
        own = {name: getattr(self, name) for name in ("method", "statement", "risk", "delta")}
        return {**own, **facts, "certified": self.certified}

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file; `force` replaces an existing file."""
        write_json(path, self.to_json(), force=force)

    @classmethod
    def from_json(cls, data: object) -> PredictorCertificate:
        """A certificate from its JSON object; raises `CertificateError` on anything that does not fit."""
        return read_as(cls, "a certificate", of_format("a certificate", data, _FORMAT))

    @classmethod
    def load(cls, path: Path | str) -> PredictorCertificate:
        """Read a JSON file."""
        try:
            return cls.from_json(files.read_json(path, "verify", CertificateError))
        except OSError as error:
            raise CertificateError(f"cannot read {path}: {error.strerror or error}") from None


def _typed(kind: type, what: str, value: Any) -> Any:
    """A value as a file that it is written to gives it back: from JSON, or from an instance."""
    return read_as(kind, what, write(value, complete=True))


def text_of(value: Any, *without: str) -> str:
    """The JSON text of an alternative, without some of its fields."""
    fields = write(value, complete=True).items()
    return json.dumps({name: inner for name, inner in fields if name not in without}, sort_keys=True)


@dataclass(frozen=True, eq=False, slots=True)
class Certified:
    """A certificate and the predictor it is about.

    Attributes:
        certificate: the claim.
        state: of the learner that made the predictor, or the weights that were decoded or drawn.
    """

    certificate: PredictorCertificate
    state: Any


def issue(
    method: str, errors: int, *, delta: float, alternatives: Iterable[Any], chosen: int = 0, evidence: Any
) -> PredictorCertificate:
    """A certificate whose claim is what its statement gives."""
    certificate = PredictorCertificate(method, delta, tuple(alternatives), chosen, evidence, errors, 1.0)
    object.__setattr__(certificate, "risk", certificate.value)  # all else is read already
    return certificate


@dataclass(frozen=True, slots=True)
class _Verified:
    """What a check did.

    Attributes:
        risk: the value of the facts, in ball arithmetic.
        established: how the facts were established again, or None: then they were taken as they stand.
        proved: what was shown of the predictor itself, where its method can and something makes it.
    """

    risk: float
    established: str | None = None
    proved: str | None = None


def verify_predictor(
    certificate: PredictorCertificate, data: Any = None, learner_of: LearnerOf | None = None
) -> _Verified:
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
    method, value = known_methods()[certificate.method], certificate.value
    if not value <= certificate.risk <= value * (1 + _TOLERANCE):
        raise CertificateError(
            f"the claim does not follow: risk <= {certificate.risk!r} is claimed, {certificate.statement} gives "
            f"{value!r}"
        )
    if data is None:
        shown = None if learner_of is None or method.prove is None else method.prove(certificate, learner_of)
        return _Verified(value, proved=shown)

    return _Verified(value, method.establish(certificate, data, learner_of or _no_learner))


def _no_learner(recipe: Mapping[str, Any]) -> Any:
    raise CertificateError(f"its learner is needed to train again: nothing makes one of kind {recipe.get('kind')!r}")


def of_format(what: str, data: object, form: str) -> dict[str, Any]:
    """The fields of a JSON object of this format; refuses others."""
    if not isinstance(data, Mapping) or data.get("format") != form:
        written = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise CertificateError(f"not {what} of this version: format {written!r}, need {form!r}")
    return {str(name): value for name, value in data.items() if name != "format"}


def equal_shares(delta: float, count: int) -> float:
    """The largest float that, `count` times, is at most delta."""
    share = delta / count
    while Fraction(share) * count > Fraction(delta):
        share = math.nextafter(share, 0.0)
    return share
