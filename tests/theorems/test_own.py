"""A bound of your own: what it is made from, and formulas of the library in sympy."""

from __future__ import annotations

import math

import pytest
import sympy

from boundcalc import Bound, Budget, Norms, Setting
from boundcalc.base.errors import InvalidSetting
from boundcalc.theorems import edelman2022

# ------------------------------------------------------------------------------------------- bounds


def test_values_come_from_a_setting() -> None:
    mine = Bound("mine", "C*sqrt(H*log(seq_len)/n_train)/margin", kind="proxy")
    setting = Setting.of(heads=4, seq_len=100, n_train=10**4, margin=0.25, C=2.0)
    right = 2 * math.sqrt(4 * math.log(100) / 1e4) / 0.25
    assert right <= mine.value(setting) < right * (1 + 1e-14)
    assert mine.log10(setting) == pytest.approx(math.log10(right))


def test_inputs_that_no_setting_gives() -> None:
    assert Bound("mine", "S/sqrt(m)", values={"S": 6}).value(Setting.of(n_train=100)) == pytest.approx(0.6)
    with pytest.raises(InvalidSetting, match="an input 'S' that no setting gives"):
        Bound("mine", "S/sqrt(m)").value(Setting.of())
    own_norms = Setting.of(norms=Norms(C=1.0, budgets={"W_V": Budget(op=2.0, two_one=2.0)}))
    with pytest.raises(InvalidSetting, match="has one C for every matrix"):
        Bound("mine", "C/m").value(own_norms)


def test_what_is_no_bound() -> None:
    for wrong in (
        {"name": "best", "formula": "1/m"},
        {"name": "edelman2022", "formula": "1/m"},
        {"name": "", "formula": "1/m"},
        {"name": "x", "formula": "1/m", "kind": "theorem"},
        {"name": "x", "formula": "1/m", "quantity": "loss"},
        {"name": "x", "formula": sympy.Eq(1, sympy.Symbol("m"))},
        {"name": "x", "formula": edelman2022.covering_number},
        {"name": "x", "formula": "1/m", "assumptions": "none"},
    ):
        with pytest.raises(InvalidSetting):
            Bound(**wrong)  # type: ignore[arg-type]
