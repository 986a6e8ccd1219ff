"""The examples that import theorems run, and the paper they generate compiles."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from boundcalc import Setting, evaluate
from boundcalc.theorems import THEOREMS
from boundcalc.theorems.page import document, table
from tests.examples.scripts import load
from tests.theorems.test_article import compiled, needs_tex

ROOT = Path(__file__).parents[2]


def test_a_bound_is_imported_in_ten_lines() -> None:
    equation, gap, citation = load("", "import_a_bound").main()
    assert r"R(f)-\hat R_\gamma(f) &\le" in equation
    assert citation.startswith("@inproceedings{edelman2022")
    checked = 10 ** evaluate(Setting.of(C=1.0, depth=2, seq_len=512, n_train=10**9, margin=0.5), "closed").log10
    assert gap == pytest.approx(checked, rel=1e-11)


@needs_tex
def test_the_paper_compiles_and_its_numbers_are_the_librarys(tmp_path: Path) -> None:
    written = load("paper", "make").main(tmp_path)
    assert {path.name for path in written} >= {"bound.tex", "table.tex", "numbers.tex", "boundcalc.bib"}
    shutil.copy(ROOT / "examples" / "paper" / "paper.tex", tmp_path)
    assert compiled(tmp_path, "paper") == []
    rows = [line.split("&") for line in (tmp_path / "table.tex").read_text().splitlines() if line[:1].isdigit()]
    assert len(rows) == 9
    assert all(formula.strip() == checked.strip().removesuffix(r"\\").strip() for _, _, formula, checked in rows)


def test_the_page_of_theorems_is_the_registry() -> None:
    page = (ROOT / "docs" / "theorems.md").read_text(encoding="utf-8")
    assert page == document(page), "docs/theorems.md is out of date: run `python -m boundcalc.theorems.page`"
    for name in THEOREMS:
        assert f"| `{name}` |" in table()
