"""Edelman, Goel, Kakade, Zhang 2022: bounds that grow like log T."""

from __future__ import annotations

from dataclasses import replace
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


def _heads_published(s: Any, sympy: Any, heads: Any = 1) -> Any:
    power = sympy.Rational(2, 3)
    size = s.K_V**power + (s.C_V * s.K_QK * s.B_X) ** power
    return s.c * heads**3 * (s.L_s * s.B_X) ** 2 * size**3 * sympy.log(s.m * s.T) / s.eps**2


def _head_forms(heads: bool) -> tuple[Any, Forms]:
    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.closed import closed_form
    from boundcalc.formulas.symbolic.formula import LEFT, Formula
    from boundcalc.setting import Architecture, Attention, Budget, Norms, Sample, Setting

    layer = Attention(d=s.d, heads=s.heads if heads else 1)
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
    published_form=shape("covering_number", _heads_published),
    forms=lambda: _head_forms(heads=False),
)

edelman2022_multihead = replace(
    edelman2022_head,
    name="edelman2022_multihead",
    title=r"$H$ attention heads, $\log T$",
    statement="The sum of $H$ attention heads: covers of the heads add up, and so do their errors.",
    uses=("T1", "T2", "L1", "L2", "L7", "L8", "S1", "S2", "A0", "A1", "A3", "A5"),
    published_form=shape("covering_number", lambda s, sympy: _heads_published(s, sympy, s.heads)),
    forms=lambda: _head_forms(heads=True),
)


# -- general attention


def _general_published(s: Any, sympy: Any) -> Any:
    third = sympy.Rational(1, 3)
    inner = s.A_s**third * (s.c_n * s.L_out * s.B_in) ** (2 * third) + s.A_in**third * s.L_out ** (2 * third)
    return s.c * inner**3 / s.eps**2


def _general_forms() -> tuple[Any, Forms]:
    import sympy

    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.formula import LEFT, Formula

    def covering() -> Formula:
        # A1: E's infimum over the shares t and 1 - t of the error, for costs A_s/e^2 and A_in/e^2
        third = sympy.Rational(1, 3)
        scores = (s.A_s * (s.c_n * s.L_out * s.B_in) ** 2) ** third
        features = (s.A_in * (s.mu * s.L_out) ** 2) ** third
        return Formula("covering_number", (scores + features) ** 3 / s.eps**2, (), LEFT["covering_number"])

    return None, {"covering_number": covering}


edelman2022_attention = Theorem(
    name="edelman2022_attention",
    title="general attention, for score and feature classes of one's own",
    source=EDELMAN2022,
    statement="Attention with any score class and any feature class: covers of both, the error shared between them.",
    assumptions=(
        r"$y = \phi_{\mathrm{out}}(\sum_t\mathrm{Norm}(\mathrm{Score}(x_t, z))_t \phi_{\mathrm{in}}(x_t))$ with "
        r"$\phi_{\mathrm{out}}$ $L_{\mathrm{out}}$-Lipschitz and $|\phi_{\mathrm{in}}|\le B_{\mathrm{in}}$",
        r"the normaliser is $c_0$-Lipschitz from $\ell_\infty$ to $\ell_1$ and its rows have $\ell_1$ mass at most $\mu$",
        r"log-counts $A_s/e^2$ (scores, sup norm) and $A_{\mathrm{in}}/e^2$ (features, on the pooled rows) at every scale $e$",
    ),
    published_note="the infimum over the split is left open; at A1's share it is this power mean",
    compares="covering_number",
    differs={"mu": r"the paper takes weights that sum to 1, so $\mu = 1$ does not appear"},
    also=("the paper's softmax constant is 2, ours 1 (L1)",),
    uses=("L1", "L2", "A1", "E"),
    of="log N(F, epsilon)",
    statement_name="E",
    published_form=shape("covering_number", _general_published),
    forms=_general_forms,
)
