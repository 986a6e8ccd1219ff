"""What can be done with a formula: values, SymPy, asymptotics, code in other languages, printing."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
import sympy

from boundcalc import symbols
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.theorems import THEOREMS, edelman2022, zhang2022
from boundcalc.theorems._formula import Formula
from boundcalc.theorems.symbols import BY_NAME

GAP = edelman2022.gap
POINT: dict[str, Any] = {"C": 1.5, "T": 512, "m": 10**12, "depth": 3, "d": 64, "heads": 2, "gamma": 1, "delta": 0.05}
ALL = [(name, which) for name, theorem in THEOREMS.items() for which in theorem.quantities]


def point(name: str, which: str, share: float) -> dict[str, Any]:
    """A value of every input, so far along its ordinary range."""
    values: dict[str, Any] = {}
    for symbol in THEOREMS[name].formula(which).inputs:
        low, high = BY_NAME[symbol.name].typical
        value = low * (high / low) ** share
        values[symbol.name] = max(1, round(value)) if symbol.is_integer else value
    return values


# -- every formula of every theorem


@pytest.mark.parametrize(("name", "which"), ALL)
def test_python_numpy_and_checked_values_agree_with_balls(name: str, which: str) -> None:
    """Checked values are the upper end."""
    formula, space = THEOREMS[name].formula(which), dict[str, Any]()
    exec(formula.code("python"), space)
    for share in (0.3, 0.8):
        values = point(name, which, share)
        right = formula.value(**values)
        assert float(space[which](*values.values())) == pytest.approx(right, rel=1e-11)
        many = {key: np.full(3, float(value)) for key, value in values.items()}
        assert formula.lambdify(*many)(*many.values()) == pytest.approx(right, rel=1e-11)
    checked = THEOREMS[name].checked(which, **point(name, which, 0.0))
    right = float(formula.ball(**point(name, which, 0.0)).mid())
    assert right * (1 - 1e-16) <= checked.value <= right * (1 + 1e-14)
    assert checked.kind == "bound"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: exported JavaScript was not run")
def test_javascript_agrees() -> None:
    program, wanted = [], []
    for name, which in ALL:
        values = point(name, which, 0.6)
        code = THEOREMS[name].formula(which).code("javascript")
        program.append(f"console.log((() => {{ {code}\nreturn {which}(...{json.dumps(list(values.values()))}); }})());")
        wanted.append(THEOREMS[name].formula(which).value(**values))
    done = subprocess.run(["node"], input="\n".join(program), capture_output=True, text=True, check=True)
    numbers = [float(line) for line in done.stdout.split()]
    assert numbers == pytest.approx(wanted, rel=1e-11)
    assert all(math.isfinite(value) and value > 0 for value in numbers)


# -- arrays


def test_inputs_are_fixed_named_or_refused() -> None:
    fixed = {name: value for name, value in POINT.items() if name not in ("m", "T")}
    want = GAP.value(**POINT)
    assert float(GAP.lambdify(**fixed)(512, 1e12)) == pytest.approx(want)
    assert float(GAP.lambdify("m", "T", **fixed)(m=1e12, T=512)) == pytest.approx(want)
    assert float(GAP.lambdify()(**POINT)) == pytest.approx(want)
    with pytest.raises(InvalidSetting, match="also depends on m, depth"):
        GAP.lambdify("C", "T", "d", "heads", "gamma", "delta")
    with pytest.raises(InvalidSetting, match="gap does not depend on K"):
        GAP.lambdify(K=3)
    with pytest.raises(InvalidSetting, match="does not depend on K"):
        GAP.lambdify()(**POINT, K=3)


def test_floats_keep_their_digits_beside_ratio_one() -> None:
    """(q^D - q)/(q - 1) in floats would lose ten digits here."""
    C = 0.6823278038361
    sweep = GAP.lambdify()
    for step in range(5):
        values = {**POINT, "C": C + step * 1e-12, "depth": 12, "heads": 1}
        assert float(sweep(**values)) == pytest.approx(GAP.value(**values), rel=1e-13)


# -- in SymPy


def test_formulas_are_expressions_in_sympy() -> None:
    from boundcalc.symbols import delta, m

    gap = zhang2022.gap
    at: Any = {symbol: 2 for symbol in gap.free_symbols} | {m: 10**6, delta: sympy.Rational(1, 20)}
    value = gap.value(**{symbol.name: float(number) for symbol, number in at.items()})
    for made, right in (
        (sympy.sympify(gap), value),
        (gap + 1, value + 1),
        (1 - gap, 1 - value),
        (sympy.sqrt(2) * gap / 2, math.sqrt(2) * value / 2),
        (gap**2 - gap, value**2 - value),
        (gap.subs("m", 10**6), value),
        (gap.subs({m: 10**6}), value),
        (gap.subs(sympy.Symbol("m"), 10**6), value),
        (sympy.sympify(gap).subs(m, 10**6), value),
    ):
        put: Any = made.subs(at)
        assert float(put) == pytest.approx(right, rel=1e-12)
    assert sympy.latex(gap).startswith(r"\frac{2}{m} + \sqrt{")
    assert m == sympy.Symbol("m", positive=True)


def test_derivatives_and_limits() -> None:
    from boundcalc.symbols import T, m

    gap = zhang2022.gap
    rest: dict[Any, Any] = {symbol: 2 for symbol in gap.free_symbols - {m}} | {symbols.delta: sympy.Rational(1, 20)}
    slope = float(sympy.diff(gap, m).subs(rest).subs(m, 10**6))
    one, other = (float(sympy.N(gap.subs(rest).subs(m, size))) for size in (10**6 - 1, 10**6 + 1))
    assert slope == pytest.approx((other - one) / 2, rel=1e-6)
    assert gap.diff("m") == sympy.diff(gap, m)
    assert gap.limit(m) == edelman2022.gap.limit("m") == 0
    assert edelman2022.gap.limit(T) == edelman2022.gap.limit("depth") == sympy.oo
    with pytest.raises(Unsupported, match="a finite point"):
        gap.limit("m", 0)
    for refused in (lambda: gap.subs(T, 5), lambda: gap.diff(T), lambda: gap.limit(T), lambda: gap.leading("T")):
        with pytest.raises(InvalidSetting, match="gap does not depend on T"):
            refused()


# -- growth


@pytest.mark.parametrize(
    ("name", "far", "tolerance"), [("T", "1e50000", 0.01), ("m", "1e50000", 0.01), ("depth", "3000", 1e-3)]
)
@pytest.mark.parametrize("which", ["gap", "covering_number", "rademacher"])
def test_leading_terms_are_what_remains_far_out(which: str, name: str, far: str, tolerance: float) -> None:
    formula = edelman2022.formula(which)
    values = {symbol.name: ({**POINT, "epsilon": 0.1})[symbol.name] for symbol in formula.inputs}
    values[name] = sympy.Rational(far)
    term = formula.leading(name)
    assert term.free_symbols <= formula.free_symbols

    def quotient(expr: Any) -> float:
        other = Formula("term", expr)
        there = other.ball(**{symbol.name: values[symbol.name] for symbol in other.inputs})
        return float((formula.ball(**values) / there).mid())

    assert abs(quotient(term) - 1) < tolerance
    # Negative control: the comparison notices a constant that is off by three percent.
    assert abs(quotient(term * sympy.Rational(103, 100)) - 1) > tolerance


def test_leading_refuses_what_depends_on_other_inputs() -> None:
    with pytest.raises(Unsupported, match=r"leading\(C\) needs numbers .* leading\('C', T=.*delta=0.02"):
        GAP.leading("C")
    assert GAP.leading("C", depth=2).has(symbols.C)
    with pytest.raises(Unsupported, match="a term sin"):
        Formula("odd", sympy.sin(BY_NAME["T"].symbol)).leading("T")
