"""A certificate: everything a bound claims, for the checker to re-derive; its form, and its file.

The file holds its whole statement: the setting with nothing left to defaults, what was looked at and corrected for, the
value claimed, and the version of the statements it was made with. A file is exactly what `to_json` makes of what was
read, or it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from boundcalc.base.compared import Compared
from boundcalc.base.errors import CertificateError, InvalidSetting, Unsupported
from boundcalc.base.schema import read_complete, write
from boundcalc.base.validate import shown
from boundcalc.setting import Setting
from boundcalc.statements import STATEMENTS_VERSION
from boundcalc.statements.comparison.sharp import Tuning
from boundcalc.statements.posthoc import Finite, Measured, Seen
from boundcalc.statements.strategies import STRATEGIES, Quantity, Strategy, noise_chance

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT = "boundcalc-certificate/4"
_T = TypeVar("_T")
_MOST_ETA = 0.5
LEAST_COUNT = -1e4
"""What is claimed as the log of a log count of 0."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How one member of a piece is covered: a lemma on one of its targets, with parameters.

    `refines`: what is covered is the ball in which the cover of the level before has left it.
    """

    lemma: str
    target: int = 0
    params: Mapping[str, Finite] = field(default_factory=dict[str, float])
    refines: bool = False

    def left_out(self) -> tuple[str, ...]:
        """The zero map has no target and no parameters; refining is recorded where it is done."""
        if self.lemma == "zero":
            return ("target", "params", "refines")
        return () if self.refines else ("refines",)


ZERO = Choice("zero")
"""The one-element cover {0}: eps is then the reach itself."""


@dataclass(frozen=True, slots=True)
class Cover:
    """How one piece is covered at one level: log eps, and a choice per member."""

    log_eps: Finite
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One scale: its log on the loss, a cover of every piece, and the log of the log count claimed for them."""

    log_scale: Finite
    covers: Mapping[str, Cover]
    log_count: Finite | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A claimed bound, with everything that its proof is based on.

    Attributes:
        setting: what is bounded.
        policy: the policy that found it (no part of the proof).
        strategy: the theorem of G that gives it.
        levels: scales, coarse to fine.
        log_value: log of the value claimed, not capped at 1.
        mu: parameter of the kl inverse; None for its limit.
        measured: what was read off trained weights or the sample, when the setting's numbers were rounded and corrected
            for.
        nats: the size of that correction, added to log(1/delta).
        meeting: whether consecutive linear maps count as one map (A6).
        eta: chance that noise moves the loss of an example by more than the scale (G11); None without noise.
        tuning: the numbers of a proof by K2; None otherwise.
        compared: how the architecture was compared with a model's forward pass (a fact on record, no part of the
            proof); None where it was not.
    """

    setting: Setting
    policy: str = field(metadata={"json": "found_by"})
    strategy: str
    levels: tuple[Level, ...]
    log_value: Finite = math.inf
    mu: Finite | None = None
    measured: Measured | None = field(default=None, metadata={"json": "looked_at"})
    nats: Finite | None = None
    meeting: bool = False
    eta: Finite | None = None
    tuning: Tuning | None = None
    compared: Compared | None = field(default=None, metadata={"json": "forward_check"})

    def __repr__(self) -> str:
        from boundcalc.base.rounding import upper

        value = "" if math.isinf(self.log_value) else f" <= {upper(self.log_value / math.log(10))}"
        count = f"{len(self.levels)} level{'s' * (len(self.levels) != 1)}"
        return (
            f"Certificate({self.quantity}{value}, kind {self.kind}, by {self.strategy} with {count}, found by "
            f"{self.policy!r}, of {self.setting!r})"
        )

    @property
    def quantity(self) -> Quantity:
        """What is bounded."""
        return STRATEGIES[self.strategy].quantity

    @property
    def kind(self) -> str:
        """Of a number fixed in advance "bound", of one with measured numbers "a_posteriori"."""
        return "bound" if self.measured is None else "a_posteriori"

    @property
    def trivial(self) -> bool:
        """Whether it uses no cover (no levels, or zero maps alone): its value is the range of the loss, no bound.

        To count stored weights is to cover them; around references (distances) the zero map is a network of its own.
        """
        if STRATEGIES[self.strategy].coverless:
            return False
        if self.levels and any(budget.distance is not None for budget in self.setting.norms.budgets.values()):
            return False
        covers = (cover for level in self.levels for cover in level.covers.values())
        return all(choice.lemma == "zero" for cover in covers for choice in cover.choices)

    def to_json(self) -> dict[str, Any]:
        """The JSON object, with every field."""
        return write_statement(self, _FORMAT)

    @classmethod
    def from_json(cls, data: object) -> Certificate:
        """A certificate from its JSON object; raises `CertificateError` on anything malformed."""
        certificate = read_statement(cls, data, _FORMAT, "certificate")
        problem = problem_of(certificate) or certificate.unclaimed
        if problem is not None:
            raise CertificateError(problem)
        return certificate

    @property
    def unclaimed(self) -> str | None:
        """Why it is no certificate to write or read: one of its claims is missing."""
        claims = (self.log_value, self.nats, *(level.log_count for level in self.levels))
        missing = any(claim is None or math.isinf(claim) for claim in claims)
        return "its claims are missing: take `checker.check(certificate).certificate`" if missing else None

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file; `force` replaces a file there."""
        if self.unclaimed is not None:
            raise CertificateError(self.unclaimed)
        from boundcalc.base.output import write_json  # checking writes no file

        write_json(path, self.to_json(), force=force)

    @classmethod
    def load(cls, path: Path | str) -> Certificate:
        """Read a JSON file; a message names it."""
        from boundcalc.base.files import read_json

        try:
            data = read_json(path, "", CertificateError)
        except OSError as error:
            raise CertificateError(f"cannot read {path}: {error.strerror or error}") from None
        try:
            return cls.from_json(data)
        except CertificateError as error:
            raise CertificateError(f"{path}: {error}") from None


def write_statement(statement: Any, form: str) -> dict[str, Any]:
    """The JSON object of a certificate or floor, with nothing left to defaults."""
    return {"format": form, "statements": STATEMENTS_VERSION} | write(statement, complete=True)


def read_statement(kind: type[_T], data: object, form: str, what: str) -> _T:
    """A certificate or floor from its JSON object; raises `CertificateError` on anything malformed."""
    if not isinstance(data, Mapping) or data.get("format") != form:
        got = shown(data.get("format")) if isinstance(data, Mapping) else shown(data)
        raise CertificateError(f"not a {what} of this version: format {got}, need {form!r}")
    version = data.get("statements")
    if version != STATEMENTS_VERSION or type(version) is not int:
        raise CertificateError(
            f"it is based on the statements of version {shown(version)}, this boundcalc has version "
            f"{STATEMENTS_VERSION}: write a new one with --certificate"
        )
    try:
        rest = {key: value for key, value in data.items() if key not in ("format", "statements")}
        statement: Any = read_complete(kind, rest, f"the {what}")
        statement.setting.refuse_missing()
    except (InvalidSetting, Unsupported) as error:
        raise CertificateError(str(error)) from None
    return statement


def problem_of(certificate: Certificate) -> str | None:
    """What is wrong with a certificate's form, before any step of it is checked; None where nothing is."""
    strategy = STRATEGIES.get(certificate.strategy)
    if strategy is None:
        return f"unknown strategy {shown(certificate.strategy)}; known: {', '.join(STRATEGIES)}"
    mu, levels = certificate.mu, len(certificate.levels)
    if strategy.coverless and (certificate.meeting or levels):
        return f"strategy {strategy.name!r} takes no covers: it has no levels, and no maps meet"
    if ("tuning" in strategy.parameters) != (certificate.tuning is not None):
        return f"strategy {strategy.name!r} takes {'a' if certificate.tuning is None else 'no'} tuning"
    if certificate.meeting and strategy.every_scale:
        return f"strategy {strategy.name!r} covers every map by itself: no maps meet"
    if strategy.needs_mu(certificate.setting):
        if not isinstance(mu, float) or not 0 < mu < math.inf:
            return f"the kl inverse at a training error above 0 needs a finite mu above 0, got {shown(mu)}"
    elif mu is not None:
        return f"strategy {strategy.name!r} takes no mu here: it belongs to the kl inverse at a training error above 0"
    problem = _problem_of_eta(certificate, strategy)
    if problem is not None:
        return problem
    if strategy.one_level and levels != 1:
        return f"strategy {strategy.name!r} has one level, got {levels}"
    return None


def _problem_of_eta(certificate: Certificate, strategy: Strategy) -> str | None:
    eta = certificate.eta
    if "eta" not in strategy.parameters:
        return None if eta is None else f"strategy {strategy.name!r} takes no eta"
    if not isinstance(eta, float) or not 0 < eta <= _MOST_ETA:
        return f"strategy {strategy.name!r} needs a chance eta above 0, at most {_MOST_ETA:g}, got {shown(eta)}"
    seen = certificate.measured.sample if isinstance(certificate.measured, Measured) else None
    fixed = noise_chance(certificate.setting.sample.n_train)
    if isinstance(seen, Seen) and seen.train_error is not None and eta != fixed:
        return f"chosen after the training error, eta is 1/(4m) = {fixed!r}, got {eta!r}"
    return None
