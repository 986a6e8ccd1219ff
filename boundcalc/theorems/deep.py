r"""Theorems about deep attention networks: Edelman et al. 2022, Trauger and Tewari 2024, Zhang et al. 2022, and K1.

All four are about one network, `definition_of`, and differ in the norms they bound and in what they count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from boundcalc.base.theory import HERE, source
from boundcalc.statements.covers import COUNTING
from boundcalc.theorems.theorem import Forms, Theorem, shape

if TYPE_CHECKING:
    from boundcalc.setting import Setting
    from boundcalc.theorems.formula import Formula

# -- the network, with symbols for numbers and in words


def network() -> Setting:
    """The preset edelman with every number a symbol."""
    from boundcalc.base import symbols as s
    from boundcalc.setting import Setting

    sizes: dict[str, Any] = {"d": s.d, "heads": s.heads, "depth": s.depth, "seq_len": s.T, "n_train": s.m}
    return Setting.of("edelman", C=s.C, delta=s.delta, margin=s.gamma, **sizes)


SPECTRAL_AND_COLUMNS = (
    r"$|W|_{\mathrm{op}}\le C$ and $|W|_{2,1}\le C$ for every matrix $W$ of the network, and $|w|\le C$; here "
    r"$|W|_{\mathrm{op}}$ is the spectral norm and $|W|_{2,1}$ the sum of the lengths of the columns"
)
SPECTRAL_AND_ENTRIES = (
    r"$|W|_{\mathrm{op}}\le C$ and $|W|_{1,1}\le K$ for every matrix $W$ of the network, $|w|\le C$ and $|w|_1\le K$; "
    r"here "
    r"$|W|_{\mathrm{op}}$ is the spectral norm and $|W|_{1,1}$ the sum of the absolute entries"
)
SPECTRAL = (
    r"$|W|_{\mathrm{op}}\le C$ for every matrix $W$ of the network, and $|w|\le C$; here $|W|_{\mathrm{op}}$ is the "
    "spectral norm"
)


def definition_of(norms: str, also: str = "") -> Callable[[Mapping[str, Any]], str]:
    """The class of networks whose norms are bounded so, in words; depth and heads may be numbers."""

    def written(values: Mapping[str, Any]) -> str:
        from boundcalc.base.symbols import ALIASES, latex
        from boundcalc.theorems.algebra import number
        from boundcalc.theorems.printing import latex as tex

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
        output = "Y" if one else f"Z_{{{depth}}}"
        named = [
            f"${latex(name)} = {tex(number(value))}$"
            for name, value in values.items()
            if name not in ("depth", "heads")
        ]
        return (
            r"Let $\Pi$ project every row of a matrix onto the unit ball of $\mathbb R^d$, $\sigma(x)=\max(0,x)$ act "
            r"on every "
            rf"entry and softmax on every row. For $X\in\mathbb R^{{T\times d}}$ {layers}"
            f"\n\n```math\n{display}\n```\n\n"
            rf"The class $\mathcal F$ consists of the functions $f(X)=\langle y,w\rangle$, $y$ the first row of "
            rf"${output}$, for all "
            rf"$d\times d$ matrices $W_{{QK}},W_V,W_1$ and $w\in\mathbb R^d$ with {norms}."
            + (f" {also}" if also else "")
            + (f" Here {', '.join(named)}." if named else "")
        )

    return written


_SAMPLE = (
    r"Fix $\gamma>0$ and $\delta\in(0,1)$. Let $(X_1,y_1),\ldots,(X_m,y_m)$ be drawn independently from one law of "
    r"pairs "
    r"$(X,y)$, where every row of $X\in\mathbb R^{T\times d}$ has length at most 1 and $y=\pm1$. Write "
    r"$R(f)=\Pr(yf(X)\le0)$ "
    r"for the risk of $f$ and $\hat R_\gamma(f)=\frac1m|\lbrace i:y_if(X_i)\le\gamma\rbrace|$ for the share of "
    r"examples "
    r"with margin at most $\gamma$."
)
_RAMP = (
    r"The same holds for $\mathbb E\,\ell(X,y)-\frac1m\sum_i\ell(X_i,y_i)$ in place of the left-hand side, for any "
    r"loss $\ell$ with "
    r"values in $[0,1]$ that is $1/\gamma$-Lipschitz in $f(X)$."
)
_ON_SAMPLE = (
    r"For any $m$ sequences of $T$ rows of length at most 1 and every $\varepsilon>0$ there are finitely many maps"
)
CLAIMS: Mapping[str, tuple[str, str]] = {
    "gap": (
        rf"{_SAMPLE} Then, with probability at least $1-\delta$ over the sample, every $f$ in the class $\mathcal F$ "
        rf"satisfies",
        _RAMP,
    ),
    "excess": (
        rf"{_SAMPLE} Let $L(f)$ be the expected and $\hat L(f)$ the mean ramp loss at margin $\gamma$, and let $\hat "
        r"f$ minimise $\hat L$ over $\mathcal F$. Then, with probability at least $1-2\delta$ over the sample,",
        "",
    ),
    "covering_number": (
        rf"{_ON_SAMPLE} such that every $f\in\mathcal F$ is within $\varepsilon$ of one of them on all $m$ sequences. "
        rf"The "
        r"smallest number $N(\mathcal F,\varepsilon)$ of such functions satisfies",
        "",
    ),
    "rademacher": (
        r"Let $\sigma_1,\ldots,\sigma_m$ be random signs and $\ell$ the ramp loss at margin $\gamma$. For any $m$ "
        r"labelled sequences "
        r"of rows of length at most 1, $\mathcal R_m(\ell\circ\mathcal F)=\mathbb E\sup_{f\in\mathcal "
        r"F}\frac1m\sum_i\sigma_i"
        r"\ell(y_if(X_i))$ satisfies",
        "",
    ),
}
_DEEP = (
    "$m$ labelled sequences are drawn independently",
    "every budget, the margin and the confidence are fixed before the sample is drawn",
    r"rows of the input have length at most 1, and activations are projected onto the unit ball twice per block",
    "ReLU between the projections; the output is read from one row ([CLS])",
    r"the ramp loss at margin $\gamma$ (or any loss in $[0, 1]$ that is $1/\gamma$-Lipschitz in the output)",
)


def _closed(**changes: Any) -> tuple[Any, Forms]:
    from boundcalc.theorems.closed import ClosedForm

    form = ClosedForm(network(), **changes)
    return form, form.formulas


def _steps(form: Any, quantity: str, formula: Formula) -> Any:
    from boundcalc.theorems import steps

    return steps.steps_of(form, quantity, formula)


# -- Edelman, Goel, Kakade, Zhang 2022

_CONSTANT = r"$O(\cdot)$ in the paper; the explicit version of the same argument is this library's"
_SHARPER = (
    r"the softmax constant is 1 (L1) where the paper has 2, and the Lipschitz factor of a head "
    r"$C_V(\kappa+\sqrt{1+\kappa^2})$ (L7) where it has $C_V(1+4C_W)$",
    "covers by T1 and T2, without the factor 36 and without the scale inside the logarithm",
)

edelman2022 = Theorem(
    name="edelman2022",
    title=r"deep attention networks, $\log T$",
    source=source("edelman2022"),
    statement=r"For $D$ blocks whose matrices have spectral and $(2,1)$ norm at most $C$ the gap grows with the "
    r"sequence "
    r"length only through $\log T$.",
    published_note=_CONSTANT + "; the exponent of $C$ is $O(D)$, written $cD$ here",
    compares="covering_number",
    published_form=shape(
        "covering_number", lambda s, sympy: s.C ** (s.c * s.depth) * s.C**4 * sympy.log(s.d * s.m * s.T) / s.eps**2
    ),
    forms=_closed,
    assumptions=(*_DEEP, "spectral and $(2,1)$ norms at most $C$"),
    definition=definition_of(SPECTRAL_AND_COLUMNS),
    claims=CLAIMS,
    steps=_steps,
    differs={
        "C": "the exponent of $C$ tends to $6D+2$ as $C$ grows ($r$ is of order $C^3$); the paper writes $O(D)$",
        "depth": r"the constant is $r^2$ per block, $r = HC^2(C+\sqrt{1+C^2})$; the paper writes $C^{O(D)}$",
        "heads": "the paper's deep theorem has one head; here the first two terms of every block carry $H$, and $r$ "
        "too",
    },
    also=_SHARPER,
    lemmas=COUNTING,
    search="closed",
)


def _head_published(s: Any, sympy: Any) -> Any:
    power = sympy.Rational(2, 3)
    size = s.K_V**power + (s.C_V * s.K_QK * s.B_X) ** power
    return s.c * (s.L_s * s.B_X) ** 2 * size**3 * sympy.log(s.m * s.T) / s.eps**2


def _head_forms() -> tuple[Any, Forms]:
    from boundcalc.base import symbols as s
    from boundcalc.setting import Architecture, Attention, Budget, Norms, Sample, Setting
    from boundcalc.theorems.closed import ClosedForm

    norms = Norms(budgets={"W_V": Budget(op=s.C_V, two_one=s.K_V), "W_QK": Budget(two_one=s.K_QK)})
    architecture = Architecture(layers=(Attention(d=s.d, heads=1),), classes=s.d, seq_len=s.T, input_radius=s.B_X)
    form = ClosedForm(Setting(architecture, norms, Sample(n_train=s.m, lipschitz=s.L_s)))
    return form, {"covering_number": lambda: form.covering_number}


_HEAD = (
    r"For $X\in\mathbb R^{T\times d}$ with rows of length at most $B_X$, $x_q$ one of them, let "
    r"$h(X)=\phi\big(\mathrm{softmax}(x_qW_{QK}X^\top)XW_V\big)$. The class $\mathcal F$ consists of these functions "
    r"for one "
    r"$L_s$-Lipschitz map $\phi$ with $\phi(0)=0$ and all $d\times d$ matrices with $|W_V|_{\mathrm{op}}\le C_V$, "
    r"$|W_V|_{2,1}\le K_V$ and $|W_{QK}|_{2,1}\le K_{QK}$; $|W|_{\mathrm{op}}$ is the spectral norm and $|W|_{2,1}$ "
    r"the sum of "
    "the lengths of the columns."
)

edelman2022_head = Theorem(
    name="edelman2022_head",
    title=r"one attention head, $\log T$",
    source=source("edelman2022"),
    statement=r"The class of single attention heads with $|W_V|_{\mathrm{op}}\le C_V$, $|W_V|_{2,1}\le K_V$ and "
    r"$|W_{QK}|_{2,1}\le K_{QK}$ has a log covering number that grows like $\log(mT)$.",
    published_note=_CONSTANT,
    compares="covering_number",
    published_form=shape("covering_number", _head_published),
    forms=_head_forms,
    assumptions=(
        r"rows of the input have length at most $B_X$; the output row is read after an $L_s$-Lipschitz map that "
        r"vanishes at 0",
        "softmax weights; one score matrix $W_{QK}$ per head",
    ),
    definition=lambda values: _HEAD,
    claims={
        "covering_number": (
            r"For any $m$ sequences of $T$ rows of length at most $B_X$ and every $\varepsilon>0$ there is a finite "
            r"set of "
            r"functions such that every $h\in\mathcal F$ is within $\varepsilon$ of one of them on all $m$ sequences. "
            r"The "
            r"smallest number $N(\mathcal F,\varepsilon)$ of such functions satisfies",
            "",
        )
    },
    steps=_steps,
    differs={
        "B_X": "$B_X^6$ instead of $B_X^4$ in the score term: here the query row has norm $B_X$ as every other, the "
        "paper's "
        "[CLS] query is a fixed vector of norm 1",
        "T": "of one output row the value cover counts one pooled row per sample, and the score cover either $mT$ "
        "pairs (S1) or "
        "$m$ queries (S2). The smaller is bounded in $T$, where the paper counts $mT$ points throughout",
        "d": r"a factor $\log d$, from the columns of a matrix; the paper's logarithm leaves it out for one layer",
    },
    also=_SHARPER,
    of="log N(F, epsilon)",
)

# -- Trauger, Tewari 2024


def _trauger_forms() -> tuple[Any, Forms]:
    from boundcalc.base import symbols as s
    from boundcalc.setting import Budget, Norms
    from boundcalc.theorems.closed import ClosedForm

    budget = Budget(op=s.C, one_one=s.K)
    norms = Norms(budgets={kind: budget for kind in ("W_QK", "W_V", "W_1", "readout")})
    form = ClosedForm(network().but(norms=norms), frozenset({"T3"}))
    return form, form.formulas


trauger2024 = Theorem(
    name="trauger2024",
    title="deep attention networks, independent of $T$",
    source=source("trauger2024"),
    statement=r"With entrywise $\ell_1$ norms at most $K$ (and spectral norms at most $C$) every matrix has a cover "
    r"that "
    "serves every sample, so neither $T$ nor $m$ enters the covering number.",
    published_note=r"$O(\cdot)$ in the paper, for one or more layers; the exponent of $C$ is written $cD$ here",
    compares="covering_number",
    published_form=shape(
        "covering_number", lambda s, sympy: s.C ** (s.c * s.depth) * s.K**2 * sympy.log(s.d) / s.eps**2
    ),
    forms=_trauger_forms,
    assumptions=(*_DEEP, r"spectral norms at most $C$, entrywise $\ell_1$ norms at most $K$"),
    definition=definition_of(SPECTRAL_AND_ENTRIES),
    claims=CLAIMS,
    steps=_steps,
    differs={
        "C": "the exponent of $C$ is explicit; the paper's product of norms over layers is written $C^{cD}$",
        "depth": r"the constant is $r^2$ per block, $r = HC^2(C+\sqrt{1+C^2})$; the paper has a product of norms",
        "heads": "the shape is for one head",
    },
    also=(
        "the linear cover is by rounding (T3), which needs half the draws of Maurey's argument that the paper uses",
        "the gap is stated with ghost samples (factor $17/16$), as every closed form here; for uniform covers the "
        "factor could be 1",
    ),
    lemmas=frozenset({"T3"}),
    search="closed",
)

# -- Zhang, Liu, Cai, Wang, Wang 2022


def _zhang_forms() -> tuple[Any, Forms]:
    from boundcalc.theorems.uniform import UniformForm

    form = UniformForm(network())
    return form, form.formulas


zhang2022 = Theorem(
    name="zhang2022",
    title="learning error independent of the input size",
    source=source("zhang2022"),
    statement="All covers are uniform, so no sequence length enters: the gap is of order $m^{-1/2}$, and depends on "
    "widths, "
    "depth and norms alone.",
    published_note="the paper's constant hides widths, depth and norms; only the absence of $T$ and the rate are "
    "compared",
    compares="gap",
    published_form=shape("gap", lambda s, sympy: s.c * s.d / sympy.sqrt(s.m)),
    forms=_zhang_forms,
    assumptions=(
        *_DEEP,
        "spectral norms at most $C$",
        "positions, if any, are fixed (learned positions would make $Td$ further parameters)",
        "for masked pre-training a sample is a (sequence, mask) pair and losses are averaged over masked tokens",
    ),
    definition=definition_of(SPECTRAL),
    claims=CLAIMS,
    steps=_steps,
    differs={
        **dict.fromkeys(("depth", "heads", "C", "gamma", "delta"), "hidden in the paper's constant"),
        "m": r"a factor $\sqrt{\log m}$ more, for the scale $1/m$ of the one cover; chaining would remove it",
    },
    also=("the paper covers a Lipschitz parametrisation of attention; here every matrix is covered by volume (T4)",),
    statement_name="X5",
    network=True,
)

# -- K1


def _comparison_forms() -> tuple[Any, Forms]:
    from boundcalc.theorems import comparison

    return None, {"gap": comparison.gap}


def _comparison_steps(form: Any, quantity: str, formula: Formula) -> Any:
    from boundcalc.theorems import comparison

    del form, quantity
    return comparison.steps(formula)


def _projections_act(values: Mapping[str, Any]) -> str:
    """Why K1 does not hold at a norm and a number of heads, or ""."""
    values_op = values["heads"] * values["C"]
    if max(values_op, values_op * values["C"]) <= 1:
        return ""
    return f"HC = {values_op:g} and HC^2 = {values_op * values['C']:g} must be at most 1, or a projection may act"


K1 = Theorem(
    name="K1",
    title="deep attention networks by Gaussian comparison, free of $T$ and of the width",
    source=HERE,
    statement="Where no projection acts, the class is compared with Gaussian processes whose suprema are known: the "
    "bound knows "
    "neither the sequence length nor the width.",
    published_note="this library's; only the rate is a shape",
    compares="gap",
    published_form=shape("gap", lambda s, sympy: s.c / sympy.sqrt(s.m)),
    forms=_comparison_forms,
    assumptions=(*_DEEP, "spectral and $(2,1)$ norms at most $C$", r"no projection acts: $HC\le1$ and $HC^2\le1$"),
    definition=definition_of(
        SPECTRAL_AND_COLUMNS,
        r"Suppose that $HC\le1$ and $HC^2\le1$: then no projection acts, and all rows stay in the unit ball.",
    ),
    claims=CLAIMS,
    steps=_comparison_steps,
    differs={
        **dict.fromkeys(("C", "heads", "gamma", "delta"), "left out of the shape"),
    },
    statement_name="K1",
    network=True,
    premise=_projections_act,
    builds={"depth": 1},
)
