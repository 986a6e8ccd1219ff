"""The theorems as strategies: chains, closed forms, half the margin, noise, stored weights, Gaussian comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.registry import Registry
from boundcalc.layers.base import flat, unknown_to_noise
from boundcalc.setting import Setting
from boundcalc.setting.norms import place_named
from boundcalc.statements import gap
from boundcalc.statements.comparison import network
from boundcalc.statements.comparison.closed import closed, expected_gap
from boundcalc.statements.comparison.sharp import problem, sharp
from boundcalc.statements.strategies.base import Known, Strategy, Term

if TYPE_CHECKING:
    from boundcalc.statements.comparison.sharp import Tuning


def _deviation(ns: NumberSystem, inputs: Known) -> Term:
    """What confidence costs in a gap (McDiarmid)."""
    return Term("sqrt(log(1/delta)/(2m))", gap.deviation(ns, inputs.log_inverse_delta, inputs.m), "G2")


def _confidence(inputs: Known) -> Term:
    """What confidence costs in a risk."""
    return Term("log(1/delta)", inputs.log_inverse_delta, "")


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
        ends = [inputs.start, *inputs.scales]
        for coarse, fine in pairwise(ends):
            yield fine, coarse, "the scales of a chain must fall, starting below e_0 = min(1/2, L R)"
        for j, (count, more) in enumerate(pairwise(inputs.counts)):
            yield ends[j + 1] ** 2 * count, ends[j] ** 2 * more, "what a level adds must grow as links shrink (G12)"

    def links(self, ns: NumberSystem, inputs: Known) -> list[Number]:
        return gap.chain_links(ns, [inputs.start, *inputs.scales], inputs.counts, inputs.m)

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        links, (*_, last) = sum(self.links(ns, inputs), start=ns.number(0)), (inputs.start, *inputs.scales)
        return [
            Term("2 e_J", 2 * last, "G1"),
            Term("sum of links", links, ", ".join(self.uses[1:])),
            _deviation(ns, inputs),
        ]


class ClosedStrategy(Strategy):
    """log N(e) <= capacity/e^2 at every scale, from one."""

    quantity = "gap"
    every_scale = True

    @staticmethod
    def capacity(inputs: Known) -> Term:
        """C_F."""
        return Term("C_F, with log N(e) <= C_F/e^2", inputs.counts[0] * inputs.scales[0] ** 2, "A1, A4")

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        return sum((term.value for term in self.terms(ns, inputs)[1:]), start=ns.number(0))


class _Closed(ClosedStrategy):
    """A4 + G1 + G2 in one line."""

    name = "closed"
    title = "chaining in closed form of an optimally split cover"
    uses = ("G0", "A1", "A4", "G1", "G2")
    formula = "gap <= closed chain + deviation"

    def samples(self, m: int) -> int:
        return m * (1 + gap.CLOSED_GHOSTS)

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        capacity, factor = self.capacity(inputs), gap.chain_factor(ns, gap.CLOSED_GHOSTS)
        chained = gap.chain_closed(ns, capacity.value, factor, inputs.m)
        line = f"2k ({gap.CLOSED_OFFSET} + max(0, log(1/(2k)))), k = (17/32) e sqrt(2 C_F/m)"
        return [capacity, Term(line, chained, "G1"), _deviation(ns, inputs)]


class Published(ClosedStrategy):
    """Dudley's integral with the constants of the literature."""

    name = "published"
    title = "Dudley's integral with the constants of the literature"
    uses = ("G0", "A1", "PUB")
    published = True
    follows_m = True
    formula = "gap <= 2 R_m + 3 sqrt(log(2/delta)/(2m))"

    def conditions(self, ns: NumberSystem, inputs: Known) -> Iterator[tuple[Number, Number, str]]:
        start = 3 * ns.sqrt(self.capacity(inputs).value / inputs.m)
        yield inputs.scales[0], start, "the published cover must be counted where Dudley's integral starts, or below"

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        capacity = self.capacity(inputs)
        confidence = 3 * gap.deviation(ns, inputs.log_inverse_delta + ns.log(ns.number(2)), inputs.m)
        complexity = 2 * gap.complexity_published(ns, capacity.value, inputs.m)
        return [
            capacity,
            Term("2 R_m by Dudley's integral", complexity, "PUB"),
            Term("3 sqrt(log(2/delta)/(2m))", confidence, "PUB"),
        ]


class MarginStrategy(Strategy):
    """One cover at half the margin, for the risk at a margin training error."""

    quantity = "risk"

    def refuses(self, setting: Setting) -> str | None:
        return None if setting.sample.lipschitz is None else "risk bounds by margins need the ramp loss"

    def conditions(self, ns: NumberSystem, inputs: Known) -> Iterator[tuple[Number, Number, str]]:
        half = ns.number(1) / 2
        yield inputs.scales[0], half, "margin bounds need a cover at half the margin: scale at most 1/2"

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        return [Term("log N at half the margin", inputs.counts[0], "A0"), _confidence(inputs)]


class _UniformMargin(MarginStrategy):
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


class _NoiseMargin(MarginStrategy):
    """G11."""

    name = "noise-margin"
    title = "noise on the weights that one example does not notice, at half the margin; any training error"
    uses = ("G0", "G0e", "G11")
    uniform = True
    noisy = True
    counted = "I"
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
        return [
            Term("I, the divergence of the noisy weights from a fixed law", inputs.counts[0], "A0, G11"),
            _confidence(inputs),
            Term("log(2 + sqrt(pi m/2))", gap.averaging(ns, inputs.m), "G11"),
            Term("eta, the chance that an example notices", inputs.eta, "G11"),
        ]


def noise_chance(m: int) -> float:
    """The eta that is fixed in advance: a measured training error may not choose it."""
    return 0.25 / m


class _Stored(Strategy):
    """G13: every network of the class is its own centre, so there are no scales, and one count."""

    one_level = False
    uniform = True
    coverless = True
    stored = True

    def complexity(self, ns: NumberSystem, setting: Setting, tuning: Tuning | None) -> Number:
        del tuning
        return stored_count(ns, setting)

    def refuses(self, setting: Setting) -> str | None:
        if setting.architecture.bits is None:
            return "G13 needs the bits of a weight, fixed before the data, which the setting does not give (--bits 16)"
        return super().refuses(setting)

    def conditions(self, ns: NumberSystem, inputs: Known) -> Iterator[tuple[Number, Number, str]]:
        yield from ()

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        return [
            Term("log N = n b log 2, for n stored weights of b bits", inputs.counts[0], "G13"),
            _confidence(inputs),
        ]


class _StoredGap(_Stored):
    """G13, of the gap."""

    name = "stored-gap"
    title = "weights of so many bits: a finite class, fixed before the data"
    quantity = "gap"
    uses = ("G0", "G13")
    formula = "gap <= sqrt((n b log 2 + log(1/delta))/(2m)), n stored weights of b bits"

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        return gap.deviation(ns, inputs.counts[0] + inputs.log_inverse_delta, inputs.m)


class _StoredMargin(_Stored, _UniformMargin):
    """G13, of the risk."""

    name = "stored-margin"
    title = "weights of so many bits: a finite class, fixed before the data; any training error"
    uses = ("G0", "G0e", "G3", "G13")
    formula = "risk <= klinv(train error, (n b log 2 + log(1/delta))/m), n weights of b bits"


def stored_weights(setting: Setting) -> dict[str, int]:
    """How many numbers a network of the class stores, by kind and block.

    Offsets of keys are stored even where softmax forgets them: rounded arithmetic may not.
    """
    numbers = Counter[str]()
    for layer in flat(setting.architecture.stages):
        for weight in layer.stored(setting.architecture.seq_len):
            numbers[place_named(weight.kind, weight.block)] += weight.parameters
    return numbers


def stored_count(ns: NumberSystem, setting: Setting) -> Number:
    """G13: log of how many networks the class has, at most: n b log 2 for n stored weights of b bits."""
    weights, bits = ns.number(sum(stored_weights(setting).values())), setting.architecture.bits
    assert bits is not None  # noqa: S101 - a strategy about stored weights refuses settings that do not say
    return weights * ns.number(bits) * ns.log(ns.number(2))


class _ComparisonClosed(Strategy):
    """K1, in elementary functions."""

    name = "comparison-closed"
    title = "Gaussian comparison instead of covers, in closed form"
    quantity = "gap"
    uses = ("G0", "K1")
    formula = "gap <= 2 L_l |w| C_1 V b (G + beta/2)/(a sqrt(m)) + sqrt(log(1/delta)/(2m))"
    one_level = False
    uniform = True
    coverless = True

    def refuses(self, setting: Setting) -> str | None:
        return network.refusal(setting)

    def complexity(self, ns: NumberSystem, setting: Setting, tuning: Tuning | None) -> Number:
        del tuning
        return closed(ns, network.network_of(ns, setting))

    def count(self, ns: NumberSystem, setting: Setting, complexity: Number) -> Number:
        """Above the expected largest gap."""
        sample = setting.sample
        steep = 1 / ns.number(sample.margin) if sample.lipschitz is None else ns.number(sample.lipschitz)
        return expected_gap(ns, complexity, steep, ns.number(sample.n_train))

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        return [
            Term("2 L_l |w| C_1 V b (G + beta/2)/(a sqrt(m))", inputs.counts[0], self.uses[-1]),
            _deviation(ns, inputs),
        ]


class Comparison(_ComparisonClosed):
    """K2, with numbers from a search that the checkers prove."""

    name = "comparison"
    title = "Gaussian comparison instead of covers, block by block"
    uses = ("G0", "K1", "K2")
    parameters = ("tuning",)

    def complexity(self, ns: NumberSystem, setting: Setting, tuning: Tuning | None) -> Number:
        if tuning is None:
            raise CertificateError("strategy 'comparison' names its numbers")
        return sharp(ns, network.network_of(ns, setting), tuning)

    def unproved(self, setting: Setting, tuning: Tuning | None) -> str | None:
        if tuning is None:
            return "strategy 'comparison' names its numbers"
        return problem(INTERVAL, network.network_of(INTERVAL, setting), tuning, certainly_le)


_COVERING = (Chain(), _Closed(), Published(), _UniformMargin(), _NoiseMargin())
_COVERLESS = (_StoredGap(), _StoredMargin(), _ComparisonClosed(), Comparison())
STRATEGIES: Registry[Strategy] = Registry("strategy", (*_COVERING, *_COVERLESS))
"""Every strategy by name; `register` adds one to search, checker and tables."""


def risk_candidates(setting: Setting) -> int:
    """Ways to bound the risk that one may choose among after seeing the training error, which is what the choice costs.

    The gap bound is one (which gap bound, and which cover, do not depend on the training error); of the others each
    counts once, that of stored weights where the setting says how many bits these have.
    """
    stored = setting.architecture.bits is not None
    return 1 + sum(way.quantity == "risk" and way.stored <= stored for way in STRATEGIES.values())
