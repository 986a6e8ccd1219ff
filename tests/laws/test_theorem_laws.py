"""Laws that every theorem object must obey; registering a theorem enrols it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mpmath
import pytest
from mpmath import mpf

from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.texts import STATEMENTS
from boundcalc.theorems import BOUNDS, POLICIES, THEOREMS
from boundcalc.theorems._formula import Formula
from boundcalc.theorems.symbols import BY_NAME
from tests.cases.theorems import cases
from tests.laws.kinds.theorems import check_theorem, grows_as_published, rises, typical, value_at

ALL = sorted(THEOREMS)


def at(formula: Formula, **values: Any) -> Any:
    return value_at(formula, **values)


@pytest.mark.parametrize("name", ALL)
def test_laws(name: str) -> None:
    check_theorem(THEOREMS[name], cases(name)).raise_if_broken()


def test_theorems_about_a_gap_are_bounds_with_their_own_covers() -> None:
    keys = {theorem.source.key for theorem in THEOREMS.values()}
    assert {"edelman2022", "trauger2024", "zhang2022", "smale2007"} <= keys
    assert set(BOUNDS) == {*POLICIES, *(name for name, theorem in THEOREMS.items() if theorem.policy)}
    for name, theorem in THEOREMS.items():
        assert theorem.explicit.kind == "bound"
        assert theorem.statement_name in ("", *STATEMENTS)
        if theorem.policy is not None:
            assert BOUNDS[name].lemmas == theorem.lemmas
            assert BOUNDS[name].lemmas <= LEMMAS.keys()


# -- dimension 1: one row of one coordinate, where the class is an interval and its covering number is known


def covers_an_interval(formula: Formula, radius: Any, **values: Any) -> bool:
    """Whether the bound leaves room for the ceil(R/eps) balls that an interval [-R, R] needs."""
    for eps in ("0.5", "0.1", "0.01", "0.0001"):
        needed = mpmath.ceil(radius / mpf(eps))
        if at(formula, d=1, T=1, depth=1, heads=1, m=1, epsilon=eps, **values) < mpmath.log(needed):
            return False
    return True


@pytest.mark.parametrize("name", [n for n in ALL if "covering_number" in THEOREMS[n].quantities])
def test_dimension_one(name: str) -> None:
    theorem = THEOREMS[name]
    if name == "edelman2022_head":  # x V with |V| <= C_V, |x| <= B_X, then L_s
        radius, values = mpf(1), {"C_V": 1, "K_V": 1, "K_QK": mpf("1e-6"), "B_X": 1, "L_s": 1}
    else:  # w relu(...) with |w| <= C and activations up to 1
        radius, values = mpf(1), {"C": 1, "K": 1, "L_s": 1}
    formula = theorem.covering_number
    assert covers_an_interval(formula, radius, **values)
    # Negative control: the same formula over a thousand does not cover.
    assert not covers_an_interval(replace(formula, expr=formula.expr / 1000), radius, **values)


# -- monotonicity


def test_monotonicity_can_fail() -> None:
    """Negative control: an exponent with the wrong sign is noticed."""
    formula = THEOREMS["edelman2022"].gap
    broken = replace(formula, expr=formula.expr / BY_NAME["T"].symbol)
    assert rises(formula, "T", {})
    assert not rises(broken, "T", {})


# -- limits


@pytest.mark.parametrize("name", [n for n in ALL if "gap" in THEOREMS[n].quantities])
def test_without_weights_only_the_deviation_remains(name: str) -> None:
    m, delta = mpf(10) ** 6, mpf("0.05")
    values: dict[str, Any] = {"C": "1e-60", "K": "1e-60", "m": m, "delta": delta, "depth": 1}
    found = at(THEOREMS[name].gap, **values)
    deviation = mpmath.sqrt(mpmath.log(1 / delta) / (2 * m))
    assert deviation * (1 - mpf("1e-12")) <= found <= deviation + 2 / m + mpf("1e-9")


@pytest.mark.parametrize(("name", "which"), [("X3", "best_error"), ("X4", "error"), ("X4", "plain_error")])
def test_errors_of_attention_vanish_with_the_input(name: str, which: str) -> None:
    formula = THEOREMS[name].formula(which)
    assert 0 < at(formula, L="1e40") < at(formula, L="1e30") / 10
    if which != "error":  # whose least tilt depends on L: the root is within its own form
        assert at(formula, M="1e-60", g="1e-60") < mpf("1e-15")


def test_no_bound_of_a_statement_exceeds_what_holds_always() -> None:
    assert at(THEOREMS["X4"].formula("error"), L=1) <= 2 * typical(THEOREMS["X4"].formula("error"))["M"]


# -- published shape against explicit constants


def test_the_comparison_of_shapes_can_fail() -> None:
    """Negative control: a published shape with the wrong power of K, or without its log d, is noticed."""
    theorem = THEOREMS["trauger2024"]
    K, d = BY_NAME["K"].symbol, BY_NAME["d"].symbol
    import sympy

    for wrong in (K, sympy.log(d)):
        shape = replace(theorem.published, expr=theorem.published.expr * wrong)
        broken = replace(theorem, published_form=lambda shape=shape: shape)
        name = "K" if wrong is K else "d"
        assert grows_as_published(theorem, name)
        assert not grows_as_published(broken, name)
