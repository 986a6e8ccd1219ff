"""Writes docs/theorems.md: `python -m boundcalc.formulas.theorems.document`, from the root of the repository."""

from __future__ import annotations

from pathlib import Path

from boundcalc.formulas.theorems.table import document

if __name__ == "__main__":
    Path("docs/theorems.md").write_text(document(), encoding="utf-8")
