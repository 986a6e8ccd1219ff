"""A certificate: everything a bound claims, as JSON, for the checker to re-derive.

The file holds its whole statement: the relation to prove, the setting with nothing left to defaults, what was looked at
and paid for, and the version of the statements it was made with. A reader refuses what it does not know and what it
misses: a field a later version adds must not be ignored, and one that is left out must not mean something else tomorrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from boundcalc.base.errors import CertificateError, InvalidSetting, Unsupported
from boundcalc.base.records import dataclass
from boundcalc.base.strict_json import parse_json
from boundcalc.setting import Norms, Setting
from boundcalc.setting.complete import complete_json, complete_norms, difference, read_complete
from boundcalc.setting.validate import shown
from boundcalc.statements import STATEMENTS_VERSION
from boundcalc.statements.strategies import STRATEGIES, Quantity, Strategy, noise_chance

if TYPE_CHECKING:
    from pathlib import Path

    from boundcalc.base.compared import Compared

_FORMAT = "boundcalc-certificate/3"

_MOST_ALPHA = 10**6
_MOST_ETA = 0.5
LEAST_COUNT = -1e4
"""What is claimed as the log of a log count of 0."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How one member of a piece is covered: a lemma on one of its targets, with parameters.

    `refines`: what is covered is the ball in which the cover of the level before has left it (G12). In a chain of channels a
    law of noise in place of a lemma says that the map is seen through one (G14).
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
        measured: what was read off trained weights or the sample, when the setting's numbers are those rounded by P1.
        nats: what is said to be paid for that, in log(1/delta).
        meeting: whether linear maps that meet are one map in the steps (A6).
        eta: chance that noise moves the loss of an example by more than the scale (G11); None without noise.
        weights: w_j of every level, where links are taken by their dual form (G12); None where each is taken as it is.
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
    weights: tuple[float, ...] | None = None
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
        sample = self.setting.sample
        claim: dict[str, Any] = {"quantity": self.quantity, "log_value": self.log_value, "delta": sample.delta}
        if self.quantity == "risk":
            claim["train_error"] = sample.train_error
        how: dict[str, Any] = {"name": self.strategy, "meeting": self.meeting}
        if "alpha" in STRATEGIES[self.strategy].parameters:
            how["alpha"] = self.alpha
        if self.mu is not None:
            how["mu"] = self.mu
        if self.eta is not None:
            how["eta"] = self.eta
        if self.weights is not None:
            how["weights"] = list(self.weights)
        return {
            "format": _FORMAT,
            "statements": STATEMENTS_VERSION,
            "claim": claim,
            "setting": complete_json(self.setting),
            "looked_at": _looked_to_json(self.measured, self.nats),
            "strategy": how,
            "levels": [_level_to_json(level) for level in self.levels],
            "found_by": self.policy,
            "forward_check": None if self.compared is None else self.compared.to_json(),
        }

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file; `force` replaces a file there that is no certificate."""
        if not math.isfinite(self.log_value) or self.nats is None:
            raise CertificateError(
                "a certificate is written with its claims: take `checker.check(certificate).claimed`"
            )
        from boundcalc.base.kinds import CERTIFICATE  # checking writes no file
        from boundcalc.base.output import write_json

        write_json(path, self.to_json(), CERTIFICATE, force=force)

    @classmethod
    def from_json(cls, data: object) -> Certificate:
        """A certificate from its JSON object; raises `CertificateError` on anything malformed."""
        try:
            return _certificate(data)
        except CertificateError:
            raise
        except (InvalidSetting, Unsupported) as error:
            raise CertificateError(f"the certificate's setting is not valid: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise CertificateError(f"malformed certificate: {error}; write a new one with --certificate") from None

    @classmethod
    def load(cls, path: Path | str) -> Certificate:
        """Read a JSON file; what is wrong with it is said with its name."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            from boundcalc.base.output import readable

            raise CertificateError(readable(path, error)) from None
        data = parse_json(text, str(path), CertificateError)
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
    if strategy.stored and (certificate.meeting or levels):
        return f"strategy {strategy.name!r} counts stored weights: it has no levels, and no maps meet"
    if certificate.meeting and strategy.every_scale:
        return f"strategy {strategy.name!r} covers every map by itself: no maps meet"
    if "alpha" not in strategy.parameters and alpha != 1:
        return f"strategy {strategy.name!r} takes no alpha"
    if strategy.needs_mu(certificate.setting):
        if not isinstance(mu, float) or not 0 < mu <= _LARGEST:
            return f"the kl inverse at a training error above 0 needs a finite mu above 0, got {shown(mu)}"
    elif mu is not None:
        return f"strategy {strategy.name!r} takes no mu here: it belongs to the kl inverse at a training error above 0"
    problem = _problem_of_eta(certificate, strategy) or _problem_of_weights(certificate, strategy)
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


def _problem_of_weights(certificate: Certificate, strategy: Strategy) -> str | None:
    weights, levels = certificate.weights, len(certificate.levels)
    if weights is None:
        return None
    if "weights" not in strategy.parameters:
        return f"strategy {strategy.name!r} takes no weights"
    if not isinstance(weights, tuple) or len(weights) != levels:
        return f"one weight for every level is needed, {levels} in all, got {shown(weights)}"
    wrong = [w for w in weights if not isinstance(w, float) or not 0 < w <= _LARGEST]
    return f"the weight of a level is a finite number above 0, got {shown(wrong[0])}" if wrong else None


# -- reading

_LARGEST = 1e300
_FIELDS = ("format", "statements", "claim", "setting", "looked_at", "strategy", "levels", "found_by", "forward_check")


def _certificate(data: object) -> Certificate:
    raw = _mapping("a certificate", data)
    if raw.get("format") != _FORMAT:
        got = shown(raw.get("format"))
        raise CertificateError(f"not a certificate of this version: format {got}, need {_FORMAT!r}; write a new one")
    version = raw.get("statements")
    if version != STATEMENTS_VERSION or isinstance(version, bool):
        raise CertificateError(
            f"it rests on the statements of version {shown(version)}, this boundcalc has version {STATEMENTS_VERSION}: "
            "write a new one with --certificate"
        )
    raw = _object("the certificate", raw, _FIELDS)
    how = _object("strategy", raw["strategy"], ("name", "meeting"), ("alpha", "mu", "eta", "weights"))
    strategy = STRATEGIES.get(how["name"]) if isinstance(how["name"], str) else None
    if strategy is None:
        raise CertificateError(f"unknown strategy {shown(how['name'])}; known: {', '.join(STRATEGIES)}")
    if ("alpha" in how) != ("alpha" in strategy.parameters):
        raise CertificateError(f"strategy {strategy.name!r} takes {'an' if 'alpha' not in how else 'no'} alpha")
    if not isinstance(how["meeting"], bool):
        raise CertificateError(f"meeting is true or false, got {shown(how['meeting'])}")
    setting = read_complete(raw["setting"])
    measured, nats = _looked_from_json(raw["looked_at"])
    policy = raw["found_by"]
    if not isinstance(policy, str):
        raise CertificateError(f"found_by is the name of a policy, got {shown(policy)}")
    levels = raw["levels"]
    if not isinstance(levels, list):
        raise CertificateError(f"levels is a list, got {shown(levels)}")
    certificate = Certificate(
        setting=setting,
        policy=policy,
        strategy=strategy.name,
        levels=tuple(_level_from_json(f"levels[{i}]", level) for i, level in enumerate(levels)),
        log_value=_claim(raw["claim"], setting, strategy.quantity, strategy.name),
        alpha=how.get("alpha", 1),
        mu=_finite(how["mu"], "mu") if "mu" in how else None,
        measured=measured,
        nats=nats,
        meeting=how["meeting"],
        eta=_finite(how["eta"], "eta") if "eta" in how else None,
        weights=_weights(how["weights"]) if "weights" in how else None,
        compared=_compared(raw["forward_check"]),
    )
    problem = problem_of(certificate)
    if problem is not None:
        raise CertificateError(problem)
    return certificate


def _weights(data: object) -> tuple[float, ...]:
    if not isinstance(data, list):
        raise CertificateError(f"weights is a list of numbers, got {shown(data)}")
    return tuple(_finite(value, f"weights[{i}]") for i, value in enumerate(data))


def _compared(data: object) -> Compared | None:
    """What is on record of a forward check."""
    if data is None:
        return None
    from boundcalc.base.compared import Compared

    return Compared.from_json(data)


def _claim(data: object, setting: Setting, quantity: Quantity, strategy: str) -> float:
    """The relation to prove must be about the setting it stands beside."""
    sample = setting.sample
    said = _mapping("claim", data).get("quantity")
    if said != quantity:
        raise CertificateError(f"strategy {strategy!r} bounds the {quantity}, not the {shown(said)}")
    names = ("quantity", "log_value", "delta", *(("train_error",) if quantity == "risk" else ()))
    claim = _object("claim", data, names)
    for name in names[2:]:
        if _finite(claim[name], name) != getattr(sample, name):
            raise CertificateError(
                f"the claim is for {name} = {shown(claim[name])}, the setting says {getattr(sample, name)!r}"
            )
    return _finite(claim["log_value"], "log_value")


def _mapping(where: str, data: object) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise CertificateError(f"{where} is a JSON object, got {shown(data)}")
    return cast("Mapping[str, Any]", data)


def _object(where: str, data: object, names: Iterable[str], may: Iterable[str] = ()) -> Mapping[str, Any]:
    """A JSON object with just these fields (and some that it may have)."""
    raw, needed = _mapping(where, data), tuple(names)
    for key in raw:
        if key not in needed and key not in may:
            raise CertificateError(f"{where} has a field {shown(key)} that this version does not know")
    for key in needed:
        if key not in raw:
            raise CertificateError(f"{where} does not give {key!r}")
    return raw


def _finite(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST <= value <= _LARGEST:
        raise CertificateError(f"{name} must be a finite number, got {shown(value)}")
    return float(value)


# -- parts


def _looked_to_json(measured: Mapping[str, Any] | None, nats: float | None) -> dict[str, Any]:
    """What was looked at before it was chosen, and what that costs in log(1/delta)."""
    record = {} if measured is None else deepcopy(dict(measured))
    sample = record.pop("sample", None)
    return {"norms": complete_norms(Norms.from_json(record)) if record else None, "sample": sample, "nats": nats}


def _looked_from_json(data: object) -> tuple[Mapping[str, Any] | None, float]:
    raw = _object("looked_at", data, ("norms", "sample", "nats"))
    record: dict[str, Any] = {}
    if raw["norms"] is not None:
        try:
            norms = Norms.from_json(raw["norms"])
        except InvalidSetting as error:
            raise CertificateError(f"the record of what was measured is not valid: {error}") from None
        problem = difference("looked_at.norms", raw["norms"], complete_norms(norms))
        if problem is None and not norms.measured:
            problem = "looked_at.norms are measured norms: measured must be true"
        if problem is not None:
            raise CertificateError(problem)
        record |= norms.to_json()
    if raw["sample"] is not None:
        sample = _object("looked_at.sample", raw["sample"], (), ("margin", "train_error", "candidates"))
        record["sample"] = {name: _number(value, name) for name, value in sample.items()}
    return record or None, _finite(raw["nats"], "nats")


def _number(value: object, name: str) -> float:
    """A finite number, a whole one as it is."""
    return value if isinstance(value, int) and not isinstance(value, bool) else _finite(value, name)


def _level_to_json(level: Level) -> dict[str, Any]:
    return {
        "log_scale": level.log_scale,
        "log_count": level.log_count,
        "covers": {
            key: {"log_eps": cover.log_eps, "choices": [_choice_to_json(choice) for choice in cover.choices]}
            for key, cover in level.covers.items()
        },
    }


def _choice_to_json(choice: Choice) -> dict[str, Any]:
    if choice.lemma == "zero":
        return {"lemma": "zero"}
    refines = {"refines": True} if choice.refines else {}
    return {"lemma": choice.lemma, "target": choice.target, "params": dict(choice.params)} | refines


def _level_from_json(where: str, data: object) -> Level:
    raw = _object(where, data, ("log_scale", "log_count", "covers"))
    covers = _mapping(f"{where}.covers", raw["covers"])
    return Level(
        _finite(raw["log_scale"], f"{where}.log_scale"),
        {key: _cover_from_json(f"{where}.covers.{key:.60}", cover) for key, cover in covers.items()},
        _finite(raw["log_count"], f"{where}.log_count"),
    )


def _cover_from_json(where: str, data: object) -> Cover:
    raw = _object(where, data, ("log_eps", "choices"))
    if not isinstance(raw["choices"], list):
        raise CertificateError(f"{where}.choices is a list, got {shown(raw['choices'])}")
    choices = tuple(_choice_from_json(where, choice) for choice in raw["choices"])
    return Cover(_finite(raw["log_eps"], f"{where}.log_eps"), choices)


def _choice_from_json(where: str, data: object) -> Choice:
    lemma = _mapping(f"{where}: a choice", data).get("lemma")
    if not isinstance(lemma, str):
        raise CertificateError(f"{where}: a lemma is named, like 'T2'; got {shown(lemma)}")
    if lemma == "zero":
        _object(f"{where}: the choice 'zero'", data, ("lemma",))
        return ZERO
    raw = _object(f"{where}: the choice {shown(lemma)}", data, ("lemma", "target", "params"), ("refines",))
    if raw.get("refines", True) is not True:
        raise CertificateError(f"{where}: refines is true or left out, got {shown(raw['refines'])}")
    target = raw["target"]
    if not isinstance(target, int) or isinstance(target, bool) or target < 0:
        raise CertificateError(f"{where}: a target is a whole number, got {shown(target)}")
    params = _mapping(f"{where}: params", raw["params"])
    numbers = {str(name): _finite(value, str(name)) for name, value in params.items()}
    return Choice(lemma, target, numbers, "refines" in raw)
