"""Trauger & Tewari 2024: bounds that do not depend on the sequence length."""

from __future__ import annotations

from typing import Any

from boundcalc.base.sources import TRAUGER2024
from boundcalc.formulas.theorems.network import DEEP, LIPSCHITZ, network
from boundcalc.formulas.theorems.policies import T_FREE
from boundcalc.formulas.theorems.theorem import Forms, Theorem, shape


def _published(s: Any, sympy: Any) -> Any:
    return s.C ** (s.c * s.depth) * s.K**2 * sympy.log(s.d) / s.eps**2


def _forms() -> tuple[Any, Forms]:
    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.closed import closed_form
    from boundcalc.setting import Budget, Norms

    budget = Budget(op=s.C, one_one=s.K)
    norms = Norms(budgets={kind: budget for kind in ("W_QK", "W_V", "W_1", "readout")})
    form = closed_form(network().but(norms=norms), lemmas=frozenset({"T3"}), order=(s.C, s.K))
    return form, form.formulas


trauger2024 = Theorem(
    name="trauger2024",
    title="deep attention networks, independent of $T$",
    source=TRAUGER2024,
    statement=r"With entrywise $\ell_1$ norms at most $K$ (and spectral norms at most $C$) every matrix has a cover that "
    "serves every sample, so neither $T$ nor $m$ enters the covering number.",
    assumptions=DEEP,
    published_note=r"$O(\cdot)$ in the paper, for one or more layers; the exponent of $C$ is written $cD$ here",
    compares="covering_number",
    differs={
        "C": "the exponent of $C$ is explicit; the paper's product of norms over layers is written $C^{cD}$",
        "depth": r"the constant is $r^2$ per block, $r = HC^2(C+\sqrt{1+C^2})$; the paper has a product of norms",
        "heads": "the shape is for one head",
    },
    also=(
        "the linear cover is by rounding (T3), which needs half the draws of Maurey's argument that the paper uses",
        "the gap is stated with ghost samples (factor $17/16$), so that the checker of closed forms can re-derive it; "
        "for uniform covers the factor could be 1",
    ),
    uses=("T3", *LIPSCHITZ, "S3", "A0", "A1", "A3", "A4", "G0", "G1", "G2"),
    published_form=shape("covering_number", _published),
    forms=_forms,
    lemmas=T_FREE,
)
