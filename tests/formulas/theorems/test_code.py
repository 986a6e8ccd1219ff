"""Every formula of every theorem runs in every language, and says there what it says here."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from typing import Any

import mpmath
import numpy as np
import pytest

from boundcalc.base.symbols import BY_NAME
from boundcalc.formulas.theorems import THEOREMS

ALL = [(name, which) for name, theorem in THEOREMS.items() for which in theorem.quantities]


def point(name: str, which: str, share: float) -> dict[str, Any]:
    """A value of every input, so far along its ordinary range."""
    values: dict[str, Any] = {}
    for symbol in THEOREMS[name].formula(which).inputs:
        low, high = BY_NAME[symbol.name].typical
        value = low * (high / low) ** share
        values[symbol.name] = max(1, round(value)) if symbol.is_integer else value
    return values


@pytest.mark.parametrize(("name", "which"), ALL)
def test_python_and_numpy_agree_with_forty_digits(name: str, which: str) -> None:
    formula = THEOREMS[name].formula(which)
    for share in (0.3, 0.8):
        values = point(name, which, share)
        want = formula.value(**values)
        for language in ("python", "numpy"):
            space: dict[str, Any] = {}
            exec(formula.code(language), space)
            assert float(space[which](*values.values())) == pytest.approx(want, rel=1e-11)
    many = {key: np.full(3, float(value)) for key, value in point(name, which, 0.3).items()}
    found = formula.lambdify(*many)(*many.values())
    assert found == pytest.approx(formula.value(**point(name, which, 0.3)), rel=1e-11)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: exported JavaScript was not run")
def test_javascript_agrees() -> None:
    program, wanted = [], []
    for name, which in ALL:
        values = point(name, which, 0.6)
        code = THEOREMS[name].formula(which).code("javascript")
        program.append(f"console.log((() => {{ {code}\nreturn {which}(...{json.dumps(list(values.values()))}); }})());")
        wanted.append(THEOREMS[name].formula(which).value(**values))
    done = subprocess.run(["node"], input="\n".join(program), capture_output=True, text=True, check=True)
    found = [float(line) for line in done.stdout.split()]
    assert found == pytest.approx(wanted, rel=1e-11)
    assert all(math.isfinite(value) and value > 0 for value in found)


@pytest.mark.parametrize(("name", "which"), ALL)
def test_checked_values_are_the_upper_end_of_the_formula(name: str, which: str) -> None:
    values = point(name, which, 0.5)
    found = THEOREMS[name].checked(which, **values)
    with mpmath.workdps(40):
        exact = THEOREMS[name].formula(which).at({key: mpmath.mpf(float(value)) for key, value in values.items()})
        assert exact <= found.value <= exact * (1 + mpmath.mpf("1e-14"))
    assert found.kind == "bound"
