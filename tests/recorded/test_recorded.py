"""Values recorded before the re-cut: equal to 1e-12 wherever no statement has changed; what has changed stands here.

The normal run compares every fiftieth row; `-m slow` compares all of them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.engine.evaluate import BoundValue, compare
from boundcalc.setting import Setting
from boundcalc.setting.layer import Weight, weights_of
from boundcalc.statements.premise import no_member
from tests.recorded.record import TABLE

ROWS: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
EVERY = 50
CLOSE = 1e-12


def floor_is_out_of_reach(data: Mapping[str, Any]) -> bool:
    """A variance floor that no row can have: such settings described no network and are refused since."""
    return bool(data["architecture"].get("variance_floor"))


def kind_is_not_read(data: Mapping[str, Any]) -> bool:
    """A budget of the product where only its factors are covered, or of a factor where only the product is."""
    given = {kind for kind in ("W_QK", "W_Q", "W_K") if _given(data, kind)}
    return not given <= {weight.kind for weight in _weights(data)}


def product_and_factors(data: Mapping[str, Any]) -> bool:
    """A budget of the product and one of a factor: only one of the two was used."""
    return bool(_given(data, "W_QK") and _given(data, "W_Q", "W_K"))


def distance_of_a_factor(data: Mapping[str, Any]) -> bool:
    """A distance of a factor from a reference, where it is the product that is covered."""
    distant = any("distance" in budget for budget in _given(data, "W_Q", "W_K"))
    return distant and any(weight.kind == "W_QK" for weight in _weights(data))


def _given(data: Mapping[str, Any], *kinds: str) -> list[Mapping[str, Any]]:
    """The budgets of these kinds, whatever the block and head."""
    return [budget for key, budget in data["norms"].get("budgets", {}).items() if key.partition("[")[0] in kinds]


def _weights(data: Mapping[str, Any]) -> list[Weight]:
    """What the network trains, whatever its norms."""
    bare = Setting.from_json({**data, "norms": {"C": 1.0}}).architecture
    return [each for weight in weights_of(bare.stages, bare.seq_len) for each in weight.all]


SETTINGS_REFUSED: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "a variance floor above what the radius allows: the class is empty": floor_is_out_of_reach,
    "a budget of W_QK, W_Q or W_K that nothing read": kind_is_not_read,
    "budgets of W_QK and of its factors": product_and_factors,
    "a distance of W_Q or W_K that nothing read": distance_of_a_factor,
}
"""Why a setting of the table may be refused now, and where that may be."""

RISKS_REFUSED = "no network of the class has a margin above gamma (G0e): the risk bound spoke of none"
RISKS_CHANGED = (
    "the gap is trivial: the risk was that gap and the training error, and is the margin theorem's own since"
)


def compared(row: Mapping[str, Any]) -> tuple[list[str], Counter[str]]:
    """(what differs without a reason, how often each reason was needed)."""
    reasons: Counter[str] = Counter()
    try:
        setting = Setting.from_json(row["setting"])
        values = compare(setting)
    except InvalidSetting as error:
        why = [reason for reason, may_be in SETTINGS_REFUSED.items() if may_be(row["setting"])]
        reasons.update(why)
        return ([] if why else [f"refused: {error}"]), reasons
    wrong: list[str] = []
    if {value.name for value in values} != set(row["values"]):
        wrong.append(f"policies {sorted(row['values'])} were recorded")
    for value in values:
        before = row["values"].get(value.name)
        wrong += _differences(setting, value, before, reasons)
    return wrong, reasons


def _differences(setting: Setting, value: BoundValue, before: list[float] | None, reasons: Counter[str]) -> list[str]:
    if before is None or value.refusal is not None:
        return [] if (before is None) == (value.refusal is not None) else [f"{value.name}: refusals differ"]
    found = [] if _equal(value.certificate.log_value, before[0]) else [f"{value.name}: gap"]
    if value.risk_refusal is not None:
        reasons[RISKS_REFUSED] += 1
        return found if no_member(setting) is not None else [*found, f"{value.name}: risk refused"]
    if _equal(value.log_risk, before[1]):
        return found
    if value.trivial and value.log_risk >= before[1] - CLOSE:
        reasons[RISKS_CHANGED] += 1
        return found
    return [*found, f"{value.name}: risk"]


def _equal(now: float, before: float) -> bool:
    return now == before or abs(now - before) <= CLOSE * max(1.0, abs(before))


def test_values_are_those_recorded() -> None:
    wrong = {i: differences for i in range(0, len(ROWS), EVERY) if (differences := compared(ROWS[i])[0])}
    assert wrong == {}


@pytest.mark.slow
def test_all_values_are_those_recorded_and_every_reason_is_needed() -> None:
    needed: Counter[str] = Counter()
    wrong: dict[int, list[str]] = {}
    for i, row in enumerate(ROWS):
        differences, reasons = compared(row)
        needed += reasons
        if differences:
            wrong[i] = differences
    assert wrong == {}
    assert set(needed) == {*SETTINGS_REFUSED, RISKS_REFUSED, RISKS_CHANGED}


def test_the_comparison_sees_a_value_a_billionth_away() -> None:
    accepted = [row for row in ROWS if not any(may_be(row["setting"]) for may_be in SETTINGS_REFUSED.values())]
    for row in accepted[::100]:
        moved = {
            name: None if v is None else [v[0] + 1e-9 * max(1.0, abs(v[0])), v[1]] for name, v in row["values"].items()
        }
        assert compared({**row, "values": moved})[0]
    assert not _equal(0.0, 1e-9)
    assert not _equal(math.inf, 0.0)
