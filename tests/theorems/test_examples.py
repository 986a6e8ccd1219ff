"""The examples that import theorems run, and the paper they generate compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from boundcalc.theorems import THEOREMS

ROOT = Path(__file__).parents[2]


def test_the_page_of_theorems_is_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    import theorem_list  # type: ignore[import-not-found]

    page = (ROOT / "docs" / "theorems.md").read_text(encoding="utf-8")
    assert page == theorem_list.document(page), "out of date: run `python docs/_site/theorem_list.py`"
    assert all(f"| `{name}` |" in page for name in THEOREMS)
