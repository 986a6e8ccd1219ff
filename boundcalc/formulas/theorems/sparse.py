"""Finite classes: s-sparse Boolean functions of T bits, the yardstick of every other bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boundcalc.base.sources import EDELMAN2022
from boundcalc.formulas.theorems.theorem import Forms, Theorem, shape

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula

_SAMPLE = ("$m$ strings of $T$ bits are drawn independently", "the loss lies in $[0, 1]$")


def _published(s: Any, sympy: Any) -> Any:
    return s.c * sympy.sqrt((s.s * sympy.log(s.T) + 2**s.s) / s.m)


def _forms() -> tuple[Any, Forms]:
    import sympy

    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.formula import LEFT, Definition, Formula
    from boundcalc.formulas.symbolic.system import SYMPY
    from boundcalc.statements import gap

    size = sympy.Symbol("N_F", positive=True)
    # binom(T, s) <= (e T/s)^s, and a function of s bits is one of 2^(2^s)
    count = s.s * sympy.log(sympy.E * s.T / s.s) + 2**s.s * sympy.log(2)
    part = Definition(size, count, "log of the number of $s$-sparse Boolean functions of $T$ bits", r"\log|\mathcal F|")
    inverse = sympy.log(1 / s.delta)

    def the_gap() -> Formula:
        return Formula("gap", gap.deviation(SYMPY, size + inverse, s.m), (part,), LEFT["gap"])

    def covering() -> Formula:
        return Formula("covering_number", size, (part,), LEFT["covering_number"])

    def needed() -> Formula:
        expr = (size + inverse) / (2 * s.target**2)
        return Formula("sample_complexity", expr, (part,), "m", "ge")

    return None, {"gap": the_gap, "covering_number": covering, "sample_complexity": needed}


sparse_boolean = Theorem(
    name="sparse_boolean",
    title="$s$-sparse Boolean functions of $T$ bits (G8)",
    source=EDELMAN2022,
    statement=r"A finite class: Hoeffding's inequality and a union bound over $\binom Ts$ supports and $2^{2^s}$ "
    "functions.",
    assumptions=_SAMPLE,
    published_note=r"$s\log T+2^s$ up to a constant",
    compares="gap",
    differs={"delta": "not in the shape"},
    also=(
        r"the support costs $s\log(eT/s)$, which is less than $s\log T$ for $s > e$",
        r"G8 also has a floor: fewer than $\log_2\binom Ts-1$ labels, at inputs that do not depend on the support, do not "
        "identify it with probability $1/2$",
    ),
    uses=("G8",),
    statement_name="G8",
    published_form=shape("gap", _published),
    forms=_forms,
)
