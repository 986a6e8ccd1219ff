"""A proof taken apart, for readers: what the checker found for each level and piece, in its own balls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.proof._levels import Booked
from boundcalc.proof.certificate import Certificate
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.covers.base import cover_uses
from boundcalc.statements.noises import NOISES
from boundcalc.statements.strategies import Term

if TYPE_CHECKING:
    from boundcalc.proof.checker import Run


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
class _LevelParts:
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
    levels: tuple[_LevelParts, ...]
    statements: tuple[str, ...]

    def __repr__(self) -> str:
        said = ", ".join(term.formula for term in self.terms)
        by = ", ".join(self.statements)
        return f"Breakdown({len(self.levels)} levels, terms {said}, by {by}, of {self.certificate!r})"


def break_down(run: Run) -> Breakdown:
    """The parts of a value, from what the checker wrote down on its way to it."""
    certificate, strategy, network, inputs = run.certificate, run.strategy, run.network, run.known
    links = strategy.links(INTERVAL, inputs) or [None] * len(run.booked)
    gains = {} if network is None else network.gains
    levels: list[_LevelParts] = []
    for scale, count, link, booked in zip(inputs.scales, inputs.counts, links, run.booked, strict=False):
        parts = (
            Part(
                key,
                tuple(dict.fromkeys(choice.lemma for choice in entry.cover.choices)),
                arb(entry.cover.log_eps).exp(),
                gains[key] * entry.error,
                entry.cost,
                float(entry.cost / count) if count > 0 else 0.0,
            )
            for key, entry in booked.items()
        )
        levels.append(_LevelParts(scale, count, link, tuple(parts)))
    terms = [*strategy.terms(INTERVAL, inputs)]
    paid = run.price != 0
    if paid:
        terms.append(Term("cost of budgets read off trained weights, in log(1/delta)", run.price, "P1"))
    covers = {name for booked in run.booked for name in _cover_statements(certificate, booked)}
    meeting = ("A6",) if certificate.meeting else ()
    walked = () if network is None else (*network.uses, "A0", "A5")
    uses = (*sorted(covers), *walked, *meeting, *strategy.uses, *(("P1",) if paid else ()))
    return Breakdown(certificate, strategy.formula, run.value, tuple(terms), tuple(levels), uses)


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
