"""Strategies that take covers: chains (G12), closed forms (A4, PUB), one cover at half the margin (G3, G11)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from boundcalc.base.system import Number, NumberSystem
from boundcalc.layers.base import unknown_to_noise
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import NO_RAMP, Known, Strategy, Term, confidence_term, deviation_term


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
        return sum((term.value for term in self.terms(ns, known)[1:]), start=ns.number(0))

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        confidence = 3 * gap.deviation(ns, known.log_inverse_delta + ns.log(ns.number(2)), known.m)
        return [
            self.capacity_term(known),
            Term("2 R_m by Dudley's integral", 2 * gap.complexity_published(ns, self.capacity(known), known.m), "PUB"),
            Term("3 sqrt(log(2/delta)/(2m))", confidence, "PUB"),
        ]


class MarginStrategy(Strategy):
    """One cover at half the margin, for the risk at a margin training error."""

    quantity = "risk"

    def refuses(self, setting: Setting) -> str | None:
        return None if setting.sample.lipschitz is None else NO_RAMP

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        half = ns.number(1) / 2
        yield known.scales[0], half, "margin bounds need a cover at half the margin: scale at most 1/2"

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        return [Term("log N at half the margin", known.counts[0], "A0"), confidence_term(known)]


class UniformMargin(MarginStrategy):
    """G3."""

    name = "uniform-margin"
    title = "one cover that serves every sample, at half the margin; any training error"
    uses = ("G0", "G0e", "G3")
    uniform = True
    parameters = ("mu",)
    formula = "risk <= largest p at which train error * m errors or fewer have the chance delta/N"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        nats = known.counts[0] + known.log_inverse_delta
        return gap.binomial_inverse(ns, known.train_error, nats, known.m, known.mu)


class NoiseMargin(MarginStrategy):
    """G11."""

    name = "noise-margin"
    title = "noise on the weights that one example does not notice, at half the margin; any training error"
    uses = ("G0", "G0e", "G11")
    uniform = True
    noisy = True
    parameters = ("mu", "eta")
    follows_m = True
    formula = "risk <= klinv(train error + eta, (I + log(1/delta) + log(2 + sqrt(pi m/2)))/m)/(1 - eta)"

    def refuses(self, setting: Setting) -> str | None:
        strange = unknown_to_noise(setting.architecture.stages)
        if strange is not None:
            return f"G11 knows the library's own layers only, got {strange}"
        return super().refuses(setting)

    def needs_mu(self, setting: Setting) -> bool:
        return True

    def value(self, ns: NumberSystem, known: Known) -> Number:
        assert known.eta is not None  # noqa: S101 - a certificate of this strategy has one
        q, count = known.train_error, known.counts[0]
        return gap.risk_noise(ns, q, count, known.eta, known.log_inverse_delta, known.m, known.mu)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        assert known.eta is not None  # noqa: S101 - as above
        return [
            Term("I, the divergence of the noisy weights from a fixed law", known.counts[0], "A0, G11"),
            confidence_term(known),
            Term("log(2 + sqrt(pi m/2))", gap.averaging(ns, known.m), "G11"),
            Term("eta, the chance that an example notices", known.eta, "G11"),
        ]


def noise_chance(m: int) -> float:
    """The eta that is fixed in advance: a measured training error may not choose it."""
    return 0.25 / m
