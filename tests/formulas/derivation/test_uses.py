"""Printed proofs list exactly the statements they use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from boundcalc import Setting, evaluate
from boundcalc.base.prose import plain
from boundcalc.formulas.derivation import derive
from boundcalc.formulas.theorems import THEOREMS
from boundcalc.setting import Budget, Normaliser, Norms
from boundcalc.statements.texts import STATEMENTS


@pytest.mark.parametrize("name", THEOREMS)
def test_what_a_theorem_rests_on_is_what_its_derivations_use(name: str) -> None:
    theorem = THEOREMS[name]
    used = {statement.name for which in theorem.quantities for statement in derive(name, which).statements()}
    assert theorem.uses == tuple(statement for statement in STATEMENTS if statement in used)


def test_a_derivation_names_the_side_from_which_scores_are_covered() -> None:
    def cover(name: str, title: str) -> tuple[str, ...]:
        return next(step.uses for _, step in derive(name, "covering_number").steps() if plain(step.title) == title)

    assert cover("edelman2022_head", "W_QK") == ("S1", "T1", "A5", "S2", "T2")  # |W|_F follows from |W|_21
    assert cover("trauger2024", "W_QK") == ("S3", "T3")
    assert cover("zhang2022", "W_V") == ("T4",)
    assert "S3" in cover("zhang2022", "W_QK")


def referred(distance: Budget) -> Setting:
    """A network whose value matrix is near a fixed one."""
    near = Budget(op=2.0, two_one=4.0, distance=distance)
    return Setting.of(norms=Norms(C=1.0, budgets={"W_V": near}), depth=1, d=8, seq_len=16, n_train=10**6, margin=0.5)


def test_distances_from_a_reference_and_derived_norms_are_named() -> None:
    steps = {plain(step.title): step.uses for _, step in derive(referred(Budget(op=0.5, two_one=0.5))).steps()}
    assert "T7" in next(uses for title, uses in steps.items() if title.startswith("W_V"))
    assert not any("T7" in uses for title, uses in steps.items() if not title.startswith("W_V"))
    steps = {plain(step.title): step.uses for _, step in derive(referred(Budget(op=0.5))).steps()}
    assert "A5" in next(uses for title, uses in steps.items() if title.startswith("W_V"))


@pytest.mark.parametrize(
    ("bound", "has", "lacks"),
    [("closed", {"T1", "T2"}, {"S3", "S4", "T7", "L8"}), ("trauger", {"S3", "L1"}, {"S1", "S2", "T1", "T7", "L8"})],
)
def test_a_certificate_lists_the_covers_it_chose(bound: str, has: set[str], lacks: set[str]) -> None:
    used = set(evaluate(Setting.of(depth=1, d=16, n_train=10**6, margin=0.5), bound).breakdown.statements)
    assert has <= used
    assert not lacks & used
    assert used <= set(STATEMENTS)
    assert "T7" in evaluate(referred(Budget(op=0.5, two_one=0.5)), bound).breakdown.statements
    two = evaluate(Setting.of(depth=1, d=16, heads=2, n_train=10**6, margin=0.5), bound)
    assert "L8" in two.breakdown.statements
    sigmoid = evaluate(Setting.of(depth=1, d=16, normaliser=Normaliser("sigmoid"), n_train=10**6, margin=0.5), bound)
    assert "L1" not in sigmoid.breakdown.statements


_PRINT = """
from boundcalc.formulas.derivation import derive
from boundcalc.formulas.theorems import THEOREMS
for name in ("edelman2022", "zhang2022", "X3"):
    derivation = derive(name)
    print(derivation.render("text"), derivation.render("latex"), THEOREMS[name].code("javascript"))
"""


def test_the_order_of_hashes_changes_nothing() -> None:
    """Nor does it make simplification hang, as factoring large expressions did for some seeds."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "5")
    }
    assert len(printed) == 1
