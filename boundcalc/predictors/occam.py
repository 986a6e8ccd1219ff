"""Occam: a predictor that few bits say, relative to weights fixed before the data. Any search may have found it.

A certificate holds the code (reference weights, unit of updates), a message in this code, and the errors of the weights
that it says. A message is the seed of the reference weights and, for some tensors, an update 2^e N with a sparse N. A
tensor of more than two dimensions counts as a matrix of its last one. The code is a tree of choices: every choice
depends on those before it alone, and the probabilities at each fork sum to at most 1, so those of all messages do
(Kraft's inequality). Decoding needs NumPy alone; counting errors needs the network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from flint import arb

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.intervals import upper_float
from boundcalc.base.schema import Count
from boundcalc.predictors._statements import G7, H, float_limit
from boundcalc.predictors.certificate import (
    METHODS,
    Certified,
    LearnerOf,
    Method,
    PredictorCertificate,
    issue,
)
from boundcalc.predictors.data import Answers, Array, Data, Evidence, digest_of_arrays, errors_again
from boundcalc.predictors.reference import Reference

_UNITS = 3
"""Odds against 1 that all numbers of an update are 1 or -1."""
_FARTHEST = 1000
"""Largest exponent of two."""


@dataclass(frozen=True)
class Update:
    """2^exponent times whole numbers other than 0: by their flat places, or by their rows in one column."""

    exponent: int
    numbers: Mapping[int, int]
    column: Count | None = None

    def __post_init__(self) -> None:
        if not (all(map(str.isdecimal, map(str, self.numbers))) and all(self.numbers.values())):
            raise InvalidSetting("an update has numbers other than 0 by their places from 0")
        numbers = sorted([(int(place), value) for place, value in self.numbers.items()])
        object.__setattr__(self, "numbers", dict(numbers))

    def dense(self, shape: tuple[int, ...]) -> Array:
        """As an array of this shape, exact: powers of two times whole numbers."""
        array = np.zeros(matrix(shape))
        side = array.reshape(-1) if self.column is None else array[:, self.column]
        side[list(self.numbers)] = np.ldexp([float(value) for value in self.numbers.values()], self.exponent)
        return array.reshape(shape)


@dataclass(frozen=True)
class Message:
    """What a certificate says of its weights; `Code.bits` checks that it fits."""

    seed: Count
    updates: Mapping[str, Update] = field(default_factory=dict[str, Update])


def matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a tensor."""
    return (math.prod(shape), 1) if len(shape) < 2 else (math.prod(shape[:-1]), shape[-1])


def _update(update: Update, rows: int, columns: int, exponent: int) -> arb:
    """Nats of the exponent, of one column or all, of how many numbers, where, and of their signs and sizes."""
    numbers, size, choices = update.numbers, rows * columns, _log(2) if min(rows, columns) > 1 else arb(0)
    if abs(update.exponent) > _FARTHEST:
        raise CertificateError(f"an update in steps of 2^{update.exponent}: at most 2^{_FARTHEST} is read")
    if update.column is not None:
        if min(rows, columns) == 1 or update.column >= columns:
            raise CertificateError(f"an update in column {update.column} of {columns}: a matrix with it is needed")
        size, choices = rows, choices + _log(columns)
    if not numbers or max(numbers) >= size:
        raise CertificateError(f"an update has numbers at some of {size} places")
    away, values = update.exponent - exponent, numbers.values()
    total = choices + _positive(2 * away if away > 0 else 1 - 2 * away)  # 0, 1, -1, 2, .. as 1, 2, 3, 4, ..
    total = total + _positive(len(numbers)) + _choose(size, len(numbers))
    total = total + _flags(sum([value > 0 for value in values]), len(values))
    large = [abs(value) - 1 for value in values if abs(value) > 1]
    if not large:
        return total + _log(_UNITS + 1) - _log(_UNITS)
    sizes = (2 * sum(value.bit_length() for value in large) - len(large)) * arb.const_log2()
    return total + _log(_UNITS + 1) + _flags(len(large), len(numbers)) + sizes


def _log(value: int) -> arb:
    return arb(value).log()


def _choose(size: int, chosen: int) -> arb:
    """Nats of which of so many, all alike."""
    return arb.bin_uiui(size, chosen).log()


def _positive(value: int) -> arb:
    """Nats of a whole number from 1: its number of digits (each more has half the probability), then these."""
    return (2 * value.bit_length() - 1) * arb.const_log2()


def _flags(true: int, total: int) -> arb:
    """Nats of truth values of an unknown share: each has the odds of those before it, half a one added to either side.

    The product of the probabilities does not depend on the order: Gamma(a + 1/2) Gamma(b + 1/2) / (pi Gamma(a + b +
    1)).
    """
    half = arb(1) / 2
    of_each = (true + half).lgamma() + (total - true + half).lgamma()
    return arb(total + 1).lgamma() + arb.pi().log() - of_each


# -- networks, codes and certificates


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
        if abs(self.exponent) > _FARTHEST:
            raise InvalidSetting(f"exponent of a code must be a whole number within 1000, got {self.exponent!r}")

    def bits(self, message: Message) -> float:
        """-log2 of the probability of a message, rounded up; refuses what the code cannot say."""
        shapes = self.reference.shapes
        names, changed = len(shapes), len(message.updates)
        # no update has odds of 1/8 to one update; of more, one more is half as likely
        odds = [1 << max(0, names - 1 - i) for i in range(names)]
        odds = [max(1, odds[0] // 8), *odds]
        nats = _positive(message.seed + 1) + _log(sum(odds)) - _log(odds[min(changed, names)]) + _choose(names, changed)
        for name, update in message.updates.items():
            if name not in shapes:
                raise CertificateError(f"the code has no tensor {name!r}")
            nats = nats + _update(update, *matrix(shapes[name]), self.exponent)
        return max(0.0, upper_float(nats / arb.const_log2()))

    def weights(self, message: Message, checkpoint: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """What a message decodes to, in float64."""
        weights = self.reference.weights(message.seed, checkpoint)
        for name, update in message.updates.items():
            weights[name] = weights[name] + update.dense(weights[name].shape)
        return weights

    def decode(self, evidence: _Evidence, checkpoint: Mapping[str, Array] | None) -> dict[str, Array]:
        """The weights of a certificate's message."""
        return self.weights(evidence.message, checkpoint)


def float_risk(errors: int, n: int, bits: float, delta: float) -> float:
    """G7 in floats: what a search makes small."""
    return 1.0 if errors >= n else float_limit(errors, n, math.log(delta) - bits * math.log(2))


def certify_message(
    network: Network, code: Code, message: Message, data: Data, delta: float, *, others: Sequence[Code] = ()
) -> Certified:
    """The certificate of a message: its weights, bits and errors; delta is shared with the other codes tried."""
    weights = code.weights(message, network.checkpoint)
    certificate = issue(
        "occam",
        count_wrong(network.scores(weights, data), len(data)),
        delta=delta,
        alternatives=(code, *others),
        evidence=_Evidence.of(data, network, weights, message),
    )
    return Certified(certificate, weights)


@dataclass(frozen=True)
class _Evidence(Evidence):
    message: Message


def _facts(certificate: PredictorCertificate) -> tuple[str, Mapping[str, Any]]:
    evidence = certificate.evidence
    return "G7", {"n": evidence.data.examples, "bits": certificate.alternative.bits(evidence.message)}


def count_decoded(certificate: PredictorCertificate, data: Any, network_of: LearnerOf) -> str:
    """Establish the errors of the weights that the alternative makes of the evidence, by its `decode`."""
    network = network_of(certificate.evidence.recipe)
    weights = certificate.alternative.decode(certificate.evidence, network.checkpoint)
    errors = errors_again(certificate, data, digest_of_arrays(weights), lambda x: network.scores(weights, x))
    return f"{certificate.certified} again: weights equal to the bit; {errors} errors counted again"


METHODS.register(Method("occam", "decoded from the message", (G7,), _Evidence, _facts, count_decoded, Code))


def _all(certificate: PredictorCertificate) -> tuple[str, Mapping[str, Any]]:
    """All examples are tested on."""
    return "H", {"n": certificate.evidence.data.examples}


def _answers_alike(certificate: PredictorCertificate, data: Any, learner_of: LearnerOf) -> str:
    """Establish that the same predictor makes the same errors; `learner_of` gives its `weights` and `scores`."""
    predictor = learner_of(certificate.evidence.recipe)
    errors_again(certificate, data, predictor.weights, predictor.scores)
    return "the same weights answered the same examples: the same errors"


METHODS.register(Method("held-out", "given, with its weights", (H,), Evidence, _all, _answers_alike))
