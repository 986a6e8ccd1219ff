"""Every text that derivations and theorems print says itself what of it is mathematics: nothing guesses.

What stands between dollars must be LaTeX that terminals can show too, and must survive Markdown; what stands outside of
them must not look like mathematics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from boundcalc import Bound
from boundcalc.base import symbols
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.prose import plain, tex
from boundcalc.formulas.derivation import Derivation, derive
from boundcalc.formulas.theorems import THEOREMS
from boundcalc.setting import PRESETS, Budget, Norms, Setting
from boundcalc.statements.texts import STATEMENTS

_MATH = re.compile(r"\$([^$]+)\$")
_CODE = re.compile(r"`[^`]+`")
_KNOWN = re.compile(rf"(?<!\w)(?:i\.i\.d\.|(?:{'|'.join({*STATEMENTS, *THEOREMS} - {'E'})})(?:'s)?(?!\w))")
"""Names and an abbreviation that are no mathematics."""
_GREEK = r"alpha|beta|gamma|delta|eps(?:ilon)?|kappa?|lam(?:bda)?|mu|phi|pi|psi|rho|sigma|tau|theta"
_FUNCTIONS = r"binom|cosh|exp|floor|ceil|hat|inf|log|max|min|norm|prod|sqrt|sum|sup|tanh"
_LOOKS: tuple[tuple[str, str], ...] = (
    ("an operator", r"[<>=^_*+|\\~{}#]|[^\s]/[^\s]"),
    ("digits with letters", r"\d[A-Za-z]|[A-Za-z]\d"),
    ("a function's value", r"[A-Za-z]\("),
    ("a letter", r"(?<![A-Za-z'’.])(?![aAI]\b(?!-))[A-Za-z](?![A-Za-z'’.])"),
    ("a Greek letter", rf"\b({_GREEK})\b"),
    ("a function", r"\b(binom|cosh|ceil|hat|inf|prod|sqrt|tanh)\b"),
    ("an interval", r"\[\d|\(\d"),
)
"""What looks like mathematics where none is marked."""


def unmarked(text: str) -> list[str]:
    """What outside of the marks looks like mathematics."""
    found: list[str] = [] if text.count("$") % 2 == 0 else ["an open dollar"]
    outside = _KNOWN.sub(" ", _MATH.sub(" ", _CODE.sub(" ", text)))
    for what, sign in _LOOKS:
        if at := re.search(sign, outside):
            found.append(f"{what}: {outside[max(0, at.start() - 12) : at.end() + 12]!r}")
    return found


def wrongly_marked(text: str) -> list[str]:
    """What between the marks is no LaTeX, or would not survive Markdown."""
    found: list[str] = []
    for math in _MATH.findall(text):
        try:
            plain(f"${math}$")
        except InvalidSetting as error:
            found.append(str(error))
            continue
        bare = re.sub(r"\\(?:mathrm|text|operatorname)\s*\{[^{}]*\}", " ", math)
        bare = re.sub(r"\\[A-Za-z]+|\\.", " ", bare)
        if word := re.search(rf"[A-Za-z]{{4,}}|(?<![A-Za-z])(?:{_GREEK}|{_FUNCTIONS})(?![A-Za-z])", bare):
            found.append(f"the word {word[0]!r} in ${math}$")
        if sign := re.search(r"<=|>=|->|!=|\*\*|(?<![{^])\*", bare):
            found.append(f"{sign[0]!r} in ${math}$")
        if math != math.strip() or not math.isascii():
            found.append(f"spaces or characters in ${math}$")
    return found


def of_derivation(derivation: Derivation) -> Iterator[str]:
    """Every text of a derivation."""
    yield from (derivation.title, derivation.claim, *derivation.assumptions, *derivation.differences)
    yield from derivation.formula.conditions
    for _, step in derivation.steps():
        yield from (step.title, step.hypothesis, *(part.meaning for part in step.where))
    yield from (part.meaning for part in derivation.formula.where)


def settings() -> Iterator[Setting]:
    """Settings whose closed forms say most of what closed forms can say."""
    general = {"C": symbols.C, "depth": symbols.depth, "seq_len": symbols.T, "n_train": symbols.m}
    for preset in PRESETS:
        yield Setting.of(preset, **general)
    yield Setting.of(depth=3, heads=symbols.heads, d=symbols.d, C=symbols.C, seq_len=symbols.T, n_train=symbols.m)
    yield Setting.of(depth=2, seq_len=512, n_train=10**6, positions="learned", C=symbols.C)
    near = Budget(op=2.0, two_one=4.0, distance=Budget(op=0.5, two_one=0.5))
    yield Setting.of(norms=Norms(C=1.0, budgets={"W_V": near}), depth=1, d=8, seq_len=16, n_train=10**6)


def texts() -> dict[str, str]:
    """Every text, and where it is met first."""
    found: dict[str, str] = {}
    for entry in symbols.ENTRIES:
        found.setdefault(entry.meaning, f"the symbol {entry.symbol}")
    for name, theorem in THEOREMS.items():
        found.setdefault(theorem.published_note, f"{name}, published")
        for which in theorem.quantities:
            for text in of_derivation(derive(name, which)):
                found.setdefault(text, f"{name}, {which}")
    for setting in settings():
        for text in of_derivation(derive(setting)):
            found.setdefault(text, "a closed form")
    return found


def test_every_text_says_what_of_it_is_mathematics() -> None:
    found = texts()
    assert len(found) > 300
    problems = {text: (where, *unmarked(text), *wrongly_marked(text)) for text, where in found.items()}
    assert {text: what for text, what in problems.items() if len(what) > 1} == {}


def test_texts_of_theorems_survive_markdown() -> None:
    for name, theorem in THEOREMS.items():
        for text in (
            theorem.title,
            theorem.statement,
            *theorem.assumed(),
            theorem.published_note,
            *theorem.differences(),
        ):
            for math in _MATH.findall(text):
                assert not re.search(r"\\[,;:!{}]", math), (name, math)


@pytest.mark.parametrize(
    "text",
    [
        "at most eps <= bB",
        "covers of N points",
        "the margin gamma",
        "a head C_V",
        "r^2 per block",
        "a factor sqrt of it",
        "rows have l2 norm at most 1",
        "sum of 17m terms",
        "grows like f(T)",
        "p-th powers",
        "an L_s-Lipschitz map",
        "the loss lies in [0, 1]",
        "log T",
        "at T",
        "1/m",
        "costs $5",
        "C*heads",
        "it is T99",
    ],
)
def test_mathematics_without_marks_is_seen(text: str) -> None:
    assert unmarked(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "$eps$ of it",
        "$a <= b$",
        "$a * b$",
        r"$\frac{a$",
        r"$a}b$",
        r"$\frac{a}$",
        r"$a_$",
        r"$\eps$",
        "$the norm$",
        "$sum_j$",
        "$ a$",
        "$ε$",
        r"$\sqrt$",
        r"$\mathrm{op$",
        r"$\hat$",
    ],
)
def test_what_is_marked_and_is_no_latex_is_seen(text: str) -> None:
    assert wrongly_marked(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "by T2 and A1's split, the sample is i.i.d. and a half is kept",
        r"at most $\varepsilon\le bB$, an $L_s$-Lipschitz map, $p$-th powers, $\binom Ts$",
        r"norms at most $|W|_{\mathrm{op}}$ of `norm_ffn.gain`",
        "the output is read from one row ([CLS]); Hoeffding's inequality",
    ],
)
def test_what_is_marked_rightly_passes(text: str) -> None:
    assert unmarked(text) == wrongly_marked(text) == []


@pytest.mark.parametrize(
    ("text", "shown", "latex"),
    [
        (r"a head $C_V(\kappa+\sqrt{1+\kappa^2})$ (L7)", "a head C_V(κ+√(1+κ^2)) (L7)", None),
        (r"$c_r\rho^a g$, $16\sqrt3C$ and $C^{cD}$", "c_r ρ^a g, 16√3 C and C^(cD)", None),
        (r"$\|A\|_*$ and $|B|_*$", "‖A‖_* and |B|_*", None),
        ("at 50% & more of `W_QK`", "at 50% & more of W_QK", r"at 50\% \& more of \texttt{W\_QK}"),
        ("d*k <= 4*n and *so* on", "d*k <= 4*n and so on", r"d*k \textless{}= 4*n and \emph{so} on"),
        ("costs $5", "costs $5", r"costs \$5"),
    ],
)
def test_what_terminals_and_articles_show(text: str, shown: str, latex: str | None) -> None:
    assert plain(text) == shown
    assert tex(text) == (text if latex is None else latex)


def test_a_bound_of_ones_own_is_held_to_it() -> None:
    kept = derive(Bound("mine", "8*C/m", assumptions=(r"$C\ge 1$", "costs $5")).theorem)
    assert "C ≥ 1" in kept.render("text")
    assert r"costs \$5." in kept.render("latex")
