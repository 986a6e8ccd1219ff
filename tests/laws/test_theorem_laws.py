"""Laws that every theorem object must obey; registering a theorem enrols it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import mpmath
import pytest
from mpmath import mpf

from boundcalc.base.symbols import ALIASES, BY_NAME, ENTRIES
from boundcalc.formulas.symbolic import Formula
from boundcalc.formulas.theorems import BOUNDS, POLICIES, THEOREMS, Theorem
from boundcalc.statements.texts import STATEMENTS

ALL = sorted(THEOREMS)
FALLING = {"m", "gamma", "epsilon", "delta", "target", "L", "temperature"}
"""Inputs in which bounds fall; in all others they rise."""
UNORDERED = {"p", "smoothness", "rho"}
"""A power has no direction, nor has a regularisation: they trade one size for another."""
SINGLE_VALUED = {"s", "p", "delta", "target", "smoothness"}
"""Inputs that do not go to infinity, or whose exponential drowns everything else."""


def typical(formula: Formula, **values: Any) -> dict[str, Any]:
    """Middling values of every input."""
    middle = {name: mpf(sum(entry.typical)) / 2 for name, entry in BY_NAME.items()}
    middle |= {
        "depth": mpf(3),
        "d": mpf(64),
        "heads": mpf(2),
        "s": mpf(3),
        "rank": mpf(4),
        "m": mpf(10) ** 6,
        "p": mpf(1),
    }
    chosen = middle | {name: mpf(value) for name, value in values.items()}
    return {symbol.name: chosen[symbol.name] for symbol in formula.inputs}


def at(formula: Formula, **values: Any) -> Any:
    with mpmath.workdps(40):
        return formula.at(typical(formula, **values))


def every(quantity: str | None = None) -> list[Any]:
    """(theorem, formula's name) for all theorems."""
    return [
        pytest.param(THEOREMS[name], which, id=f"{name}-{which}")
        for name in ALL
        for which in THEOREMS[name].quantities
        if quantity is None or which == quantity
    ]


def test_the_registry_is_complete_and_in_words() -> None:
    keys = {theorem.source.key for theorem in THEOREMS.values()}
    assert {"edelman2022", "trauger2024", "zhang2022", "truong2024", "sakai2026"} <= keys
    for name, theorem in THEOREMS.items():
        assert theorem.name == name
        assert theorem.assumptions
        assert theorem.uses
        assert theorem.published_note
        assert all(len(why) > 10 for why in theorem.differs.values()), name
        assert theorem.cite().startswith("@")
        assert theorem.explicit.kind == "bound"
        assert (name in BOUNDS) == (theorem.policy is not None)
        if theorem.policy is not None:
            assert BOUNDS[name].lemmas == theorem.lemmas
            assert BOUNDS[name].lemmas <= POLICIES["best"].lemmas
        assert theorem.statement_name in ("", *STATEMENTS)
        assert set(theorem.uses) <= set(STATEMENTS)
    assert set(BOUNDS) == {*POLICIES, *(name for name, theorem in THEOREMS.items() if theorem.policy)}


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
    if name in ("edelman2022_head", "edelman2022_multihead"):  # x V with |V| <= C_V, |x| <= B_X, then L_s
        radius, values = mpf(1), {"C_V": 1, "K_V": 1, "K_QK": mpf("1e-6"), "B_X": 1, "L_s": 1}
    elif name == "edelman2022_attention":  # fixed scores; features of log-count log(R/eps) <= (R/eps)^2
        radius, values = mpf(1), {"A_s": mpf("1e-12"), "A_in": 1, "B_in": 1, "L_out": 1, "c_n": 1, "mu": 1}
    elif name == "sparse_boolean":  # of one bit there are four functions
        assert at(theorem.covering_number, T=1, s=1) >= mpmath.log(4)
        return
    else:  # w relu(...) with |w| <= C and activations up to 1
        radius, values = mpf(1), {"C": 1, "K": 1, "rank": 1, "S_p": 1, "p": 1, "vocabulary": 1, "L_s": 1}
    formula = theorem.covering_number
    assert covers_an_interval(formula, radius, **values)
    # Negative control: the same formula over a thousand does not cover.
    assert not covers_an_interval(replace(formula, expr=formula.expr / 1000), radius, **values)


# -- monotonicity


def rises(formula: Formula, name: str, values: dict[str, Any]) -> bool:
    """Whether a formula never moves against the direction it should, over some steps of one input."""
    sign = -1 if name in FALLING else 1
    low, high = BY_NAME[name].typical
    steps = [low + (high - low) * mpf(i) / 8 for i in range(9)]
    if BY_NAME[name].symbol.is_integer:
        steps = sorted({mpmath.floor(step) for step in steps} - {mpf(0)})
    found = [at(formula, **values, **{name: step}) for step in steps]
    return all(sign * (b - a) >= -(mpf(10) ** -30) * abs(a) for a, b in pairwise(found))


@pytest.mark.parametrize(("theorem", "which"), every())
def test_monotonicity(theorem: Theorem, which: str) -> None:
    formula = theorem.formula(which)
    for symbol in formula.inputs:
        name = symbol.name
        if name in UNORDERED or (which in ("capacity", "covering_number", "sample_complexity") and name == "m"):
            continue  # those count m samples: they rise, slowly
        assert rises(formula, name, {}), f"{theorem.name}.{which} in {name}"


def test_monotonicity_can_fail() -> None:
    """Negative control: an exponent with the wrong sign is noticed."""
    formula = THEOREMS["edelman2022"].gap
    broken = replace(formula, expr=formula.expr / BY_NAME["T"].symbol)
    assert rises(formula, "T", {})
    assert not rises(broken, "T", {})


# -- limits


@pytest.mark.parametrize(("theorem", "which"), every("gap"))
def test_the_gap_vanishes_with_the_sample(theorem: Theorem, which: str) -> None:
    formula = theorem.formula(which)
    assert at(formula, m="1e4000") < mpf("1e-100")
    assert at(formula, m="1e4000") > 0


@pytest.mark.parametrize("name", [n for n in ALL if "gap" in THEOREMS[n].quantities and n != "sparse_boolean"])
def test_without_weights_only_the_deviation_remains(name: str) -> None:
    m, delta = mpf(10) ** 6, mpf("0.05")
    values: dict[str, Any] = {"C": "1e-60", "K": "1e-60", "S_p": "1e-60", "m": m, "delta": delta, "depth": 1}
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


@pytest.mark.parametrize(("theorem", "which"), every("covering_number"))
def test_a_coarse_cover_is_small(theorem: Theorem, which: str) -> None:
    formula = theorem.formula(which)
    if "epsilon" not in {symbol.name for symbol in formula.inputs}:
        assert theorem.name == "sparse_boolean"  # a finite class: the same at every scale
        return
    assert at(formula, epsilon="1e60", depth=1) < mpf("1e-30")


# -- published shape against explicit constants


def growth(formula: Formula, name: str) -> tuple[Any, Any]:
    """(power, power of the logarithm): how f grows with x far out; in the depth (rate per block, power)."""
    x = mpf(1000) if name == "depth" else mpf(10) ** (10**6)
    f = [mpmath.log(at(formula, **{name: y})) for y in (x, x**2, x**4)]
    power = (f[2] - f[1]) / (2 * mpmath.log(x))
    if name == "depth":
        rate = (f[1] - f[0]) / (x**2 - x)
        return (rate, mpf(0)) if abs(rate) > mpf("0.001") else (mpf(0), power)
    return (mpf(0), (f[2] - f[1]) / mpmath.log(2)) if abs(power) < mpf("0.001") else (power, mpf(0))


def same_growth(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
    return all(abs(x - y) < mpf("0.02") for x, y in zip(a, b, strict=True))


def slowly(formula: Formula, name: str, power: Any) -> Any:
    """The power of the logarithm beside a known power of x."""
    x = mpf(10) ** (10**6)
    f = [mpmath.log(at(formula, **{name: y})) - power * mpmath.log(y) for y in (x, x**2)]
    return (f[1] - f[0]) / mpmath.log(2)


def agrees(theorem: Theorem, name: str) -> bool:
    """Whether the explicit formula and the published shape grow alike in one input."""
    explicit, published = theorem.explicit, theorem.published
    with mpmath.workdps(40):
        a, b = growth(explicit, name), growth(published, name)
        if not same_growth(a, b):
            return False
        power = mpmath.nint(b[0] * 12) / 12  # the shapes have powers that are multiples of 1/2 or 1/3
        if name == "depth" or abs(b[0]) < mpf("0.001") or abs(power - b[0]) > mpf("1e-5"):
            return True
        return bool(abs(slowly(explicit, name, power) - slowly(published, name, power)) < mpf("0.02"))


@pytest.mark.parametrize("name", ALL)
def test_the_published_shape_is_ours_except_where_words_say_why(name: str) -> None:
    theorem = THEOREMS[name]
    explicit = {symbol.name for symbol in theorem.explicit.inputs}
    published = {symbol.name for symbol in theorem.published.inputs} - {"c"}
    for lost in (explicit ^ published) - SINGLE_VALUED:
        assert lost in theorem.differs, f"{lost} is in one formula only"
    for stated in theorem.differs:
        assert ALIASES.get(stated, stated) in explicit | published, f"{stated} is in neither formula"
    for shared in (explicit & published) - SINGLE_VALUED:
        alike = agrees(theorem, shared)
        assert alike == (shared not in theorem.differs), f"{name} in {shared}: {'alike' if alike else 'not alike'}"


def test_the_comparison_of_shapes_can_fail() -> None:
    """Negative control: a published shape with the wrong power of K, or without its log d, is noticed."""
    theorem = THEOREMS["trauger2024"]
    K, d = BY_NAME["K"].symbol, BY_NAME["d"].symbol
    import sympy

    for wrong in (K, sympy.log(d)):
        shape = replace(theorem.published, expr=theorem.published.expr * wrong)
        broken = replace(theorem, published_form=lambda shape=shape: shape, _made={})
        name = "K" if wrong is K else "d"
        assert agrees(theorem, name)
        assert not agrees(broken, name)


def test_every_input_of_every_theorem_has_a_meaning() -> None:
    known = {entry.symbol for entry in ENTRIES}
    for theorem in THEOREMS.values():
        for which in theorem.quantities:
            assert set(theorem.formula(which).inputs) <= known, f"{theorem.name}.{which}"
        assert set(theorem.published.inputs) <= known
