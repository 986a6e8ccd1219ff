"""Law: what `derive --check` counts can fail. A claim that is changed by one per cent is noticed, or said to be unchecked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import sympy
from flint import arb

from boundcalc.base import symbols as sym
from boundcalc.formulas.derivation import Derivation, DerivationError, derive, network
from boundcalc.formulas.derivation.build import _steps
from boundcalc.formulas.derivation.check import check
from boundcalc.formulas.symbolic.formula import Formula
from boundcalc.formulas.theorems import THEOREMS
from boundcalc.setting import Setting
from boundcalc.statements.compose import loss_lipschitz

CLAIMS = [pytest.param(name, which, id=f"{name}-{which}") for name in THEOREMS for which in THEOREMS[name].quantities]
LESS = sympy.Rational(99, 100)


def claimed(name: str, which: str, formula: Formula) -> Derivation:
    """The derivation of a theorem, with another formula claimed from the start."""
    theorem = THEOREMS[name]
    return replace(derive(name, which), formula=formula, root=_steps(theorem, which, formula))


def noticed(derivation: Derivation) -> bool:
    try:
        check(derivation, points=12)
    except DerivationError:
        return True
    return False


@pytest.mark.parametrize(("name", "which"), CLAIMS)
def test_a_claim_changed_by_one_per_cent_is_noticed_or_said_to_be_unchecked(name: str, which: str) -> None:
    formula = THEOREMS[name].formula(which)
    assert not noticed(claimed(name, which, formula))
    changed = claimed(name, which, replace(formula, expr=formula.expr * LESS))
    said = derive(name, which).check(points=1).unchecked
    assert noticed(changed) or any(step.startswith("the last") for step in said)


def test_few_claims_are_unchecked() -> None:
    open_claims = {
        (name, which)
        for name in THEOREMS
        for which in THEOREMS[name].quantities
        if any(step.startswith("the last") for step in derive(name, which).check(points=1).unchecked)
    }
    assert open_claims == {("sakai2026", "gap"), ("sakai2026", "covering_number")}


@pytest.mark.parametrize(("name", "which"), CLAIMS)
def test_every_equality_compares_two_computations(name: str, which: str) -> None:
    """One per cent on either side of an equality is noticed, so neither is a constant 0, and no side is the other."""
    for _, step in derive(name, which).steps():
        for identity in step.identities:
            left, right = (sympy.sympify(side) for side in identity())
            assert not (left == 0 and right == 0), step.title


def sources(derivation: Derivation) -> Iterator[tuple[str, Any]]:
    for number, step in derivation.steps():
        for trial in step.trials:
            yield f"{number} {step.title}", trial


@pytest.mark.parametrize(("name", "which"), CLAIMS)
def test_every_inequality_depends_on_the_point(name: str, which: str) -> None:
    """0 <= 1 at twenty points is one comparison of two constants: it tests nothing about the step."""
    for title, trial in sources(derive(name, which)):
        random = Random(0)
        found = {tuple(str(arb(side)) for side in trial(random)) for _ in range(6)}
        assert len(found) > 1, title


@pytest.mark.parametrize("classes", [1, 3])
def test_a_loss_constant_one_per_cent_too_small_is_noticed(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting.of(depth=2, classes=classes, margin=sym.gamma)
    step = network.loss_step(setting)
    (trial,) = step.trials
    assert all(bool(left <= right * (1 + arb("1e-20"))) for left, right in (trial(Random(k)) for k in range(200)))
    monkeypatch.setattr(network, "loss_lipschitz", lambda ns, s: loss_lipschitz(ns, s) * LESS)
    (trial,) = network.loss_step(setting).trials
    assert any(bool(left > right) for left, right in (trial(Random(k)) for k in range(200)))


@pytest.mark.parametrize("depth", [5, 12])
def test_the_sum_over_many_blocks_is_written_out(depth: int) -> None:
    setting = Setting.of(C=sym.C, depth=depth, seq_len=sym.T, n_train=sym.m, delta=sym.delta, margin=sym.gamma)
    derivation = derive(setting)
    step = next(step for _, step in derivation.steps() if step.title == "the sum over the blocks")
    (trial,) = step.trials
    left, right = trial(Random(1))
    assert bool(left > right * arb("0.99"))
    assert bool(left <= right * (1 + arb("1e-20")))


def test_a_network_too_deep_to_be_written_out_has_no_such_check() -> None:
    setting = Setting.of(C=sym.C, depth=40, seq_len=sym.T, n_train=sym.m, delta=sym.delta, margin=sym.gamma)
    step = next(step for _, step in derive(setting).steps() if step.title == "the sum over the blocks")
    assert step.trials == ()


def test_the_report_names_the_steps_without_a_check() -> None:
    text = str(derive("zhang2022").check(points=1))
    assert "2 steps have no check of their own: 5 (an equal split of the error), 7 (one cover at one scale)" in text
