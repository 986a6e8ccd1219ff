"""Laws that every theorem object must obey; registering a theorem enrols it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sympy

from boundcalc.base.errors import InvalidSetting
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.texts import STATEMENTS
from boundcalc.theorems import BOUNDS, POLICIES, THEOREMS, Theorem
from boundcalc.theorems._formula import Formula
from boundcalc.theorems.symbols import BY_NAME
from tests.laws.kinds.theorems import check_theorem, grows_as_published, rises, value_at

ALL = sorted(THEOREMS)


def inverted(theorem: Theorem) -> Theorem:
    """A theorem with its main formula upside down."""
    turned = replace(theorem.formula(), expr=1 / theorem.formula().expr)
    return replace(theorem, forms={**theorem.forms, theorem.main_quantity: lambda **_: turned})


@pytest.mark.parametrize("name", ALL)
def test_laws(name: str) -> None:
    check_theorem(THEOREMS[name])
    with pytest.raises(AssertionError, match="moves the wrong way"):
        check_theorem(inverted(THEOREMS[name]))
    with pytest.raises(InvalidSetting, match="no_such_quantity"):
        THEOREMS[name].formula("no_such_quantity")


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


# -- dimension 1: one row of one coordinate, where the class is the interval [-1, 1] and its covering number is known


def covers_an_interval(formula: Formula) -> bool:
    """Whether the bound leaves room for the ceil(1/eps) balls that the interval needs."""
    least = {"d": 1, "T": 1, "depth": 1, "heads": 1, "m": 1, "C": 1, "K": 1, "L_s": 1, "C_V": 1, "K_V": 1, "B_X": 1}
    counts = (2, 10, 100, 10**4)
    return all(value_at(formula, **least, K_QK=1e-6, epsilon=1 / n) >= math.log(n) for n in counts)


@pytest.mark.parametrize("name", [n for n in ALL if "covering_number" in THEOREMS[n].quantities])
def test_dimension_one(name: str) -> None:
    """Negative control: the same formula over a thousand does not cover."""
    formula = THEOREMS[name].covering_number
    assert covers_an_interval(formula)
    assert not covers_an_interval(replace(formula, expr=formula.expr / 1000))


# -- limits


@pytest.mark.parametrize("name", [n for n in ALL if "gap" in THEOREMS[n].quantities])
def test_without_weights_only_the_deviation_remains(name: str) -> None:
    gap = value_at(THEOREMS[name].gap, C=1e-60, K=1e-60, m=10**6, delta=0.05, depth=1)
    deviation = math.sqrt(math.log(20) / 2e6)
    assert deviation * (1 - 1e-12) <= gap <= deviation + 2e-6 + 1e-9


@pytest.mark.parametrize(("name", "which"), [("X3", "best_error"), ("X4", "error"), ("X4", "plain_error")])
def test_errors_of_attention_vanish_with_the_input(name: str, which: str) -> None:
    formula = THEOREMS[name].formula(which)
    assert 0 < value_at(formula, L="1e40") < value_at(formula, L="1e30") / 10
    if which != "error":  # whose least tilt depends on L: the root is within its own form
        assert value_at(formula, M="1e-60", g="1e-60") < 1e-15


def test_no_bound_of_a_statement_exceeds_what_holds_always() -> None:
    assert value_at(THEOREMS["X4"].formula("error"), L=1, M=3) <= 6


# -- what laws would notice


def test_a_wrong_power_is_noticed() -> None:
    """Negative controls: a factor 1/T of a gap; a published shape with another power of K, or another log d."""
    formula = THEOREMS["edelman2022"].gap
    assert rises(formula, "T")
    assert not rises(replace(formula, expr=formula.expr / BY_NAME["T"].symbol), "T")
    theorem = THEOREMS["trauger2024"]
    for name, wrong in (("K", BY_NAME["K"].symbol), ("d", sympy.log(BY_NAME["d"].symbol))):
        shape = replace(theorem.published, expr=theorem.published.expr * wrong)
        assert grows_as_published(theorem, name)
        assert not grows_as_published(replace(theorem, published_form=lambda shape=shape: shape), name)
