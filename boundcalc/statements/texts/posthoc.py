"""P1 and PUB as statements: budgets read off trained weights, and the constants of the literature."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.sources import BARTLETT2017, EDELMAN2022
from boundcalc.base.statement import Statement
from boundcalc.setting import Norms
from boundcalc.statements import gap


def _on_grids(norms: Norms) -> Refusal | None:
    if norms.measured:
        return Refusal(
            "P1", "budgets as they were measured", "budgets rounded up to their grids", "Use `pay(setting)`."
        )
    return None


POSTHOC = (
    Statement(
        "P1",
        "budgets read off trained weights",
        r"\log\frac1\delta\ \to\ \log\frac1\delta+\sum_j\log\big((k_j+1)(k_j+2)\big),\qquad B_j=B_0\rho^{k_j}",
        "Grid bases, ratios and floors are fixed before the data; every budget used anywhere is rounded UP to its "
        "grid, and everything is evaluated at the grid values. Two-sided grids cost log 1.5 more each, a choice "
        "from n fixed alternatives log n. Tied budgets (one k for a kind in all layers) pay once. Choosing "
        "lemmas, scales, alpha or the theorem is free when the choice looks only at budgets, m, delta and an "
        "error assumed in advance. Norms that hold only with probability 1 - delta' leave delta - delta'.",
        "A union over grid points at delta/((k+1)(k+2)) each, which sum to delta over k >= 0 (to 3/2 delta over "
        "all integers, with |k|). The bound holds for every grid point at once, so also for the one the trained "
        "weights round up to.",
        "a number from trained norms that does not pay this is a proxy",
        BARTLETT2017,
        compute=gap.union_cost,
        applies=_on_grids,
    ),
    Statement(
        "PUB",
        "the published constants",
        r"2\Big(4a+\frac{12}{\sqrt m}\int_a^{1/2}\sqrt{\log N}\Big)+3\sqrt{\frac{\log(2/\delta)}{2m}}=24k\big(1+"
        r"\log^+\tfrac1{6k}\big)+3\sqrt{\frac{\log(2/\delta)}{2m}},\quad k=\sqrt{C_F/m}",
        "For comparison: Tpub in place of T1 and T2, softmax constant 2 (L1), head constant C_V (1 + 4 C_W b^2) "
        "(L7), Dudley's integral with 12 at its best a = 3k for log N(e) <= C_F/e^2 on [a, 1/2], and the "
        "empirical complexity with 3 sqrt(log(2/delta)/(2m)).",
        "The integral is sqrt(C_F) log(1/(2a)), and 4a + 12k log(1/(2a)) is least at a = 3k.",
        "as published",
        EDELMAN2022,
        compute=gap.gap_published,
    ),
)
