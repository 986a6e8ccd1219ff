"""Chains: covers at several scales, each linked to the coarser one before it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import Known, Strategy, Term, deviation_term


class Chain(Strategy):
    """G12: uniform covers, whose levels may refine what the one before has left; a count is what a level adds."""

    name = "chain"
    title = "chaining of covers that serve every sample and may refine one another"
    quantity = "gap"
    uses = ("G0", "G2", "G12")
    formula = "gap <= 2 e_J + sum of e_(j-1) sqrt(2 c_j/m) + deviation, e_0 = min(1/2, L R)"
    one_level = False
    uniform = True
    refines = True

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        ends = _ends(known)
        for coarse, fine in pairwise(ends):
            yield fine, coarse, "the scales of a chain must fall, starting below e_0 = min(1/2, L R)"
        for j, (count, more) in enumerate(pairwise(known.counts)):
            yield ends[j + 1] ** 2 * count, ends[j] ** 2 * more, "what a level adds must grow as links shrink (G12)"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        links = sum(self.links(ns, known), start=ns.number(0))
        return gap.gap_chain(ns, _ends(known)[-1], links, ns.number(1), known.log_inverse_delta, known.m)

    def links(self, ns: NumberSystem, known: Known) -> list[Number]:
        return gap.chain_links(ns, _ends(known), known.counts, known.m)

    def weights(self, ns: NumberSystem, known: Known) -> list[Number]:
        return [e * ns.sqrt(count) for e, count in zip(_ends(known), known.counts, strict=False)]

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        links = sum(self.links(ns, known), start=ns.number(0))
        return [
            Term("2 e_J", 2 * _ends(known)[-1], "G1"),
            Term("sum of links", links, ", ".join(self.uses[1:])),
            deviation_term(ns, known),
        ]


def _ends(known: Known) -> list[Number]:
    """The scales from e_0 on."""
    return [known.start, *known.scales]
