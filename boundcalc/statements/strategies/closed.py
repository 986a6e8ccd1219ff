"""Closed forms: a capacity that speaks for every scale at once (A4, PUB)."""

from __future__ import annotations

from collections.abc import Iterator

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import Known, Strategy, Term, deviation_term


class ClosedStrategy(Strategy):
    """log N(e) <= capacity/e^2 at every scale, from one."""

    quantity = "gap"
    every_scale = True

    @staticmethod
    def capacity(known: Known) -> Number:
        """C_F."""
        return known.counts[0] * known.scales[0] ** 2

    def capacity_term(self, known: Known) -> Term:
        """The same, for readers."""
        return Term("C_F, with log N(e) <= C_F/e^2", self.capacity(known), "A1, A4")


class Closed(ClosedStrategy):
    """A4 + G1 + G2 in one line."""

    name = "closed"
    title = "chaining in closed form of an optimally split cover"
    uses = ("G0", "A1", "A4", "G1", "G2")
    formula = "gap <= closed chain + deviation"

    def samples(self, m: int) -> int:
        return m * (1 + gap.CLOSED_GHOSTS)

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.gap_closed(ns, self.capacity(known), known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        factor = gap.chain_factor(ns, gap.CLOSED_GHOSTS, uniform=False)
        chained = gap.chain_closed(ns, self.capacity(known), factor, known.m)
        line = f"2k ({gap.CLOSED_OFFSET} + max(0, log(1/(2k)))), k = (17/32) e sqrt(2 C_F/m)"
        return [self.capacity_term(known), Term(line, chained, "G1"), deviation_term(ns, known)]


class Published(ClosedStrategy):
    """Dudley's integral with the constants of the literature."""

    name = "published"
    title = "Dudley's integral with the constants of the literature"
    uses = ("G0", "A1", "PUB")
    published = True
    follows_m = True
    formula = "gap <= 2 R_m + 3 sqrt(log(2/delta)/(2m))"

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        start = 3 * ns.sqrt(self.capacity(known) / known.m)
        yield known.scales[0], start, "the published cover must be counted where Dudley's integral starts, or below"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.gap_published(ns, self.capacity(known), known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        confidence = 3 * gap.deviation(ns, known.log_inverse_delta + ns.log(ns.number(2)), known.m)
        return [
            self.capacity_term(known),
            Term("2 R_m by Dudley's integral", 2 * gap.complexity_published(ns, self.capacity(known), known.m), "PUB"),
            Term("3 sqrt(log(2/delta)/(2m))", confidence, "PUB"),
        ]
