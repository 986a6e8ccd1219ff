"""P1 pays for the power of every Schatten sum; tied matrices with two powers are refused, whatever the weights are."""

from __future__ import annotations

import math

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.statements.posthoc import _SCHATTEN_POWERS, _grid_value, correct_for_selection, posthoc_cost

PLAIN = Setting.of(depth=2)


def cost(p: float | None, q: float | None, steps: int, *, distance: bool) -> float:
    """The correction of two blocks with powers p and q chosen after training, and sums on a step of the grid."""

    def budget(power: float | None) -> Budget:
        own = Budget(op=1.0, schatten=None if power is None else (power, _grid_value(steps)))
        return Budget(op=1.0, distance=own) if distance else own

    measured = Norms(C=1.0, budgets={"W_V[0]": budget(p), "W_V[1]": budget(q)}, measured=True)
    return posthoc_cost(FLOAT, *correct_for_selection(PLAIN.but(norms=measured)))


@pytest.mark.parametrize("distance", [False, True])
def test_all_outcomes_of_tied_schatten_sums_share_one_delta(distance: bool) -> None:
    free = cost(None, None, 0, distance=distance)
    agree = [math.exp(free - cost(p, p, k, distance=distance)) for p in _SCHATTEN_POWERS for k in (0, 1, 40)]
    assert math.isclose(sum(agree), sum(1 / ((k + 1) * (k + 2)) for k in (0, 1, 40)))
    with pytest.raises(InvalidSetting, match="of one power"):
        cost(0.5, 0.6, 0, distance=distance)
    assert cost(0.5, None, 0, distance=distance) == free  # which norms are measured is fixed before the data
