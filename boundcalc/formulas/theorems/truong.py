"""Truong 2024: bounds through the rank of the matrices."""

from __future__ import annotations

from typing import Any

from boundcalc.base.sources import TRUONG2024
from boundcalc.formulas.theorems.network import HIDDEN, LIPSCHITZ, NETWORK, network
from boundcalc.formulas.theorems.policies import VOLUMES
from boundcalc.formulas.theorems.theorem import Forms, Theorem, shape


def _forms() -> tuple[Any, Forms]:
    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.uniform import UniformForm

    form = UniformForm(network(), {"*": "T5", "readout": "T4"}, s.rank)
    return form, form.formulas


truong2024 = Theorem(
    name="truong2024",
    title="low-rank matrices, independent of $T$",
    source=TRUONG2024,
    statement="Matrices of rank at most $r_w$ have $r_w(d+k)$ parameters that matter, so a small rank pays like a small "
    "width.",
    assumptions=(*NETWORK, "every matrix of a block has rank at most $r_w$"),
    published_note=r"the paper is about one layer; its abstract gives $O(\log r_w)$ and $O(m^{-1/2})$, the rest is its "
    "constant",
    compares="gap",
    differs={
        "rank": r"$\sqrt{r_w}$ here, from counting the parameters of both factors; the paper's $\log r_w$ has the width "
        "in its constant",
        "m": r"a factor $\sqrt{\log m}$ more, for the scale $1/m$ of the one cover",
        "d": r"$\sqrt d$ here; in the paper's constant there",
        "depth": "the paper is about one layer",
        **dict.fromkeys(("heads", "C", "gamma", "delta"), HIDDEN),
    },
    also=(
        r"no bound on $|W|_F$ or $|W|_{2,1}$ is needed: spectral norm and rank suffice (T5)",
        "$r_w$ limits the rank of every matrix of a block here; in the paper it is that of queries times keys",
    ),
    uses=("T4", "T5", *LIPSCHITZ, "S3", "A0", "A2", "G0", "G2", "X5"),
    published_form=shape("gap", lambda s, sympy: s.c * sympy.log(1 + s.rank) / sympy.sqrt(s.m)),
    forms=_forms,
    lemmas=VOLUMES | {"T5"},
)
