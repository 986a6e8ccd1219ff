"""Derivations: every step holds, a wrong one is noticed, and every format says the same."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
import sympy
from flint import arb

from boundcalc.base import symbols as sym
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.base.prose import plain
from boundcalc.formulas.derivation import Derivation, DerivationError, Step, derive
from boundcalc.formulas.derivation.check import identical, on_intervals, random_point
from boundcalc.formulas.derivation.render import DETAIL, FORMATS
from boundcalc.formulas.derivation.step import Relation, Words
from boundcalc.formulas.theorems import THEOREMS
from boundcalc.setting import Norms, Setting

ALL = [pytest.param(name, which, id=f"{name}-{which}") for name in THEOREMS for which in THEOREMS[name].quantities]


def general(preset: str, **values: Any) -> Setting:
    return Setting.of(
        preset, C=sym.C, depth=sym.depth, seq_len=sym.T, n_train=sym.m, delta=sym.delta, margin=sym.gamma, **values
    )


@pytest.mark.parametrize(("name", "which"), ALL)
def test_every_step_of_every_theorem_holds(name: str, which: str) -> None:
    report = derive(name, which).check(points=6)
    assert report.inequalities >= 1
    assert report.inequalities + report.equalities >= 2
    assert report.points == 6 * report.inequalities


@pytest.mark.parametrize("preset", ["bert", "llama"])
def test_every_step_of_a_presets_closed_form_holds(preset: str) -> None:
    assert derive(general(preset)).check(points=2).steps > 30


# -- negative controls: a broken step must be noticed


def broken(derivation: Derivation, title: str, **changes: Any) -> Derivation:
    """The same derivation with one step changed."""

    def rebuilt(step: Step) -> Step:
        step = replace(step, children=tuple(rebuilt(child) for child in step.children))
        return replace(step, **changes) if plain(step.title) == title else step

    made = replace(derivation, root=rebuilt(derivation.root))
    assert made.root != derivation.root
    return made


def halved(step_title: str, derivation: Derivation) -> Derivation:
    """Every inequality of one step with half its right side."""
    (step,) = [step for _, step in derivation.steps() if plain(step.title) == step_title]

    def half(trial: Any) -> Any:
        return lambda random: (lambda pair: (pair[0], pair[1] / 2))(trial(random))

    return broken(derivation, step_title, trials=tuple(half(trial) for trial in step.trials))


@pytest.mark.parametrize(
    "title", ["the loss", "attention", "projection onto the ball", "readout", "the best split of the error"]
)
def test_a_constant_that_is_too_small_is_noticed(title: str) -> None:
    derivation = derive("edelman2022")
    with pytest.raises(DerivationError, match=r"fails at a random point"):
        halved(title, derivation).check(points=200)


def test_a_chain_that_is_too_short_is_noticed() -> None:
    derivation = derive("edelman2022")
    with pytest.raises(DerivationError, match=r"step 7 \(chaining in one line\) fails at a random point"):
        halved("chaining in one line", derivation).check(points=40)


def test_a_wrong_sum_over_blocks_is_noticed() -> None:
    derivation = derive("edelman2022")
    wrong = broken(derivation, "the sum over the blocks", identities=(lambda: (sym.C**2, sym.C**3),))
    with pytest.raises(DerivationError, match=r"does not simplify to an identity"):
        wrong.check(points=1)


def test_a_formula_that_the_steps_do_not_give_is_noticed() -> None:
    for name, values in (("edelman2022", {}), ("edelman2022", {"depth": 2, "C": 1.5}), ("X3", {}), ("X6", {})):
        derivation = derive(name, None, values)
        derivation.check(points=1)
        formula = replace(derivation.formula, expr=derivation.formula.expr * sympy.Rational(999, 1000))
        with pytest.raises(DerivationError, match="the formula is not what the last step says"):
            replace(derivation, formula=formula).check(points=1)


@pytest.mark.parametrize("name", ["edelman2022", "trauger2024"])
def test_a_capacity_below_the_sum_over_blocks_is_noticed(name: str) -> None:
    with pytest.raises(DerivationError, match=r"\(the sum over the blocks\) fails at a random point"):
        halved("the sum over the blocks", derive(name)).check(points=1)


@pytest.mark.parametrize(
    ("name", "which", "title"),
    [
        ("X3", "error", "a mean of vectors in Hilbert space"),
        ("X3", "error", "from the mean to the estimate"),
        ("X3", "error", "regularisation"),
        ("X3", "error", "the bound"),
        ("X3", "best_error", "the best regularisation"),
        ("X3", "best_error", "the bound"),
        ("X3", "input_size", "half of the target for either part"),
        ("X4", "error", "moments of the weights"),
        ("X4", "error", "numerator and denominator at once"),
        ("X4", "error", "the bound"),
        ("X4", "plain_error", "the numerator"),
        ("X6", "any_head_error", "any head"),
        ("zhang2022_masked", "gap", "W_QK"),
        ("zhang2022_masked", "gap", "the sum over the blocks"),
        ("sparse_boolean", "gap", "how many functions"),
    ],
)
def test_half_of_what_a_step_says_is_too_little(name: str, which: str, title: str) -> None:
    with pytest.raises(DerivationError, match=r"fails at a random point"):
        halved(title, derive(name, which)).check(points=300)


def test_a_statement_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(DerivationError, match="no statement is called 'G99'"):
        broken(derive("edelman2022"), "from covers to the gap", uses=("G99",)).check(points=1)


def test_infinite_sides_prove_nothing() -> None:
    step = Step("odd", (), "", Relation(Words("a"), "le", Words("b")), trials=(lambda random: (1, arb("inf")),))
    with pytest.raises(DerivationError, match="not finite"):
        broken(derive("sparse_boolean"), "how many functions", trials=step.trials).check(points=1)


def test_identities_are_symbolic() -> None:
    x, y = sympy.symbols("x y", positive=True)
    assert identical((x + y) ** 2, x**2 + 2 * x * y + y**2)
    assert identical(sympy.cbrt(x * y) ** 3, x * y)
    assert not identical((x + y) ** 2, x**2 + y**2)


def test_formulas_are_enclosed_by_their_interval_versions() -> None:
    for name in ("edelman2022", "sakai2026", "sparse_boolean"):
        formula = THEOREMS[name].gap
        point = random_point(formula, Random(3))
        enclosure = on_intervals(formula)(point)
        exact = formula.at({key: float(value) for key, value in point.items()})
        assert float(enclosure.rad()) < 1e-20 * float(enclosure)
        assert float(enclosure) == pytest.approx(float(exact), rel=1e-9)


# -- formats


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("steps", DETAIL)
def test_every_format_names_the_steps(form: str, steps: str) -> None:
    text = derive("edelman2022").render(form, steps=steps)
    assert "1.0853" in text  # the constant of the line
    assert "chaining in one line" in text
    assert ("Softmax is 1-Lipschitz" in text) == (steps == "full" and form not in ("json", "markdown", "latex")) or (
        form in ("json", "markdown", "latex")
    )
    if steps == "full":
        assert len(text) > len(derive("edelman2022").render(form, steps="brief"))


def test_json_is_a_tree_with_a_formula() -> None:
    data = json.loads(derive("trauger2024", "covering_number").render("json"))
    assert data["quantity"] == "covering_number"
    assert data["inputs"] == ["C", "K", "depth", "d", "heads", "epsilon"]
    assert [step["title"] for step in data["steps"]][:2] == ["the loss", "one block"]
    assert any(child["uses"] == ["S3", "T3"] for step in data["steps"] for child in step["steps"])


@pytest.mark.parametrize("name", THEOREMS)
def test_html_is_well_formed_and_needs_no_script(name: str) -> None:
    text = derive(name).render("html")
    assert "<script" not in text
    shown = text.partition("<h2>Statements used</h2>")[0]
    assert "\\" not in shown  # no macro where a letter should be
    assert "piecewise" not in shown  # cases stand below each other
    ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n").replace("&#xA0;", " "))
    assert "<math" in text
    assert derive(name).render("html", fragment=True).startswith("<h1>")


def test_markdown_has_balanced_mathematics() -> None:
    text = derive("edelman2022").render("markdown")
    assert text.count("$$") % 2 == 0
    without_blocks = "".join(text.split("$$")[::2])
    assert without_blocks.count("$") % 2 == 0


def test_values_are_put_into_the_formula_and_the_steps_stay_general() -> None:
    derivation = derive("edelman2022", values={"T": 512, "depth": 2, "heads": 1})
    assert {symbol.name for symbol in derivation.formula.inputs} == {"C", "m", "d", "gamma", "delta"}
    whole = THEOREMS["edelman2022"].gap.value(C=1, T=512, m=10**6, depth=2, d=64, heads=1, gamma=1, delta=0.05)
    assert derivation.formula.value(C=1, m=10**6, d=64, gamma=1, delta=0.05) == pytest.approx(whole, rel=1e-14)
    derivation.check(points=1)


def test_refusals() -> None:
    with pytest.raises(InvalidSetting, match="did you mean 'edelman2022'"):
        derive("edelman2020")
    with pytest.raises(InvalidSetting, match="format must be one of text, markdown"):
        derive("edelman2022").render("pdf")
    with pytest.raises(InvalidSetting, match="fragment is for latex and html"):
        derive("edelman2022").render("text", fragment=True)
    with pytest.raises(Unsupported, match="the quantity 'rademacher'"):
        derive("zhang2022", "rademacher")
    with pytest.raises(InvalidSetting, match="measured norms pay P1"):
        derive(Setting.of(norms=Norms(C=1.0, measured=True), depth=2))
