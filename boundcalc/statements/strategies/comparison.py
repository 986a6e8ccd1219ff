"""K1 to K3: the gap and the risk by Gaussian comparison, without covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.comparison import network
from boundcalc.statements.comparison.closed import closed, expected_gap, risk
from boundcalc.statements.comparison.sharp import problem, sharp
from boundcalc.statements.strategies.base import NO_RAMP, Known, Strategy, Term, confidence_term, deviation_term

if TYPE_CHECKING:
    from boundcalc.setting.architecture import Architecture
    from boundcalc.statements.comparison.sharp import Tuning


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

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return known.counts[0] + gap.deviation(ns, known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        return [
            Term("2 L_l |w| C_1 V b (G + beta/2)/(a sqrt(m))", known.counts[0], self.uses[-1]),
            deviation_term(ns, known),
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


class ComparisonRisk(Comparison):
    """K3, from K2."""

    name = "comparison-risk"
    title = "Gaussian comparison instead of covers, at a risk that is small"
    quantity = "risk"
    uses = ("G0", "G0e", "K1", "K2", "K3")
    formula = "risk <= r with r - train error = e + sqrt(2 s r (1 + 2e)) + r s/3, s = log(1/delta)/m"

    def refuses(self, setting: Setting) -> str | None:
        return NO_RAMP if setting.sample.lipschitz is not None else super().refuses(setting)

    def is_choice(self, architecture: Architecture) -> bool:
        """False: its event depends on the training error, so it is for one that was fixed before the data."""
        del architecture
        return False

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return risk(ns, known.train_error, known.counts[0], known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        del ns
        return [Term("e = 2 L_l |w| C_1 V b (G + beta/2)/(a sqrt(m))", known.counts[0], "K2"), confidence_term(known)]
