r"""Derivations as LaTeX: a standalone article, or fragments for \input, with macros and bibliography to share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import sympy

from boundcalc.base import prose, symbols, theory
from boundcalc.base.sources import HERE, Source
from boundcalc.base.statement import Statement
from boundcalc.formulas.derivation.step import Derivation, Relation, Step, Words
from boundcalc.formulas.symbolic.formula import Definition, Formula
from boundcalc.formulas.symbolic.functions import COLUMNS, POINTS
from boundcalc.formulas.symbolic.printing import RELATIONS, lambda_latex, left_hand_side, short_lambda
from boundcalc.formulas.symbolic.printing import latex as tex
from boundcalc.formulas.symbolic.shorten import LINE, shortened, widest_term, width
from boundcalc.statements.covers import MatrixPerceptron

MACROS = "boundcalc-macros"
_BIBLIOGRAPHY = "boundcalc"
_STATEMENTS_FILE = "boundcalc-statements"
_COLUMNS_WIDE = {1: 1.0, 2: 0.5}
"""The width of a column beside that of a page with one, by how many a page has."""
_TERMS = 52.0
"""Rough width of what fits on a line of the article after the sign of relation."""

_MACRO_FILE = r"""% Macros for what boundcalc derives (written anew each time): \input this in the preamble, after amsthm.
% Theorems and lemmas are the article's own (theorem or thm, lemma or lem) where it has such environments.
\providecommand{\eps}{\varepsilon}
\providecommand{\gap}{\mathrm{gap}}
\providecommand{\boundcalcheading}[1]{\subsection*{#1}}
\providecommand{\boundcalcstep}[2]{\par\medskip\noindent\textbf{Step #1} (#2).\ \ignorespaces}
\makeatletter
\newcommand{\boundcalc@borrow}[4]{%
  \@ifundefined{#3}{\@ifundefined{#4}{\newtheorem{#1}{#2}}{\newenvironment{#1}{\begin{#4}}{\end{#4}}}}%
    {\newenvironment{#1}{\begin{#3}}{\end{#3}}}}
\AtBeginDocument{%
  \boundcalc@borrow{boundcalctheorem}{Theorem}{theorem}{thm}%
  \boundcalc@borrow{boundcalclemma}{Lemma}{lemma}{lem}}
\makeatother
"""

_PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=1.1in]{geometry}
\usepackage{amsmath,amssymb,amsthm}
\usepackage{microtype}
\usepackage[hidelinks]{hyperref}
\newcommand{\boundcalcheading}[1]{\section{#1}}
\input{boundcalc-macros}
"""
_BEGIN = "\\begingroup\\emergencystretch=3em\\allowdisplaybreaks\n"
_END = "\\par\\endgroup\n"


def sources(derivation: Derivation) -> list[Source]:
    """Every source that is cited, this library last; of a theorem of one's own, what its author cites is the author's."""
    found = {} if derivation.stated_by else {derivation.source.key: derivation.source}
    for statement in derivation.statements():
        for cited in (statement.source, *prose.cited(f"{statement.entry.says} {statement.entry.proof}")):
            found.setdefault(cited.key, cited)
    found.pop(HERE.key, None)
    return [*found.values(), *([] if derivation.stated_by else [HERE])]


def _bibliography(derivation: Derivation, there: str = "") -> str:
    """The .bib file; what a file of other derivations has stays."""
    old = [entry.strip() for entry in re.split(r"\n(?=@)", there) if entry.strip().startswith("@")]
    known = {entry.partition("{")[2].partition(",")[0] for entry in old}
    new = [source.bibtex for source in sources(derivation) if source.key not in known]
    return "\n\n".join([*old, *new]) + "\n"


def _statements(derivation: Derivation, there: str = "") -> str:
    """The statements used, each once; those in a file of other derivations stay."""
    from boundcalc.statements.texts import STATEMENTS

    names = {*_MARK.findall(there), *(statement.name for statement in derivation.statements())}
    body = "\n".join(line for name in STATEMENTS if name in names for line in _statement(STATEMENTS[name]))
    head = "\\boundcalcheading{Notation}\n\\raggedright\n" + prose.tex(theory.notation())
    return f"{_BEGIN}{head}\n\\boundcalcheading{{Statements used}}\n{body}\n{_END}"


_MARK = re.compile(r"^% statement (\w+)$", re.MULTILINE)


def files(
    derivation: Derivation,
    *,
    full: bool = True,
    fragment: bool = False,
    columns: int = 1,
    there: Mapping[str, str] | None = None,
) -> dict[str, str]:
    r"""All files: the article, the macros and the bibliography.

    As fragments: the theorem, its proof (for an appendix, in one column), and what derivations share: statements (where
    all is shown), macros, bibliography. `there`: shared files of other derivations, which are added to.
    """
    stem, there = _file(derivation), there or {}
    shared = {
        f"{MACROS}.tex": _MACRO_FILE,
        f"{_BIBLIOGRAPHY}.bib": _bibliography(derivation, there.get(f"{_BIBLIOGRAPHY}.bib", "")),
    }
    if not fragment:
        return {f"{stem}.tex": document(derivation, full=full), **shared}
    if full:
        name = f"{_STATEMENTS_FILE}.tex"
        shared = {name: _statements(derivation, there.get(name, "")), **shared}
    line = _COLUMNS_WIDE[columns]
    return {
        f"{stem}.tex": _theorem_file(derivation, line),
        f"{stem}-proof.tex": _proof_file(derivation, full=full),
        **shared,
    }


def _file(derivation: Derivation) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", derivation.name).strip("-")


def _theorem_file(derivation: Derivation, line: float = 1.0) -> str:
    r"""What is proved, to be \input where the article states it."""
    body = "\n".join(_claim(derivation, line))
    head = f"% \\input after \\input{{{MACROS}}} in the preamble; label {_label(derivation.name)}, "
    return f"{head}proof in {_file(derivation)}-proof.tex\n{_BEGIN}{body}\n{_END}"


def _proof_file(derivation: Derivation, *, full: bool) -> str:
    r"""How it is proved, to be \input in one column; where all is shown, before the statements used."""
    out = [f"\\boundcalcheading{{Proof of Theorem~\\ref{{{_label(derivation.name)}}}}}"]
    if derivation.stated_by:
        out = [f"% Theorem {derivation.name} is {derivation.stated_by}'s, whose proof is not given here."]
    else:
        out += _proof(derivation, full=full)
    return _BEGIN + "\n".join(out) + "\n" + _END


def document(derivation: Derivation, *, full: bool, fragment: bool = False) -> str:
    r"""The article, or what goes between its \begin{document} and \end{document}."""
    out = _claim(derivation, 1.0)
    if not derivation.stated_by:
        out += ["\\boundcalcheading{Proof}", *_proof(derivation, full=full)]
    if full and derivation.statements():
        out.append(_statements(derivation))
    body = _BEGIN + "\n".join(out) + "\n" + _END
    if fragment:
        return f"% \\input this after \\input{{{MACROS}}}; labels start with {_label(derivation.name)}\n{body}"
    title = prose.tex(derivation.title[0].upper() + derivation.title[1:])
    cites = f"\\bibliographystyle{{plain}}\n\\bibliography{{{_BIBLIOGRAPHY}}}\n" if sources(derivation) else ""
    return (
        f"{_PREAMBLE}\\title{{{title}}}\n\\author{{generated by boundcalc}}\n\\date{{}}\n"
        f"\\begin{{document}}\n\\maketitle\n{body}\n{cites}\\end{{document}}\n"
    )


def _label(*parts: str) -> str:
    return "bc:" + ":".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in parts)


def _cite(source: Source) -> str:
    return f"\\cite{{{source.key}}}"


_SATISFIES: Mapping[str, str] = {
    "gap": r"Write $L(f)$ for the expected loss of a network $f$ of this class, $\hat L(f)$ for its mean loss over the "
    r"sample, and $\mathrm{gap} = \sup_f(L(f)-\hat L(f))$, so that $L(f)\le\hat L(f)+\mathrm{gap}$ for every $f$. With "
    r"probability at least $1-\delta$ over the sample,",
    "excess": r"Let $\hat f$ minimise the mean loss over the sample, and write $\mathrm{excess}$ for its expected loss minus "
    r"the least of this class. With probability at least $1-2\delta$ over the sample,",
    "covering_number": r"On every sample the class has a cover at scale $\varepsilon$, in the largest error over the "
    r"sample, of $N(\mathcal F,\varepsilon)$ functions with",
    "rademacher": "The Rademacher complexity of the losses of this class over the sample satisfies",
    "sample_complexity": r"With probability at least $1-\delta$ over the sample, the expected loss of every network of this "
    r"class exceeds its mean loss over the sample by at most $t$ as soon as $m$ (which the right side holds, too) satisfies",
}
"""What a theorem says before its formula, by quantity."""


def _claim(derivation: Derivation, line: float) -> list[str]:
    cited = "" if derivation.source == HERE else f"[after {_cite(derivation.source)}, all constants explicit]"
    if derivation.stated_by:
        cited = f"[{_cite(derivation.source) if derivation.source.key else prose.tex(derivation.stated_by)}]"
    out = [f"\\begin{{boundcalctheorem}}{cited}\\label{{{_label(derivation.name)}}}"]
    assumed = "; ".join(prose.tex(words) for words in derivation.assumptions)
    fixed = ", ".join(f"${symbols.latex(name)} = {tex(value)}$" for name, value in derivation.values.items())
    says = "" if derivation.stated_by else prose.tex(derivation.claim)
    out += [part for part in (says, f"\\emph{{Assumptions:}} {_sentence(assumed)}", fixed and f"Here {fixed}.") if part]
    out.append(_SATISFIES.get(derivation.formula.name, "Then") if not derivation.stated_by else "Then")
    return [*out, *_result(derivation, line), "\\end{boundcalctheorem}"]


def _proof(derivation: Derivation, *, full: bool) -> list[str]:
    out = _symbol_table(derivation) if full else []
    for number, step in derivation.steps():
        if number and (full or "." not in number):
            out += _step(number, step, derivation.names, full=full)
    out += ["", "With every part put in, the last step is the theorem.\\hfill$\\square$"]
    if full and derivation.differences:
        out += ["", "\\paragraph{Differences from the paper.}", "\\begin{itemize}"]
        out += [f"\\item {_sentence(prose.tex(line))}" for line in derivation.differences]
        out.append("\\end{itemize}")
    cited = sources(derivation)
    if HERE in cited:
        out += ["", f"Statements without a source are this library's {_cite(HERE)}."]
    return out + [f"\\nocite{{{source.key}}}" for source in cited if source not in (derivation.source, HERE)]


def _sentence(text: str) -> str:
    first = text[:1].upper() + text[1:] if text[:1].islower() else text
    return first if first.endswith(".") else first + "."


# -- displays


def _rows(
    left: str,
    sign: str,
    expr: Any,
    names: Mapping[Any, str],
    *,
    taken: float = 0.0,
    line: float = 1.0,
    numbers: Iterator[int] | None = None,
) -> list[str]:
    """`left & sign expr` in as many rows as needed: broken before the terms of a sum, or with abbreviations.

    `taken` is how much of the width the longest left-hand side of the display takes beyond the usual; `line`, how wide
    the column is next to a page's; `numbers` those of abbreviations.
    """
    if not isinstance(expr, sympy.Expr) or widest_term(expr) <= line * LINE - taken:
        return _broken(left, sign, expr, names, line)
    main, *parts = shortened(
        [Definition(sympy.Symbol("left"), expr, "", left)],
        letter="v",
        limit=0.75 * line * LINE - taken,
        numbers=numbers,
    )
    lines = _broken(left, sign, main.expr, names, line)
    for part in parts:
        first, *rest = _broken(part.latex, "=", part.expr, names, line)
        lines += [f"&\\qquad \\text{{with }} {first.replace('&', '')}", *rest]
    return lines


def _broken(left: str, sign: str, expr: Any, names: Mapping[Any, str], line: float) -> list[str]:
    terms = sympy.Add.make_args(expr) if isinstance(expr, sympy.Expr) else (expr,)
    if not isinstance(expr, sympy.Add) or width(expr) <= line * _TERMS:
        return [f"{left} &{sign} {tex(expr, names)}"]
    lines: list[str] = []
    current: list[Any] = []
    for term in terms:
        if current and sum(width(t) + 2 for t in current) + width(term) > line * LINE:
            lines.append(tex(sympy.Add(*current), names))
            current = []
        current.append(term)
    lines.append(tex(sympy.Add(*current), names))
    first, *rest = lines
    broken = [f"&\\qquad {more}" if more.startswith("-") else f"&\\qquad {{}}+ {more}" for more in rest]
    return [f"{left} &{sign} {first}", *broken]


def _align(lines: Sequence[str], label: str = "") -> list[str]:
    if not label:
        return ["\\begin{align*}", " \\\\\n".join(lines), "\\end{align*}"]
    first, *rest = lines
    numbered = [f"{first} \\label{{{label}}}", *(f"{line} \\notag" for line in rest)]
    return ["\\begin{align}", " \\\\\n".join(numbered), "\\end{align}"]


def _result(derivation: Derivation, line: float) -> list[str]:
    formula, names, numbers = derivation.formula, derivation.names, count(1)
    lines = _rows(
        left_hand_side(formula), RELATIONS[formula.relation][0], formula.expr, names, line=line, numbers=numbers
    )
    out = _align(lines, _label(derivation.name, formula.name))
    if formula.where:
        out.append("where")
        definitions: list[str] = []
        for part in formula.where:
            definitions += _rows(part.latex, "=", part.expr, names, line=line, numbers=numbers)
        if formula.uses_lambda:
            left, right = _lambda(formula) if line < 1 else lambda_latex(formula)
            constant, where = right.split(r",\quad ", 1)
            definitions += [f"{left} &= {constant}", f"&\\qquad \\text{{with }} {where}"]
        out += _align(definitions)
    return out


def _lambda(formula: Formula) -> tuple[str, str]:
    """The constant of the perceptron cover as narrow columns print it, with letters for both of its logarithms."""
    constant, short, _ = short_lambda(formula)
    w, rho = sympy.Symbol("w", positive=True), sympy.Symbol("varrho", positive=True)
    inner = tex(short.subs(1 + 1 / sympy.log(w), rho))
    return tex(constant), inner + r",\quad \varrho = 1+1/\log w,\; w = 2qN+1"


def _relation(relation: Relation, names: Mapping[Any, str]) -> list[str]:
    left = relation.before.latex if isinstance(relation.before, Words) else tex(relation.before, names)
    sign = RELATIONS[relation.sign][0]
    if isinstance(relation.after, Words):
        return [f"{left} &{sign} {relation.after.latex}"]
    return _rows(left, sign, relation.after, names)


# -- sections


def _symbol_table(derivation: Derivation) -> list[str]:
    out = ["\\paragraph{Symbols.}", "\\begin{itemize}\\itemsep=0pt"]
    for symbol in derivation.formula.inputs:
        out.append(f"\\item ${tex(symbol, derivation.names)}$: {prose.tex(symbols.meaning(symbol)) or 'an input'}")
    seen = set(derivation.formula.inputs)
    for _, step in derivation.steps():
        for part in step.where:
            if part.symbol not in seen:
                seen.add(part.symbol)
                out.append(f"\\item ${part.latex}$: {prose.tex(part.meaning)}")
    if derivation.formula.uses_lambda:
        left = tex(derivation.formula.lambda_definition()[0])
        out.append(
            f"\\item ${left}$: constant of {MatrixPerceptron.name} for ${COLUMNS}$ columns and ${POINTS}$ points"
        )
    if any(name.startswith("A") for _, step in derivation.steps() for name in step.uses):
        out.append("\\item $N_j(\\varepsilon)$: covering number of piece $j$ at scale $\\varepsilon$")
    return [*out, "\\end{itemize}"]


def _step(number: str, step: Step, names: Mapping[Any, str], *, full: bool) -> list[str]:
    used = ", ".join(f"\\ref{{{_label('statement', name)}}} ({name})" for name in step.uses) if full else ""
    head = prose.tex(step.title)
    if "." in number:
        out = [f"\\paragraph{{{_capital(head)}.}}"]
    else:
        out = [f"\\boundcalcstep{{{number}}}{{{head}}}"]
    if full:
        out.append(_sentence(prose.tex(step.hypothesis)) + (f" Uses {_lemmas(step.uses)}{used}." if used else ""))
    lines: list[str] = [] if step.relation is None else _relation(step.relation, names)
    if lines:
        out += _align(lines)
    if full and step.defines:
        definitions: list[str] = []
        taken = max(0.0, max(len(str(part.symbol)) for part in step.where) - 14) * 0.7
        for part in step.defines:
            definitions += _rows(part.latex, "=", part.expr, names, taken=taken)
        out += ["with", *_align(definitions)] if lines else _align(definitions)
    return out


def _lemmas(uses: Sequence[str]) -> str:
    return "Lemma~" if len(uses) == 1 else "Lemmas~"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text[:1].islower() else text


def _statement(statement: Statement) -> list[str]:
    entry = statement.entry
    where = f"[{entry.locator}]" if entry.locator else ""
    source = "" if entry.source == HERE else f", {{\\cite{where}{{{entry.source.key}}}}}"
    title = f"{statement.name}: {prose.tex(entry.title)}{source}"
    out = [
        f"% statement {statement.name}",
        f"\\begin{{boundcalclemma}}[{title}]\\label{{{_label('statement', statement.name)}}}",
    ]
    out += [prose.tex(entry.says), "\\end{boundcalclemma}"]
    if entry.proof:
        out += ["\\begin{quote}", prose.tex(entry.proof), "\\end{quote}"]
    return out
