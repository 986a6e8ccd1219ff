"""PAC-Bayes for one draw: whole multiples of a step, from laws whose every probability is a finite sum of exponentials.

A float generator does not draw a Gaussian, so the density of a Gaussian is not that of the draw. Here prior and
posterior are laws on a lattice: the log ratio at the draw is an enclosure, and the draw is the place in the posterior
of bits that a seed gives, a seed fixed before the data.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from flint import arb, fmpz

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.intervals import certainly_le, upper_float
from boundcalc.base.schema import Count
from boundcalc.predictors._statements import ErrorCount, PredictorStatement, binomial_mass, root, rounded_up
from boundcalc.predictors.certificate import (
    METHODS,
    Certified,
    Method,
    PredictorCertificate,
    equal_shares,
    issue,
    text_of,
)
from boundcalc.predictors.data import Array, Data, Evidence
from boundcalc.predictors.occam import Network, count_decoded
from boundcalc.predictors.reference import Reference

# -- G6': PAC-Bayes for weights drawn once from a posterior and tested on the examples the posterior was made from


@dataclass(frozen=True)
class _DrawnErrors(ErrorCount):
    """Also the log of dQ_S/dP at the weights drawn."""

    nats: float


def _log_weight(errors: int) -> arb:
    """Log of q(e) = 6 / (pi (e + 1))^2, a law on the counts fixed before any data."""
    return (6 / (arb.pi() * (errors + 1)) ** 2).log()


def _single_draw(facts: _DrawnErrors, delta: float) -> float:
    errors, n = facts.errors, facts.n
    if errors >= n:
        return 1.0
    level = arb(delta).log() + _log_weight(errors) - arb(facts.nats)
    high = root(lambda p: float(binomial_mass(errors, n, p).log() - level), errors / n)

    def holds(p: float) -> bool:
        beyond = certainly_le(arb(errors), arb(p) * n)  # from there on the mass falls
        return beyond and certainly_le(binomial_mass(errors, n, p).log(), level)

    return rounded_up(high, holds)


_G6_PRIME = PredictorStatement("G6'", _DrawnErrors, _single_draw)

# -- laws on a lattice

_REACH = 12
"""Deviations within which a lattice law lives."""
_NARROWEST, _WIDEST = 0.01, 10**5
_BITS = 96
"""Of a uniform number; enclosures are narrower, so a draw is certain."""


@dataclass(frozen=True, slots=True)
class LatticeLaw:
    """P(k) in proportion to exp(-(k - centre)^2 / (2 deviation^2)), k whole and within twelve deviations (and two)."""

    centre: float
    deviation: float

    def __post_init__(self) -> None:
        if not _NARROWEST <= self.deviation <= _WIDEST:
            raise InvalidSetting(
                f"a deviation must lie between {_NARROWEST} and {_WIDEST} steps, got {self.deviation!r}"
            )

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest k."""
        reach = _REACH * self.deviation + 2
        return math.ceil(self.centre - reach), math.floor(self.centre + reach)

    def log_weight(self, k: int) -> arb:
        """The exponent."""
        return -((arb(k) - self.centre) ** 2) / (2 * arb(self.deviation) ** 2)

    def log_mass(self, k: int) -> arb:
        """Log of P(k), enclosed."""
        low, high = self.ends
        if not low <= k <= high:
            raise CertificateError(f"the law around {self.centre:g} of deviation {self.deviation:g} never gives {k}")
        return self.log_weight(k) - _sums(self)[-1].log()

    def draw(self, place: int) -> int:
        """The k that the place (of 2^96 equal ones in [0, 1)) lies in."""
        sums = _sums(self)
        target = arb(fmpz(place)) * arb(2) ** -_BITS * sums[-1]
        k = bisect_right(sums, target)
        if not target < sums[k] or (k and not sums[k - 1] <= target):
            raise CertificateError("a draw lies too near to the end of its place: take another seed")
        return self.ends[0] + k


@lru_cache(maxsize=4096)
def _sums(law: LatticeLaw) -> tuple[arb, ...]:
    low, high = law.ends
    return tuple(accumulate(law.log_weight(k).exp() for k in range(low, high + 1)))


@dataclass(frozen=True, slots=True)
class Group:
    """Coordinates of one tensor: each of its numbers, or one per row, which moves the row in a direction.

    Attributes:
        tensor: its name.
        direction: of a row, or None.
        deviation: of the prior, in weights.
    """

    tensor: str
    direction: tuple[float, ...] | None
    deviation: float


@dataclass(frozen=True)
class Prior:
    """A law of weights fixed before the data: a reference, and lattice laws of coordinates around it.

    Attributes:
        reference: of the weights.
        seed: of the reference.
        groups: which weights are random, and how widely.
        exponent: of two: the step of the lattice.
    """

    reference: Reference
    seed: int
    groups: tuple[Group, ...]
    exponent: int

    def __post_init__(self) -> None:
        if abs(self.exponent) > 100:
            raise InvalidSetting(f"exponent of a prior must be a whole number within 100, got {self.exponent!r}")
        if not self.groups or len({group.tensor for group in self.groups}) != len(self.groups):
            raise InvalidSetting("a prior has at least one group, and each tensor once")
        for group in self.groups:
            law = self.reference.laws.get(group.tensor)
            if law is None or (group.direction is not None and len(group.direction) != law.shape[-1]):
                raise InvalidSetting(
                    f"a group of a prior moves a tensor, in a direction of a number per column: {group}"
                )
            LatticeLaw(0.0, group.deviation / self.step)

    @property
    def step(self) -> float:
        """Of the lattice."""
        return math.ldexp(1.0, self.exponent)

    @property
    def sizes(self) -> list[int]:
        """The numbers of coordinates of the groups."""
        shapes = self.reference.shapes
        return [math.prod(shapes[g.tensor] if g.direction is None else shapes[g.tensor][:-1]) for g in self.groups]

    @property
    def laws(self) -> list[LatticeLaw]:
        """Of every coordinate."""
        laws = (LatticeLaw(0.0, group.deviation / self.step) for group in self.groups)
        return [law for law, size in zip(laws, self.sizes, strict=True) for _ in range(size)]

    def weights(self, drawn: Sequence[int], checkpoint: Mapping[str, Array] | None) -> dict[str, Array]:
        """What coordinates stand for, in float64."""
        weights = self.reference.weights(self.seed, checkpoint)
        parts = np.split(np.asarray(drawn, np.float64) * self.step, np.cumsum(self.sizes)[:-1])
        for group, moved in zip(self.groups, parts, strict=True):
            along = moved if group.direction is None else moved[:, None] * np.asarray(group.direction)
            weights[group.tensor] = weights[group.tensor] + along.reshape(weights[group.tensor].shape)
        return weights


@dataclass(frozen=True)
class _Drawn(Prior):
    """An alternative: a prior, and the seed of a draw."""

    draw: Count

    def decode(self, evidence: _Evidence, checkpoint: Mapping[str, Array] | None) -> dict[str, Array]:
        """The weights of the draw."""
        return self.weights(_draw_weights(evidence.posterior, self.draw), checkpoint)


def _draw_weights(posterior: Sequence[LatticeLaw], seed: int) -> list[int]:
    """One draw of every coordinate, from bits that the seed gives."""
    width = _BITS // 8
    stream = hashlib.shake_256(f"boundcalc draw {seed}".encode()).digest(len(posterior) * width)
    return [law.draw(int.from_bytes(stream[i * width : (i + 1) * width], "big")) for i, law in enumerate(posterior)]


def log_ratio(posterior: Sequence[LatticeLaw], prior: Sequence[LatticeLaw], drawn: Sequence[int]) -> arb:
    """Log of dQ/dP at a draw, enclosed."""
    pairs = zip(posterior, prior, drawn, strict=True)
    return sum((q.log_mass(k) - p.log_mass(k) for q, p, k in pairs), arb(0))


def certify_draws(
    network: Network, prior: Prior, posterior: Sequence[LatticeLaw], data: Data, delta: float, draws: int = 4
) -> Certified:
    """The best of a few draws whose seeds were fixed before the data; each has an equal share of delta."""
    outcomes: list[tuple[float, int, int, dict[str, Array]]] = []
    for seed in range(draws):
        drawn = _draw_weights(posterior, seed)
        weights = prior.weights(drawn, network.checkpoint)
        errors = count_wrong(network.scores(weights, data), len(data))
        facts = _DrawnErrors(errors, len(data), upper_float(log_ratio(posterior, prior.laws, drawn)))
        outcomes.append((_single_draw(facts, equal_shares(delta, draws)), seed, errors, weights))
    _, chosen, errors, weights = min(outcomes, key=lambda outcome: outcome[:2])
    listed = (_Drawn(**vars(prior), draw=seed) for seed in range(draws))
    evidence = _Evidence.of(data, network, weights, tuple(posterior))
    certificate = issue("pac-bayes", errors, delta=delta, alternatives=listed, chosen=chosen, evidence=evidence)
    return Certified(certificate, weights)


@dataclass(frozen=True)
class _Evidence(Evidence):
    posterior: tuple[LatticeLaw, ...]


def _facts(certificate: PredictorCertificate) -> tuple[str, Mapping[str, Any]]:
    draws: dict[str, list[int]] = {}
    for entry in certificate.alternatives:
        draws.setdefault(text_of(entry, "draw"), []).append(entry.draw)
    if any(seeds != list(range(len(seeds))) for seeds in draws.values()):
        raise CertificateError("draws from one prior have the seeds 0, 1, 2, ..: none can be left out")
    prior, posterior = certificate.alternative, certificate.evidence.posterior
    if len(posterior) != sum(prior.sizes):
        raise CertificateError(f"{len(posterior)} laws in the posterior, {sum(prior.sizes)} in the prior")
    nats = upper_float(log_ratio(posterior, prior.laws, _draw_weights(posterior, prior.draw)))
    return "G6'", {"n": certificate.evidence.data.examples, "nats": nats}


METHODS.register(
    Method("pac-bayes", "drawn once from the posterior", (_G6_PRIME,), _Evidence, _facts, count_decoded, _Drawn)
)
