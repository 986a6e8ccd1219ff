"""A bound of your own: what it is made from, and formulas of the library in sympy."""

from __future__ import annotations

import math
from typing import Any

import pytest
import sympy

from boundcalc import Bound, Budget, Norms, Setting, symbols
from boundcalc.base.errors import InvalidSetting
from boundcalc.formulas.theorems import edelman2022, zhang2022

# ------------------------------------------------------------------------------------------- bounds


def test_values_come_from_a_setting() -> None:
    mine = Bound("mine", "C*sqrt(H*log(seq_len)/n_train)/margin", kind="proxy")
    setting = Setting.of(heads=4, seq_len=100, n_train=10**4, margin=0.25, C=2.0)
    right = 2 * math.sqrt(4 * math.log(100) / 1e4) / 0.25
    assert right <= mine.value(setting) < right * (1 + 1e-14)
    assert mine.log10(setting) == pytest.approx(math.log10(right))


def test_inputs_of_ones_own() -> None:
    mine = Bound("mine", "S/sqrt(m)", inputs={"S": lambda setting: 3.0 * setting.architecture.depth})
    assert mine.value(Setting.of(depth=2, n_train=100)) == pytest.approx(0.6)
    with pytest.raises(InvalidSetting, match="an input 'S' that no setting gives"):
        Bound("mine", "S/sqrt(m)").value(Setting.of())
    with pytest.raises(InvalidSetting, match="has no input 'Q'"):
        Bound("mine", "1/sqrt(m)", inputs={"Q": lambda setting: 1.0}).value(Setting.of())
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


# ------------------------------------------------------------------------------------------- formulas in sympy


def test_formulas_work_in_sympy() -> None:
    from boundcalc.symbols import delta, m

    gap = zhang2022.gap
    assert m == sympy.Symbol("m", positive=True)
    at: Any = {symbol: 2 for symbol in gap.free_symbols} | {m: 10**6, delta: sympy.Rational(1, 20)}
    value = zhang2022.gap.value(**{symbol.name: float(number) for symbol, number in at.items()})
    for made, right in (
        (sympy.sympify(gap), value),
        (gap + 1, value + 1),
        (1 - gap, 1 - value),
        (gap / 2, value / 2),
        (sympy.sqrt(2) * gap, math.sqrt(2) * value),
        (2 * gap - gap, value),
        (gap**2, value**2),
        (gap.subs("m", 10**6), value),
        (gap.subs({"m": 10**6}), value),
        (gap.subs({m: 10**6}), value),
        (gap.subs(sympy.Symbol("m"), 10**6), value),
        (sympy.sympify(gap).subs(m, 10**6), value),
    ):
        put: Any = made.subs(at)
        assert float(put) == pytest.approx(right, rel=1e-12)


def test_derivatives_limits_and_keywords() -> None:
    from boundcalc.symbols import T, m

    gap = zhang2022.gap
    rest: dict[Any, Any] = {symbol: 2 for symbol in gap.free_symbols - {m}} | {symbols.delta: sympy.Rational(1, 20)}
    slope = float(sympy.diff(gap, m).subs(rest).subs(m, 10**6))
    one, other = (float(sympy.N(gap.subs(rest).subs(m, size))) for size in (10**6 - 1, 10**6 + 1))
    assert slope == pytest.approx((other - one) / 2, rel=1e-6)
    assert gap.diff("m") == sympy.diff(gap, m)
    assert sympy.limit(sympy.log(gap.subs(rest)) / sympy.log(m), m, sympy.oo) == -sympy.Rational(1, 2)
    with pytest.raises(InvalidSetting, match="gap does not depend on T"):
        gap.subs(T, 5)
    named = gap.lambdify()(**{str(symbol): 2.0 for symbol in gap.free_symbols} | {"delta": 0.05})
    assert named == pytest.approx(gap.value(**{str(symbol): 2.0 for symbol in gap.free_symbols} | {"delta": 0.05}))
    assert str(zhang2022).startswith("zhang2022 (Zhang 2022): gap <= ")


def test_named_parts_can_be_put_in_and_lambdified() -> None:
    """The constant of T2 is a function of sympy's, and prints as code by itself."""
    formula = edelman2022.gap
    expr = formula.expr
    for part in formula.where:
        expr = expr.xreplace({part.symbol: part.expr})
    values = {"C": 1.5, "T": 64, "m": 10**6, "depth": 2, "d": 64, "heads": 1, "gamma": 0.5, "delta": 0.05}
    names = sorted(expr.free_symbols, key=str)
    made = sympy.lambdify(names, expr)
    assert float(made(*(values[str(name)] for name in names))) == pytest.approx(formula.value(**values), rel=1e-9)
