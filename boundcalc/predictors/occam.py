"""Occam: a predictor that few bits say, relative to weights fixed before the data. Any search may have found it.

A certificate holds the code (reference weights, unit of updates), the message in this code, and the errors of the
weights that it says. Its bits are -log2 of the probability that the code gives the message (`predictors.updates`).
Decoding needs NumPy alone; counting errors needs the network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import write
from boundcalc.predictors.certificate import (
    METHODS,
    Alternative,
    Certified,
    LearnerOf,
    Method,
    PredictorCertificate,
    equal_shares,
    issue,
)
from boundcalc.predictors.data import (
    Answers,
    Array,
    Data,
    Evidence,
    EvidenceHere,
    digest_of_arrays,
    errors_again,
    evidence_of,
    of_another_count,
)
from boundcalc.predictors.reference import Reference
from boundcalc.predictors.statements import G7, H, read_as
from boundcalc.predictors.tails import float_limit
from boundcalc.predictors.updates import Message, message_bits


class Network(Answers, Protocol):
    """What turns weights into answers. All of it is fixed before the data, its float arithmetic too."""

    @property
    def checkpoint(self) -> Mapping[str, Array] | None:
        """The tensors that updates are relative to, where they are not drawn."""
        ...

    def scores(self, weights: Mapping[str, Array], examples: Data) -> Array:
        """A score per example: right where it is above 0."""
        ...


@dataclass(frozen=True)
class Code:
    """A prefix-free code of weights, fixed before the data.

    Attributes:
        reference: weights that updates are relative to.
        exponent: of two: the step updates have most often.
    """

    reference: Reference
    exponent: int = 0

    def __post_init__(self) -> None:
        if abs(self.exponent) > 1000:
            raise InvalidSetting(f"exponent of a code must be a whole number within 1000, got {self.exponent!r}")

    def bits(self, message: Message) -> float:
        """What a message takes."""
        return message_bits(message, self.reference.shapes, self.exponent)

    def weights(self, message: Message, checkpoint: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """What a message decodes to, in float64."""
        weights = self.reference.weights(message.seed, checkpoint)
        for name, update in message.updates.items():
            weights[name] = weights[name] + update.dense(weights[name].shape)
        return weights


def float_risk(errors: int, n: int, bits: float, delta: float) -> float:
    """G7 in floats: what a search makes small."""
    return 1.0 if errors >= n else float_limit(errors, n, math.log(delta) - bits * math.log(2))


def certify_message(
    network: Network, code: Code, message: Message, data: Data, delta: float, *, others: Sequence[Code] = ()
) -> Certified:
    """The certificate of a message: its weights, bits and errors; delta is shared with the other codes tried."""
    share = equal_shares(delta, 1 + len(others))
    weights = code.weights(message, network.checkpoint)
    errors = count_wrong(network.scores(weights, data), len(data))
    certificate = issue(
        "occam",
        "G7",
        {"errors": errors, "n": len(data), "bits": code.bits(message)},
        delta=delta,
        alternatives=tuple({**write(tried, complete=True), "delta": share} for tried in (code, *others)),
        chosen=0,
        evidence=evidence_of(data, network, message=message, weights=digest_of_arrays(weights)),
    )
    return Certified(certificate, weights)


@dataclass(frozen=True)
class _Evidence(EvidenceHere):
    message: Message


@dataclass(frozen=True)
class _Tried(Code, Alternative):
    """An alternative: a code."""


def _consistent(certificate: PredictorCertificate) -> str | None:
    message = read_as(_Evidence, "evidence", certificate.evidence).message
    bits, claimed = certificate.alternative.bits(message), certificate.facts["bits"]
    if not bits <= claimed <= bits * (1 + 1e-9):
        return f"the message takes {bits!r} bits in its code, {claimed!r} are claimed"
    return of_another_count(certificate)


def _establish(certificate: PredictorCertificate, data: Any, network_of: LearnerOf) -> str:
    network = network_of(certificate.evidence["recipe"])
    message = read_as(_Evidence, "evidence", certificate.evidence).message
    weights = certificate.alternative.weights(message, network.checkpoint)
    errors = errors_again(certificate, data, digest_of_arrays(weights), lambda x: network.scores(weights, x))
    return f"the message decodes to the weights, equal to the bit; {errors} errors counted again"


METHODS.register(Method("occam", (G7,), "decoded from the message", _Evidence, _consistent, _establish, _Tried))


def _answers_alike(certificate: PredictorCertificate, data: Any, learner_of: LearnerOf) -> str:
    """Establish that the same predictor makes the same errors; `learner_of` gives its `weights` and `scores`."""
    predictor = learner_of(certificate.evidence["recipe"])
    errors_again(certificate, data, predictor.weights, predictor.scores)
    return "the same weights answered the same examples: the same errors"


METHODS.register(Method("held-out", (H,), "given, with its weights", Evidence, of_another_count, _answers_alike))
