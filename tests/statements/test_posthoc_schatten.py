"""P1 pays for Schatten sums whether or not the powers of tied matrices agree: which outcome it is depends on the
weights."""

from __future__ import annotations

import itertools
import math

from boundcalc.base.numbers import FLOAT
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.statements.posthoc import SCHATTEN_POWERS, correct_for_selection, grid_value, union

PLAIN = Setting.of(depth=2)


def cost(p: float, q: float, steps: int, *, distance: bool = False) -> float:
    """The correction of two blocks with powers p and q chosen after training, and sums on a step of the grid."""

    def budget(power: float) -> Budget:
        own = Budget(op=1.0, schatten=(power, grid_value(steps)))
        return Budget(op=1.0, distance=own) if distance else own

    measured = Norms(C=1.0, budgets={"W_V[0]": budget(p), "W_V[1]": budget(q)}, measured=True)
    paid, record = correct_for_selection(PLAIN.but(norms=measured))
    assert record is not None
    return float(union(FLOAT, paid, record))


def without(*, distance: bool = False) -> float:
    own = Budget(op=1.0)
    budget = Budget(op=1.0, distance=own) if distance else own
    paid, record = correct_for_selection(
        PLAIN.but(norms=Norms(C=1.0, budgets={"W_V[0]": budget, "W_V[1]": budget}, measured=True))
    )
    assert record is not None
    return float(union(FLOAT, paid, record))


def total(*, distance: bool = False) -> float:
    """The weights of all outcomes of two tied Schatten sums: at most 1 in a union bound."""
    free = without(distance=distance)
    agree = [math.exp(free - cost(p, p, k, distance=distance)) for p in SCHATTEN_POWERS for k in (0, 1, 40)]
    share = sum(1 / ((k + 1) * (k + 2)) for k in (0, 1, 40))
    differ = {cost(p, q, 0, distance=distance) for p, q in itertools.pairwise(SCHATTEN_POWERS)}
    assert len(differ) == 1  # one outcome, whatever the powers are
    return sum(agree) / share + math.exp(free - differ.pop())


def test_all_outcomes_of_tied_schatten_sums_share_one_delta() -> None:
    assert math.isclose(total(), 1)
    assert math.isclose(total(distance=True), 1)
