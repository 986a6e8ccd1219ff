"""Derivations as text, Markdown, HTML and JSON; LaTeX is in `latex`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from boundcalc.base.prose import plain
from boundcalc.formulas.derivation import latex
from boundcalc.formulas.derivation.step import Derivation, Relation, Step, Words
from boundcalc.formulas.symbolic.formula import Definition, Formula
from boundcalc.formulas.symbolic.printing import RELATIONS, case_text, equation, mathml, short_lambda, text
from boundcalc.formulas.symbolic.printing import latex as tex
from boundcalc.setting.validate import choice

FORMATS = ("text", "markdown", "latex", "html", "json")
DETAIL = ("brief", "full")
_UNICODE = {"le": "≤", "eq": "=", "ge": "≥"}


def render(derivation: Derivation, form: str, *, steps: str = "full", fragment: bool = False) -> str:
    """A derivation in one of the formats; brief: the formula and the titles of its steps."""
    choice("format", form, FORMATS)
    choice("steps", steps, DETAIL)
    if form == "latex":
        return latex.document(derivation, full=steps == "full", fragment=fragment)
    if fragment and form != "html":
        from boundcalc.base.errors import InvalidSetting

        raise InvalidSetting(f"fragment is for latex and html, not for {form}")
    if form == "html":
        return _html(derivation, full=steps == "full", fragment=fragment)
    writers: Mapping[str, Callable[[Derivation, bool], str]] = {"text": _text, "markdown": _markdown, "json": _json}
    return writers[form](derivation, steps == "full")


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


# -- HTML


_STYLE = """
body { font: 17px/1.5 Georgia, 'Times New Roman', serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3, h4 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
.math { overflow-x: auto; overflow-y: hidden; margin: .4rem 0; padding: .2rem 0; }
.why { color: #444; } .uses { color: #666; font-weight: normal; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
code { font-size: .85em; white-space: pre-wrap; } details { margin: .4rem 0; }
"""


def _math(inner: str) -> str:
    return f'<div class="math"><math display="block"><mrow>{inner}</mrow></math></div>'


def _side_mathml(side: Any, names: Mapping[Any, str]) -> str:
    return f"<mtext>{escape(side.text)}</mtext>" if isinstance(side, Words) else mathml(side, names)


def _relation_mathml(relation: Relation, names: Mapping[Any, str]) -> str:
    sign = f"<mo>{_UNICODE[relation.sign]}</mo>"
    return _math(_side_mathml(relation.before, names) + sign + _side_mathml(relation.after, names))


def _definition_mathml(part: Definition, names: Mapping[Any, str]) -> str:
    return _math(f"{mathml(part.symbol, names)}<mo>=</mo>{mathml(part.expr, names)}")


def _words(prose: str) -> str:
    return escape(plain(prose))


def _paragraphs(prose: str) -> str:
    return "".join(f"<p>{escape(part)}</p>" for part in plain(prose).split("\n\n"))


def _html(derivation: Derivation, *, full: bool, fragment: bool) -> str:
    names, formula = derivation.names, derivation.formula
    head = f"<mtext>{escape(formula.name)}</mtext><mo>{_UNICODE[formula.relation]}</mo>"
    out = [
        f"<h1>{_words(derivation.title[0].upper() + derivation.title[1:])}</h1>",
        f"<p>{_words(derivation.claim)}</p>",
    ]
    if full:
        out += ["<h2>Assumptions</h2><ul>", *(f"<li>{_words(line)}</li>" for line in derivation.assumptions), "</ul>"]
    out += ["<h2>Result</h2>", _math(head + mathml(formula.expr, names))]
    out += [_definition_mathml(part, names) for part in formula.where]
    if formula.uses_lambda:
        constant, short, wide = short_lambda(formula)
        right = f"{mathml(short, names)}<mtext>, w</mtext><mo>=</mo>{mathml(wide, names)}"
        out.append(_math(f"{mathml(constant, names)}<mo>=</mo>{right}"))
    out.append("<h2>Steps</h2>")
    for number, step in _shown_steps(derivation, full):
        level = min(6, 3 + number.count("."))
        used = f' <span class="uses">({escape(", ".join(step.uses))})</span>' if step.uses else ""
        out.append(f"<h{level}>{number}. {_words(step.title)}{used}</h{level}>")
        if full:
            out.append(f'<p class="why">{_words(step.hypothesis)}.</p>')
        if step.relation is not None:
            out.append(_relation_mathml(step.relation, names))
        if full:
            out += [_definition_mathml(part, names) for part in step.defines]
    if full:
        if derivation.differences:
            out += ["<h2>What the paper has otherwise</h2><ul>"]
            out += [*(f"<li>{_words(line)}</li>" for line in derivation.differences), "</ul>"]
        out.append("<h2>Statements used</h2>")
        for statement in derivation.statements():
            out.append(
                f"<details><summary><b>{statement.name}</b> {_words(statement.title)}</summary>"
                f"{_paragraphs(statement.entry.says)}{_paragraphs(statement.entry.proof)}</details>"
            )
        out += ["<h2>Sources</h2><ul>", *(f"<li>{escape(str(s))}</li>" for s in latex.sources(derivation)), "</ul>"]
    body = "\n".join(out)
    if fragment:
        return body + "\n"
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n<title>{_words(derivation.title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


# -- JSON


def _relation_json(relation: Relation, names: Mapping[Any, str]) -> dict[str, str]:
    return {"text": _relation_text(relation), "latex": _relation_latex(relation, names)}


def _part_json(part: Definition, names: Mapping[Any, str]) -> dict[str, str]:
    return {
        "symbol": str(part.symbol),
        "latex": f"{part.latex} = {tex(part.expr, names)}",
        "text": text(part.expr),
        "meaning": part.meaning,
    }


def _step_json(step: Step, names: Mapping[Any, str], full: bool) -> dict[str, Any]:
    return {
        "title": step.title,
        "uses": list(step.uses),
        "hypothesis": step.hypothesis,
        "relation": None if step.relation is None else _relation_json(step.relation, names),
        "where": [_part_json(part, names) for part in step.where],
        "steps": [_step_json(child, names, full) for child in step.children] if full else [],
    }


def _json(derivation: Derivation, full: bool) -> str:
    names, formula = derivation.names, derivation.formula
    out = {
        "name": derivation.name,
        "title": derivation.title,
        "claim": derivation.claim,
        "kind": formula.kind,
        "quantity": formula.name,
        "formula": {"text": text(formula.expr), "latex": equation(formula)},
        "where": [_part_json(part, names) for part in formula.where],
        "inputs": [str(symbol) for symbol in formula.inputs],
        "assumptions": list(derivation.assumptions),
        "steps": [_step_json(step, names, full) for step in derivation.root.children],
        "differences": list(derivation.differences),
        "source": f"stated by {derivation.stated_by}" if derivation.stated_by else str(derivation.source),
    }
    return json.dumps(out, indent=1, ensure_ascii=False) + "\n"
