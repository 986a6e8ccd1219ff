"""Every statement about one predictor by name; `STATEMENTS` is the registry that certificates are read with."""

from __future__ import annotations

from boundcalc.predictors.statements.base import PredictorStatement
from boundcalc.predictors.statements.classes import CLASS
from boundcalc.predictors.statements.counts import G7, H
from boundcalc.predictors.statements.draws import G6, G6_PRIME
from boundcalc.predictors.statements.picks import G9, G10, G10F, G10R

STATEMENTS: dict[str, PredictorStatement] = {
    statement.name: statement for statement in (H, G7, G9, G10, G10R, G10F, G6_PRIME, G6, CLASS)
}
"""Every statement by name."""
