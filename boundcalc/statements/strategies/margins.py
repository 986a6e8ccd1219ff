"""One cover at half the margin, for the risk at a margin training error (G3-G5)."""

from __future__ import annotations

from collections.abc import Iterator

from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import Known, Strategy, Term, confidence_term


class MarginStrategy(Strategy):
    """One cover at half the margin, for the risk at a margin training error."""

    quantity = "risk"

    def refuses(self, setting: Setting) -> str | None:
        if setting.sample.lipschitz is not None:
            return "risk bounds by margins need the ramp loss, not a Lipschitz constant of another"
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


class GhostRealizable(MarginStrategy):
    """G4."""

    name = "ghost-realizable"
    title = "one cover of the sample and its ghosts, at half the margin; training error 0"
    uses = ("G0", "G0e", "G4")
    parameters = ("alpha",)
    formula = "risk <= errors/(alpha m): errors that log(2N/delta) leaves the ghosts, alpha a sample"

    def refuses(self, setting: Setting) -> str | None:
        if setting.sample.train_error != 0:
            return "G4 needs margin training error 0"
        return super().refuses(setting)

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.risk_realizable(ns, known.counts[0], known.log_inverse_delta, known.m, known.alpha)


class Ghost(MarginStrategy):
    """G5."""

    name = "ghost"
    title = "one cover of the sample and its ghosts, at half the margin; any training error"
    uses = ("G0", "G0e", "G5")
    parameters = ("alpha", "mu")
    formula = "risk <= max over q' <= q of [(1+alpha) klinv(q', log(2N/delta)/m) - q' + 1/m]/alpha"

    def refuses(self, setting: Setting) -> str | None:
        if setting.sample.train_error == 0:
            return "G5 is for margin training errors above 0 (G4 is for 0)"
        return super().refuses(setting)

    def value(self, ns: NumberSystem, known: Known) -> Number:
        q, mu = known.train_error, known.mu
        return gap.risk_ghost(ns, q, known.counts[0], known.log_inverse_delta, known.m, known.alpha, mu)
