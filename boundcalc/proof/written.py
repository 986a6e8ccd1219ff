"""A certificate as JSON, written and read.

The file holds its whole statement: the relation to prove, the setting with nothing left to defaults, what was looked at
and paid for, and the version of the statements it was made with. A reader refuses what it does not know and what it
misses: a field a later version adds must not be ignored, and one that is left out must not mean something else tomorrow.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

from boundcalc.base.errors import CertificateError, InvalidSetting, Unsupported
from boundcalc.proof.certificate import LARGEST, ZERO, Certificate, Choice, Cover, Level, problem_of
from boundcalc.proof.tuning import tuning_from_json, tuning_to_json
from boundcalc.setting import Norms, Setting
from boundcalc.setting.complete import complete_json, complete_norms, difference, read_complete
from boundcalc.setting.validate import shown
from boundcalc.statements import STATEMENTS_VERSION
from boundcalc.statements.strategies import STRATEGIES, Quantity

if TYPE_CHECKING:
    from boundcalc.base.compared import Compared

_FORMAT = "boundcalc-certificate/3"
_FIELDS = ("format", "statements", "claim", "setting", "looked_at", "strategy", "levels", "found_by", "forward_check")


def written(certificate: Certificate) -> dict[str, Any]:
    """A certificate as a JSON object."""
    sample = certificate.setting.sample
    claim: dict[str, Any] = {
        "quantity": certificate.quantity,
        "log_value": certificate.log_value,
        "delta": sample.delta,
    }
    if certificate.quantity == "risk":
        claim["train_error"] = sample.train_error
    how: dict[str, Any] = {"name": certificate.strategy, "meeting": certificate.meeting}
    if "alpha" in STRATEGIES[certificate.strategy].parameters:
        how["alpha"] = certificate.alpha
    if certificate.mu is not None:
        how["mu"] = certificate.mu
    if certificate.eta is not None:
        how["eta"] = certificate.eta
    if certificate.tuning is not None:
        how["tuning"] = tuning_to_json(certificate.tuning)
    return {
        "format": _FORMAT,
        "statements": STATEMENTS_VERSION,
        "claim": claim,
        "setting": complete_json(certificate.setting),
        "looked_at": _looked_to_json(certificate.measured, certificate.nats),
        "strategy": how,
        "levels": [_level_to_json(level) for level in certificate.levels],
        "found_by": certificate.policy,
        "forward_check": None if certificate.compared is None else certificate.compared.to_json(),
    }


def read(data: object) -> Certificate:
    """A certificate from its JSON object; raises `CertificateError` on anything malformed."""
    try:
        return _certificate(data)
    except CertificateError:
        raise
    except (InvalidSetting, Unsupported) as error:
        raise CertificateError(f"the certificate's setting is not valid: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CertificateError(f"malformed certificate: {error}; write a new one with --certificate") from None


def _certificate(data: object) -> Certificate:
    raw = _mapping("a certificate", data)
    if raw.get("format") != _FORMAT:
        got = shown(raw.get("format"))
        raise CertificateError(f"not a certificate of this version: format {got}, need {_FORMAT!r}; write a new one")
    version = raw.get("statements")
    if version != STATEMENTS_VERSION or type(version) is not int:
        raise CertificateError(
            f"it rests on the statements of version {shown(version)}, this boundcalc has version {STATEMENTS_VERSION}: "
            "write a new one with --certificate"
        )
    raw = _object("the certificate", raw, _FIELDS)
    how = _object("strategy", raw["strategy"], ("name", "meeting"), ("alpha", "mu", "eta", "tuning"))
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
        mu=_finite(how["mu"], "mu", sys.float_info.max) if "mu" in how else None,
        measured=measured,
        nats=nats,
        meeting=how["meeting"],
        eta=_finite(how["eta"], "eta") if "eta" in how else None,
        tuning=tuning_from_json(how["tuning"]) if "tuning" in how else None,
        compared=_compared(raw["forward_check"]),
    )
    problem = problem_of(certificate)
    if problem is not None:
        raise CertificateError(problem)
    return certificate


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


def _finite(value: object, name: str, most: float = LARGEST) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -most <= value <= most:
        raise CertificateError(f"{name} must be a number from -{most:g} to {most:g}, got {shown(value)}")
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
