"""P1 and PUB as statements: budgets read off trained weights, and the constants of the literature."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.statement import Statement
from boundcalc.setting import Norms
from boundcalc.statements import gap
from boundcalc.statements.posthoc import union_cost


def _on_grids(norms: Norms) -> Refusal | None:
    if norms.measured:
        return Refusal(
            "P1", "budgets as they were measured", "budgets rounded up to their grids", "Use `pay(setting)`."
        )
    return None


POSTHOC = (
    Statement("P1", compute=union_cost, applies=_on_grids),
    Statement("PUB", compute=gap.gap_published),
)
