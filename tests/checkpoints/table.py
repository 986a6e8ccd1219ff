"""Writes the table of families into docs/weights.md from forward checks: `python -m tests.checkpoints.table`.

Every row is a small model with random weights, run through the library in double precision and through the architecture
its adapter reads; what is recorded is how many inner places were compared.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from boundcalc.checkpoints.audit import open_model
from boundcalc.checkpoints.describe import describe
from boundcalc.checkpoints.families import FAMILIES
from boundcalc.checkpoints.parity import ROUNDING, Parity, compare
from boundcalc.checkpoints.readers import open_checkpoint

DOCS = Path(__file__).resolve().parents[2] / "docs" / "weights.md"
_TABLE = re.compile(r"<!-- table: python -m tests\.checkpoints\.table -->\n(?P<table>(?:\|[^\n]*\n)+)")
WITHOUT = {"boundcalc": "its own models, which tests hold against what trains them"}
"""Families that no class of the library is behind."""


def rows() -> list[str]:
    """The table, row by row."""
    from tests.checkpoints.layouts import LAYOUTS, made
    from tests.checkpoints.zoo import ZOO

    checks: dict[str, tuple[dict[str, None], list[int]]] = {}

    def add(family: str, name: str, parity: Parity) -> None:
        assert parity.worst <= parity.tolerance == ROUNDING, name  # also where the library computes in single precision
        assert len(parity.places) >= 10, name
        names, places = checks.setdefault(family, ({}, []))
        names[name] = None
        places.append(len(parity.places))

    for kind in ZOO.values():
        module = kind.make()
        seen = open_model(module)
        add(seen.family.name, kind.cls, compare(module, seen))
    assert set(checks) | set(WITHOUT) == set(FAMILIES)
    for name in LAYOUTS:
        module = made(name)
        add("described by itself", name, describe(module, open_checkpoint(module))[1])
    body = [f"| {family} | {', '.join(names)} | {sum(places)} |" for family, (names, places) in checks.items()]
    return ["| family | compared with | places compared |", "| --- | --- | ---: |", *body]


def shown() -> str:
    """The table in the docs."""
    match = _TABLE.search(DOCS.read_text(encoding="utf-8"))
    assert match is not None
    return match["table"]


def main() -> None:
    """Refresh the table."""
    text = DOCS.read_text(encoding="utf-8")
    start = "<!-- table: python -m tests.checkpoints.table -->\n"
    DOCS.write_text(_TABLE.sub(lambda _: start + "\n".join(rows()) + "\n", text), encoding="utf-8")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
