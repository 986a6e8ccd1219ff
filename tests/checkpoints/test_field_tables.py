"""docs/config.md is what the tables of families say. `python -m tests.checkpoints.test_field_tables` writes it anew."""

from __future__ import annotations

from pathlib import Path

from boundcalc.checkpoints import FAMILIES
from boundcalc.checkpoints.families import NOT_YET
from boundcalc.checkpoints.families.fields import COMMON, NEEDED, ConfigField, Fields

PAGE = Path(__file__).parents[2] / "docs" / "config.md"
HEAD = """# What the fields of a config.json mean to a bound

Generated from the tables in `boundcalc/checkpoints/families/` by `python -m tests.checkpoints.test_field_tables`.

Nothing in a config.json is ignored. A field is *used* (the architecture is built from it), *agrees* with the tensors (which
say it too: else one of them is wrong), has *only* the values listed, or is *neutral* for the reason given. Where a field says
something else, or is in neither its family's table nor the common one, `boundcalc norms` says that it is doubted and
`boundcalc certify` refuses. `--set FIELD=null` says that the model does not read a field; null says nothing anywhere.
"""


def _value(entry: ConfigField) -> str:
    if entry.use == "only":
        listed = entry.permitted is not None
        return "" if listed else " or ".join(f"`{value!r}`" for value in (entry.default, *entry.allowed))
    return f"default `{entry.default!r}`" if entry.use == "used" and entry.default not in (None, NEEDED) else ""


def _table(fields: Fields) -> list[str]:
    rows: dict[tuple[str, str, str], list[str]] = {}
    for name, entry in fields.items():
        rows.setdefault((entry.use, _value(entry), entry.text), []).append(f"`{name}`")
    lines = ["| use | fields | values | what for, or why |", "| --- | --- | --- | --- |"]
    order = ("used", "agrees", "only", "neutral")
    for (use, value, text), names in sorted(rows.items(), key=lambda row: order.index(row[0][0])):
        lines.append(f"| {use} | {', '.join(names)} | {value} | {text} |")
    return lines


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## Every family of the transformers library\n", *_table(COMMON), ""]
    for family in FAMILIES.values():
        if not family.fields:
            continue
        parts += [f"## {family.name}\n", f"Types: {', '.join(f'`{kind}`' for kind in family.model_types)}."]
        if family.aliases:
            parts.append("Also read: " + ", ".join(f"`{a}` for `{b}`" for a, b in family.aliases.items()) + ".")
        parts += ["", *_table(family.fields), ""]
    parts += ["## Types that have no bound\n", "| type | why |", "| --- | --- |"]
    return "\n".join([*parts, *(f"| `{kind}` | {why} |" for kind, why in NOT_YET.items())]) + "\n"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
