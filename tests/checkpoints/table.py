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


def checked(name: str) -> tuple[str, str, Parity]:
    """The family, the class and the forward check of a small model."""
    from tests.checkpoints.zoo import ZOO

    module = ZOO[name].make()
    seen = open_model(module)
    parity = compare(module, seen)
    assert parity.tolerance == ROUNDING, name  # also of such as the library computes in single precision
    assert len(parity.places) >= 10, name
    return seen.family.name, ZOO[name].cls, parity


def rows() -> list[str]:
    """The table, row by row."""
    from tests.checkpoints.layouts import LAYOUTS, made
    from tests.checkpoints.zoo import ZOO

    checks: dict[str, tuple[list[str], int, float]] = {}

    def add(family: str, cls: str, parity: Parity) -> None:
        names, places, worst = checks.get(family, ([], 0, 0.0))
        checks[family] = (
            [*dict.fromkeys([*names, cls])],
            places + len(parity.places),
            max(worst, parity.worst),
        )

    for name in ZOO:
        add(*checked(name))
    assert set(checks) | set(WITHOUT) == set(FAMILIES)
    for name in LAYOUTS:
        module = made(name)
        add("described by itself", name, describe(module, open_checkpoint(module))[1])
    assert all(worst <= ROUNDING for _, _, worst in checks.values())
    body = [f"| {family} | {', '.join(names)} | {places} |" for family, (names, places, _) in checks.items()]
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
