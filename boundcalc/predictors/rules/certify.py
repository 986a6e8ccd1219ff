"""Method `rule`: certificates of a network by a rule that it provably follows (G15, G15p), and `explain_network`."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.output import write_bytes
from boundcalc.base.rounding import confidence, down, up
from boundcalc.base.schema import Count, Positive, write
from boundcalc.base.validate import known_keys
from boundcalc.predictors._statements import G15, G15P
from boundcalc.predictors.certificate import METHODS, LearnerOf, Method, PredictorCertificate, issue
from boundcalc.predictors.data import Array, Data, Evidence, Named, digest_of_arrays, refuse_other_examples
from boundcalc.predictors.rules.check import Proof, prove
from boundcalc.predictors.rules.code import CODE, Rule
from boundcalc.predictors.rules.tables import tables_of
from boundcalc.setting import Architecture

if TYPE_CHECKING:
    from boundcalc.predictors.rules.search import Explanation

_KINDS = {"table": "truth table", "tree": "decision tree"}
_CLOSE = 1e-6
_FORMAT = "boundcalc-model/1"


@dataclass(frozen=True)
class StoredNetwork:
    """A network as it is stored.

    Attributes:
        architecture: of its file's metadata.
        weights: its tensors by name.
        trial: what it was trained by, as JSON, where that is known: then it can be trained again.
    """

    architecture: Architecture
    weights: Mapping[str, Array]
    trial: Mapping[str, Any] | None = None

    @classmethod
    def load(cls, path: Path | str) -> StoredNetwork:
        """From a safetensors file with the architecture in its metadata."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="np") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != _FORMAT:
                    raise InvalidSetting(f"{path} is not a model of boundcalc: it has no architecture in its metadata")
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        except (OSError, SafetensorError) as error:
            raise CertificateError(f"cannot read the weights {path}: {error}") from None
        return cls(Architecture.from_json(json.loads(metadata["architecture"])), weights)

    @classmethod
    def of(cls, model: Any) -> StoredNetwork:
        """From a file's path, or a pair (architecture, weights)."""
        if isinstance(model, StoredNetwork):
            return model
        if isinstance(model, str | Path):
            return cls.load(model)
        architecture, weights = model
        return cls(architecture, {name: _array(value) for name, value in weights.items()})

    def save(self, path: Path | str) -> None:
        """Write it as such a file."""
        from safetensors.numpy import save

        arrays = {name: np.ascontiguousarray(value) for name, value in self.weights.items()}
        architecture = json.dumps(self.architecture.to_json())
        write_bytes(path, save(arrays, {"format": _FORMAT, "architecture": architecture}))


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def in_words(rule: Rule, proof: Proof, margin: float) -> str:
    """What was proved, in one sentence."""
    return f"computes {rule} on {_reach(rule, proof)} (proved from the weights, least margin {down(margin, 3)})"


def _reach(rule: Rule, proof: Proof) -> str:
    """The inputs that a proof is about, in words."""
    all_ = proof.low <= 0 and proof.high >= rule.T
    inputs = "every input" if all_ else f"every input with {proof.low} to {proof.high} ones of {rule.T}"
    sets = f"{rule.silent} set{'s' * (rule.silent != 1)} without an answer"
    return f"{inputs} outside of {sets}" if rule.silent else inputs


def function_of(rounding: float | None, margin: float) -> str:
    """Of which function the margin is: the real-number one, and the float32 pass where rounding is smaller."""
    text = "for the real-number function of the stored weights"
    if rounding is None:
        return f"{text}, not for a float32 pass"
    kept = f"{text} and for its float32 pass" if rounding < margin else f"{text}; a float32 pass may differ"
    return f"{kept} (rounding error at most {up(rounding, 3)})"


def risk_in_words(certificate: PredictorCertificate) -> str:
    """The bound, as a table or tree and by a name."""
    more, sure = facts_of_rule(certificate), f"with probability {confidence(certificate.delta)}"
    bits = up(more["bits_unnamed"], 4)
    text = f"risk <= {up(more['risk_unnamed'], 3)} {sure}, as a {_KINDS[more['unnamed']]} of {bits} bits"
    if more["function"] == more["unnamed"]:
        return text
    return (
        f"{text} (<= {up(certificate.risk, 3)} by the name {more['function']}, {up(certificate.facts['bits'], 4)} bits)"
    )


def certificate_of(
    network: StoredNetwork, explanation: Explanation, data: Data, delta: float, *, prefix: int = 0
) -> PredictorCertificate:
    """The certificate of a proved rule; with a prefix that the rule was read off, by G15p on the other examples."""
    rule, proof, proved = explanation.rule, explanation.proof, explanation.proved
    if proof is None or proved is None:
        raise InvalidSetting(str(explanation))
    tested = data.take(range(prefix, len(data)))
    recipe = {"kind": "stored network", "architecture": network.architecture.to_json(), "trial": network.trial}
    here = {"python": platform.python_version(), "numpy": np.__version__}
    named = Named(data.sha256, len(data)), recipe, digest_of_arrays(network.weights), here
    return issue(
        "rule",
        rule.errors(tested.x, tested.y),
        delta=delta,
        alternatives=(_Fixed("" if prefix else CODE, prefix),),
        evidence=_Evidence(*named, rule, proof, proved.margin),
    )


def facts_of_rule(certificate: PredictorCertificate) -> dict[str, Any]:
    """The rule in words, its inputs and margin; and what it costs as a truth table or decision tree, without a name."""
    evidence = certificate.evidence
    rule = evidence.rule
    facts = {"rule": str(rule), "inputs": _reach(rule, evidence.proof), "margin": evidence.margin}
    if "bits" in certificate.facts:
        kind, bits = rule.price(names=False)
        facts |= {
            "function": rule.price()[0],
            "unnamed": kind,
            "bits_unnamed": bits,
            "risk_unnamed": G15.risk({**certificate.facts, "bits": bits}, certificate.share),
        }
    return facts


@dataclass(frozen=True)
class _Evidence(Evidence):
    rule: Rule
    proof: Proof
    margin: Positive

    def __post_init__(self) -> None:
        known_keys("the recipe of a rule", self.recipe, ("kind", "architecture", "trial"))
        if self.recipe.get("kind") != "stored network" or not isinstance(self.recipe.get("trial"), Mapping | None):
            raise InvalidSetting("the recipe of a rule is a stored network")


@dataclass(frozen=True)
class _Fixed:
    """The code of rules, or the examples before those that test, which a rule is read off."""

    code: str
    prefix: Count

    def __post_init__(self) -> None:
        if self.code != ("" if self.prefix else CODE):
            raise InvalidSetting(f"a rule is of the code {CODE!r}, or read off a prefix; got {self}")


def _facts(certificate: PredictorCertificate) -> tuple[str, Mapping[str, Any]]:
    evidence, prefix = certificate.evidence, certificate.alternative.prefix
    n = {"n": evidence.data.examples - prefix}
    return ("G15p", n) if prefix else ("G15", {**n, "bits": evidence.rule.price()[1]})


def _prove(certificate: PredictorCertificate, network_of: LearnerOf) -> str:
    """Shows again, from the stored weights, that the network follows the rule."""
    evidence = certificate.evidence
    network = StoredNetwork.of(network_of(evidence.recipe))
    if digest_of_arrays(network.weights) != evidence.weights:
        raise CertificateError("this is not the network of the certificate: the sha256 of its weights differs")
    if write(network.architecture.to_json()) != evidence.recipe["architecture"]:
        raise CertificateError("this is not the network of the certificate: its architecture differs")
    proved = prove(tables_of(network.architecture, network.weights), evidence.rule, evidence.proof)
    if evidence.margin > proved.margin + _CLOSE * (1 + proved.margin):
        raise CertificateError(f"a margin of {evidence.margin!r} is claimed, {proved.margin!r} is proved")
    what = in_words(evidence.rule, evidence.proof, proved.margin)
    return f"the network {what}, {function_of(proved.rounding, proved.margin)}"


def _establish(certificate: PredictorCertificate, data: Any, network_of: LearnerOf) -> str:
    refuse_other_examples(certificate, data)
    rule, n = certificate.evidence.rule, certificate.facts["n"]
    errors = rule.errors(np.asarray(data.x)[-n:], np.asarray(data.y)[-n:])
    if errors != certificate.errors:
        raise CertificateError(f"the rule errs on {errors} examples, {certificate.errors} are claimed")
    return f"{_prove(certificate, network_of)}; {errors} errors of the rule counted again"


METHODS.register(
    Method("rule", "as trained, with its own weights", (G15, G15P), _Evidence, _facts, _establish, _Fixed, _prove)
)
