"""The theorems of theorems.toml. Reading them imports nothing heavy; SymPy parses a formula when it is first needed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boundcalc.base.theory import HERE, source
from boundcalc.theorems.theorem import Step, Theorem

if TYPE_CHECKING:
    from boundcalc.theorems._formula import Formula

_DATA = tomllib.loads(Path(__file__).with_name("theorems.toml").read_text("utf-8"))
FORMULAS: Mapping[str, Mapping[str, Any]] = _DATA["formulas"]
"""Right-hand sides by quantity, by what theorems share them."""
LEFT: Mapping[str, str] = _DATA["left"]
"""The left-hand sides, by quantity."""
_STEP = re.compile(r"\n?(?P<title>.*) \((?P<uses>[\w, ]+)\)(?: \[(?P<of>[\w ]+)\])?\n(?P<text>.*)", re.DOTALL)


def theorems() -> Iterator[Theorem]:
    """Every theorem, in the order of the file."""
    for name, entry in _DATA["theorem"].items():
        shared = _DATA["claims"] if "norms" in entry else {}
        formulas = entry.get("formulas", {})
        quantities = FORMULAS[formulas] if isinstance(formulas, str) else formulas
        claims = {**shared, **entry.get("claims", {})}
        words = ("title", "statement", "published_note", "compares", "search", "network", "of", "statement_name")
        tables = ("differs", "builds", "defaults", "at_most_1")
        yield Theorem(
            name=name,
            source=HERE if entry["source"] == HERE.key else source(entry["source"]),
            published_form=partial(_formula, name, entry["compares"], {"expr": entry["published"]}, kind="proxy"),
            forms={quantity: partial(_formula, name, quantity, spec) for quantity, spec in quantities.items()},
            assumptions=tuple(_listed(entry.get("assumptions", ()))),
            also=tuple(_listed(entry.get("also", ()))),
            definition=_definition(entry),
            claims={
                quantity: (claim[0].replace("{sample}", _DATA["words"]["sample"].strip()), "".join(claim[1:]))
                for quantity, claim in claims.items()
            },
            proof=tuple(_step(_DATA["steps"].get(text, text)) for text in entry["proof"]),
            lemmas=frozenset(entry["lemmas"]) if "lemmas" in entry else None,
            evaluates=tuple(entry.get("evaluates", ())),
            **{key: entry[key] for key in (*words, *tables) if key in entry},
        )


def _listed(lines: Any) -> Iterator[str]:
    """Sentences; the name of a list of [words] stands for the list."""
    for line in lines:
        yield from _DATA["words"].get(line, [line])


def _step(text: str) -> Step:
    match = _STEP.fullmatch(text)
    if match is None:
        raise ValueError(f"a step begins with a title and its lemmas in brackets, got {text[:60]!r}")
    return Step(match["title"], tuple(match["uses"].split(", ")), match["text"], tuple((match["of"] or "").split()))


# -- formulas


@cache
def _functions() -> dict[str, Any]:
    from boundcalc.theorems._algebra import functions

    return functions(_DATA["functions"])


def _formula(name: str, quantity: str, entry: Mapping[str, str], kind: str = "bound", **built: int) -> Formula:
    """A formula of a theorem: its text with its parts, for inputs that are numbers in it."""
    import sympy

    from boundcalc.theorems._algebra import Expr, parse
    from boundcalc.theorems._formula import Definition, Formula, ordered

    theorem = _DATA["theorem"][name]
    texts = _per_block({**theorem.get("parts", {}), **_DATA["parts"]}, built.get("depth", 0))
    names: dict[str, Expr] = {**_functions(), **{part: sympy.Symbol(part, positive=True) for part in texts}}
    names |= {key: sympy.Integer(value) for key, value in built.items()}
    main = entry["expr"].replace("{depth}", str(built.get("depth")))
    names |= {key: parse(text, names) for key, text in entry.items() if key not in ("expr", "left")}
    expr = parse(main, names)
    parts = [
        Definition(names[part], parse(value, names), latex, *(parse(text, names) for text in stable))
        for part, (value, latex, *stable) in texts.items()
    ]
    left = entry.get("left") or theorem.get("left") or LEFT[quantity]
    return Formula(quantity, expr, ordered(expr, parts), left, kind=kind)


def _per_block(parts: Mapping[str, list[str]], depth: int) -> dict[str, list[str]]:
    """Parts, those of a block once for every later block, the last one first."""
    repeated = {name: texts for name, texts in parts.items() if "{l}" in name}
    blocks: dict[str, list[str]] = {}
    for block in range(depth, 1, -1):
        for name, texts in repeated.items():
            numbered = [text.replace("{l}", str(block)).replace("{before}", str(block - 1)) for text in (name, *texts)]
            blocks[numbered[0]] = numbered[1:]
    expanded: dict[str, list[str]] = {}
    for name, texts in parts.items():
        expanded |= blocks if name in repeated else {name: texts}
    return expanded


# -- the class of networks, in words


def _definition(entry: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], str]:
    own = entry.get("definition", "")
    return partial(_network, entry["norms"], own) if "norms" in entry else lambda values: own


def _network(norms: str, also: str, values: Mapping[str, Any]) -> str:
    """The class of networks whose norms are bounded so; depth and heads may be numbers."""
    from boundcalc.theorems._algebra import number
    from boundcalc.theorems._printing import latex as tex
    from boundcalc.theorems.symbols import ALIASES, latex

    values = {ALIASES.get(name, name): value for name, value in values.items()}
    depth, heads = (tex(number(values[name])) if name in values else latex(name) for name in ("depth", "heads"))
    one, head = depth == "1", "" if heads == "1" else ",h"
    before, after, level = ("X", "Y", "") if one else ("Z_{l-1}", "Z_l", "l")
    total, chosen = ("", "P") if heads == "1" else (rf"\sum_{{h=1}}^{{{heads}}}", "P_h")
    score, value = (
        f"W_{{{name}}}" + (f"^{{{f'{level}{head}'.strip(',')}}}" if level or head else "") for name in ("QK", "V")
    )
    rows = (
        rf"{chosen} &= \mathrm{{softmax}}\big({before}{score}{before}^\top\big)",
        rf"A &= {total}{chosen}{before}{value}",
        rf"{after} &= \Pi\big(\sigma(\Pi(A))W_1" + ("" if one else "^l") + r"\big)",
    )
    display = " \\\\\n".join(rows)
    layers = "put" if one else rf"put $Z_0=X$ and, for $l=1,\ldots,{depth}$,"
    others = [f"${latex(name)} = {tex(number(x))}$" for name, x in values.items() if name not in ("depth", "heads")]
    return (
        r"Let $\Pi$ project every row of a matrix onto the unit ball of $\mathbb R^d$, $\sigma(x)=\max(0,x)$ act on "
        rf"every entry and softmax on every row. For $X\in\mathbb R^{{T\times d}}$ {layers}"
        f"\n\n```math\n{display}\n```\n\n"
        r"The class $\mathcal F$ consists of the functions $f(X)=\langle y,w\rangle$, $y$ the first row of "
        rf"${'Y' if one else f'Z_{{{depth}}}'}$, for all "
        rf"$d\times d$ matrices $W_{{QK}},W_V,W_1$ and $w\in\mathbb R^d$ with {norms}."
        + (f" {also}" if also else "")
        + (f" Here {', '.join(others)}." if others else "")
    )
