"""A proof whose error shares are kept while the setting changes: its counts made anew, and what they give.

By the envelope theorem that gives the slopes of a bound, and for larger changes a value that a search can only improve on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boundcalc.base.errors import CertificateError
from boundcalc.base.numbers import FLOAT, LOG, LogFloat, log_sum
from boundcalc.engine.evaluate import Desk
from boundcalc.engine.noise import NoiseItems
from boundcalc.engine.options import Item, build_items, cost_at
from boundcalc.engine.proved import BoundValue
from boundcalc.engine.search import Link
from boundcalc.formulas.theorems import BOUNDS
from boundcalc.proof.certificate import Certificate, Quantity
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import CoverLemma
from boundcalc.statements.merge import merge_linear_maps
from boundcalc.statements.network import Network
from boundcalc.statements.strategies import (
    STRATEGIES,
    Chain,
    noise_chance,
    stored_count,
    stored_weights,
)


@dataclass(frozen=True, slots=True)
class _Level:
    log_scale: float
    shares: Mapping[str, float]
    """log of the error of the loss that each piece is given."""


@dataclass(frozen=True, slots=True)
class Held:
    """A proof whose error shares are kept while the setting changes."""

    policy: str
    strategy: str
    levels: tuple[_Level, ...]
    mu: float | None
    log_union: float
    first_link: bool
    meeting: bool = False
    """Whether the proof is about the class in which maps that meet are one (A6)."""

    def counts(self, setting: Setting) -> list[dict[str, float]] | None:
        """Log counts of every level by piece, or of stored weights; None where the pieces are others."""
        if STRATEGIES[self.strategy].stored:
            weights, whole = stored_weights(setting), stored_count(FLOAT, setting)
            total = sum(weights.values())
            return [{kind: math.log(whole * number / total) for kind, number in weights.items()}]
        items = self._items(setting)
        if items is None or any({item.key for item in items} != set(level.shares) for level in self.levels):
            return None
        return [{item.key: cost_at(item, level.shares[item.key])[0] for item in items} for level in self.levels]

    def _items(self, setting: Setting) -> list[Item] | None:
        merged = merge_linear_maps(setting) if self.meeting else None
        if self.meeting and merged is None:
            return None
        whole = setting if merged is None else merged.setting
        strategy = STRATEGIES[self.strategy]
        policy, uniform = BOUNDS[self.policy], strategy.uniform

        def allowed(lemma: CoverLemma) -> bool:
            return policy.allows(lemma) and (lemma.uniform or not uniform)

        if strategy.noisy:
            lowered = Network(whole, LOG)
            covers = build_items(lowered, 1, allowed)
            return NoiseItems(lowered, covers, policy.laws).at(noise_chance(setting.sample.n_train))
        return build_items(Network(whole, LOG), strategy.samples(setting.sample.n_train), allowed)

    def log_value(self, setting: Setting) -> float | None:
        """Log of what the proof gives; where a risk saturates, of (log N + log 1/delta)/m."""
        counts = self.counts(setting)
        if counts is None:
            return None
        return self._combined(setting, [log_sum(list(each.values())) for each in counts])

    def _combined(self, setting: Setting, log_counts: Sequence[float]) -> float:
        m, strategy = LogFloat.of(setting.sample.n_train), STRATEGIES[self.strategy]
        inverse = LogFloat.of(self.log_union - math.log(setting.sample.delta))
        counts = list(map(LogFloat, log_counts))
        if strategy.quantity == "risk":
            averaging = gap.averaging(LOG, m) if strategy.noisy else 0
            return ((counts[0] + inverse + averaging) / m).log
        if strategy.stored:
            return gap.deviation(LOG, counts[0] + inverse, m).log
        ends = [LogFloat(math.log(0.5)), *(LogFloat(level.log_scale) for level in self.levels)]
        links = sum(gap.refined_links(LOG, ends, counts, m), start=LOG.number(0))
        return gap.gap_chain(LOG, ends[-1], links, LOG.number(1), inverse, m).log


def hold(value: BoundValue, quantity: Quantity, desk: Desk) -> Held | None:
    """The proof of a quantity, or the first link of one that is trivial; None where a closed form has nothing to hold."""
    proof = value.by_gap if quantity == "gap" else value.by_risk
    assert proof is not None  # noqa: S101 - `why` has asked
    certificate = proof.certificate
    if proof.trivial:
        link = desk.search(value.name).best_link()
        return None if link is None else held_link(value.name, link, desk)
    strategy = STRATEGIES[certificate.strategy]
    if strategy.every_scale or (strategy.coverless and not strategy.stored):
        return None
    return held_certificate(certificate, desk)


def held_link(policy: str, link: Link, desk: Desk) -> Held:
    """One link, which need not be worth its price."""
    shares = {item.key: share for item, share in zip(link.items, link.point.shares, strict=True)}
    level = _Level(link.point.log_scale, shares)
    return Held(policy, Chain.name, (level,), None, desk.log_union, True)


def held_certificate(certificate: Certificate, desk: Desk) -> Held:
    """What a certificate gives every piece at every level."""
    merged = merge_linear_maps(certificate.setting) if certificate.meeting else None
    if certificate.meeting and merged is None:
        raise CertificateError("A6: no linear maps meet")
    whole = certificate.setting if merged is None else merged.setting
    pieces = Network(whole, LOG).pieces
    gains = {piece.key: piece.gain.log for piece in pieces}
    caps = {piece.key: piece.cap for piece in pieces}
    levels: list[_Level] = []
    for level in certificate.levels:
        shares: dict[str, float] = {}
        for key, cover in level.covers.items():
            cap = caps[key]
            dropped = all(choice.lemma == "zero" for choice in cover.choices)
            shares[key] = cover.log_eps + gains[key]
            if dropped and cap is not None:
                shares[key] = min(shares[key], cap.log)
        levels.append(_Level(level.log_scale, shares))
    return Held(
        certificate.policy,
        certificate.strategy,
        tuple(levels),
        certificate.mu,
        desk.log_union,
        False,
        certificate.meeting,
    )
