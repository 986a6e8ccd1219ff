"""Sweeps from Python that are refused; tests/cli/test_sweep.py holds their values."""

from __future__ import annotations

import pytest

from boundcalc import Setting
from boundcalc.base.errors import InvalidSetting
from boundcalc.engine.sweep import sweep


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
