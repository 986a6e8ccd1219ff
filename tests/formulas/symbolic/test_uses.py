"""What can be done with a formula: asymptotics, elasticities, code in other languages, printing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

from boundcalc.base import symbols as sym
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.formulas.symbolic import ClosedForm, Formula, closed_form
from boundcalc.formulas.symbolic.asymptotics import leading
from boundcalc.formulas.symbolic.printing import decimal
from boundcalc.setting import Setting

POINT: dict[str, Any] = {"C": 1.5, "T": 512, "m": 10**12, "depth": 3, "d": 64, "heads": 2, "gamma": 1, "delta": 0.05}


@pytest.fixture(scope="module")
def form() -> ClosedForm:
    return closed_form(
        Setting.of(
            C=sym.C,
            depth=sym.depth,
            seq_len=sym.T,
            n_train=sym.m,
            d=sym.d,
            heads=sym.heads,
            delta=sym.delta,
            margin=sym.gamma,
        )
    )


def ratio_far_out(formula: Formula, term: sympy.Expr, name: str, far: Any, point: dict[str, Any]) -> Any:
    """formula / leading term at a point where one input is enormous."""
    with mpmath.workdps(40):
        values = {symbol.name: mpmath.mpf(point[symbol.name]) for symbol in formula.inputs} | {name: far}
        inner = Formula("term", term, formula.where)
        return formula.at(values) / inner.at({symbol.name: values[symbol.name] for symbol in inner.inputs})


@pytest.mark.parametrize(
    ("name", "far", "tolerance"), [("T", "1e1000000", 5e-3), ("m", "1e1000000", 5e-3), ("depth", "3000", 1e-3)]
)
@pytest.mark.parametrize("which", ["gap", "covering_number", "rademacher"])
def test_leading_terms_are_what_remains_far_out(
    form: ClosedForm, which: str, name: str, far: str, tolerance: float
) -> None:
    formula: Formula = getattr(form, which)
    point = POINT | {"epsilon": 0.1}
    term = formula.leading(name)
    found = ratio_far_out(formula, term, name, mpmath.mpf(far), point)
    assert abs(found - 1) < tolerance
    # Negative control: the comparison notices a constant that is off by one percent.
    assert abs(ratio_far_out(formula, term * sympy.Rational(101, 100), name, mpmath.mpf(far), point) - 1) > tolerance


def test_leading_constants_read_as_a_person_would_write_them(form: ClosedForm) -> None:
    term = form.covering_number.leading("T")
    C, H = sym.C, sym.heads
    third = sympy.Rational(1, 3)
    G = sympy.Symbol("G", positive=True)
    expected = C**2 * G**3 * (C**2 * H + C ** (4 * third) * H + C ** (2 * third)) ** 3 * sympy.log(sym.T) / sym.eps**2
    assert sympy.simplify(term / expected) == 1


def test_leading_refuses_what_depends_on_other_inputs(form: ClosedForm) -> None:
    with pytest.raises(Unsupported, match=r"leading\(C\) needs numbers for the other inputs"):
        form.gap.leading("C")
    with pytest.raises(InvalidSetting, match="no symbol 'Q'"):
        form.gap.leading("Q")
    odd = Formula("odd", sympy.sin(sym.T))
    with pytest.raises(Unsupported, match="a term sin"):
        leading(odd, sym.T, {})


def test_exponents_are_the_slopes_on_logarithmic_paper(form: ClosedForm) -> None:
    found = form.gap.exponents(**POINT)
    for name, value in POINT.items():
        step = 1e-5
        up = form.gap.log10(**{**POINT, name: value * (1 + step)})
        down = form.gap.log10(**{**POINT, name: value * (1 - step)})
        assert found[name] == pytest.approx((up - down) / (np.log10(1 + step) - np.log10(1 - step)), abs=1e-6)
    # log N = C_F/eps^2 is homogeneous of degree -2 in eps, and C_F of degree -2 in gamma.
    assert form.capacity.exponents(**{k: v for k, v in POINT.items() if k != "delta"})["gamma"] == pytest.approx(-2)


def test_lambdified_formulas_take_arrays_and_agree_with_forty_digits(form: ClosedForm) -> None:
    sweep = form.gap.lambdify("C", "T", "m", "depth", "d", "heads", "gamma", "delta")
    rng = np.random.default_rng(7)
    rows = [
        {
            **POINT,
            "C": float(rng.uniform(0.3, 3)),
            "T": int(rng.integers(1, 3000)),
            "depth": int(rng.integers(1, 9)),
            "m": int(10 ** rng.uniform(2, 15)),
        }
        for _ in range(40)
    ]
    columns = [np.array([row[name] for row in rows], dtype=float) for name in ("C", "T", "m", "depth")]
    got = sweep(*columns, 64, 2, 1, 0.05)
    assert got.shape == (40,)
    np.testing.assert_allclose(got, [form.gap.value(**row) for row in rows], rtol=1e-12)
    assert sweep(columns[0][:, None], columns[1][None, :], 1e6, 2, 64, 2, 1, 0.05).shape == (40, 40)
    with pytest.raises(InvalidSetting, match="also depends on m, depth"):
        form.gap.lambdify("C", "T", "d", "heads", "gamma", "delta")


def test_floats_keep_their_digits_beside_ratio_one(form: ClosedForm) -> None:
    """(q^D - q)/(q - 1) in floats would lose ten digits here."""
    C = float(mpmath.findroot(lambda x: x**2 * (x + mpmath.sqrt(1 + x**2)) - 1 - mpmath.mpf("1e-11"), 0.68))
    point = {**POINT, "C": C, "depth": 12, "heads": 1}
    sweep = form.gap.lambdify()
    got = sweep(*(point[symbol.name] for symbol in form.gap.inputs))
    assert float(got) == pytest.approx(form.gap.value(**point), rel=1e-13)


@pytest.mark.parametrize("language", ["python", "numpy"])
def test_exported_python_runs_by_itself(form: ClosedForm, language: str) -> None:
    values = ", ".join(repr(float(POINT[symbol.name])) for symbol in form.gap.inputs)
    program = form.gap.code(language) + f"\nprint(repr(float(gap({values}))))\n"
    out = subprocess.run([sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True).stdout
    assert float(out) == pytest.approx(form.gap.value(**POINT), rel=1e-12)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: exported JavaScript was not run")
def test_exported_javascript_runs_in_node(form: ClosedForm) -> None:
    values = json.dumps([float(POINT[symbol.name]) for symbol in form.gap.inputs])
    program = form.gap.code("javascript") + f"\nconsole.log(gap(...{values}));\n"
    out = subprocess.run(["node", "-e", program], check=True, capture_output=True, text=True).stdout
    assert float(out) == pytest.approx(form.gap.value(**POINT), rel=1e-12)


def test_unknown_languages_are_refused(form: ClosedForm) -> None:
    with pytest.raises(InvalidSetting, match="language must be one of python, numpy, javascript"):
        form.gap.code("fortran")


def test_expansion_leaves_nothing_to_look_up(form: ClosedForm) -> None:
    assert form.gap.expanded.free_symbols == set(form.gap.inputs)
    assert "Lambda" not in form.gap.text(expand=True)
    value = sympy.lambdify(form.gap.inputs, form.gap.expanded, "mpmath")
    found = value(*(mpmath.mpf(POINT[symbol.name]) for symbol in form.gap.inputs))
    assert float(found) == pytest.approx(form.gap.value(**POINT), rel=1e-12)


def test_printing(form: ClosedForm) -> None:
    latex = form.gap.latex()
    assert latex.startswith("\\begin{aligned}")
    assert r"\sqrt{\frac{\log(1/\delta)}{2 m}}" in latex
    assert r"\Lambda(q,\,N) &=" in latex
    assert latex.count("{") == latex.count("}")
    assert decimal(sympy.Rational("1.0853")) == "1.0853"
    assert decimal(sympy.Rational(1, 3)) is None
    assert decimal(sympy.Rational(17, 32)) is None


def test_no_nested_radicals_and_powers_collected(form: ClosedForm) -> None:
    for part in form.gap.where:
        for power in part.expr.atoms(sympy.Pow):
            if power.exp == sympy.S.Half:
                inner = [p for p in power.base.atoms(sympy.Pow) if p.exp.is_Rational and not p.exp.is_Integer]
                assert not inner, f"{part.symbol}: {power}"


def test_partial_values_leave_the_rest_symbolic(form: ClosedForm) -> None:
    fixed = form.gap.with_values(d=64, heads=1, delta=0.05, gamma=1)
    assert [symbol.name for symbol in fixed.inputs] == ["C", "T", "m", "depth"]
    whole = form.gap.value(**{**POINT, "heads": 1})
    assert fixed.value(C=1.5, T=512, m=10**12, depth=3) == pytest.approx(whole, rel=1e-14)
