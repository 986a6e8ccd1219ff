"""PAC-Bayes for one draw: whole multiples of a step, from laws whose every probability is a finite sum of exponentials.

A float generator does not draw a Gaussian, so the density of a Gaussian is not that of the draw. Here prior and
posterior are laws on a lattice, P(k) in proportion to exp(-(k - c)^2 / (2 s^2)) within twelve s of c: the log ratio at
the draw is an enclosure, and the draw is the place in the posterior of bits that a seed gives, a seed fixed before the
data.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from flint import arb, fmpz

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.intervals import upper_float
from boundcalc.base.schema import write
from boundcalc.predictors.certificate import (
    METHODS,
    Certified,
    Method,
    PredictorCertificate,
    digest_of,
    equal_shares,
    issue,
    read_as,
    sha256_text,
)
from boundcalc.predictors.data import (
    Array,
    Data,
    count_again,
    digest_of_arrays,
    evidence_of,
    of_another_count,
    readers,
    refuse_other_examples,
)
from boundcalc.predictors.occam import Network
from boundcalc.predictors.reference import Reference
from boundcalc.predictors.statements import G6_PRIME, count, real

_REACH = 12
"""Deviations within which a lattice law lives."""
_WIDEST = 10**5
_BITS = 96
"""Of a uniform number; enclosures are narrower, so a draw is certain."""


@dataclass(frozen=True, slots=True)
class LatticeLaw:
    """P(k) in proportion to exp(-(k - centre)^2 / (2 deviation^2)), k whole and within twelve deviations (and two)."""

    centre: float
    deviation: float

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
        low, high = 0, len(sums) - 1
        while low < high:
            middle = (low + high) // 2
            if bool(target < sums[middle]):
                high = middle
            elif bool(target >= sums[middle]):
                low = middle + 1
            else:
                raise CertificateError("a draw lies too near to the end of its place: take another seed")
        return self.ends[0] + low


@lru_cache(maxsize=4096)
def _sums(law: LatticeLaw) -> tuple[arb, ...]:
    low, high = law.ends
    sums: list[arb] = []
    total = arb(0)
    for k in range(low, high + 1):
        total = total + law.log_weight(k).exp()
        sums.append(total)
    return tuple(sums)


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

    def count(self, shape: tuple[int, ...]) -> int:
        """How many coordinates."""
        return math.prod(shape) if self.direction is None else math.prod(shape[:-1])


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

    @property
    def step(self) -> float:
        """Of the lattice."""
        return math.ldexp(1.0, self.exponent)

    @property
    def laws(self) -> list[LatticeLaw]:
        """Of every coordinate."""
        shapes = self.reference.shapes
        return [
            LatticeLaw(0.0, group.deviation / self.step)
            for group in self.groups
            for _ in range(group.count(shapes[group.tensor]))
        ]

    def weights(self, drawn: Sequence[int], checkpoint: Mapping[str, Array] | None) -> dict[str, Array]:
        """What coordinates stand for, in float64."""
        centres = self.reference.weights(self.seed, checkpoint)
        at = 0
        for group in self.groups:
            value = centres[group.tensor]
            size = group.count(value.shape)
            moved = np.asarray(drawn[at : at + size], dtype=np.float64) * self.step
            at += size
            if group.direction is not None:
                moved = moved[:, None] * np.asarray(group.direction)
            centres[group.tensor] = value + moved.reshape(value.shape)
        return centres

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
            _deviation(f"deviation of {group.tensor}", math.ldexp(group.deviation, -self.exponent))

    def to_json(self) -> dict[str, Any]:
        """As a certificate lists it."""
        fields = write(self, complete=True)
        return {**fields.pop("reference"), **fields}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Prior:
        """Read strictly."""
        reference = {name: data.get(name) for name in ("laws", "checkpoint")}
        rest = {name: value for name, value in data.items() if name not in reference}
        return read_as(cls, "a prior", {"reference": reference, **rest})


def _deviation(name: str, value: float) -> float:
    if not 0.01 <= value <= _WIDEST:
        raise CertificateError(f"{name} must lie between 0.01 and {_WIDEST} steps, got {value!r}")
    return value


def _places(seed: int, size: int) -> list[int]:
    """The uniform numbers of a draw: bits that a seed gives."""
    stream = hashlib.shake_256(f"boundcalc draw {seed}".encode()).digest(size * _BITS // 8)
    return [int.from_bytes(stream[i : i + _BITS // 8], "big") for i in range(0, len(stream), _BITS // 8)]


def draw_weights(posterior: Sequence[LatticeLaw], seed: int) -> list[int]:
    """One draw of every coordinate."""
    return [law.draw(place) for law, place in zip(posterior, _places(seed, len(posterior)), strict=True)]


def log_ratio(posterior: Sequence[LatticeLaw], prior: Sequence[LatticeLaw], drawn: Sequence[int]) -> arb:
    """Log of dQ/dP at a draw, enclosed."""
    total = arb(0)
    for q, p, k in zip(posterior, prior, drawn, strict=True):
        total = total + q.log_mass(k) - p.log_mass(k)
    return total


def certify_draws(
    network: Network, prior: Prior, posterior: Sequence[LatticeLaw], data: Data, delta: float, draws: int = 4
) -> Certified:
    """The best of a few draws whose seeds were fixed before the data; each has an equal share of delta."""
    share = equal_shares(delta, draws)
    best: tuple[float, int, dict[str, Any], dict[str, Array]] | None = None
    for seed in range(draws):
        drawn = draw_weights(posterior, seed)
        weights = prior.weights(drawn, network.checkpoint)
        wrong = count_wrong(network.scores(weights, data), len(data))
        nats = upper_float(log_ratio(posterior, prior.laws, drawn))
        facts = {"errors": wrong, "n": len(data), "nats": nats}
        risk = G6_PRIME.risk(facts, share)
        if best is None or risk < best[0]:
            best = risk, seed, facts, weights
    if best is None:
        raise CertificateError("at least one draw is needed")
    certificate = issue(
        "pac-bayes",
        G6_PRIME.name,
        best[2],
        delta=delta,
        alternatives=tuple({**prior.to_json(), "draw": seed, "delta": share} for seed in range(draws)),
        chosen=best[1],
        evidence=evidence_of(
            data,
            network,
            posterior=[[law.centre, law.deviation] for law in posterior],
            weights=digest_of_arrays(best[3]),
        ),
    )
    return Certified(certificate, best[3])


def posterior_of(name: str, value: object) -> list[LatticeLaw]:
    """The laws of a certificate."""
    if not isinstance(value, list) or not value:
        raise CertificateError(f"{name} must be a list of pairs [centre, deviation], in steps")
    laws: list[LatticeLaw] = []
    for pair in cast("list[Any]", value):
        if not isinstance(pair, list) or len(cast("list[Any]", pair)) != 2:
            raise CertificateError(f"{name} must hold pairs [centre, deviation], got {pair!r}")
        centre, deviation = cast("list[Any]", pair)
        laws.append(
            LatticeLaw(real(f"a centre of {name}", centre), _deviation(f"a deviation of {name}", real(name, deviation)))
        )
    return laws


def _alternative(entry: Mapping[str, Any]) -> tuple[Prior, int]:
    if "draw" not in entry:
        raise CertificateError("an alternative has no field 'draw': the seed of its draw")
    return Prior.from_json({k: v for k, v in entry.items() if k != "draw"}), count("seed of a draw", entry["draw"])


def _taken(certificate: PredictorCertificate) -> tuple[Prior, int]:
    return _alternative(certificate.taken)


def _consistent(certificate: PredictorCertificate) -> str | None:
    seeds: dict[str, list[tuple[int, float]]] = {}
    for entry in certificate.alternatives:
        listed = digest_of({name: value for name, value in entry.items() if name not in ("draw", "delta")})
        seeds.setdefault(listed, []).append((entry["draw"], entry["delta"]))
    for drawn in seeds.values():
        if [seed for seed, _ in drawn] != list(range(len(drawn))) or len({share for _, share in drawn}) > 1:
            return "draws from one prior have the seeds 0, 1, 2, .. and equal shares of delta: none can be left out"
    if (other := of_another_count(certificate)) is not None:
        return other
    prior, laws = _taken(certificate)[0], len(certificate.evidence["posterior"])
    size = sum(group.count(prior.reference.shapes[group.tensor]) for group in prior.groups)
    return None if laws == size else f"{laws} laws in the posterior, {size} in the prior"


def _establish(certificate: PredictorCertificate, data: Any, network_of: Callable[[Mapping[str, Any]], Any]) -> str:
    prior, seed = _taken(certificate)
    posterior = posterior_of("posterior", certificate.evidence["posterior"])
    drawn = draw_weights(posterior, seed)
    nats = upper_float(log_ratio(posterior, prior.laws, drawn))
    claimed = certificate.facts["nats"]
    if not nats <= claimed <= nats + 1e-9 * max(1.0, abs(nats)):
        raise CertificateError(f"the log ratio at the draw is {nats!r}, {claimed!r} is claimed")
    network = network_of(certificate.evidence["recipe"])
    refuse_other_examples(certificate, data)
    weights = prior.weights(drawn, network.checkpoint)
    errors = count_again(certificate, digest_of_arrays(weights), network.scores(weights, data))
    return (
        f"drawn again from the posterior: the same log ratio, weights equal to the bit; {errors} errors counted again"
    )


METHODS.register_builtin(
    Method(
        "pac-bayes",
        (G6_PRIME,),
        "drawn once from the posterior",
        readers(posterior=posterior_of, weights=sha256_text),
        _alternative,
        _consistent,
        _establish,
    )
)
