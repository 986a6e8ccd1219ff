"""A certificate: everything a bound claims, for the checker to re-derive; and its form, which is looked at first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from boundcalc.base.errors import CertificateError
from boundcalc.setting import Setting
from boundcalc.setting.validate import shown
from boundcalc.statements.strategies import STRATEGIES, Quantity, Strategy, noise_chance

if TYPE_CHECKING:
    from pathlib import Path

    from boundcalc.base.compared import Compared
    from boundcalc.statements.comparison.sharp import Tuning

_MOST_ALPHA = 10**6
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
    target: int
    params: Mapping[str, float] = field(default_factory=dict[str, float])
    refines: bool = False


ZERO = Choice("zero", 0)
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
    """A claim and all it rests on.

    Attributes:
        setting: what is bounded.
        policy: who searched (no part of the proof).
        strategy: which theorem of G.
        levels: scales, coarse to fine.
        log_value: log of the value claimed, not capped at 1.
        alpha: ghost samples per sample, where the strategy counts them.
        mu: parameter of the kl inverse; None for its limit.
        measured: what was read off trained weights or the sample, when the setting's numbers were rounded and paid for.
        nats: what is said to be paid for that, in log(1/delta).
        meeting: whether linear maps that meet are one map in the steps (A6).
        eta: chance that noise moves the loss of an example by more than the scale (G11); None without noise.
        tuning: the numbers of a proof by K2; None otherwise.
        compared: how the architecture was held against a model's forward pass (a fact on record, no part of the proof);
            None where it was not.
    """

    setting: Setting
    policy: str
    strategy: str
    levels: tuple[Level, ...]
    log_value: float = math.inf
    alpha: int = 1
    mu: float | None = None
    measured: Mapping[str, Any] | None = None
    nats: float | None = None
    meeting: bool = False
    eta: float | None = None
    tuning: Tuning | None = None
    compared: Compared | None = None

    def __repr__(self) -> str:
        from boundcalc.base.rounding import upper

        said = "" if math.isinf(self.log_value) else f" <= {upper(self.log_value / math.log(10))}"
        count = f"{len(self.levels)} level{'s' * (len(self.levels) != 1)}"
        return (
            f"Certificate({self.quantity}{said}, kind {self.kind}, by {self.strategy} with {count}, found by {self.policy!r}, "
            f"of {self.setting!r})"
        )

    @property
    def quantity(self) -> Quantity:
        """What is bounded."""
        return STRATEGIES[self.strategy].quantity

    @property
    def kind(self) -> str:
        """Whether every number was fixed in advance ("bound") or some were measured and paid for ("a_posteriori")."""
        return "bound" if self.measured is None else "a_posteriori"

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        from boundcalc.proof.written import written  # checking neither writes nor reads

        return written(self)

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file; `force` replaces a file there that is no certificate."""
        if not math.isfinite(self.log_value) or self.nats is None:
            raise CertificateError(
                "a certificate is written with its claims: take `checker.check(certificate).claimed`"
            )
        from boundcalc.base.output import write_json  # checking writes no file

        write_json(path, self.to_json(), force=force)

    @classmethod
    def from_json(cls, data: object) -> Certificate:
        """A certificate from its JSON object; raises `CertificateError` on anything malformed."""
        from boundcalc.proof.written import read

        return read(data)

    @classmethod
    def load(cls, path: Path | str) -> Certificate:
        """Read a JSON file; what is wrong with it is said with its name."""
        from boundcalc.base.strict_json import read_json

        try:
            data = read_json(path, "", CertificateError)
        except OSError as error:
            from boundcalc.base.output import readable

            raise CertificateError(readable(path, error)) from None
        try:
            return cls.from_json(data)
        except CertificateError as error:
            raise CertificateError(f"{path}: {error}") from None


def problem_of(certificate: Certificate) -> str | None:
    """What is wrong with a certificate's form, before any step of it is looked at; None where nothing is."""
    strategy = STRATEGIES.get(certificate.strategy)
    if strategy is None:
        return f"unknown strategy {shown(certificate.strategy)}; known: {', '.join(STRATEGIES)}"
    alpha, mu, levels = certificate.alpha, certificate.mu, len(certificate.levels)
    if not isinstance(alpha, int) or isinstance(alpha, bool) or not 1 <= alpha <= _MOST_ALPHA:
        return f"alpha must be a whole number from 1 to 10^6, got {shown(alpha)}"
    if strategy.coverless and (certificate.meeting or levels):
        return f"strategy {strategy.name!r} takes no covers: it has no levels, and no maps meet"
    if ("tuning" in strategy.parameters) != (certificate.tuning is not None):
        return f"strategy {strategy.name!r} takes {'a' if certificate.tuning is None else 'no'} tuning"
    if certificate.meeting and strategy.every_scale:
        return f"strategy {strategy.name!r} covers every map by itself: no maps meet"
    if "alpha" not in strategy.parameters and alpha != 1:
        return f"strategy {strategy.name!r} takes no alpha"
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
    looked = (certificate.measured or {}).get("sample", {})
    fixed = noise_chance(certificate.setting.sample.n_train)
    if "train_error" in looked and eta != fixed:
        return f"after a look at the training error eta is 1/(4m) = {fixed!r}, got {eta!r}"
    return None
