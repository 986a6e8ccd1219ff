"""One cover at a scale of the search's choice (G2)."""

from __future__ import annotations

from boundcalc.base.system import Number, NumberSystem
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import Known, Strategy, Term


class SingleStrategy(Strategy):
    """One cover at a scale of the search's choice."""

    quantity = "gap"


class UniformSingle(SingleStrategy):
    """G2 for one uniform cover."""

    name = "uniform-single"
    title = "one cover that serves every sample"
    uses = ("G0", "G2")
    uniform = True
    formula = "gap <= 2 e + sqrt((log N + log(1/delta))/(2m))"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.gap_uniform_single(ns, known.scales[0], known.counts[0], known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        deviation = gap.deviation(ns, known.counts[0] + known.log_inverse_delta, known.m)
        return [Term("2 e", 2 * known.scales[0], "G2"), Term("sqrt((log N + log(1/delta))/(2m))", deviation, "G2")]
