"""Every statement about one predictor by name; `STATEMENTS` is the registry that certificates are read with."""

from __future__ import annotations

from boundcalc.predictors.statements.base import PredictorStatement
from boundcalc.predictors.statements.counts import G7, G15, G15P, H
from boundcalc.predictors.statements.draws import G6_PRIME
from boundcalc.predictors.statements.picks import G10R

STATEMENTS: dict[str, PredictorStatement] = {
    statement.name: statement for statement in (H, G7, G10R, G15, G15P, G6_PRIME)
}
"""Every statement by name."""
