"""Derivations: every format says the same, and proofs name exactly what they use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from boundcalc.theorems import THEOREMS
from boundcalc.theorems.derivation import Derivation, derive

ALL = [pytest.param(name, which, id=f"{name}-{which}") for name in THEOREMS for which in THEOREMS[name].quantities]


def unexplained(derivation: Derivation) -> set[str]:
    """The named parts of a formula that no step mentions; those of a block are mentioned as those of block l."""
    words = " ".join(step.text for step in derivation.theorem.steps(derivation.quantity))
    letters = {re.sub(r"_\{\d+\}", "_l", part.latex) for part in derivation.formula.where}
    return {letter for letter in letters if letter not in words}


@pytest.mark.parametrize(("name", "which"), ALL)
def test_every_part_of_a_formula_is_introduced_by_a_step(name: str, which: str) -> None:
    derivation = derive(name, which, {"depth": 2} if name == "K1" else None)
    assert unexplained(derivation) == set()
    assert derivation.statements()
    assert which in derivation.theorem.claims


def test_a_step_that_is_missing_is_noticed() -> None:
    """Negative control: the parts that a step introduces, and a statement that is not there."""
    theorem = THEOREMS["edelman2022"]
    assert unexplained(Derivation(replace(theorem, proof=theorem.proof[:4]), "gap")) == {"C_F", "G", "S(1)", "S(T)"}
    wrong = replace(theorem.proof[0], uses=("G99",))
    with pytest.raises(ValueError, match="'G99'"):
        Derivation(replace(theorem, proof=(wrong,)), "gap").statements()


def test_a_derivation_names_the_side_from_which_scores_are_covered() -> None:
    def cover(name: str, title: str) -> tuple[str, ...]:
        return next(step.uses for step in THEOREMS[name].steps("covering_number") if step.title == title)

    covers = "covers of the matrices"
    assert cover("edelman2022_head", covers) == ("A3", "A5", "S1", "S2", "T1", "T2")  # |W|_F follows from |W|_21
    assert cover("trauger2024", covers) == ("A3", "S3", "T3")
    assert cover("zhang2022", covers) == ("S3", "T4")


def test_values_are_put_into_the_statement_and_the_steps_stay_general() -> None:
    derivation = derive("edelman2022", values={"T": 512, "depth": 2, "heads": 1})
    assert {symbol.name for symbol in derivation.formula.inputs} == {"C", "m", "d", "gamma", "delta"}
    whole = THEOREMS["edelman2022"].gap.value(C=1, T=512, m=10**6, depth=2, d=64, heads=1, gamma=1, delta=0.05)
    assert derivation.formula.value(C=1, m=10**6, d=64, gamma=1, delta=0.05) == pytest.approx(whole, rel=1e-14)
    assert "$T = 512$" in derivation.definition
    assert "first row of $Z_{2}$" in derivation.definition
    assert derive("K1", values={"depth": 3}).formula == THEOREMS["K1"].formula("gap", depth=3)


_PRINT = """
from boundcalc.theorems.derivation import derive
from boundcalc.theorems import render
for name in ("edelman2022", "zhang2022", "X3"):
    derivation = derive(name)
    print(render.text(derivation), render.article(derivation), derivation.formula.code("javascript"))
"""


def test_the_order_of_hashes_changes_nothing() -> None:
    """Nor does it make simplification hang, as factoring large expressions did for some seeds."""
    command = [sys.executable, "-c", _PRINT]
    environments = [os.environ | {"PYTHONHASHSEED": seed} for seed in ("0", "5")]
    printed = {
        subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout
        for env in environments
    }
    assert len(printed) == 1


DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_theorems_is_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "_site"))
    import theorem_list  # type: ignore[import-not-found]

    page = (DOCS / "theorems.md").read_text(encoding="utf-8")
    assert page == theorem_list.document(page), "out of date: run `python docs/_site/theorem_list.py`"
    assert all(f"| `{name}` |" in page for name in THEOREMS)
