"""The tables of docs/certificates.md are made from the rows beside the examples, and what they say of goals holds."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from boundcalc.base.answers import clopper_pearson
from boundcalc.base.rounding import up
from boundcalc.predictors.plans import stops
from tests.examples.scripts import load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")


def rows(name: str) -> Any:
    found: Any = json.loads((ROOT / "examples" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def shown(mark: str) -> list[str]:
    """What the page shows after a mark, paragraph by paragraph."""
    return [part.strip() for part in PAGE.split(f"<!-- {mark}.json -->\n")[1].split("\n\n")]


def test_tables_are_those_of_the_rows() -> None:
    certificates, rules = load("", "certificates"), load("edelman2022", "rules")
    made = rows("edelman2022/rules")["rows"]
    assert shown("rows: examples/certificates")[0] == certificates.table(rows("certificates")).strip()
    assert shown("row: examples/certificates")[0] == certificates.row(rows("certificates")).strip()
    digits = load("", "certified_digits").table(rows("certified_digits"))
    assert shown("rows: examples/certified_digits")[0] == digits.strip()
    assert shown("rows: examples/edelman2022/rules")[:2] == [rules.table(made).strip(), rules.summary(made).strip()]


def test_no_certificate_lies_below_the_error_that_was_measured() -> None:
    made = [row for row in rows("certificates") if row["risk"] is not None]
    proved = rows("edelman2022/rules")["rows"]
    assert len(made) > 250
    assert len(proved) >= 200
    assert [row for row in made + proved if row["test_error"] > row["risk"] or row.get("nearest", 0) < 0] == []
    assert max(row["bytes"] for row in proved if "bytes" in row) <= 200_000


def test_digits_contradict_no_certificate() -> None:
    """A few hundred images measure roughly: the lower end of their interval counts, and the digits' goals."""
    made = rows("certified_digits")
    for row in made:
        n = 1797 - row["m"]
        assert clopper_pearson(round(row["test_error"] * n), n)[0] <= row["risk"]
    for task, m, goal in (("ten", 600, 0.105), ("ten", 1200, 0.066)):
        mine = [row["risk"] for row in made if (row["task"], row["m"], row["method"]) == (task, m, "p2l")]
        assert len(mine) == 5
        assert median(mine) <= goal


def test_what_the_planned_vision_transformer_would_certify() -> None:
    """The numbers of docs/certificates.md for its plan: picks that leave few errors, or many."""
    plan = stops(40_000, [64] * 16, [0, 256, 512, 1024], prefix=10_000)
    for stop, errors, shown in ((1024, 0, "0.028"), (256, 2000, "0.060")):
        (member,) = [member for member in plan if member.stop == stop]
        assert up(member.risk(errors, 50_000, 0.05 / len(plan)), 2) in (shown, shown.rstrip("0"))
        assert shown in PAGE
