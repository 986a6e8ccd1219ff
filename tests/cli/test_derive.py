"""`boundcalc derive`."""

from __future__ import annotations

import pytest

from boundcalc.theorems import edelman2022

from .conftest import printed


def test_a_theorem_is_brief_by_default_and_fits_the_terminal() -> None:
    text = printed("derive")
    assert "G = D - 1 if r = 1" in text
    assert "7. Chaining in one line (Lemmas G1, G2)" in text
    assert "with probability at least 1-δ over the sample" in " ".join(text.split())
    assert len(text.splitlines()) < 60
    assert len(printed("derive --detail full")) > 5 * len(text)


def test_numbers_are_put_in() -> None:
    assert "C^2" not in printed("derive --set C=2 --detail formula")
    assert "G_3 = " in printed("derive --bound K1 --depth 3")


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_code_is_that_of_the_formula(language: str) -> None:
    """Which runs and has the formula's values: tests/theorems/test_formulas.py."""
    assert printed(f"derive --format {language}") == edelman2022.gap.code(language)


def test_a_formula_alone_and_a_citation() -> None:
    assert printed("derive --detail formula --format latex").startswith(r"\begin{aligned}")
    assert printed("derive --bound trauger2024 --format bibtex").startswith("@")
