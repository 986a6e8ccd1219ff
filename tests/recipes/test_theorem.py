"""How to add a theorem from outside: with covers, which also bound settings, and without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import sympy
from click.testing import CliRunner

from boundcalc.base.errors import BoundcalcError
from boundcalc.base.theory import HERE
from boundcalc.cli import main
from boundcalc.engine.evaluate import evaluate
from boundcalc.setting import Setting
from boundcalc.theorems import BOUNDS, THEOREMS, Theorem, zhang2022
from boundcalc.theorems import symbols as s
from boundcalc.theorems._formula import Formula
from boundcalc.theorems.theorem import Step
from tests.laws.kinds.theorems import check_theorem

WITH = replace(
    zhang2022,
    name="mine",
    title="parameter counting",
    statement_name="",
    network=False,
    lemmas=frozenset({"T4"}),
)
"""With covers: it is derived, evaluated, and bounds the gap of any setting by the covers it names."""


def _deviation() -> Formula:
    expr = sympy.sqrt(sympy.log(1 / s.delta) / (2 * s.m))
    return Formula("gap", expr, (), r"\mathrm{gap}")


def _published() -> Formula:
    return replace(_deviation(), expr=s.c / sympy.sqrt(s.m), kind="proxy")


WITHOUT = Theorem(
    name="hoeffding",
    title="one function, fixed in advance",
    source=HERE,
    statement="The mean of m independent losses in [0, 1] is within sqrt(log(1/delta)/(2m)) of its expectation.",
    assumptions=("one function, fixed before the sample", "m independent losses in [0, 1]"),
    published_note="without constants",
    compares="gap",
    differs={"delta": "the shape leaves the confidence out"},
    proof=(Step("one function", ("G2",), "Hoeffding's inequality."),),
    published_form=_published,
    forms={"gap": _deviation},
)
"""Without them: a formula of its inputs alone."""


@pytest.fixture(params=[WITH, WITHOUT], ids=lambda theorem: theorem.name)
def theorem(request: pytest.FixtureRequest) -> Iterator[Theorem]:
    added: Theorem = request.param
    yield THEOREMS.register(added)
    THEOREMS.remove(added.name)
    assert added.name not in BOUNDS


def test_its_laws_hold_and_a_wrong_formula_is_seen(theorem: Theorem) -> None:
    """The negative control is a gap that grows with the sample."""
    check_theorem(theorem)
    gap = theorem.gap
    with pytest.raises(AssertionError, match="gap moves the wrong way in m"):
        check_theorem(replace(theorem, forms={"gap": lambda: replace(gap, expr=1 / gap.expr)}))
    with pytest.raises(BoundcalcError, match="m must be above 0"):
        theorem.checked(m=-1.0)


def test_commands_know_it(theorem: Theorem) -> None:
    explained = CliRunner().invoke(main, ["explain", theorem.name])
    assert theorem.title in " ".join(explained.output.split())
    derived = CliRunner().invoke(main, ["derive", "--bound", theorem.name, "--detail", "brief"])
    assert derived.exit_code == 0, derived.output
    if theorem.policy is None:
        valued = CliRunner().invoke(main, ["eval", "--bound", theorem.name, "--m", "1e6"])
        assert valued.exit_code == 0, valued.output
    else:
        assert 0 < evaluate(Setting.of(depth=1, n_train=10**9), theorem.name).gap < 1
