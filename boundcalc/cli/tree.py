"""The proof of a bound as a tree with its numbers (`boundcalc eval --explain`)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import click
from flint import arb

from boundcalc.base.intervals import upper_log
from boundcalc.base.rounding import percent
from boundcalc.cli.report import Report
from boundcalc.cli.text import bar, room, say
from boundcalc.cli.values import upper
from boundcalc.proof.breakdown import Breakdown, LevelParts, Part
from boundcalc.statements.strategies import STRATEGIES

_LN10 = 2.302585092994046
_MOST_PIECES = 12
"""Pieces of a level that are shown; the rest are summed up."""
_WIDE = 200


def show_proofs(report: Report, *, all_bounds: bool) -> None:
    """Print the proofs of the best bound, or of all that were requested."""
    for value in report.bounds:
        if value.refusal is not None or not (all_bounds or value is report.best):
            continue
        proofs = [proof for proof in value.proofs if not proof.trivial]
        if not proofs:
            say(f"\n{value.name}: gap trivial: every covering argument gives a bound above 1")
        for proof in proofs:
            say()
            _show(value.name, proof.breakdown)
    say("\nboundcalc explain NAME shows a statement in full.")


def _show(name: str, parts: Breakdown) -> None:
    """The value, what it is made of, and what that is made of, each below and to the right."""
    certificate = parts.certificate
    counted = STRATEGIES[certificate.strategy].counted
    lines = [(0, f"{name}: {certificate.quantity} <= {_number(parts.value)} by {certificate.strategy}")]
    lines.append((1, parts.formula))
    for term in parts.terms:
        by = f"   [{term.statement}]" if term.statement else ""
        lines.append((2, f"{term.formula} = {_number(term.value)}{by}"))
    for j, level in enumerate(parts.levels, start=1):
        lines.append((1, _level_line(j, len(parts.levels), level, counted)))
        lines += [(2, text) for text in _piece_lines(level.parts, counted)]
    lines.append((1, "statements: " + " ".join(dict.fromkeys(parts.statements))))
    for depth, text in lines:
        hanging = "  " * depth
        click.echo(
            "\n".join(textwrap.wrap(text, room() or _WIDE, initial_indent=hanging, subsequent_indent=hanging + "  "))
        )


def _level_line(j: int, count: int, level: LevelParts, counted: str) -> str:
    name = f"level {j}: " if count > 1 else ""
    link = "" if level.link is None else f", link {_number(level.link)}"
    return f"{name}scale {_number(level.scale)}, {counted} {_number(level.count)}{link}"


def _piece_lines(parts: Sequence[Part], counted: str) -> list[str]:
    shown = sorted(parts, key=lambda part: -part.share)[:_MOST_PIECES] if len(parts) > _MOST_PIECES + 1 else parts
    width = max(len(part.key) for part in shown) if shown else 0
    lines = [
        f"{part.key:{width}}  {'/'.join(part.lemmas):3} eps {_number(part.eps):>9}  error {_number(part.error):>9}  "
        f"{counted} {_number(part.count):>9} {percent(part.share):>5} {bar(part.share)}".rstrip()
        for part in shown
    ]
    rest = len(parts) - len(shown)
    if rest:
        lines.append(f"and {rest} more pieces with {percent(1 - sum(part.share for part in shown))} of {counted}")
    return lines


def _number(x: arb) -> str:
    log = upper_log(x)
    return "1" if -1e-9 < log <= 0 else upper(log / _LN10)
