"""`eval` of theorems that are not about a setting."""

from __future__ import annotations

import json
from typing import Any

import pytest

from boundcalc.theorems import BOUNDS, THEOREMS

from .conftest import Run

POINT = {"C_V": 1, "K_V": 4, "K_QK": 2, "L_s": 1, "epsilon": 0.1, "kappa_w": 3, "e_pre": 0.01}
ALONE = [name for name in THEOREMS if name not in BOUNDS]


def found(run: Run, *words: str) -> list[dict[str, Any]]:
    return json.loads(run(*words, "--format", "json").stdout)["results"]


def options(name: str) -> list[str]:
    inputs = {symbol.name for symbol in THEOREMS[name].formula(THEOREMS[name].main_quantity).inputs}
    return [word for key, value in POINT.items() if key in inputs for word in ("--set", f"{key}={value}")]


@pytest.mark.parametrize(
    "name", [name for name in ALONE if name != "K1"]
)  # K1 is a formula for each depth: tests/theorems
def test_every_theorem_that_is_not_about_a_setting_has_a_checked_value(run: Run, name: str) -> None:
    best, *_ = found(run, "eval", "--bound", name, *options(name))
    assert best["kind"] == "bound"
    assert best["value"] > 0
    quantity = best["form"]
    formula = THEOREMS[name].formula(quantity)
    assert best["value"] == pytest.approx(formula.value(**best["inputs"]), rel=1e-12)
    assert best["value"] >= formula.value(**best["inputs"])


def test_values_are_those_of_the_formulas(run: Run) -> None:
    (best,) = found(run, "eval", "--bound", "X3", "--set", "L=4096")
    assert best["form"] == "best_error"
    forms = [row["form"] for row in found(run, "eval", "--bound", "X3", "--set", "L=4096", "--set", "rho=0.1")]
    assert forms == ["best_error", "error"]
    sharp, plain = found(run, "eval", "--bound", "X4", "--set", "L=4096", "--set", "tau=0.8")
    at = {"L": 4096, "temperature": 0.8, "M": 1, "delta": 0.05}
    assert sharp["value"] == pytest.approx(THEOREMS["X4"].formula("error").value(**at), rel=1e-12)
    assert plain["value"] == pytest.approx(THEOREMS["X4"].formula("plain_error").value(**at), rel=1e-12)
