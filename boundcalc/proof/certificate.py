"""A certificate: everything a bound claims, for the checker to re-derive; its form, and its file.

The file holds its whole statement: the relation to prove, the setting with nothing left to defaults, what was looked at
and corrected for, and the version of the statements it was made with. It is read as `boundcalc.base.schema` reads what
proofs are based on: a file is exactly what `to_json` makes of what was read, or it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from boundcalc.base.compared import Compared
from boundcalc.base.errors import CertificateError, InvalidSetting, Unsupported
from boundcalc.base.schema import read, refuse_difference, write
from boundcalc.base.validate import shown
from boundcalc.setting import Norms, Setting
from boundcalc.statements import STATEMENTS_VERSION
from boundcalc.statements.comparison.sharp import Tuning
from boundcalc.statements.posthoc import Measured, Seen
from boundcalc.statements.strategies import STRATEGIES, Quantity, Strategy, noise_chance

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT = "boundcalc-certificate/3"
LARGEST = 1e300
"""The largest number a certificate may hold."""
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
    params: Mapping[str, float] = field(default_factory=dict[str, float])
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

    log_eps: float
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One scale: its log on the loss, a cover of every piece, and the log of the log count claimed for them."""

    log_scale: float
    covers: Mapping[str, Cover]
    log_count: float | None = None


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
    policy: str
    strategy: str
    levels: tuple[Level, ...]
    log_value: float = math.inf
    mu: float | None = None
    measured: Measured | None = None
    nats: float | None = None
    meeting: bool = False
    eta: float | None = None
    tuning: Tuning | None = None
    compared: Compared | None = None

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
        sample = self.setting.sample
        claim = {"quantity": self.quantity, "log_value": self.log_value, "delta": sample.delta}
        claim |= {"train_error": sample.train_error} if self.quantity == "risk" else {}
        tuned = {"mu": self.mu, "eta": self.eta, "tuning": self.tuning}
        strategy = {"name": self.strategy, "meeting": self.meeting} | {k: v for k, v in tuned.items() if v is not None}
        looked_at = write(self.measured or Measured(), complete=True) | {"nats": self.nats}
        rest = {"claim": claim, "strategy": strategy, "levels": self.levels, "forward_check": self.compared}
        about = {"format": _FORMAT, "statements": STATEMENTS_VERSION, "found_by": self.policy}
        return about | write(rest | {"setting": self.setting}, complete=True) | {"looked_at": looked_at}

    @classmethod
    def from_json(cls, data: object) -> Certificate:
        """A certificate from its JSON object; raises `CertificateError` on anything malformed."""
        if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
            got = shown(data.get("format")) if isinstance(data, Mapping) else shown(data)
            raise CertificateError(f"not a certificate of this version: format {got}, need {_FORMAT!r}")
        version = data.get("statements")
        if version != STATEMENTS_VERSION or type(version) is not int:
            raise CertificateError(
                f"it is based on the statements of version {shown(version)}, this boundcalc has version "
                f"{STATEMENTS_VERSION}: write a new one with --certificate"
            )
        try:
            file = read(_File, {key: value for key, value in data.items() if key != "format"}, "the certificate")
            certificate = file.certificate()
            problem = problem_of(certificate)
            if problem is not None:
                raise CertificateError(problem)
            refuse_difference("the certificate", data, certificate.to_json())
        except (InvalidSetting, Unsupported) as error:
            raise CertificateError(str(error)) from None
        return certificate

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file; `force` replaces a file there."""
        if not math.isfinite(self.log_value) or self.nats is None:
            raise CertificateError(
                "a certificate is written with its claims: take `checker.check(certificate).certificate`"
            )
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


@dataclass(frozen=True, slots=True)
class _Claim:
    quantity: str
    log_value: float
    delta: float
    train_error: float = 0.0


@dataclass(frozen=True, slots=True)
class _How:
    name: str
    meeting: bool
    mu: float | None = None
    eta: float | None = None
    tuning: Tuning | None = None


@dataclass(frozen=True, slots=True)
class _Looked:
    nats: float
    norms: Norms | None = None
    sample: Seen | None = None


@dataclass(frozen=True, slots=True)
class _File:
    """The fields of a certificate's file."""

    statements: int
    claim: _Claim
    setting: Setting
    looked_at: _Looked
    strategy: _How
    levels: tuple[Level, ...]
    found_by: str
    forward_check: Compared | None

    def certificate(self) -> Certificate:
        """What the file says."""
        how, looked = self.strategy, self.looked_at
        if how.name in STRATEGIES and self.claim.quantity != STRATEGIES[how.name].quantity:
            quantity = STRATEGIES[how.name].quantity
            raise InvalidSetting(f"strategy {how.name!r} bounds the {quantity}, not the {shown(self.claim.quantity)}")
        for number in (self.claim.log_value, looked.nats, *_numbers(self.levels)):
            if not -LARGEST <= number <= LARGEST:
                raise InvalidSetting(
                    f"a number of a certificate lies between -{LARGEST:g} and {LARGEST:g}, got {number!r}"
                )
        return Certificate(
            self.setting,
            self.found_by,
            how.name,
            self.levels,
            self.claim.log_value,
            how.mu,
            None if looked.norms is None is looked.sample else Measured(looked.norms, looked.sample),
            looked.nats,
            how.meeting,
            how.eta,
            how.tuning,
            self.forward_check,
        )


def _numbers(levels: tuple[Level, ...]) -> Iterator[float]:
    """The numbers of levels; a claim that is missing is infinite."""
    for level in levels:
        yield from (level.log_scale, math.inf if level.log_count is None else level.log_count)
        for cover in level.covers.values():
            yield cover.log_eps
            for choice in cover.choices:
                yield from choice.params.values()


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
