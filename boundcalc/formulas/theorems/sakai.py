"""Sakai & Imaizumi 2026: bounds that adapt to the decay of the singular values."""

from __future__ import annotations

from typing import Any

from boundcalc.base.sources import SAKAI2026
from boundcalc.formulas.theorems.network import HIDDEN, LIPSCHITZ, NETWORK, network
from boundcalc.formulas.theorems.policies import VOLUMES
from boundcalc.formulas.theorems.theorem import Forms, Theorem, shape


def _published(s: Any, sympy: Any) -> Any:
    del sympy
    power = 1 / (s.p + 2)
    scale = s.C ** (s.c * s.depth) * s.depth
    return s.c * s.S_p**power * scale ** (s.p * power) * s.d ** ((s.p + 1) * power) * s.depth / s.m**power


def _forms() -> tuple[Any, Forms]:
    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.uniform import SpectrumForm

    form = SpectrumForm(network(), s.p, s.S_p)
    return form, form.formulas


sakai2026 = Theorem(
    name="sakai2026",
    title="spectrum-adaptive, independent of $T$",
    source=SAKAI2026,
    statement="Where the $p$-th powers of the singular values sum to little, small ones are dropped and the rest is "
    "covered as a matrix of low rank; $p$ interpolates between the rank ($p = 0$) and the Frobenius norm ($p = 2$).",
    assumptions=(
        *NETWORK,
        r"$0 < p\le 2$, and the $p$-th powers of the singular values of every matrix of a block sum to at most $S_p$",
        "$p$ and $S_p$ are fixed before the data (choosing them after training is paid for by P1)",
    ),
    published_note="the terms $S_p^{1/(p+2)}s^{p/(p+2)}d^{(p+1)/(p+2)}$ per matrix with $s$ the product of norms times $D$; "
    "the rate in $m$ is that of one scale, and the paper's constant and logarithms are $c$",
    compares="gap",
    differs={
        "d": "$d^{1/(p+2)}$ here, where rows have norm 1 and rank $r$ costs $2dr$ parameters; $d^{(p+1)/(p+2)}$ in the "
        "paper's terms",
        "depth": "the sum over blocks is a geometric one in $r^p$ here; the paper has one term per matrix",
        "C": "the exponent of $C$ is explicit here",
        "m": r"a factor $\sqrt{\log m}$ more, from the logarithm of the accuracy",
        "heads": "hidden in the paper's product of norms",
        **dict.fromkeys(("gamma", "delta"), HIDDEN),
    },
    also=(
        "one $p$ for all matrices here; the paper chooses it matrix by matrix and layer by layer",
        "logarithms of the accuracy are explicit here",
    ),
    uses=("T4", "T6", *LIPSCHITZ, "S3", "A0", "A2", "G0", "G2"),
    published_form=shape("gap", _published),
    forms=_forms,
    lemmas=VOLUMES | {"T5", "T6"},
)
