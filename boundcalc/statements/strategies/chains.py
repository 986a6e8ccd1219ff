"""Chains: covers at several scales, each linked to the coarser one before it (G1, G2, G12, G14)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import Known, Strategy, Term

_G2_TERM = "sqrt(log(1/delta)/(2m))"


class ChainStrategy(Strategy):
    """G1 and G2 over several scales; kinds differ in what multiplies the links."""

    quantity = "gap"
    one_level = False
    formula = "gap <= 2 e_J + factor * sum of e_(j-1) sqrt(2 log N_j/m) + deviation, e_0 = min(1/2, L R)"
    how: ClassVar[str]

    @abstractmethod
    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        """What multiplies the links."""

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        for coarse, fine in pairwise([known.start, *known.scales]):
            yield fine, coarse, "the scales of a chain must fall, starting below e_0 = min(1/2, L R)"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        chain = [known.start, *known.scales]
        links = gap.chain_sum(ns, chain, known.counts, known.m)
        factor = self.factor(ns, known.alpha)
        return gap.gap_chain(ns, chain[-1], links, factor, known.log_inverse_delta, known.m)

    def weights(self, ns: NumberSystem, known: Known) -> list[Number]:
        return [e * ns.sqrt(count) for e, count in zip([known.start, *known.scales], known.counts, strict=False)]

    def links(self, ns: NumberSystem, known: Known) -> list[Number]:
        factor = self.factor(ns, known.alpha)
        return [factor * link for link in gap.chain_links(ns, [known.start, *known.scales], known.counts, known.m)]

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        last = known.scales[-1] if known.scales else known.start
        linked = sum(self.links(ns, known), start=ns.number(0))
        factor = float(self.factor(ns, known.alpha))
        how = self.how.format(alpha=known.alpha)
        return [
            Term("2 e_J", 2 * last, "G1"),
            Term(f"factor * sum of links, factor {factor:g} ({how})", linked, "G1, G2"),
            Term(_G2_TERM, gap.deviation(ns, known.log_inverse_delta, known.m), "G2"),
        ]


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
    parameters = ("weights",)
    how = "uniform covers, some of what the level before has left"
    formula = "gap <= 2 e_J + sum of e_(j-1) sqrt(2 c_j/m), or of e_(j-1)^2/(4 w_j) + 2 w_j c_j/m, + deviation"

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        yield from super().conditions(ns, known)
        if known.weights is not None:
            for weight, finer in pairwise(known.weights):
                yield finer, weight, "the weights of levels must not rise (G12)"
            return
        scales = [known.start, *known.scales]
        for j, (count, more) in enumerate(pairwise(known.counts)):
            yield scales[j + 1] ** 2 * count, scales[j] ** 2 * more, "what a level adds must grow as links shrink (G12)"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        last = known.scales[-1] if known.scales else known.start
        linked = sum(self.links(ns, known), start=ns.number(0))
        return gap.gap_chain(ns, last, linked, self.factor(ns, known.alpha), known.log_inverse_delta, known.m)

    def links(self, ns: NumberSystem, known: Known) -> list[Number]:
        scales = [known.start, *known.scales]
        if known.weights is not None:
            return gap.dual_links(ns, scales, known.counts, known.weights, known.m)
        return gap.refined_links(ns, scales, known.counts, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        last, linked, deviation = super().terms(ns, known)
        each = "links" if known.weights is None else "e_(j-1)^2/(4 w_j) + 2 w_j c_j/m"
        return [last, Term(f"sum of {each} ({self.how})", linked.value, ", ".join(self.uses[1:])), deviation]


class ChannelChain(RefinedChain):
    """G14."""

    name = "channel-chain"
    title = "chaining of channels: levels see weights through noise"
    uses = ("G0", "G2", "G12", "G14")
    channels = True
    how = "weights seen through noise, or by uniform covers"
