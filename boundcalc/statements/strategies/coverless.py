"""Strategies without covers: stored weights as a finite class (G13), and Gaussian comparison (K1, K2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.system import Number, NumberSystem
from boundcalc.layers.base import flat
from boundcalc.setting import Setting
from boundcalc.setting.norms import place_named
from boundcalc.statements import gap
from boundcalc.statements.comparison import network
from boundcalc.statements.comparison.closed import closed, expected_gap
from boundcalc.statements.comparison.sharp import problem, sharp
from boundcalc.statements.strategies.base import Known, Strategy, Term, confidence_term, deviation_term
from boundcalc.statements.strategies.covering import UniformMargin

if TYPE_CHECKING:
    from boundcalc.statements.comparison.sharp import Tuning


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
            confidence_term(inputs),
        ]


class StoredGap(_Stored):
    """G13, of the gap."""

    name = "stored-gap"
    title = "weights of so many bits: a finite class, fixed before the data"
    quantity = "gap"
    uses = ("G0", "G13")
    formula = "gap <= sqrt((n b log 2 + log(1/delta))/(2m)), n stored weights of b bits"

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        return gap.deviation(ns, inputs.counts[0] + inputs.log_inverse_delta, inputs.m)


class StoredMargin(_Stored, UniformMargin):
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


class ComparisonClosed(Strategy):
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

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        return inputs.counts[0] + gap.deviation(ns, inputs.log_inverse_delta, inputs.m)

    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        return [
            Term("2 L_l |w| C_1 V b (G + beta/2)/(a sqrt(m))", inputs.counts[0], self.uses[-1]),
            deviation_term(ns, inputs),
        ]


class Comparison(ComparisonClosed):
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
