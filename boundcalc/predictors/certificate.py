"""A certificate of one predictor: its claim and facts as JSON, and the reader, which trusts none.

Every field is accounted for: what a certificate has and its method does not know is refused, and so are duplicate
names, NaN and infinities.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from boundcalc.base import files
from boundcalc.base.errors import CertificateError
from boundcalc.base.output import write_json
from boundcalc.base.registry import Registry
from boundcalc.base.rounding import up
from boundcalc.base.schema import write
from boundcalc.base.value import Value
from boundcalc.predictors.statements import PredictorStatement, read_as, real

_FORMAT = "boundcalc-predictor-certificate/3"

T = TypeVar("T")
_TOLERANCE = 1e-6
"""By how much, relative to it, a claim may exceed the value of its facts: another version may search a little
better."""


@dataclass(frozen=True, slots=True)
class Method:
    """A way to certify a predictor.

    Attributes:
        name: as on the command line.
        statements: what its certificates may be based on, a user's own too.
        certified: which predictor the number is about.
        evidence: a dataclass of what a certificate has besides the facts, read by its annotations.
        alternative: how one of the alternatives that share delta is read.
        consistent: what does not fit between facts, evidence and the alternative that was taken, or None.
        establish: establishes the facts again from the examples: says what was done, or raises. The last argument makes
            a learner from a recipe, where the method needs one.
        prove: what is shown of the predictor without examples, from what the last argument makes of the recipe.
    """

    name: str
    statements: tuple[PredictorStatement, ...]
    certified: str
    evidence: type
    alternative: Callable[[Mapping[str, Any]], object]
    consistent: Callable[[PredictorCertificate], str | None]
    establish: Callable[[PredictorCertificate, Any, Callable[[Mapping[str, Any]], Any]], str]
    prove: Callable[[PredictorCertificate, Callable[[Mapping[str, Any]], Any]], str] | None = None

    def statement_named(self, name: object) -> PredictorStatement:
        """The statement of that name, if its certificates may be based on it."""
        match = next((statement for statement in self.statements if statement.name == name), None)
        if match is None:
            names = " or ".join(statement.name for statement in self.statements)
            raise CertificateError(f"method {self.name!r} is based on {names}, not on {name!r}")
        return match


SHORT = ("n", "errors", "picks", "bits", "nats")
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


@dataclass(frozen=True, slots=True)
class PredictorCertificate:
    """With probability at least 1 - delta over the examples, the risk of one predictor is at most `risk`.

    Attributes:
        method: how it was made.
        statement: what it follows from.
        facts: what the statement needs.
        delta: the failure probability of all alternatives together.
        alternatives: everything that was fixed beforehand and shares delta, each with its part of it ("delta").
        chosen: which of them this certificate is about.
        risk: the claim.
        evidence: what the facts were read off: digests of data and weights, the recipe, the picks.
    """

    method: str
    statement: str
    facts: Mapping[str, Any]
    delta: float
    alternatives: tuple[Mapping[str, Any], ...]
    chosen: int
    risk: float
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {self.facts[name]}" for name in SHORT if name in self.facts)
        what = f"risk <= {up(self.risk, 4)}, predictor {self.certified}, by {self.statement}"
        return f"PredictorCertificate({what}: {facts})"

    @property
    def share(self) -> float:
        """The part of delta that the alternative taken has."""
        return float(self.alternatives[self.chosen]["delta"])

    @property
    def taken(self) -> dict[str, Any]:
        """The alternative it is about, without its part of delta."""
        return _without_delta(self.alternatives[self.chosen])

    @property
    def certified(self) -> str:
        """Which predictor the number is about."""
        return known_methods()[self.method].certified

    @property
    def bound(self) -> Value:
        """The claim as a value: the risk of its predictor."""
        return Value.of(self.statement, "risk", "bound", self.risk, self.method, always=1.0, proof=self)

    def to_json(self) -> dict[str, Any]:
        """The JSON object, with a digest of all of it: against damage, not against forgery."""
        body = write({name: getattr(self, name) for name in self.__slots__})
        return sealed({"format": _FORMAT, "certified": self.certified, **body})

    def summary(self) -> dict[str, Any]:
        """One entry of `certificates` in the JSON of a command."""
        facts = {name: self.facts[name] for name in SHORT if name in self.facts}
        own = {name: getattr(self, name) for name in ("method", "statement", "risk", "delta")}
        return {**own, "errors": 0, **facts, "certified": self.certified}

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file; `force` replaces a file there that is no such certificate, or was edited."""
        write_json(path, self.to_json(), force=force)

    def checked(self) -> PredictorCertificate:
        """The same with its facts read; raises `CertificateError` where something does not fit."""
        method = known_methods().get(self.method) if isinstance(self.method, str) else None
        if method is None:
            raise CertificateError(f"unknown method {self.method!r}; known: {', '.join(known_methods())}")
        statement = method.statement_named(self.statement)
        delta, risk = _probability("delta", self.delta), _probability("risk", self.risk, one=True)
        alternatives = _alternatives(method, self.alternatives, self.chosen, delta)
        read_as(method.evidence, "evidence", self.evidence)
        facts = vars(statement.read(self.facts))
        certificate = replace(self, facts=facts, delta=delta, alternatives=alternatives, risk=risk)
        wrong = method.consistent(certificate)
        if wrong is not None:
            raise CertificateError(wrong)
        return certificate

    @classmethod
    def from_json(cls, data: object) -> PredictorCertificate:
        """A certificate from its JSON object; raises `CertificateError` on anything that does not fit."""
        raw = unsealed("a certificate", data, _FORMAT, (*cls.__slots__, "certified"))
        certificate = cls(*(raw[name] for name in cls.__slots__)).checked()
        if raw["certified"] != certificate.certified:
            raise CertificateError(f"{certificate.method} certifies the predictor {certificate.certified!r}")
        return certificate

    @classmethod
    def load(cls, path: Path | str) -> PredictorCertificate:
        """Read a JSON file."""
        try:
            return cls.from_json(files.read_json(path, "verify", CertificateError))
        except OSError as error:
            raise CertificateError(f"cannot read {path}: {error.strerror or error}") from None


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
    method: str,
    statement: str,
    facts: Mapping[str, Any],
    *,
    delta: float,
    alternatives: tuple[Mapping[str, Any], ...],
    chosen: int,
    evidence: Mapping[str, Any],
) -> PredictorCertificate:
    """A certificate whose claim is what its statement gives, checked as one that is read."""
    risk = known_methods()[method].statement_named(statement).risk(facts, float(alternatives[chosen]["delta"]))
    fixed = tuple(write(alternatives))
    return PredictorCertificate(method, statement, write(facts), delta, fixed, chosen, risk, write(evidence)).checked()


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
    method = known_methods()[certificate.method]
    value = method.statement_named(certificate.statement).risk(certificate.facts, certificate.share)
    if not value <= certificate.risk <= value * (1 + _TOLERANCE):
        raise CertificateError(
            f"the claim does not follow: risk <= {certificate.risk!r} is claimed, {certificate.statement} gives "
            f"{value!r}"
        )
    if data is None:
        shown = None if learner_of is None or method.prove is None else method.prove(certificate, learner_of)
        return Verified(certificate, value, proved=shown)

    def none(recipe: Mapping[str, Any]) -> Any:
        raise CertificateError(
            f"its learner is needed to train again: nothing makes one of kind {recipe.get('kind')!r}"
        )

    return Verified(certificate, value, method.establish(certificate, data, learner_of or none))


def digest_of(value: object) -> str:
    """Sha256 of the canonical JSON of a value."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"a certificate holds plain finite JSON only: {error}") from None
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of a file with a digest of all of it: against damage, not against forgery."""
    return {**body, "sha256": digest_of(body)}


def unsealed(what: str, data: object, form: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Such an object of this format with exactly these fields, as it was written."""
    raw = object_of(what, data, ("format", *names, "sha256"))
    if raw["format"] != form:
        raise CertificateError(f"not {what} of this version: format {raw['format']!r}, need {form!r}")
    if raw["sha256"] != digest_of({name: value for name, value in raw.items() if name != "sha256"}):
        raise CertificateError("the file was changed after it was written: its sha256 differs from its content's")
    return raw


def object_of(what: str, data: object, names: tuple[str, ...]) -> Mapping[str, Any]:
    """A JSON object with exactly these names."""
    raw = json_object(what, data)
    for name in raw:
        if name not in names:
            raise CertificateError(f"{what} has a field {name!r} that nothing reads; known: {', '.join(names)}")
    for name in names:
        if name not in raw:
            raise CertificateError(f"{what} has no field {name!r}")
    return raw


def sha256_text(name: str, value: object) -> str:
    """A sha256 in hexadecimal digits."""
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise CertificateError(f"{name} must be a sha256 of 64 hexadecimal digits, got {value!r}")
    return value


def json_object(name: str, value: object) -> Mapping[str, Any]:
    """Any JSON object."""
    if not isinstance(value, Mapping):
        raise CertificateError(f"{name} must be a JSON object, got {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def _probability(name: str, value: object, *, one: bool = False) -> float:
    probability = real(name, value)
    if not 0 < probability < 1 and not (one and probability in (0, 1)):
        raise CertificateError(f"{name} must lie between 0 and 1, got {probability!r}")
    return probability


def _alternatives(method: Method, data: object, chosen: object, delta: float) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(data, list | tuple) or not data:
        raise CertificateError("alternatives must be a list of everything that shares delta, the one taken among them")
    alternatives = tuple(json_object("an alternative", entry) for entry in cast("list[object]", data))
    for entry in alternatives:
        if "delta" not in entry:
            raise CertificateError("an alternative has no field 'delta': its part of the failure probability")
        _probability("delta of an alternative", entry["delta"])
        method.alternative(_without_delta(entry))
    spent = sum(Fraction(float(entry["delta"])) for entry in alternatives)
    if spent > Fraction(delta):
        raise CertificateError(
            f"the alternatives spend {float(spent)!r} of failure probability, but delta is {delta!r}"
        )
    if len({digest_of(_without_delta(entry)) for entry in alternatives}) != len(alternatives):
        raise CertificateError("one alternative is listed twice")
    if not isinstance(chosen, int) or isinstance(chosen, bool) or not 0 <= chosen < len(alternatives):
        raise CertificateError(
            f"chosen must be a place in the list of {len(alternatives)} alternatives, got {chosen!r}"
        )
    return alternatives


def _without_delta(alternative: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in alternative.items() if name != "delta"}


def equal_shares(delta: float, count: int) -> float:
    """The largest float that, `count` times, is at most delta."""
    share = delta / count
    while Fraction(share) * count > Fraction(delta):
        share = math.nextafter(share, 0.0)
    return share
