"""Edelman, Goel, Kakade, Zhang 2022: bounds that grow like log T."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boundcalc.base.sources import EDELMAN2022
from boundcalc.formulas.theorems.network import DEEP, LIPSCHITZ, SAMPLE, network
from boundcalc.formulas.theorems.theorem import Forms, Theorem, shape
from boundcalc.statements.covers import COUNTING

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula

_CONSTANT = r"$O(\cdot)$ in the paper; the explicit version of the same argument is this library's"
_SHARPER = (
    r"the softmax constant is 1 (L1) where the paper has 2, and the Lipschitz factor of a head "
    r"$C_V(\kappa+\sqrt{1+\kappa^2})$ (L7) where it has $C_V(1+4C_W)$",
    "covers by T1 and T2, without the factor 36 and without the scale inside the logarithm",
)


def _deep_published(s: Any, sympy: Any) -> Any:
    return s.C ** (s.c * s.depth) * s.C**4 * sympy.log(s.d * s.m * s.T) / s.eps**2


def _deep() -> tuple[Any, Forms]:
    from boundcalc.formulas.symbolic.closed import closed_form

    form = closed_form(network())
    return form, form.formulas


edelman2022 = Theorem(
    name="edelman2022",
    title=r"deep attention networks, $\log T$",
    source=EDELMAN2022,
    statement=r"For $D$ blocks $\Pi(\sigma(\Pi(\text{attention}))W)$ whose matrices have spectral and $(2,1)$ norm at most "
    r"$C$, a linear read-out of norm at most $C$ and the margin loss, the gap grows with the sequence length only through "
    r"$\log T$.",
    assumptions=DEEP,
    published_note=_CONSTANT + "; the exponent of $C$ is $O(D)$, written $cD$ here",
    compares="covering_number",
    differs={
        "C": "the exponent of $C$ tends to $6D+2$ as $C$ grows ($r$ is of order $C^3$); the paper writes $O(D)$",
        "depth": r"the constant is $r^2$ per block, $r = HC^2(C+\sqrt{1+C^2})$; the paper writes $C^{O(D)}$",
        "heads": "the paper's deep theorem has one head; here the first two terms of every block carry $H$, and $r$ too",
    },
    also=_SHARPER,
    uses=("T1", "T2", *LIPSCHITZ, "S1", "S2", "A0", "A1", "A3", "A4", "A5", "G0", "G1", "G2"),
    published_form=shape("covering_number", _deep_published),
    forms=_deep,
    lemmas=COUNTING,
    search="closed",
)


# -- one layer


def _head_published(s: Any, sympy: Any) -> Any:
    power = sympy.Rational(2, 3)
    size = s.K_V**power + (s.C_V * s.K_QK * s.B_X) ** power
    return s.c * (s.L_s * s.B_X) ** 2 * size**3 * sympy.log(s.m * s.T) / s.eps**2


def _head_forms() -> tuple[Any, Forms]:
    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.closed import closed_form
    from boundcalc.formulas.symbolic.formula import LEFT, Formula
    from boundcalc.setting import Architecture, Attention, Budget, Norms, Sample, Setting

    layer = Attention(d=s.d, heads=1)
    norms = Norms(budgets={"W_V": Budget(op=s.C_V, two_one=s.K_V), "W_QK": Budget(two_one=s.K_QK)})
    setting = Setting(
        Architecture(layers=(layer,), classes=s.d, seq_len=s.T, input_radius=s.B_X),
        norms,
        Sample(n_train=s.m, lipschitz=s.L_s),
    )

    form = closed_form(setting, exact=True, order=(s.C_V, s.K_V), plain=True)

    def covering() -> Formula:
        main, name = form.on_sample, "covering_number"
        return Formula(name, main.expr / s.eps**2, main.where, LEFT[name], conditions=form.conditions)

    return form, {"covering_number": covering}


_ONE_LAYER = (
    *SAMPLE,
    r"rows of the input have $\ell_2$ norm at most $B_X$; the output row is read after an $L_s$-Lipschitz map that vanishes "
    "at 0",
    "softmax weights; one score matrix $W_{QK}$ per head",
)
_LENGTH = (
    "of one output row the value cover counts one pooled row per sample, and the score cover either $mT$ pairs (S1) or $m$ "
    "queries (S2): the lesser is bounded in $T$, where the paper counts $mT$ points throughout"
)
_WIDTH = r"a factor $\log d$, from the columns of a matrix; the paper's logarithm leaves it out for one layer"
_RADIUS = (
    "$B_X^6$ instead of $B_X^4$ in the score term: here the query row has norm $B_X$ as every other, the paper's [CLS] "
    "query is a fixed vector of norm 1"
)

edelman2022_head = Theorem(
    name="edelman2022_head",
    title=r"one attention head, $\log T$",
    source=EDELMAN2022,
    statement=r"The class of single attention heads with $|W_V|_{\mathrm{op}}\le C_V$, $|W_V|_{2,1}\le K_V$ and "
    r"$|W_{QK}|_{2,1}\le K_{QK}$ has a log covering number that grows like $\log(mT)$.",
    assumptions=_ONE_LAYER,
    published_note=_CONSTANT,
    compares="covering_number",
    differs={"B_X": _RADIUS, "T": _LENGTH, "d": _WIDTH},
    also=_SHARPER,
    uses=("T1", "T2", "L1", "L2", "L7", "S1", "S2", "A0", "A1", "A3", "A5"),
    of="log N(F, epsilon)",
    published_form=shape("covering_number", _head_published),
    forms=_head_forms,
)
