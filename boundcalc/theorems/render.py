r"""Derivations on a terminal and as articles.

A document is a list of blocks: words in Markdown, and displays as rows of LaTeX. `text` and `article` print them, each
in its own way; `files` makes an article, or fragments for \input.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from boundcalc.base import theory
from boundcalc.base.theory import HERE, Entry
from boundcalc.theorems import prose, symbols
from boundcalc.theorems._printing import NARROW, WIDE, terminal
from boundcalc.theorems.derivation import Derivation
from boundcalc.theorems.theorem import Theorem


class Block(NamedTuple):
    """A part of a document: its kind, a few words, Markdown and rows of displays, a label for references, a number.

    Kinds are "heading", "definition", "theorem", "step", "lemma" and "words".
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

_ALIGNED = re.compile(r"```math\n((?:(?!```).)*&.*?)\n```", re.DOTALL)


def _split(words: str) -> tuple[str | tuple[str, ...], ...]:
    """Markdown, its displays of several rows apart."""
    pieces = enumerate(_ALIGNED.split(words))
    return tuple(tuple(piece.split(" \\\\\n")) if i % 2 else piece.strip() for i, piece in pieces if piece.strip())


def statement(derivation: Derivation, width: int = WIDE) -> list[Block]:
    """The definition of the class, and the theorem."""
    theorem, formula = derivation.theorem, derivation.formula
    main, parts = formula.rows(width)
    claim, remark = theorem.claims.get(derivation.quantity, ("Then", ""))
    body: list[str | tuple[str, ...]] = [claim, tuple(main)]
    body += ["where", tuple(parts)] if parts else []
    if re.search(r"(?<![a-z\\])e(?![a-z_])", " ".join(main + parts)):
        body.append(r"$\log$ is the natural logarithm and $e$ its base.")
    body += [remark] if remark else []
    title = f"{theorem.source.short}, with constants"
    if theorem.stated_by:
        listed = [symbols.BY_NAME[symbol.name] for symbol in formula.inputs if symbol.name in symbols.BY_NAME]
        meanings = "; ".join(f"${entry.latex}$: {entry.meaning}" for entry in listed)
        title = f"stated by {theorem.stated_by}"
        body += [f"Here {meanings}."] * bool(meanings) + [f"S{title[1:]}; neither proved nor checked here."]
    blocks = [Block("theorem", title, tuple(body), label(theorem.name))]
    if derivation.definition:
        blocks.insert(0, Block("definition", "", _split(derivation.definition), label(theorem.name, "class")))
    return blocks


def proof(derivation: Derivation) -> list[Block]:
    """The steps, each with what it uses, and the differences from the paper."""
    blocks: list[Block] = []
    for number, step in enumerate(derivation.theorem.steps(derivation.quantity), 1):
        used = f" (Lemma{'s' * (len(step.uses) > 1)} {', '.join(step.uses)})" if step.uses else ""
        blocks.append(Block("step", _capital(step.title) + used, _split(step.text), number=str(number)))
    if derivation.theorem.source != HERE and (differences := derivation.theorem.differences()):
        lines = "\n".join(f"- {_capital(line)}." for line in differences)
        blocks.append(Block("words", "Differences from the paper", (lines,)))
    return blocks


def lemmas(derivation: Derivation, names: Sequence[str] = ()) -> list[Block]:
    """Notation, and every statement used with its proof; `names` besides those of the derivation."""
    from boundcalc.statements.texts import STATEMENTS

    used = {statement.name for statement in derivation.statements()} | set(names)
    blocks = [Block("words", "Notation", (_clean(theory.section("Conventions")),))]
    for letter in dict.fromkeys(name[0] for name in STATEMENTS if name in used):
        if about := _clean(theory.section(f"{letter}: ")):
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
    if not derivation.theorem.proof:
        return blocks
    if full:
        return [*blocks, Block("heading", "Proof"), *proof(derivation), Block("heading", "Lemmas"), *lemmas(derivation)]
    steps = "\n".join(f"- {block.number}. {block.title}" for block in proof(derivation) if block.kind == "step")
    return [*blocks, Block("words", "Proof in steps", (steps,))]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


# -- a terminal

_HEADS = {"definition": "Definition. ", "theorem": "Theorem ({title}). ", "lemma": "{number} ({title}). "}
_HEADS |= {"step": "{number}. {title}. ", "heading": "{title}", "words": "{title}. "}


def text(derivation: Derivation, *, full: bool = False, width: int = WIDE) -> str:
    """A page for a terminal of so many columns."""
    theorem = derivation.theorem
    lines = [f"{theorem.name}: {prose.plain(theorem.title)}", theorem.stated_by or str(theorem.source)]
    for block in document(derivation, full):
        head = "" if block.kind == "words" and not block.title else _HEADS[block.kind]
        head = head.format(title=block.title, number=block.number)
        first, *rest = block.body or ("",)
        apart = "\n\n" if head and isinstance(first, str) and first.startswith(("-", "```")) else ""
        lines.append("")
        for part in (f"{head}{apart}{first}", *rest) if isinstance(first, str) else (head, first, *rest):
            if isinstance(part, str):
                lines += prose.plain(part).splitlines()
            else:
                lines += [f"    {terminal(row)}" for row in part]
    if not full and theorem.proof:
        lines += ["", "Lemmas and details: --detail full. As a formula alone: --detail formula."]
    return "\n".join(row for line in lines for row in _wrapped(line, width)) + "\n"


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


def _tex(blocks: Sequence[Block], labelled: frozenset[str], cited: str = "") -> str:
    """Blocks in LaTeX; names of lemmas become references where `labelled` has them."""
    return "\n".join(_tex_block(block, labelled, cited) for block in blocks)


def _tex_block(block: Block, labelled: frozenset[str], cited: str) -> str:
    parts = [
        _with_references(prose.tex(part), labelled) if isinstance(part, str) else _align(part, block)
        for part in block.body
    ]
    body, title, mark = (
        _BEFORE_DISPLAY.sub("\n", ("\n\n" if block.kind == "lemma" else "\n").join(parts)),
        prose.tex(block.title),
        f"\\label{{{block.label}}}",
    )
    if block.kind == "heading":
        return f"\\boundcalcheading{{{title}}}"
    if block.kind == "step":
        return f"\\boundcalcstep{{{block.number}}}{{{_with_references(title, labelled)}}}\n{body}"
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


def _with_references(words: str, labelled: frozenset[str]) -> str:
    """Names of lemmas outside of mathematics as references."""
    if not labelled:
        return words
    names = "|".join(sorted(labelled, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w:{{-])({names})(?![\w'-])")
    parts = _MATH.split(words)
    return "".join(
        part if index % 2 else pattern.sub(lambda m: f"\\ref{{{label('statement', m[1])}}}", part)
        for index, part in enumerate(parts)
    )


def _theorem_title(theorem: Theorem) -> str:
    source = theorem.source
    if theorem.stated_by:
        return prose.tex(theorem.stated_by)
    if source == HERE:
        return ""
    first, *others = (name.split()[-1] for name in source.authors.split(","))
    names = first if not others else f"{first} and {others[0]}" if len(others) == 1 else f"{first} et al."
    return f"{names}~\\cite{{{source.key}}}, with constants"


def _names(derivation: Derivation) -> frozenset[str]:
    return frozenset(statement.name for statement in derivation.statements())


def article(derivation: Derivation, *, full: bool = True) -> str:
    """The article."""
    title = prose.tex(_capital(derivation.theorem.title))
    labelled = _names(derivation) if full else frozenset[str]()
    body = _tex(document(derivation, full), labelled, _theorem_title(derivation.theorem))
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
    theorem, there = derivation.theorem, there or {}
    stem = re.sub(r"[^A-Za-z0-9]+", "-", theorem.name).strip("-")
    shared = {
        "boundcalc-macros.tex": _MACROS,
        "boundcalc.bib": _bibliography(derivation, there.get("boundcalc.bib", "")),
    }
    if not fragment:
        return {f"{stem}.tex": article(derivation, full=full), **shared}
    before = there.get("boundcalc-lemmas.tex", "")
    names = _names(derivation) | set(_MARK.findall(before))
    labelled = frozenset(names) if full else frozenset[str]()
    if full and names:
        shared["boundcalc-lemmas.tex"] = f"{_BEGIN}{_tex(lemmas(derivation, sorted(names)), labelled)}\n{_END}"
    words, steps = statement(derivation, WIDE if columns == 1 else NARROW), _tex(proof(derivation), labelled)
    heading = f"\\boundcalcheading{{Proof of Theorem~\\ref{{{label(theorem.name)}}}}}\n"
    if theorem.stated_by:
        heading, steps = "", f"% Theorem {theorem.name} is {theorem.stated_by}'s, whose proof is not given here."
    return {
        f"{stem}.tex": f"{_BEGIN}{_tex(words, labelled, _theorem_title(theorem))}\n{_END}",
        f"{stem}-proof.tex": f"{_BEGIN}{heading}{steps}\n{_END}",
        **shared,
    }


def _bibliography(derivation: Derivation, there: str = "") -> str:
    """The .bib file; what a file of other derivations has stays."""
    old = [entry.strip() for entry in re.split(r"\n(?=@)", there) if entry.strip().startswith("@")]
    keys = {entry.partition("{")[2].partition(",")[0] for entry in old}
    new = [source.bibtex for source in derivation.sources() if source.key not in keys]
    return "\n\n".join([*old, *new]) + "\n"
