"""The registry as a Markdown table, for docs/theorems.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from boundcalc.formulas.theorems import THEOREMS, Theorem


def markdown(theorems: Mapping[str, Theorem] = THEOREMS) -> str:
    """One row per theorem: what it bounds, which inputs it depends on, what it uses, where it is from."""
    head = ("theorem", "says", "depends on T", "explicit formulas", "covers", "source")
    return _table([head, *(_row(theorem) for theorem in theorems.values())])


def _length(theorem: Theorem) -> str:
    return "log T" if "T" in {symbol.name for symbol in theorem.explicit.inputs} else "no"


def _row(theorem: Theorem) -> tuple[str, ...]:
    lemmas = ", ".join(name for name in theorem.uses if name[0] in "TEG" and name[1:2].isdigit() and name not in _G)
    return (
        f"`{theorem.name}`",
        theorem.title,
        _length(theorem),
        ", ".join(theorem.quantities),
        lemmas or ("none"),
        theorem.source.short,
    )


_G = frozenset({"G0", "G1", "G2"})


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    head, *body = rows
    lines = [head, tuple("---" for _ in head), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n"


def document() -> str:
    """docs/theorems.md."""
    out = [
        "# Theorems",
        "",
        "Written by `python -m boundcalc.formulas.theorems.document`; a test compares. Every theorem is an object:",
        "",
        "```python",
        "from boundcalc.formulas.theorems import edelman2022",
        "",
        "edelman2022.gap  # the bound, all constants explicit",
        "edelman2022.published  # the paper's shape, its constant the symbol c",
        'edelman2022.latex()  # also .lambdify(), .code("javascript"), .cite(), .differences()',
        "```",
        "",
        markdown(),
    ]
    for theorem in THEOREMS.values():
        out += [f"## {theorem.title[0].upper()}{theorem.title[1:]}: `{theorem.name}`", "", theorem.statement, ""]
        out += [str(theorem.source), ""]
        out += ["Assumes:", "", *(f"- {line}" for line in theorem.assumed()), ""]
        out += [f"Explicit ({theorem.compares.replace('_', ' ')}):", "", "```text", theorem.explicit.text(), "```", ""]
        out += [f"Published shape ({theorem.published_note}):", "", "```text", theorem.published.text(), "```", ""]
        if theorem.differences():
            out += ["Differs:", "", *(f"- {line}" for line in theorem.differences()), ""]
    out += [_FOOT]
    return "\n".join(out)


_FOOT = """## Formulas, derivations, code

- `boundcalc derive --depth D --T T` prints a bound with its steps; `--format markdown|latex` for a page or an article,
  `--format bibtex|python|numpy|javascript` for the citation and the formula as code.
- In symbolic depth, activations are taken to fill their ball (or sphere). The formula is then what
  `boundcalc eval --bound closed` prints, to twelve digits, whenever they do (for preset edelman: C >= 1, d >= 2), and
  an upper bound of it otherwise; `closed_form(setting, exact=True)` follows the true radii.
- `formula.leading("T")`, `formula.exponents(...)`: the dominant term with its constant, and local elasticities.

## Adding a theorem

1. Write a module in `boundcalc/formulas/theorems/` with a `Theorem`: the paper's shape, as
   `shape("gap", lambda s, sympy: s.c * s.d / sympy.sqrt(s.m))`; the forms of `boundcalc.formulas.symbolic` that give the
   explicit formula, of `network()` where it is about deep attention; assumptions, and for every input in which the two grow
   differently a sentence why. What of these words is mathematics stands between dollars, as LaTeX (a test finds what does not).
   A theorem that is a statement of [theory.md](theory.md) takes its conditions from there.
   With `lemmas`, the covers its paper uses, `eval`, `solve`, `sweep` and `plot` take its name for any setting; without, they
   evaluate its formula, or what `sharper` finds.
2. Add it to `THEOREMS` in `boundcalc/formulas/theorems/__init__.py`. `check_theorem` (as in tests/recipes/test_theorem.py)
   then checks directions, limits, and that words and growth agree; every command and this page
   know it.
"""
