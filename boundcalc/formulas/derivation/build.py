"""`derive`: from a theorem, or a setting, to the derivation of its formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.sources import HERE
from boundcalc.formulas.derivation import inference_steps, uniform_steps
from boundcalc.formulas.derivation.closed_steps import closed_steps
from boundcalc.formulas.derivation.step import Derivation, Relation, Step, Words
from boundcalc.formulas.symbolic.closed import ClosedForm
from boundcalc.formulas.symbolic.formula import Formula
from boundcalc.formulas.symbolic.printing import left_hand_side
from boundcalc.formulas.symbolic.uniform import UniformForm
from boundcalc.formulas.theorems import THEOREMS, Theorem
from boundcalc.setting import Setting
from boundcalc.setting.validate import choice

_METHODS: Mapping[type, Callable[[Any, str, Formula], Step]] = {
    ClosedForm: closed_steps,
    UniformForm: uniform_steps.uniform_steps,
}


_STEPS: Mapping[str, Callable[[Formula], Step]] = inference_steps.STEPS
"""The steps of theorems without a form of a network, by name. One that brings none is shown as it is stated."""


def derive(
    what: str | Theorem | Setting, quantity: str | None = None, values: Mapping[str, Any] | None = None
) -> Derivation:
    """The derivation of a theorem's formula, or of the closed form of a setting.

    `values` are put into the formula at the end; the steps stay general.
    """
    if isinstance(what, Setting):
        return _of_setting(what, quantity or "gap", values or {})
    theorem = THEOREMS[choice("bound", what, THEOREMS)] if isinstance(what, str) else what
    chosen = quantity or theorem.main_quantity
    formula = theorem.formula(chosen)
    return Derivation(
        theorem.name,
        theorem.title,
        theorem.statement,
        formula.with_values(**values) if values else formula,
        theorem.assumed(),
        _steps(theorem, chosen, formula),
        theorem.source,
        theorem.differences(),
        values or {},
        theorem.stated_by,
    )


def _steps(theorem: Theorem, quantity: str, formula: Formula) -> Step:
    form = theorem.form
    if form is not None:
        return _METHODS[type(form)](form, quantity, formula)
    if theorem.name in _STEPS:
        return _STEPS[theorem.name](formula)
    return Step("", theorem.uses, "", children=(_as_stated(theorem, formula),))


def _as_stated(theorem: Theorem, formula: Formula) -> Step:
    """Of a theorem that brings no steps: what it says, and what it rests on."""
    assumed = "; ".join(theorem.assumed())
    if theorem.stated_by:
        assumed = f"stated by {theorem.stated_by}, and neither proved nor checked here"
    relation = Relation(Words(left_hand_side(formula)), formula.relation, formula.expr)
    return Step("the theorem as stated", theorem.uses, assumed, relation, tuple(formula.where))


def _of_setting(setting: Setting, quantity: str, values: Mapping[str, Any]) -> Derivation:
    form = ClosedForm(setting)
    formula = form.formulas[choice("quantity", quantity, form.formulas)]()
    if setting.norms.measured:
        raise InvalidSetting("a derivation is for budgets fixed before the data: measured norms pay P1 in `certify`")
    return Derivation(
        "closed",
        "closed form",
        "A bound for the class of all networks with the given budgets.",
        formula.with_values(**values) if values else formula,
        formula.conditions,
        closed_steps(form, quantity, formula),
        HERE,
        values=values,
    )
