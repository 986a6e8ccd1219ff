"""Derivations as text and Markdown; LaTeX is in `latex`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boundcalc.base.prose import plain
from boundcalc.formulas.derivation import latex
from boundcalc.formulas.derivation.step import Derivation, Relation, Step, Words
from boundcalc.formulas.symbolic.formula import Formula
from boundcalc.formulas.symbolic.printing import RELATIONS, case_text, text
from boundcalc.formulas.symbolic.printing import latex as tex
from boundcalc.setting.validate import choice

FORMATS = ("text", "markdown", "latex")
DETAIL = ("brief", "full")


def render(derivation: Derivation, form: str, *, steps: str = "full", fragment: bool = False) -> str:
    """A derivation in one of the formats; brief: the formula and the titles of its steps."""
    choice("format", form, FORMATS)
    full = choice("steps", steps, DETAIL) == "full"
    if form == "latex":
        return latex.document(derivation, full=full, fragment=fragment)
    return _text(derivation, full) if form == "text" else _markdown(derivation, full)


def _shown_steps(derivation: Derivation, full: bool) -> list[tuple[str, Step]]:
    """The numbered steps that are printed: all, or only those of the first level."""
    return [(number, step) for number, step in derivation.steps() if number and (full or "." not in number)]


# -- text


def _side(side: Any) -> str:
    return side.text if isinstance(side, Words) else text(side)


def _relation_text(relation: Relation) -> str:
    """A relation in plain text."""
    return f"{_side(relation.before)} {RELATIONS[relation.sign][1]} {_side(relation.after)}"


def _text(derivation: Derivation, full: bool) -> str:
    head = f"{derivation.name}: {plain(derivation.title)}"
    lines = [head, "", plain(derivation.claim), "", derivation.formula.text(), ""]
    if full:
        lines += ["Assumptions", *(f"  - {plain(line)}" for line in derivation.assumptions), ""]
    lines += ["Steps" if full else "In steps"]
    for number, step in _shown_steps(derivation, full):
        indent = "  " * (number.count(".") + 1)
        used = f"  [{', '.join(step.uses)}]" if step.uses else ""
        lines.append(f"{indent}{number}. {plain(step.title)}{used}")
        if step.relation is not None:
            lines.append(f"{indent}   {_relation_text(step.relation)}")
        if full:
            lines += [f"{indent}     {part.symbol} = {case_text(part.expr)}" for part in step.defines]
            lines.append(f"{indent}   because {plain(step.hypothesis)}")
    if full and derivation.differences:
        lines += ["", f"Where {derivation.source.authors} ({derivation.source.year}) have it otherwise"]
        lines += [f"  - {plain(line)}" for line in derivation.differences]
    if full:
        lines += ["", "Statements used"]
        for statement in derivation.statements():
            lines.append(f"  {statement.name}. {plain(statement.title)}")
            lines += [f"     {line}".rstrip() for line in plain(statement.entry.says).splitlines()]
        lines += ["", "Sources", *(f"  {source}" for source in latex.sources(derivation))]
    return "\n".join(lines) + "\n"


# -- Markdown


def _formula_markdown(formula: Formula) -> str:
    return f"$$\n{formula.latex()}\n$$"


def _relation_latex(relation: Relation, names: Mapping[Any, str]) -> str:
    """A relation in LaTeX."""
    sides = [side.latex if isinstance(side, Words) else tex(side, names) for side in (relation.before, relation.after)]
    return f"{sides[0]} {RELATIONS[relation.sign][0]} {sides[1]}"


def _markdown(derivation: Derivation, full: bool) -> str:
    names = derivation.names
    out = [
        f"# {derivation.title[:1].upper()}{derivation.title[1:]} (`{derivation.name}`)",
        "",
        derivation.claim,
        "",
    ]
    if full:
        out += ["## Assumptions", "", *(f"- {line}" for line in derivation.assumptions), "", "## Result", ""]
    out += [_formula_markdown(derivation.formula), "", "## Steps", ""]
    for number, step in _shown_steps(derivation, full):
        used = f" ({', '.join(step.uses)})" if step.uses else ""
        if full:
            out += [
                f"{'#' * min(6, 3 + number.count('.'))} {number}. {step.title}{used}",
                "",
                step.hypothesis + ".",
                "",
            ]
            if step.relation is not None:
                out += [f"$${_relation_latex(step.relation, names)}$$", ""]
            if step.defines:
                out += [f"- ${part.latex} = {tex(part.expr, names)}$ ({part.meaning})" for part in step.defines]
                out.append("")
        else:
            shown = "" if step.relation is None else f": ${_relation_latex(step.relation, names)}$"
            out.append(f"{number}. {step.title}{used}{shown}")
    if full:
        if derivation.differences:
            out += [
                "## What the paper has otherwise",
                "",
                *(f"- {line}" for line in derivation.differences),
                "",
            ]
        out += ["## Statements used", ""]
        for statement in derivation.statements():
            out += [f"**{statement.name}** ({statement.title}). {statement.entry.says}", ""]
        out += ["## Sources", "", *(f"- {source}" for source in latex.sources(derivation))]
    return "\n".join(out) + "\n"
