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

    def conditions(self, ns: NumberSystem, inputs: Known) -> Iterator[tuple[Number, Number, str]]:
        ends = _ends(inputs)
        for coarse, fine in pairwise(ends):
            yield fine, coarse, "the scales of a chain must fall, starting below e_0 = min(1/2, L R)"
        for j, (count, more) in enumerate(pairwise(inputs.counts)):
            yield ends[j + 1] ** 2 * count, ends[j] ** 2 * more, "what a level adds must grow as links shrink (G12)"

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        links = sum(self.links(ns, inputs), start=ns.number(0))
        return gap.gap_chain(ns, _ends(inputs)[-1], links, ns.number(1), inputs.log_inverse_delta, inputs.m)

    def links(self, ns: NumberSystem, inputs: Known) -> list[Number]:
        return gap.chain_links(ns, _ends(inputs), inputs.counts, inputs.m)

    def weights(self, ns: NumberSystem, inputs: Known) -> list[Number]:
        return [e * ns.sqrt(count) for e, count in zip(_ends(inputs), inputs.counts, strict=False)]

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        links = sum(self.links(ns, inputs), start=ns.number(0))
        return [
            Term("2 e_J", 2 * _ends(inputs)[-1], "G1"),
            Term("sum of links", links, ", ".join(self.uses[1:])),
            deviation_term(ns, inputs),
        ]


def _ends(inputs: Known) -> list[Number]:
    """The scales from e_0 on."""
    return [inputs.start, *inputs.scales]


class ClosedStrategy(Strategy):
    """log N(e) <= capacity/e^2 at every scale, from one."""

    quantity = "gap"
    every_scale = True

    @staticmethod
    def capacity(inputs: Known) -> Number:
        """C_F."""
        return inputs.counts[0] * inputs.scales[0] ** 2

    def capacity_term(self, inputs: Known) -> Term:
        """The same, for readers."""
        return Term("C_F, with log N(e) <= C_F/e^2", self.capacity(inputs), "A1, A4")


class Closed(ClosedStrategy):
    """A4 + G1 + G2 in one line."""

    name = "closed"
    title = "chaining in closed form of an optimally split cover"
    uses = ("G0", "A1", "A4", "G1", "G2")
    formula = "gap <= closed chain + deviation"

    def samples(self, m: int) -> int:
        return m * (1 + gap.CLOSED_GHOSTS)

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        return gap.gap_closed(ns, self.capacity(inputs), inputs.log_inverse_delta, inputs.m)

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        factor = gap.chain_factor(ns, gap.CLOSED_GHOSTS, uniform=False)
        chained = gap.chain_closed(ns, self.capacity(inputs), factor, inputs.m)
        line = f"2k ({gap.CLOSED_OFFSET} + max(0, log(1/(2k)))), k = (17/32) e sqrt(2 C_F/m)"
        return [self.capacity_term(inputs), Term(line, chained, "G1"), deviation_term(ns, inputs)]


class Published(ClosedStrategy):
    """Dudley's integral with the constants of the literature."""

    name = "published"
    title = "Dudley's integral with the constants of the literature"
    uses = ("G0", "A1", "PUB")
    published = True
    follows_m = True
    formula = "gap <= 2 R_m + 3 sqrt(log(2/delta)/(2m))"

    def conditions(self, ns: NumberSystem, inputs: Known) -> Iterator[tuple[Number, Number, str]]:
        start = 3 * ns.sqrt(self.capacity(inputs) / inputs.m)
        yield inputs.scales[0], start, "the published cover must be counted where Dudley's integral starts, or below"

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        return sum((term.value for term in self.terms(ns, inputs)[1:]), start=ns.number(0))

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        confidence = 3 * gap.deviation(ns, inputs.log_inverse_delta + ns.log(ns.number(2)), inputs.m)
        return [
            self.capacity_term(inputs),
            Term(
                "2 R_m by Dudley's integral", 2 * gap.complexity_published(ns, self.capacity(inputs), inputs.m), "PUB"
            ),
            Term("3 sqrt(log(2/delta)/(2m))", confidence, "PUB"),
        ]


class MarginStrategy(Strategy):
    """One cover at half the margin, for the risk at a margin training error."""

    quantity = "risk"

    def refuses(self, setting: Setting) -> str | None:
        return None if setting.sample.lipschitz is None else NO_RAMP

    def conditions(self, ns: NumberSystem, inputs: Known) -> Iterator[tuple[Number, Number, str]]:
        half = ns.number(1) / 2
        yield inputs.scales[0], half, "margin bounds need a cover at half the margin: scale at most 1/2"

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        return [Term("log N at half the margin", inputs.counts[0], "A0"), confidence_term(inputs)]


class UniformMargin(MarginStrategy):
    """G3."""

    name = "uniform-margin"
    title = "one cover that serves every sample, at half the margin; any training error"
    uses = ("G0", "G0e", "G3")
    uniform = True
    parameters = ("mu",)
    formula = "risk <= klinv(train error, (log N + log(1/delta))/m)"

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        nats = inputs.counts[0] + inputs.log_inverse_delta
        return gap.binary_kl_inverse(ns, inputs.train_error, nats / inputs.m, inputs.mu)


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

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        assert inputs.eta is not None  # noqa: S101 - a certificate of this strategy has one
        q, count = inputs.train_error, inputs.counts[0]
        return gap.risk_noise(ns, q, count, inputs.eta, inputs.log_inverse_delta, inputs.m, inputs.mu)

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        assert inputs.eta is not None  # noqa: S101 - as above
        return [
            Term("I, the divergence of the noisy weights from a fixed law", inputs.counts[0], "A0, G11"),
            confidence_term(inputs),
            Term("log(2 + sqrt(pi m/2))", gap.averaging(ns, inputs.m), "G11"),
            Term("eta, the chance that an example notices", inputs.eta, "G11"),
        ]


def noise_chance(m: int) -> float:
    """The eta that is fixed in advance: a measured training error may not choose it."""
    return 0.25 / m
