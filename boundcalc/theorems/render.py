r"""Derivations as Markdown with LaTeX, from which the terminal's text and the article follow.

A document is a list of blocks: words in Markdown, and displays as rows of LaTeX. `markdown`, `text` and `latex` print a
block each in their own way; nothing else knows what a derivation looks like. `files` makes an article, or fragments for
\input.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boundcalc.base import prose, symbols, theory
from boundcalc.base.theory import HERE, Entry
from boundcalc.theorems.derivation import Derivation, Step
from boundcalc.theorems.formula import rows_of
from boundcalc.theorems.printing import WIDE, latex, terminal, width_of


@dataclass(frozen=True)
class Block:
    """A part of a document.

    Attributes:
        kind: "heading", "definition", "theorem", "step", "lemma" or "words".
        title: a few words.
        body: Markdown, or the rows of a display.
        label: for references in LaTeX.
        number: of a step; the name of a lemma.
    """

    kind: str
    title: str = ""
    body: tuple[str | tuple[str, ...], ...] = ()
    label: str = ""
    number: str = ""


def label(*parts: str) -> str:
    """A label in LaTeX."""
    return "bc:" + ":".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in parts)


# -- the document


def statement(derivation: Derivation, width: int = WIDE) -> list[Block]:
    """The definition of the class, and the theorem."""
    main, parts = derivation.formula.rows(width, derivation.names)
    own = derivation.stated_by
    title = f"stated by {own}" if own else f"{derivation.source.short}, with constants"
    meanings = [symbol for symbol in derivation.formula.inputs if str(symbol) in symbols.BY_NAME] if own else []
    words = "; ".join(f"${latex(symbol)}$: {symbols.meaning(symbol)}" for symbol in meanings)
    euler = (
        r"$\log$ is the natural logarithm and $e$ its base."
        if re.search(r"(?<![a-z\\])e(?![a-z_])", " ".join(main + parts))
        else ""
    )
    body: list[str | tuple[str, ...]] = [derivation.claim, tuple(main)]
    body += ["where", tuple(parts)] if parts else []
    body += [text for text in (euler, derivation.remark, f"Here {words}." if words else "") if text]
    if own:
        body.append(f"Stated by {own}; neither proved nor checked here.")
    blocks = [Block("theorem", title, tuple(body), label(derivation.name))]
    if derivation.definition:
        parts = re.split(r"```math\n(.*?)\n```", derivation.definition, flags=re.DOTALL)
        shown = tuple(tuple(part.split(" \\\\\n")) if index % 2 else part.strip() for index, part in enumerate(parts))
        blocks.insert(0, Block("definition", "", shown, label(derivation.name, "class")))
    return blocks


def proof(derivation: Derivation, full: bool, width: int = WIDE) -> list[Block]:
    """The steps, each with what it uses, and the differences from the paper."""
    blocks: list[Block] = []
    for number, step in derivation.steps():
        if not full and "." in number:
            continue
        body: list[str | tuple[str, ...]] = [_sentence(step.text)] if step.text else []
        rows = [row for r in step.rows for row in rows_of(r.left, r.relation, r.right, derivation.names, width)]
        if full and step.parts:
            known = {row.left for row in step.rows}
            defined = [p for p in step.parts if p.latex not in known]
            rows += [row for p in defined for row in rows_of(p.latex, "eq", p.expr, derivation.names, width)]
        title = step.title + (f" ({_by(step)})" if step.uses else "")
        blocks.append(Block("step", title, (*body, tuple(rows)) if rows else tuple(body), number=number))
    if full and derivation.differences and derivation.source != HERE:
        lines = "\n".join(f"- {_sentence(line)}" for line in derivation.differences)
        blocks.append(Block("words", "Differences from the paper", (lines,)))
    return blocks


def _by(step: Step) -> str:
    return f"{'Lemma' if len(step.uses) == 1 else 'Lemmas'} {', '.join(step.uses)}"


def lemmas(derivation: Derivation, names: Sequence[str] = ()) -> list[Block]:
    """Notation, and every statement used with its proof; `names` besides those of the derivation."""
    from boundcalc.statements.texts import STATEMENTS

    used = {statement.name for statement in derivation.statements()} | set(names)
    blocks = [Block("words", "Notation", (_clean(theory.conventions()),))]
    for letter in dict.fromkeys(name[0] for name in STATEMENTS if name in used):
        if about := _clean(theory.section(letter)):
            blocks.append(Block("words", "", (about,)))
        blocks += [_lemma(STATEMENTS[name]) for name in STATEMENTS if name in used and name[0] == letter]
    return blocks


_SOFTWARE = re.compile(r"(?<=\n\n)\*In boundcalc\.\*.*?(?=\n\n|\Z)", re.DOTALL)
_PROOF_LINK = re.compile(
    r"\s*(?:\(`[\w-]+`(?:, )?)?\(?\[proof\]\(#[\w-]+\)\)?|\s*\((?:strategy )?`[\w-]+`\)|Proof in "
    r"\[[^\]]*\]\(#[\w-]+\)[.;]?"
)


def _clean(words: str) -> str:
    """A text of the documentation without what is about software, and without links into the page."""
    words = _SOFTWARE.sub("", f"\n\n{words}").strip()
    return re.sub(r"\[([^\]]+)\]\([#\w.-]+\)", r"\1", _PROOF_LINK.sub("", words))


def _lemma(entry: Entry) -> Block:
    source = "" if entry.source == HERE else f", [{entry.source.key}{f', {entry.locator}' if entry.locator else ''}]"
    body = (_clean(entry.says), *((_clean(entry.proof),) if entry.proof else ()))
    return Block("lemma", entry.title + source, body, label("statement", entry.name), entry.name)


def document(derivation: Derivation, full: bool, width: int = WIDE) -> list[Block]:
    """All of a derivation; brief: the statement, and what the steps are."""
    blocks = statement(derivation, width)
    if derivation.proof and full:
        blocks += [Block("heading", "Proof"), *proof(derivation, full, width)]
    elif derivation.proof:
        lines = [f"- {block.number}. {block.title}" for block in proof(derivation, full, width)]
        blocks.append(Block("words", "Proof in steps", ("\n".join(lines),)))
    if full and derivation.statements():
        blocks += [Block("heading", "Lemmas"), *lemmas(derivation)]
    return blocks


def _sentence(text: str) -> str:
    first = text[:1].upper() + text[1:] if text[:1].islower() else text
    return first if not first or first.endswith((".", "follows", "with", "is", ",", ":")) else f"{first}."


# -- Markdown

_HEADS = {"definition": "**Definition.** ", "theorem": "**Theorem** ({title}). ", "lemma": "**{number}** ({title}). "}
_HEADS |= {"step": "**{number}. {title}.** ", "heading": "## {title}", "words": "**{title}.** "}


def _head(block: Block) -> str:
    title = block.title[:1].upper() + block.title[1:] if block.kind in ("step", "heading") else block.title
    return "" if block.kind == "words" and not title else _HEADS[block.kind].format(title=title, number=block.number)


def markdown(derivation: Derivation, full: bool) -> str:
    """A page."""
    out = [f"# {derivation.title[:1].upper()}{derivation.title[1:]} (`{derivation.name}`)"]
    for block in document(derivation, full):
        head = _head(block)
        for part in block.body or ("",):
            if isinstance(part, str):
                shown = re.sub(r"```math\n(.*?)\n```", r"$$\n\1\n$$", part, flags=re.DOTALL)
                out.append(head + ("\n\n" if shown.startswith(("-", "$$")) and head else "") + shown)
            else:
                lines = " \\\\\n".join(part)
                out.append(f"$$\n\\begin{{aligned}}\n{lines}\n\\end{{aligned}}\n$$")
            head = ""
    out += ["## Sources", *(f"- {source}" for source in derivation.sources())]
    return "\n\n".join(part.strip() for part in out if part.strip()) + "\n"


# -- a terminal


def text(derivation: Derivation, full: bool, width: int) -> str:
    """A page for a terminal of so many columns."""
    source = derivation.stated_by or str(derivation.source)
    out = [f"{derivation.name}: {prose.plain(derivation.title)}", *_wrapped(source, width), ""]
    for block in document(derivation, full):
        head = prose.plain(_head(block).removeprefix("## ").replace("**", ""))
        for part in block.body or ("",):
            if isinstance(part, str):
                shown = prose.plain(part)
                for line in (
                    (f"{head} {shown}" if head and not shown.startswith("- ") else f"{head}\n{shown}")
                    .strip()
                    .splitlines()
                ):
                    out += _wrapped(line, width)
            else:
                out += [line for row in part for line in _wrapped(f"    {terminal(row)}", width)]
            head = ""
        out.append("")
    if not full and derivation.proof:
        out += ["Lemmas and details: --detail full. As a formula alone: --detail formula.", ""]
    return "\n".join(out[:-1]) + "\n"


def _wrapped(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    more = indent + (" " * 4 if len(indent) >= 4 else "  " if line.startswith("- ") else "")
    return textwrap.wrap(line, width, subsequent_indent=more, break_long_words=False, break_on_hyphens=False) or [""]


# -- LaTeX

_MACROS = r"""% Macros for what boundcalc derives (written anew each time): \input this in the preamble, after amsthm.
% Theorems and definitions are the article's own (theorem or thm, definition or defn) where it has such environments.
\providecommand{\boundcalcheading}[1]{\subsection*{#1}}
\providecommand{\boundcalcstep}[2]{\par\medskip\noindent\textbf{#1. #2.}\ \ignorespaces}
\makeatletter
\newenvironment{boundcalclemma}[2]%
  {\par\medskip\noindent\def\@currentlabel{#1}\textbf{Lemma #1} (#2).\ \ignorespaces}{\par}
\newcommand{\boundcalc@borrow}[4]{%
  \@ifundefined{#3}{\@ifundefined{#4}{\newtheorem{#1}{#2}}{\newenvironment{#1}{\begin{#4}}{\end{#4}}}}%
    {\newenvironment{#1}{\begin{#3}}{\end{#3}}}}
\AtBeginDocument{%
  \boundcalc@borrow{boundcalctheorem}{Theorem}{theorem}{thm}%
  \boundcalc@borrow{boundcalcdefinition}{Definition}{definition}{defn}}
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
_BEGIN, _END = "\\begingroup\\emergencystretch=3em\\hbadness=10000\\allowdisplaybreaks\n", "\\par\\endgroup\n"


def tex(blocks: Sequence[Block], known: frozenset[str], cited: str = "") -> str:
    """Blocks in LaTeX; names of lemmas become references where `known` has them."""
    return "\n".join(_tex_block(block, known, cited) for block in blocks)


def _tex_block(block: Block, known: frozenset[str], cited: str) -> str:
    parts = [
        _referring(prose.tex(part), known) if isinstance(part, str) else _align(part, block) for part in block.body
    ]
    body, title, mark = (
        _BEFORE_DISPLAY.sub("\n", ("\n\n" if block.kind == "lemma" else "\n").join(parts)),
        prose.tex(block.title),
        f"\\label{{{block.label}}}",
    )
    if block.kind == "heading":
        return f"\\boundcalcheading{{{title}}}"
    if block.kind == "step":
        return f"\\boundcalcstep{{{block.number}}}{{{_referring(title[:1].upper() + title[1:], known)}}}\n{body}"
    if block.kind == "lemma":
        begin = f"% lemma {block.number}\n\\begin{{boundcalclemma}}{{{block.number}}}{{{title}}}{mark}"
        return f"{begin}\n{body}\n\\end{{boundcalclemma}}"
    if block.kind == "words":
        return f"\\paragraph{{{title}.}}\n{body}" if title else f"\\medskip\\noindent\n{body}"
    head = f"[{cited or title}]" if block.kind == "theorem" else ""
    return f"\\begin{{boundcalc{block.kind}}}{head}{mark}\n{body}\n\\end{{boundcalc{block.kind}}}"


_BEFORE_DISPLAY = re.compile(r"\n\s*\n(?=\\\[|\\begin\{(?:align|gather))")


def _align(rows: Sequence[str], block: Block) -> str:
    first = block.kind == "theorem" and rows == next(part for part in block.body if not isinstance(part, str))
    if not first:
        return "\\begin{align*}\n" + " \\\\\n".join(rows) + "\n\\end{align*}"
    numbered = [f"{rows[0]} \\label{{{block.label}:bound}}", *(f"{row} \\notag" for row in rows[1:])]
    return "\\begin{align}\n" + " \\\\\n".join(numbered) + "\n\\end{align}"


_MATH = re.compile(
    r"(\$[^$]*\$|\\\[.*?\\\]|\\begin\{(?:align|gather)\*?\}.*?\\end\{(?:align|gather)\*?\}|\\cite\S*)", re.DOTALL
)


def _referring(words: str, known: frozenset[str]) -> str:
    """Names of lemmas outside of mathematics as references."""
    if not known:
        return words
    names = "|".join(sorted(known, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w:{{-])({names})(?![\w'-])")
    parts = _MATH.split(words)
    return "".join(
        part if index % 2 else pattern.sub(lambda m: f"\\ref{{{label('statement', m[1])}}}", part)
        for index, part in enumerate(parts)
    )


def _theorem_title(derivation: Derivation) -> str:
    if derivation.stated_by:
        return f"\\cite{{{derivation.source.key}}}" if derivation.source.key else prose.tex(derivation.stated_by)
    if derivation.source == HERE:
        return ""
    first, *others = (name.split()[-1] for name in derivation.source.authors.split(","))
    names = first if not others else f"{first} and {others[0]}" if len(others) == 1 else f"{first} et al."
    return f"{names}~\\cite{{{derivation.source.key}}}, with constants"


def _names(derivation: Derivation) -> frozenset[str]:
    return frozenset(statement.name for statement in derivation.statements())


def article(derivation: Derivation, *, full: bool = True) -> str:
    """The article."""
    title = prose.tex(derivation.title[0].upper() + derivation.title[1:])
    known = _names(derivation) if full else frozenset[str]()
    body = tex(document(derivation, full), known, _theorem_title(derivation))
    nocite = "".join(f"\\nocite{{{source.key}}}\n" for source in derivation.sources())
    cites = f"{nocite}\\bibliographystyle{{plain}}\n\\bibliography{{boundcalc}}\n" if nocite else ""
    return (
        f"{_PREAMBLE}\\title{{{title}}}\n\\author{{generated by boundcalc}}\n\\date{{}}\n"
        f"\\begin{{document}}\n\\maketitle\n{_BEGIN}{body}\n{_END}\n{cites}\\end{{document}}\n"
    )


_MARK = re.compile(r"^% lemma (\w+)$", re.MULTILINE)


def files(
    derivation: Derivation,
    *,
    full: bool = True,
    fragment: bool = False,
    columns: int = 1,
    there: Mapping[str, str] | None = None,
) -> dict[str, str]:
    r"""All files by name: the article, or the theorem and its proof for \input; macros, references and lemmas to share.

    `there`: shared files of other derivations, which are added to.
    """
    stem, there = re.sub(r"[^A-Za-z0-9]+", "-", derivation.name).strip("-"), there or {}
    shared = {
        "boundcalc-macros.tex": _MACROS,
        "boundcalc.bib": _bibliography(derivation, there.get("boundcalc.bib", "")),
    }
    if not fragment:
        return {f"{stem}.tex": article(derivation, full=full), **shared}
    before = there.get("boundcalc-lemmas.tex", "")
    names = _names(derivation) | set(_MARK.findall(before))
    known = frozenset(names) if full else frozenset[str]()
    if full and names:
        shared["boundcalc-lemmas.tex"] = f"{_BEGIN}{tex(lemmas(derivation, sorted(names)), known)}\n{_END}"
    steps = tex(proof(derivation, full), known)
    heading = f"\\boundcalcheading{{Proof of Theorem~\\ref{{{label(derivation.name)}}}}}\n"
    if derivation.stated_by:
        heading, steps = "", f"% Theorem {derivation.name} is {derivation.stated_by}'s, whose proof is not given here."
    return {
        f"{stem}.tex": _BEGIN
        + tex(statement(derivation, width_of(columns)), known, _theorem_title(derivation))
        + f"\n{_END}",
        f"{stem}-proof.tex": f"{_BEGIN}{heading}{steps}\n{_END}",
        **shared,
    }


def _bibliography(derivation: Derivation, there: str = "") -> str:
    """The .bib file; what a file of other derivations has stays."""
    old = [entry.strip() for entry in re.split(r"\n(?=@)", there) if entry.strip().startswith("@")]
    known: Any = {entry.partition("{")[2].partition(",")[0] for entry in old}
    new = [source.bibtex for source in derivation.sources() if source.key not in known]
    return "\n\n".join([*old, *new]) + "\n"
