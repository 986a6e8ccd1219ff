"""A as statements: how covers of layers become a cover of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.sources import BARTLETT2017, EDELMAN2022
from boundcalc.base.statement import Statement
from boundcalc.setting import Budget, Setting
from boundcalc.statements.capacity import capacity
from boundcalc.statements.compose import lower
from boundcalc.statements.covers import CLOSED
from boundcalc.statements.meet import product
from boundcalc.statements.targets import MatrixNorms, matrix_norms


def network_error(ns: NumberSystem, setting: Setting, eps: Mapping[str, float]) -> Mapping[str, Number]:
    """A0: radius of the loss, how much it stretches errors of the input, and its error for one eps per piece."""
    lowered = lower(setting, ns)
    error = ns.number(0)
    for piece in lowered.pieces:
        error = error + piece.gain * ns.number(eps[piece.key])
    return {"radius": lowered.radius, "amplification": lowered.amplification, "error": error}


def least_split(ns: NumberSystem, coefficients: Sequence[Number], gains: Sequence[Number]) -> Number:
    """A1: min of sum A_j/eps_j^2 subject to sum k_j eps_j = 1."""
    roots = ns.number(0)
    for a, k in zip(coefficients, gains, strict=True):
        roots = roots + _cube_root(ns, a * k**2)
    return roots**3


def _cube_root(ns: NumberSystem, x: Number) -> Number:
    return ns.exp(ns.log(x) / 3)


def split_count(ns: NumberSystem, counts: Sequence[Number], gains: Sequence[Number], parts: Sequence[Number]) -> Number:
    """A2: log-counts add, whatever the split; `split_fits` says whether the split is one."""
    del gains, parts
    total = ns.number(0)
    for count in counts:
        total = total + count
    return total


def split_fits(gains: Sequence[float], parts: Sequence[float], eps: float) -> Refusal | None:
    """A2: whether sum k_j eps_j stays below eps, with room for rounding."""
    spent = sum(k * part for k, part in zip(gains, parts, strict=True))
    if spent <= eps * (1 - 1e-12):
        return None
    return Refusal("A2", f"errors that add up to {spent:.6g}", f"at most {eps:.6g}")


def least_lemma(ns: NumberSystem, *counts: Number) -> Number:
    """A3: the least of several valid log-counts of one piece."""
    return ns.minimum(*counts)


def network_capacity(ns: NumberSystem, setting: Setting, samples: int) -> Number:
    """A4: C_F with log N(e) <= C_F/e^2 for the losses, on so many samples; every piece by T1 or T2, split by A1."""
    return capacity(ns, lower(setting, ns), ns.number(samples), CLOSED)


def _follows(ns: NumberSystem, budget: Budget, d: int, k: int, rank: int | None = None) -> Mapping[str, Number]:
    norms = matrix_norms(ns, budget, d, k, rank)
    if norms is None:
        raise ValueError("nothing follows from an empty budget; see `applies`")
    names = ("op", "fro", "two_one", "two_one_t", "one_one", "rank")
    return {name: getattr(norms, name) for name in names}


def _product(ns: NumberSystem, a: Mapping[str, Number], b: Mapping[str, Number]) -> Mapping[str, Number]:
    """A6: norms of AB from op, fro, two_one, two_one_t, one_one and nuclear of A and of B."""
    found = product(ns, MatrixNorms(**a, rank=1), MatrixNorms(**b, rank=1))
    return {name: getattr(found, name) for name in ("op", "fro", "two_one", "two_one_t", "nuclear")}


def _looked_up(
    ns: NumberSystem, token: Number, position: Number, eps: Number, token_error: Number, position_error: Number
) -> Mapping[str, Number]:
    """A7: radius of the heads' outputs, and their error, from longest values, an error of scores and those of values."""
    radius = token + position
    half = ns.exp(eps)
    bent = 2 * (half - 1) / (half + 1)
    return {"radius": radius, "error": bent * radius + token_error + position_error}


def _sets_a_norm(budget: Budget) -> Refusal | None:
    names = ("op", "fro", "two_one", "two_one_t", "one_one", "schatten")
    if any(getattr(budget, name) is not None for name in names):
        return None
    return Refusal("A5", "a budget without a norm", "at least one of op, F, 21, 11, Sp")


def _is_preset(setting: Setting) -> Refusal | None:
    style = setting.architecture.style
    if setting.architecture.layers is None and style == "edelman":
        return None
    return Refusal(
        "the printed form of A4", f"style {style!r}", "style 'edelman'", "The value itself takes any setting."
    )


COMPOSITION = (
    Statement(
        "A0",
        "covers of layers make a cover of the network",
        r"\mathrm{err}_i\le L_i\,\mathrm{err}_{i-1}+s_i\varepsilon_i,\qquad\log N(F)\le\sum_i\log N_i(\varepsilon_i)",
        "Layers F_i(.; th): Ball(b_{i-1}) -> Ball(b_i), L_i-Lipschitz for every admissible th; for every n_i "
        "points of the ball at most N_i(eps_i) maps reproduce F_i within s_i eps_i on them. A residual adds its "
        "branch's error to that of its input; heads' errors add; within a head scores come first, then V at the "
        "approximate pooled rows. The composite cover is uniform if every piece's is.",
        "Cover layer by layer, each later cover taken at the finitely many approximate inputs the earlier ones "
        "produce, projected to Ball(b_i) (which leaves true activations alone and is 1-Lipschitz). |G_i(x') - "
        "F_i(x)| <= L_i |x' - x| + s_i eps_i for the map G_i of the cover. Unrolled, the output error is sum_i k_i "
        "eps_i, k_i the product of all later Lipschitz factors.",
        source=BARTLETT2017,
        compute=network_error,
    ),
    Statement(
        "A1",
        "the best split of an error",
        r"\min\Big\{\sum_j\frac{A_j}{\varepsilon_j^2}:\sum_jk_j\varepsilon_j=\varepsilon\Big\}=\frac{\big("
        r"\sum_j(A_jk_j^2)^{1/3}\big)^3}{\varepsilon^2}",
        "A_j, k_j > 0. The minimum is at eps_j proportional to (A_j/k_j)^{1/3}.",
        "Hoelder: sum (A_j k_j^2)^{1/3} = sum (A_j/eps_j^2)^{1/3} (k_j eps_j)^{2/3} <= (sum A_j/eps_j^2)^{1/3} "
        "(sum k_j eps_j)^{2/3}.",
        source=BARTLETT2017,
        compute=least_split,
    ),
    Statement(
        "A2",
        "any feasible split is valid",
        r"\sum_jk_j\varepsilon_j\le\varepsilon\ \Rightarrow\ \log N(F,\varepsilon)\le\sum_j\log N_j(\varepsilon_j)",
        "Feasibility is verified in interval arithmetic; where eps_j comes from does not matter. A piece whose "
        "eps_j reaches its radius times its norm costs nothing, and one whose error has a cap counts at most that.",
        "A0 for these eps_j. Costs are 0 beyond their reach and not convex, so the splits searched are those of a "
        "Lagrangian sweep, improved by dropping pieces.",
        compute=split_count,
        applies=split_fits,
    ),
    Statement(
        "A3",
        "the least lemma per piece and per scale",
        r"\log N_j(\varepsilon_j)\le\min_{\text{lemmas}}\log N_j^{\mathrm{lemma}}(\varepsilon_j)",
        "Budgets are fixed (or paid by P1). Empirical and uniform lemmas may be mixed; the result is uniform only "
        "if all are.",
        "Each is an upper bound of the same number, and none looks at the labels or at the trained weights.",
        compute=least_lemma,
    ),
    Statement(
        "A4",
        "closed form for deep networks",
        r"C_{\mathrm{func}}=B_w^2\Big[\log(2m+1)^{1/3}+S(1)+S(T)\frac{r^{2D/3}-r^{2/3}}{r^{2/3}-1}\Big]^3,\quad "
        r"S(n)=K^{2/3}\big[L^{2/3}(\Lambda_s^{1/3}C^{4/3}+\Lambda^{1/3}C^{2/3})+\Lambda^{1/3}\big]",
        "Blocks Pi_1(sigma(Pi_1(attention)) W_1), one head, rows in the unit ball, spectral norms <= C, (2,1) "
        "norms <= K, |W_QK|_F <= K_F, read-out |w| <= B_w, activation constant L. r = L C lip, lip = C(C + sqrt(1 "
        "+ C^2)); Lambda = Lambda(d, m n) of T2, Lambda_s = min{(K_F/K)^2 log(2mnT + 1), Lambda}. Then log N(F, "
        "eps) <= C_func/eps^2 on m samples. H heads: lip and the first two terms of S times H. For r = 1 the last "
        "factor is D - 1.",
        "T1, T2, L1-L8 and A0 give A_j = K^2 Lambda_s or K^2 Lambda and k_j = B_w r^{D-i} times C^2 L, C L or 1 "
        "for the scores, values and W_1 of block i; the last block is read at one row (n = 1). A1, and a "
        "geometric sum. The value is obtained by lowering the setting, so it holds for every architecture.",
        "O-tilde and an unspecified constant where published",
        EDELMAN2022,
        compute=network_capacity,
        applies=_is_preset,
    ),
    Statement(
        "A5",
        "norms that follow from others",
        r"|W|_{\mathrm{op}}\le|W|_F\le|W|_{2,1}\le\sqrt k|W|_F,\quad|W|_F\le\sqrt{\mathrm{rank}}\,|W|_{"
        r"\mathrm{op}},\quad|W|_F^2\le|W|_{\mathrm{op}}|W|_{2,1},\quad|W|_{2,1}\le|W|_{1,1}\le\sqrt d\,|W|_{2,1}",
        "W is d x k; the same for the transpose, which has the same spectral, Frobenius and (1,1) norms. A "
        "Schatten budget R gives |W|_op <= R^{1/p} and |W|_F^2 <= |W|_op^{2-p} R. The knob C sets spectral and "
        "(2,1) norm together.",
        "|W|_F^2 = sum_j |w_j|^2 <= max_j |w_j| sum_j |w_j|; Cauchy-Schwarz for the factors sqrt(k), sqrt(d), "
        "sqrt(rank).",
        compute=_follows,
        applies=_sets_a_norm,
    ),
    Statement(
        "A6",
        "linear maps that meet are one map",
        r"|AB|_{2,1}\le|A|_{\mathrm{op}}|B|_{2,1},\quad|AB|_*\le\min\{|A|_{\mathrm{op}}|B|_*,|A|_*|B|_{\mathrm{op}},"
        r"|A|_F|B|_F\},\quad S=AW_{QK}A^\top,\ M=AW_V",
        "Between A and B only the identity, a pooling, or a projection of radius at least b |A|_op, b the reach of the "
        "input of A in the radius walk. Not an activation, LayerNorm, residual or bias of A. Attention after A has S "
        "and M for W_QK and W_V. Before a read-out R of fewer columns also a residual: (x+hA+a)R+r = xR+h(AR)+(aR+r). "
        "Budgets may be given for the product AR itself.",
        "The functions are equal: the projection leaves every hA alone, scores are hA W_QK A'h'' and values hA W_V. So "
        "the class lies in that of the network with the products, and a cover of the larger class is one. Norms column "
        "by column (L6) and by duality.",
        compute=_product,
    ),
    Statement(
        "A7",
        "attention on tokens, read at a row without data, looks scores and values up",
        r"x+\big[\sum_ta_{th}u_tV_h\big]_hW_O+b=\big[\sum_ta_{th}(v^E_{i_th}+v^P_{th})\big]_hW_O+c,\quad a_{\cdot h}="
        r"\mathrm{softmax}_t(s^E_{i_th}+s^P_{th}),\quad|y|\le R,\quad|y-y'|\le2\tanh(\varepsilon_s/2)R+|\Delta^E|_F"
        r"+|\Delta^P|_F",
        "Rows u_t = E_i + P_t of learned tokens and positions; the only attention (softmax, joint scores, heads side by "
        "side, W_O) in a residual right after them, read at a row that shows the same token in every example, all after "
        "it row by row. R is the sum over both tables of the root of the sum over heads of the square of the longest "
        "value. Scores are covered as gains (T9), values as one vector (T8, T12). Budgets may be given for the tables.",
        "The functions are equal: x is constant, scores and values are linear in u_t, and weights that sum to 1 carry "
        "offsets of values along. Averages are no longer than the longest value, weights move by 2 tanh(e/2) in l1 "
        "(S5), averages of errors are at most their Frobenius norm; over heads squares add.",
        compute=_looked_up,
    ),
)
