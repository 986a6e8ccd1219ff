"""The proof of a bound as a tree with its numbers (`boundcalc eval --explain`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boundcalc.base.rounding import percent
from boundcalc.cli.report import Report
from boundcalc.cli.text import bar, say, say_tree
from boundcalc.cli.values import upper
from boundcalc.proof.breakdown import Breakdown, LevelParts, Part
from boundcalc.statements.strategies import STRATEGIES

if TYPE_CHECKING:
    from rich.tree import Tree

    from boundcalc.base.numbers import LogFloat
    from boundcalc.engine.bound import BoundValue

_LN10 = 2.302585092994046
_MOST_PIECES = 12
"""Pieces of a level that are shown; the rest are summed up."""


def show_proofs(report: Report, *, all_bounds: bool) -> None:
    """Print the proofs of the best bound, or of all that were requested."""
    best = report.best
    for row in report.rows:
        value = row.value
        if value.refusal is not None or not (all_bounds or value is best):
            continue
        for tree in _trees(value):
            say()
            say_tree(tree)
    say("\nboundcalc explain NAME shows a statement in full.")


def _trees(value: BoundValue) -> list[Tree]:
    proofs = [proof for proof in value.proofs if not proof.trivial]
    if not proofs:
        from rich.text import Text
        from rich.tree import Tree

        return [Tree(Text(f"{value.name}: gap trivial: every covering argument gives a bound above 1"))]
    return [_tree(value.name, proof.breakdown) for proof in proofs]


def _tree(name: str, parts: Breakdown) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    certificate = parts.certificate
    tree = Tree(Text(f"{name}: {certificate.quantity} <= {_number(parts.value)} by {certificate.strategy}"))
    how = tree.add(Text(parts.formula))
    for term in parts.terms:
        how.add(Text(f"{term.formula} = {_number(term.value)}" + (f"   [{term.statement}]" if term.statement else "")))
    counted = STRATEGIES[certificate.strategy].counted
    for j, level in enumerate(parts.levels, start=1):
        branch = tree.add(Text(_level_line(j, len(parts.levels), level, counted)))
        for text in _piece_lines(level.parts, counted):
            branch.add(Text(text))
    tree.add(Text("statements: " + " ".join(_counted(parts.statements))))
    return tree


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


def _counted(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _number(x: LogFloat) -> str:
    if -1e-9 < x.log <= 0 and x.sign:
        return "1"
    return upper(x.log / _LN10) if x.sign else "0"
