"""Writes the list in docs/theorems.md: `python docs/_site/theorem_list.py`."""

from __future__ import annotations

import re
from pathlib import Path

from boundcalc.theorems import THEOREMS
from boundcalc.theorems.theorem import Theorem

PAGE = Path(__file__).parents[1] / "theorems.md"
_MARKS = ("<!-- theorems -->", "<!-- end of theorems -->")


def table() -> str:
    """One row per theorem: what it bounds, whether it depends on T, what it uses, where it is from."""
    rows = [("theorem", "about", "depends on T", "formulas of", "covers", "source"), ("---",) * 6]
    for theorem in THEOREMS.values():
        length = "log T" if "T" in {symbol.name for symbol in theorem.explicit.inputs} else "no"
        covers = ", ".join(name for name in theorem.uses() if name[0] == "T") or "none"
        quantities = ", ".join(theorem.quantities)
        rows.append((f"`{theorem.name}`", theorem.title, length, quantities, covers, theorem.source.short))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def entry(theorem: Theorem) -> str:
    """What the page says of one theorem."""
    lines = [
        f"## {theorem.title[0].upper()}{theorem.title[1:]}: `{theorem.name}`",
        theorem.statement,
        str(theorem.source),
    ]
    lines += ["Assumes:", "\n".join(f"- {line}" for line in theorem.assumed())]
    lines += [f"Explicit ({theorem.compares.replace('_', ' ')}):", f"$$\n{theorem.explicit.latex()}\n$$"]
    lines += [f"Published shape ({theorem.published_note}):", f"$$\n{theorem.published.latex()}\n$$"]
    if theorem.differences():
        lines += ["Differs:", "\n".join(f"- {line}" for line in theorem.differences())]
    return "\n\n".join(lines)


def document(old: str) -> str:
    """The page with the part between its marks written anew."""
    body = "\n\n".join([table(), *map(entry, THEOREMS.values())])
    pattern = re.compile(f"{_MARKS[0]}.*{_MARKS[1]}", re.DOTALL)
    return pattern.sub(lambda _: f"{_MARKS[0]}\n\n{body}\n\n{_MARKS[1]}", old)


if __name__ == "__main__":
    PAGE.write_text(document(PAGE.read_text("utf-8")), "utf-8")
