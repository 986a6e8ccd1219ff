"""Noise on the weights in place of a cover (G11)."""

from __future__ import annotations

from boundcalc.base.system import Number, NumberSystem
from boundcalc.layers.base import unknown_to_noise
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import Known, Term, confidence_term
from boundcalc.statements.strategies.margins import MarginStrategy


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
