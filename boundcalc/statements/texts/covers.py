"""T as statements: the covering lemmas with their costs, and the two that are uses of other lemmas (T7, T9b)."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import NumberSystem
from boundcalc.base.statement import Statement
from boundcalc.setting import Budget, Norms
from boundcalc.statements.covers import LEMMAS, T8
from boundcalc.statements.targets import MatrixNorms
from boundcalc.statements.weights import Weights


def _needs_distance(budget: Budget) -> Refusal | None:
    if budget.distance is None:
        return Refusal("T7", "no distance from a reference", "the norms of W - M", 'Give "distance" in the budget.')
    return None


def _difference(ns: NumberSystem, budget: Budget, d: int, k: int, rank: int | None = None) -> MatrixNorms:
    return Weights(ns, Norms(budgets={"W": budget})).matrix("W", None, None, d, k, rank).covered


T7 = Statement(
    "T7",
    "covers around a reference matrix",
    r"\log N(\{x\mapsto xW\},\varepsilon)=\log N(\{x\mapsto x(W-M)\},\varepsilon),\quad \mathrm{rank}(W-M)\le 2r\ "
    r"\text{if}\ \mathrm{rank}\,W,\mathrm{rank}\,M\le r",
    "M is fixed before the data (the initialisation). Every budget of T1-T6, rank and Schatten included, is then "
    "that of W - M; radii and Lipschitz factors still use the norms of W.",
    "Adding the known map x -> xM to every element of a cover of {x -> x(W-M)} covers {x -> xW} at the same "
    "distance, and a difference of two matrices of rank r has rank at most 2r. For gains and offsets, too, what "
    "is covered is the difference.",
    compute=_difference,
    applies=_needs_distance,
)

T9B = Statement(
    "T9b",
    "cover of a LayerNorm offset",
    r"\log N(\varepsilon)\le d\log(1+2G/\varepsilon),\quad |c-c_0|_2\le G",
    "{c in R^d : |c - c_0|_2 <= G}, added to every row. Uniform and independent of T.",
    "T8 around c_0 (T7).",
    compute=T8.closed,
    sharp=T8.sharp,
    applies=T8.applies,
)


def _with_costs() -> tuple[Statement, ...]:
    statements: list[Statement] = []
    for lemma in LEMMAS.values():
        statement = replace(lemma.statement, compute=lemma.closed, sharp=lemma.sharp, applies=lemma.applies)
        statements.append(statement)
        if statement.name == "T6":
            statements.append(T7)
        if statement.name == "T9":
            statements.append(T9B)
    return tuple(statements)


COVERS = _with_costs()
