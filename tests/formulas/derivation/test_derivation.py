"""Derivations: every step holds, a wrong one is noticed, and every format says the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from boundcalc.base import symbols as sym
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.formulas.derivation import DerivationError, derive
from boundcalc.formulas.derivation.render import DETAIL, FORMATS
from boundcalc.formulas.theorems import THEOREMS
from boundcalc.setting import Norms, Setting

ALL = [pytest.param(name, which, id=f"{name}-{which}") for name in THEOREMS for which in THEOREMS[name].quantities]


def general(preset: str, **values: Any) -> Setting:
    return Setting.of(
        preset, C=sym.C, depth=sym.depth, seq_len=sym.T, n_train=sym.m, delta=sym.delta, margin=sym.gamma, **values
    )


@pytest.mark.parametrize(("name", "which"), ALL)
def test_the_formula_is_what_the_last_step_says(name: str, which: str) -> None:
    derivation = derive(name, which)
    assert derivation.root.relation is not None
    assert derivation.root.relation.after == derivation.formula.expr
    assert derivation.root.where == derivation.formula.where
    assert derivation.statements()


@pytest.mark.parametrize("preset", ["bert", "llama"])
def test_a_presets_closed_form_has_every_step(preset: str) -> None:
    assert len(derive(general(preset)).steps()) > 30


def test_a_statement_that_does_not_exist_is_noticed() -> None:
    derivation = derive("edelman2022")
    with pytest.raises(DerivationError, match="no statement is called 'G99'"):
        replace(derivation, root=replace(derivation.root, uses=("G99",))).statements()


# -- formats


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("steps", DETAIL)
def test_every_format_names_the_steps(form: str, steps: str) -> None:
    text = derive("edelman2022").render(form, steps=steps)
    assert "1.0853" in text  # the constant of the line
    assert "chaining in one line" in text
    assert ("Softmax is 1-Lipschitz" in text) == (steps == "full" and form == "text") or form != "text"
    if steps == "full":
        assert len(text) > len(derive("edelman2022").render(form, steps="brief"))


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


def test_refusals() -> None:
    with pytest.raises(InvalidSetting, match="did you mean 'edelman2022'"):
        derive("edelman2020")
    with pytest.raises(InvalidSetting, match="format must be one of text, markdown"):
        derive("edelman2022").render("pdf")
    with pytest.raises(Unsupported, match="the quantity 'rademacher'"):
        derive("zhang2022", "rademacher")
    with pytest.raises(InvalidSetting, match="measured norms pay P1"):
        derive(Setting.of(norms=Norms(C=1.0, measured=True), depth=2))
