"""T as statements: the covering lemmas with their costs, and the two that are uses of other lemmas (T7, T9b)."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.statement import Statement
from boundcalc.base.system import NumberSystem
from boundcalc.setting import Budget, Norms
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.targets import MatrixNorms
from boundcalc.statements.weights import Weights


def _needs_distance(budget: Budget) -> Refusal | None:
    if budget.distance is None:
        return Refusal("T7", "no distance from a reference", "the norms of W - M", 'Give "distance" in the budget.')
    return None


def _difference(ns: NumberSystem, budget: Budget, d: int, k: int, rank: int | None = None) -> MatrixNorms:
    return Weights(ns, Norms(budgets={"W": budget})).matrix("W", None, None, d, k, rank).covered


T7 = Statement("T7", compute=_difference, applies=_needs_distance)

_T9B = Statement("T9b", compute=LEMMAS["T8"].closed, sharp=LEMMAS["T8"].sharp, applies=LEMMAS["T8"].applies)


def _with_costs() -> tuple[Statement, ...]:
    statements: list[Statement] = []
    for lemma in LEMMAS.values():
        statement = Statement(lemma.name, lemma.closed, lemma.sharp, lemma.applies, lemma.text)
        statements.append(statement)
        if statement.name == "T5":
            statements.append(T7)
        if statement.name == "T9":
            statements.append(_T9B)
    return tuple(statements)


COVERS = _with_costs()
