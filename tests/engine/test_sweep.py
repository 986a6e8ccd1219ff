"""Sweeps from Python: columns and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from boundcalc import Setting, evaluate
from boundcalc.base.errors import InvalidSetting
from boundcalc.engine.sweep import RESULT_COLUMNS, sweep


def test_columns_are_what_evaluate_says() -> None:
    found = sweep(
        Setting.of(depth=1),
        {"seq_len": np.array([8, 64]), "C": [1.0, 2.0]},
        ["T-free", "closed"],
    )
    assert tuple(found) == ("seq_len", "C", *RESULT_COLUMNS)
    rows = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
    assert len(rows) == 8
    for row in rows:
        setting = Setting.of(depth=1, seq_len=row["seq_len"], C=row["C"])
        assert row["log10_gap"] == evaluate(setting, row["name"]).log10
        assert isinstance(row["seq_len"], int)


def test_points_that_make_no_setting_are_refused_rows() -> None:
    found = sweep(Setting.of(), {"heads": [1, 3], "delta": [0.1, 3]}, ["closed"])
    assert found["refusal"][0] is None
    assert "delta must lie" in found["refusal"][1]
    assert "not divisible" in found["refusal"][2]
    assert found["gap"][1:] == [None] * 3


@pytest.mark.parametrize(
    ("axes", "needle"),
    [
        ({}, "at least one axis"),
        ({"n_train": []}, "no values"),
        ({"n_trian": [1]}, "did you mean 'n_train'"),
        ({"n_train": range(1, 2000), "seq_len": range(1, 2000)}, "10\\^6 points"),
    ],
)
def test_absurd_sweeps_are_refused(axes: dict[str, list[float]], needle: str) -> None:
    with pytest.raises(InvalidSetting, match=needle):
        sweep(Setting.of(), axes)
