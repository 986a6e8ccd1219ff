"""Norms: a layer made for its bound, certified as a member of a class that was fixed before the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.predictors.certificate import METHODS, Method, PredictorCertificate, issue, json_object, object_of
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.examples import of_another_count, readers, refuse_other_examples, told
from boundcalc.predictors.pooling import PoolingClass, PoolingNetwork, margin_errors, signs
from boundcalc.predictors.pooling_search import train
from boundcalc.predictors.statements import CLASS
from boundcalc.predictors.statements.base import real

if TYPE_CHECKING:
    from boundcalc.proof.certificate import Certificate

_WITHIN = 64.0
_MORE = (0, 2, 4, 6)
"""Dimensions beyond 2 log2 T that classes have: few are cheap, more expose more sets of bits."""
_LAST = (10, 96.0)
_VOTES = 3.6
"""Read-out of the class for majorities, where the pooled bit is 1/3 at the least."""


def classes(bits: int) -> tuple[tuple[PoolingClass, int], ...]:
    """What shares delta, with weights: fixed by the length of a row alone, before any data."""
    least = max(4, round(2 * math.log2(max(2, bits))))
    main = [PoolingClass(bits, least + more, _WITHIN) for more in _MORE]
    main.append(PoolingClass(bits, least + _LAST[0], _LAST[1]))
    votes = PoolingClass(bits, least + _MORE[-1], _WITHIN, read=_VOTES)
    seen = [replace(cls, seen=True) for cls in (main[1], votes)]
    return (*((cls, 2) for cls in main), (votes, 1), *((cls, 1) for cls in seen))


@dataclass(frozen=True)
class Fitted:
    """A certificate and the layer it is about.

    Attributes:
        certificate: the claim.
        state: the layer's weights.
        network: what turns them into answers.
        tried: how many of the classes training went through.
    """

    certificate: PredictorCertificate
    state: Mapping[str, Array]
    network: PoolingNetwork
    tried: int


def certify_class(
    data: Data,
    delta: float,
    *,
    plan: Iterable[tuple[PoolingClass, int]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Fitted:
    """Train layers of some classes, cheapest first, and certify the first without a margin error; else the best of all."""
    from boundcalc.engine.evaluate import evaluate
    from boundcalc.statements.strategies import STRATEGIES

    say = progress or (lambda _: None)
    bits = signs(data)[0].shape[1]
    listed = tuple(classes(bits) if plan is None else plan)
    if not listed:
        raise InvalidSetting("norms needs at least one class fixed beforehand")
    whole = sum(weight for _, weight in listed)
    shares = [_share(delta, weight, whole) for _, weight in listed]
    best: tuple[float, int, int, Certificate, Array] | None = None
    tried = 0
    for place, (cls, _) in enumerate(listed):
        network = PoolingNetwork(cls.bits, cls.width, cls.read)
        q = train(cls, data)
        errors = margin_errors(network, {"q": q}, data, cls.margin)
        tried += 1
        say(f"{cls.width} dimensions within {cls.within:g}: {errors} of {len(data)} margins at most {cls.margin:g}")
        if errors and not cls.seen:
            continue
        proved = evaluate(cls.setting(len(data), shares[place], errors)).by_risk
        if proved is None or STRATEGIES[proved.certificate.strategy].quantity != "risk":
            continue
        if best is None or proved.log_value < best[0]:
            best = proved.log_value, place, errors, proved.certificate, q
        if not errors:
            break
    if best is None:
        raise InvalidSetting(
            "no class of the list has a layer with margins above gamma on these examples: norms says nothing here"
        )
    _, place, errors, proof, q = best
    cls = listed[place][0]
    network = PoolingNetwork(cls.bits, cls.width, cls.read)
    network.belongs({"q": q}, cls)
    certificate = issue(
        "norms",
        "Class",
        {"errors": errors, "n": len(data), "proof": proof.to_json()},
        delta=delta,
        alternatives=tuple(
            {**other.to_json(), "delta": share} for (other, _), share in zip(listed, shares, strict=True)
        ),
        chosen=place,
        evidence=told(data, network, query=[float(value) for value in q]),
    )
    return Fitted(certificate, {"q": q}, network, tried)


def _share(delta: float, weight: int, whole: int) -> float:
    """A part of delta; all parts together are at most delta."""
    share = delta * weight / whole
    while Fraction(share) * whole > Fraction(delta) * weight:
        share = math.nextafter(share, 0.0)
    return share


def _query(name: str, value: object) -> list[float]:
    if not isinstance(value, list) or not value:
        raise CertificateError(f"{name} is a list of numbers, got {value!r}")
    return [real(f"a number of {name}", one) for one in cast("list[object]", value)]


def _class_of(certificate: PredictorCertificate) -> PoolingClass:
    return PoolingClass.from_json(certificate.taken)


def _consistent(certificate: PredictorCertificate) -> str | None:
    from boundcalc.proof.certificate import Certificate

    facts, cls = certificate.facts, _class_of(certificate)
    if (other := of_another_count(certificate)) is not None:
        return other
    proof = Certificate.from_json(facts["proof"])
    asked = cls.setting(facts["n"], proof.setting.sample.delta, facts["errors"])
    for name in ("architecture", "norms"):
        if getattr(proof.setting, name) != getattr(asked, name):
            return f"the {name} of the proof are not those of the class that was fixed beforehand"
    if proof.setting.sample.margin != cls.margin:
        return f"the proof is for a margin of {proof.setting.sample.margin!r}, the class for {cls.margin!r}"
    looked = set((proof.measured or {}).get("sample", {})) - {"candidates"}
    if set(proof.measured or {}) - {"sample"} or looked != ({"train_error"} if cls.seen else set()):
        return "what the proof says was looked at is not what the class allows"
    if not cls.seen and proof.setting.sample.train_error:
        return "the class was fixed for no margin error, the proof is for some"
    return None


def _establish(certificate: PredictorCertificate, data: Any, network_of: Callable[[Mapping[str, Any]], Any]) -> str:
    del network_of  # the layer is of this package, and needs NumPy alone
    evidence = certificate.evidence
    refuse_other_examples(certificate, data)
    cls = _class_of(certificate)
    network = PoolingNetwork.from_recipe(evidence["recipe"])
    weights = {"q": np.array(_query("query", evidence["query"]))}
    network.belongs(weights, cls)
    errors = margin_errors(network, weights, data, cls.margin)
    if errors != certificate.facts["errors"]:
        raise CertificateError(f"{errors} margins are at most gamma, {certificate.facts['errors']} are claimed")
    return f"the query lies in its class, |q| <= {cls.within:g}; {errors} margins at most {cls.margin:g} counted again"


def _recipe(name: str, value: object) -> Mapping[str, Any]:
    PoolingNetwork.from_recipe(json_object(name, value))
    return object_of(name, value, ("kind", "bits", "width", "read"))


NORMS = METHODS.ours(
    Method(
        "norms",
        (CLASS,),
        "as trained, a member of the class",
        readers(recipe=_recipe, query=_query),
        lambda entry: PoolingClass.from_json(dict(entry)),
        _consistent,
        _establish,
    )
)
