"""One cover at half the margin, for the risk at a margin training error (G3)."""

from __future__ import annotations

from collections.abc import Iterator

from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import NO_RAMP, Known, Strategy, Term, confidence_term


class MarginStrategy(Strategy):
    """One cover at half the margin, for the risk at a margin training error."""

    quantity = "risk"

    def refuses(self, setting: Setting) -> str | None:
        if setting.sample.lipschitz is not None:
            return NO_RAMP
        return None

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
        q, mu = known.train_error, known.mu
        return gap.risk_uniform(ns, q, known.counts[0], known.log_inverse_delta, known.m, mu)
