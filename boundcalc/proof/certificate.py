"""A certificate: everything a bound claims, as JSON, for the checker to re-derive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.kinds import CERTIFICATE
from boundcalc.base.output import readable, write_json
from boundcalc.setting import Setting
from boundcalc.setting.validate import shown

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "boundcalc-certificate/1"

Quantity = Literal["gap", "risk"]
STRATEGIES: Mapping[str, Quantity] = {
    "chain": "gap",
    "ghost-chain": "gap",
    "uniform-chain": "gap",
    "uniform-single": "gap",
    "closed": "gap",
    "published": "gap",
    "uniform-margin": "risk",
    "ghost-realizable": "risk",
    "ghost": "risk",
}
"""Strategies and what they bound: G1+G2 (symmetrised, by ghosts, for uniform covers), one uniform cover, the two closed
forms (A4+G1, PUB), G3, G4, G5."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How one member of a piece is covered: a lemma on one of its targets, with parameters."""

    lemma: str
    target: int
    params: Mapping[str, float] = field(default_factory=dict[str, float])


ZERO = Choice("zero", 0)
"""The one-element cover {0}: eps is then the reach itself."""


@dataclass(frozen=True, slots=True)
class Cover:
    """How one piece is covered at one level: log eps, and a choice per member."""

    log_eps: float
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One scale: its log on the loss, and a cover of every piece."""

    log_scale: float
    covers: Mapping[str, Cover]


@dataclass(frozen=True, slots=True)
class Certificate:
    """A claim and all it rests on.

    Attributes:
        setting: what is bounded.
        policy: who searched (no part of the proof).
        strategy: which theorem of G.
        levels: scales, coarse to fine.
        log_value: log of the value claimed, not capped at 1.
        alpha: ghost samples per sample (G2, G4, G5).
        mu: parameter of the kl inverse; None for its limit.
        measured: the budgets read off trained weights, when the setting's are those rounded up by P1.
    """

    setting: Setting
    policy: str
    strategy: str
    levels: tuple[Level, ...]
    log_value: float = math.inf
    alpha: int = 1
    mu: float | None = None
    measured: Mapping[str, Any] | None = None

    @property
    def quantity(self) -> Quantity:
        """What is bounded."""
        return STRATEGIES[self.strategy]

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        out: dict[str, Any] = {
            "format": FORMAT,
            "setting": self.setting.to_json(),
            "policy": self.policy,
            "strategy": self.strategy,
            "quantity": self.quantity,
            "log_value": self.log_value,
            "levels": [_level_to_json(level) for level in self.levels],
        }
        if self.strategy.startswith("ghost"):
            out["alpha"] = self.alpha
        if self.quantity == "risk":
            out["mu"] = self.mu
        if self.measured is not None:
            out["measured"] = deepcopy(dict(self.measured))
        return out

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file; `force` replaces a file there that is no certificate."""
        write_json(path, self.to_json(), CERTIFICATE, force=force)

    @classmethod
    def from_json(cls, data: object) -> Certificate:
        """A certificate from its JSON object; raises `CertificateError` on anything malformed."""
        try:
            return cls._parse(data)
        except CertificateError:
            raise
        except InvalidSetting as error:
            raise CertificateError(f"the certificate's setting is not valid: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise CertificateError(f"malformed certificate: {what}; write a new one with --certificate") from None

    @classmethod
    def _parse(cls, data: object) -> Certificate:
        if not isinstance(data, Mapping):
            raise CertificateError(f"a certificate is a JSON object, got {type(data).__name__}")
        raw = cast("Mapping[str, Any]", data)
        if raw.get("format") != FORMAT:
            got = shown(raw.get("format"))
            raise CertificateError(f"not a certificate of this version: format {got}, need {FORMAT!r}")
        strategy = raw["strategy"]
        if strategy not in STRATEGIES:
            raise CertificateError(f"unknown strategy {shown(strategy)}; known: {', '.join(STRATEGIES)}")
        if raw["quantity"] != STRATEGIES[strategy]:
            raise CertificateError(
                f"strategy {strategy!r} bounds the {STRATEGIES[strategy]}, not the {shown(raw['quantity'])}"
            )
        alpha, mu, measured = raw.get("alpha", 1), raw.get("mu"), raw.get("measured")
        if not isinstance(alpha, int) or isinstance(alpha, bool) or not 1 <= alpha <= 10**6:
            raise CertificateError(f"alpha must be a whole number from 1 to 10^6, got {shown(alpha)}")
        if measured is not None and not isinstance(measured, Mapping):
            raise CertificateError(f"measured norms are a JSON object, got {shown(measured)}")
        return cls(
            setting=Setting.from_json(raw["setting"]),
            policy=str(raw["policy"]),
            strategy=strategy,
            levels=tuple(_level_from_json(level) for level in raw["levels"]),
            log_value=_finite(raw["log_value"], "log_value"),
            alpha=alpha,
            mu=None if mu is None else _finite(mu, "mu"),
            measured=cast("Mapping[str, Any] | None", measured),
        )

    @classmethod
    def load(cls, path: Path | str) -> Certificate:
        """Read a JSON file."""
        import json

        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise CertificateError(readable(path, error)) from None
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CertificateError(f"{path} is not JSON (truncated?): {error}") from None
        return cls.from_json(data)


_LARGEST = 1e300


def _finite(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST <= value <= _LARGEST:
        raise CertificateError(f"{name} must be a finite number, got {shown(value)}")
    return float(value)


def _level_to_json(level: Level) -> dict[str, Any]:
    return {
        "log_scale": level.log_scale,
        "covers": {
            key: {"log_eps": cover.log_eps, "choices": [_choice_to_json(choice) for choice in cover.choices]}
            for key, cover in level.covers.items()
        },
    }


def _choice_to_json(choice: Choice) -> dict[str, Any]:
    if choice.lemma == "zero":
        return {"lemma": "zero"}
    out: dict[str, Any] = {"lemma": choice.lemma, "target": choice.target}
    return out | {"params": dict(choice.params)} if choice.params else out


def _level_from_json(data: Mapping[str, Any]) -> Level:
    covers = {str(key): _cover_from_json(cover) for key, cover in data["covers"].items()}
    return Level(_finite(data["log_scale"], "log_scale"), covers)


def _cover_from_json(data: Mapping[str, Any]) -> Cover:
    choices = tuple(_choice_from_json(choice) for choice in data["choices"])
    return Cover(_finite(data["log_eps"], "log_eps"), choices)


def _choice_from_json(data: Mapping[str, Any]) -> Choice:
    lemma = data["lemma"]
    if lemma == "zero":
        return ZERO
    if not isinstance(lemma, str):
        raise CertificateError(f"a lemma is named, like 'T2'; got {shown(lemma)}")
    target = data["target"]
    if not isinstance(target, int) or isinstance(target, bool) or target < 0:
        raise CertificateError(f"a target is a whole number, got {shown(target)}")
    params = {str(name): _finite(value, str(name)) for name, value in data.get("params", {}).items()}
    return Choice(lemma, target, params)
