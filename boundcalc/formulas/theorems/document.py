"""Writes docs/theorems.md: `python -m boundcalc.formulas.theorems.document`, from the root of the repository."""

from __future__ import annotations

from pathlib import Path

from boundcalc.base.output import write_text
from boundcalc.formulas.theorems.table import document

if __name__ == "__main__":
    write_text(Path("docs/theorems.md"), document(), force=True)
