"""A proof taken apart, for readers: what the checker found for each level and piece.

The numbers are the checker's own balls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.levels import Booked
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.covers.base import cover_uses
from boundcalc.statements.network import Network
from boundcalc.statements.noises import NOISES
from boundcalc.statements.strategies import STRATEGIES, Known, Term


@dataclass(frozen=True, slots=True)
class Part:
    """One piece at one level.

    Attributes:
        key: the piece.
        lemmas: how its maps are covered ("zero": by the zero map alone).
        eps: tolerance of the cover.
        error: what it adds to the error of the loss.
        count: its log count.
        share: its part of the level's log count.
    """

    key: str
    lemmas: tuple[str, ...]
    eps: arb
    error: arb
    count: arb
    share: float


@dataclass(frozen=True, slots=True)
class LevelParts:
    """One level: its scale on the loss, its log count, what it adds to the bound (chains), its pieces."""

    scale: arb
    count: arb
    link: arb | None
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A proof with its numbers.

    Attributes:
        certificate: what was checked.
        formula: how the terms make the value.
        value: the bound.
        terms: its ingredients.
        levels: coarse to fine.
        statements: names of everything the proof uses.
    """

    certificate: Certificate
    formula: str
    value: arb
    terms: tuple[Term, ...]
    levels: tuple[LevelParts, ...]
    statements: tuple[str, ...]

    def __repr__(self) -> str:
        said = ", ".join(term.formula for term in self.terms)
        by = ", ".join(self.statements)
        return f"Breakdown({len(self.levels)} levels, terms {said}, by {by}, of {self.certificate!r})"


def break_down(
    certificate: Certificate,
    network: Network | None,
    inputs: Known,
    value: arb,
    price: arb,
    levels: Sequence[Mapping[str, Booked]],
) -> Breakdown:
    """The parts of a value, from what the checker wrote down on its way to it."""
    strategy = STRATEGIES[certificate.strategy]
    gains = {} if network is None else network.gains
    links = strategy.links(INTERVAL, inputs)
    taken = [
        _level(booked, gains, arb(level.log_scale).exp(), None if links is None else links[i])
        for i, (level, booked) in enumerate(zip(certificate.levels, levels, strict=True))
    ]
    terms = [*strategy.terms(INTERVAL, inputs)]
    paid = price != 0
    if paid:
        terms.append(Term("cost of budgets read off trained weights, in log(1/delta)", price, "P1"))
    covers = {name for booked in levels for name in _cover_statements(certificate, booked)}
    meeting = ("A6",) if certificate.meeting else ()
    walked = () if network is None else (*network.uses, "A0", "A5")
    uses = (*sorted(covers), *walked, *meeting, *strategy.uses, *(("P1",) if paid else ()))
    return Breakdown(certificate, strategy.formula, value, tuple(terms), tuple(taken), uses)


def _level(booked: Mapping[str, Booked], gains: Mapping[str, arb], scale: arb, link: arb | None) -> LevelParts:
    total = sum((entry.cost for entry in booked.values()), start=arb(0))
    parts = tuple(
        Part(
            key,
            tuple(dict.fromkeys(choice.lemma for choice in entry.cover.choices)),
            arb(entry.cover.log_eps).exp(),
            gains[key] * entry.error,
            entry.cost,
            float(entry.cost / total) if total > 0 else 0.0,
        )
        for key, entry in booked.items()
    )
    return LevelParts(scale, total, link, parts)


def _cover_statements(certificate: Certificate, booked: Mapping[str, Booked]) -> Iterator[str]:
    """The lemmas of a level, how scores are seen (S1-S3), and T7 where a difference from a reference is covered."""
    budgets = certificate.setting.norms.budgets
    referred = {kind.partition("[")[0] for kind, budget in budgets.items() if budget.distance is not None}
    for key, entry in booked.items():
        for choice, member in zip(entry.cover.choices, entry.slot.members, strict=True):
            if choice.lemma == "zero":
                continue
            kind = member.targets[choice.target].kind
            if choice.lemma in NOISES:
                yield from (choice.lemma, *(("S3",) if kind == "query" else ()))
            else:
                yield from cover_uses(choice.lemma, kind, uniform=LEMMAS[choice.lemma].uniform)
            if key.partition("[")[0].partition("#")[0] in referred:
                yield "T7"
