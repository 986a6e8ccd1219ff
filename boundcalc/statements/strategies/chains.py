"""Chains: covers at several scales, each linked to the coarser one before it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import Known, Strategy, Term, deviation_term


class ChainStrategy(Strategy):
    """G1 and G2 over several scales; kinds differ in their links, and in what multiplies them.

    Attributes:
        how: why the links are multiplied by just that much.
    """

    quantity = "gap"
    one_level = False
    formula = "gap <= 2 e_J + factor * sum of e_(j-1) sqrt(2 log N_j/m) + deviation, e_0 = min(1/2, L R)"
    how: ClassVar[str]

    @abstractmethod
    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        """What multiplies the links."""

    def linked(self, ns: NumberSystem, known: Known) -> list[Number]:
        """The link of each level."""
        return gap.chain_links(ns, _ends(known), known.counts, known.m)

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        for coarse, fine in pairwise(_ends(known)):
            yield fine, coarse, "the scales of a chain must fall, starting below e_0 = min(1/2, L R)"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        links = sum(self.linked(ns, known), start=ns.number(0))
        factor = self.factor(ns, known.alpha)
        return gap.gap_chain(ns, _ends(known)[-1], links, factor, known.log_inverse_delta, known.m)

    def weights(self, ns: NumberSystem, known: Known) -> list[Number]:
        return [e * ns.sqrt(count) for e, count in zip(_ends(known), known.counts, strict=False)]

    def links(self, ns: NumberSystem, known: Known) -> list[Number]:
        factor = self.factor(ns, known.alpha)
        return [factor * link for link in self.linked(ns, known)]

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        formula, statements = self._links_said(known, float(self.factor(ns, known.alpha)))
        return [
            Term("2 e_J", 2 * _ends(known)[-1], "G1"),
            Term(formula, sum(self.links(ns, known), start=ns.number(0)), statements),
            deviation_term(ns, known),
        ]

    def _links_said(self, known: Known, factor: float) -> tuple[str, str]:
        """The links in words, and the statements they rest on."""
        return f"factor * sum of links, factor {factor:g} ({self.how.format(alpha=known.alpha)})", "G1, G2"


def _ends(known: Known) -> list[Number]:
    """The scales from e_0 on."""
    return [known.start, *known.scales]


class Chain(ChainStrategy):
    """G1 + G2 by symmetrisation."""

    name = "chain"
    title = "chaining by entropy links over several scales, symmetrisation"
    uses = ("G0", "G1", "G2")
    how = "symmetrisation"

    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        return gap.chain_factor(ns, None, uniform=False)


class GhostChain(ChainStrategy):
    """G1 + G2 by several ghost samples per sample."""

    name = "ghost-chain"
    title = "chaining, with several ghost samples per sample instead of symmetrisation"
    uses = ("G0", "G1", "G2")
    parameters = ("alpha",)
    how = "{alpha} ghosts a sample"

    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        return gap.chain_factor(ns, alpha, uniform=False)


class UniformChain(ChainStrategy):
    """G2 for covers that serve every sample."""

    name = "uniform-chain"
    title = "chaining of covers that serve every sample"
    uses = ("G0", "G2")
    uniform = True
    how = "uniform covers"

    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        return gap.chain_factor(ns, None, uniform=True)


class RefinedChain(UniformChain):
    """G12."""

    name = "refined-chain"
    title = "chaining of uniform covers that refine one another"
    uses = ("G0", "G2", "G12")
    refines = True
    how = "uniform covers, some of what the level before has left"
    formula = "gap <= 2 e_J + sum of e_(j-1) sqrt(2 c_j/m) + deviation"

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        yield from super().conditions(ns, known)
        ends = _ends(known)
        for j, (count, more) in enumerate(pairwise(known.counts)):
            yield ends[j + 1] ** 2 * count, ends[j] ** 2 * more, "what a level adds must grow as links shrink (G12)"

    def linked(self, ns: NumberSystem, known: Known) -> list[Number]:
        return gap.refined_links(ns, _ends(known), known.counts, known.m)

    def _links_said(self, known: Known, factor: float) -> tuple[str, str]:
        return f"sum of links ({self.how})", ", ".join(self.uses[1:])
