"""Recorded values: 500 random settings x policies give what they gave, to 1e-12."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from boundcalc.base.schema import read_complete
from boundcalc.setting import Setting
from tests.recorded.record import NUMBER, TABLE, values_of

ROWS: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
CLOSE = 1e-12


def differences(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """The policies whose gap or risk is another, or is refused where it was not."""
    names = sorted(now.keys() | before.keys())
    return [name for name in names if not _alike(now.get(name, ""), before.get(name, ""))]


def _alike(now: Any, before: Any) -> bool:
    if isinstance(now, list) and isinstance(before, list):
        return len(now) == len(before) and all(map(_alike, now, before))
    if isinstance(now, float) and isinstance(before, float):
        return now == before or abs(now - before) <= CLOSE * max(1.0, abs(before))
    return now is before


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_values_are_those_recorded(every: int) -> None:
    """A fourth of them in the usual run, all in the slow one."""
    assert len(ROWS) == NUMBER
    found = {
        i: differences(values_of(read_complete(Setting, row["setting"], "setting")), row["values"])
        for i, row in enumerate(ROWS)
        if i % every == 0
    }
    assert {i: names for i, names in found.items() if names} == {}


@pytest.mark.parametrize("change", [1e-9, -1e-9, None])
def test_the_comparison_sees_a_value_a_billionth_away(change: float | None) -> None:
    before: dict[str, Any] = ROWS[0]["values"]
    for name, values in before.items():
        for i in (0, 1) if values else ():
            if values[i] is not None:
                other = None if change is None else values[i] + change * max(1.0, abs(values[i]))
                moved = [other if j == i else value for j, value in enumerate(values)]
                assert differences({**before, name: moved}, before) == [name]
    assert differences({**before, "another": None}, before) == ["another"]
