"""G as statements: from covers to a gap or a risk. The values are the formulas of `calculus.gap`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.sources import BARTLETT2017, EDELMAN2022, KOLTCHINSKII2002, LANGFORD2005
from boundcalc.base.statement import Statement
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.compose import loss_lipschitz
from boundcalc.statements.premise import largest_margin, no_member


def _complexity(ns: NumberSystem, scales: Sequence[Number], counts: Sequence[Number], m: Number) -> Number:
    """Scales are e_0, ..., e_J; counts log N_1, ..., log N_J."""
    return scales[-1] + gap.chain_sum(ns, scales, counts, m)


def _gap(
    ns: NumberSystem,
    scales: Sequence[Number],
    counts: Sequence[Number],
    log_inverse_delta: Number,
    m: Number,
    ghosts: int | None = None,
    uniform: bool = False,
) -> Number:
    links = gap.chain_sum(ns, scales, counts, m)
    factor = gap.chain_factor(ns, ghosts, uniform=uniform)
    return gap.gap_chain(ns, scales[-1], links, factor, log_inverse_delta, m)


def _refined(
    ns: NumberSystem, scales: Sequence[Number], counts: Sequence[Number], log_inverse_delta: Number, m: Number
) -> Number:
    links = sum(gap.refined_links(ns, scales, counts, m), start=ns.number(0))
    return gap.gap_chain(ns, scales[-1], links, ns.number(1), log_inverse_delta, m)


def _sparse(ns: NumberSystem, s: int, seq_len: Number) -> Mapping[str, Number]:
    return {"log class size": gap.sparse_class_size(ns, s, seq_len), "label floor": gap.support_floor(ns, s, seq_len)}


def _fits(s: int, seq_len: int) -> Refusal | None:
    if 0 < s <= seq_len:
        return None
    return Refusal("G8", f"s = {s} of T = {seq_len}", "1 <= s <= T relevant positions")


def _falling(scales: Sequence[float]) -> Refusal | None:
    """Whether e_0, ..., e_J can be chained."""
    if not scales or scales[0] > 1 / 2 or any(a < b for a, b in pairwise(scales)):
        return Refusal("G1", f"scales {[float(f'{e:.3g}') for e in scales]}", "falling scales from e_0 <= 1/2")
    return None


def _needs_ramp(setting: Setting) -> Refusal | None:
    if setting.sample.lipschitz is not None:
        return Refusal(
            "a risk bound by margins", "the Lipschitz constant of another loss", "the ramp loss and a margin"
        )
    return None


def _needs_no_error(setting: Setting) -> Refusal | None:
    if setting.sample.train_error:
        error = f"margin training error {setting.sample.train_error:g}"
        return Refusal("G4", error, "margin training error 0", "Use G5, or a smaller margin.")
    return _needs_ramp(setting)


GAP = (
    Statement(
        "G0",
        "the ramp loss and margins",
        r"L_\ell=1/\gamma,\quad L_\ell=\sqrt2/\gamma\ \text{(multiclass, in }|\cdot|_2\text{ of the "
        r"logits)};\quad\Pr(yf\le0)\le\mathbb E\,\ell_\gamma,\quad\ell_\gamma\le\mathbf 1[yf\le\gamma]",
        "Scores y f(x), or for classes the margin f_y - max_{k != y} f_k. risk(f) = P(margin <= 0) and "
        "train_gamma(f) = #{margin_i <= gamma}/m, both non-strict.",
        "The ramp min(1, max(0, 1 - margin/gamma)) has slope 1/gamma and lies between the two indicators. Two "
        "logits e apart in l2 move f_y - f_k by at most sqrt(2) e, and a maximum of such functions is as smooth.",
        source=KOLTCHINSKII2002,
        compute=loss_lipschitz,
    ),
    Statement(
        "G0e",
        "the largest margin of a class",
        r"\text{margin}\le R_F\quad(K=1),\qquad\text{margin}\le R_F\sqrt{K/(K-1)}\quad(K>1)",
        "R_F = sup |f|, in |.|_2 of the logits. Where the right side is at most gamma every member has margin training "
        "error 1 (margins that equal gamma count): a risk bound at a smaller one speaks of no network and is refused. "
        "Where gamma is below it, an output along the extreme direction has the margin: the inequality is sharp.",
        "K = 1: y f <= |f|. K > 1: f_y - max_{k != y} f_k is at most f_y minus the mean of the others, the product of f "
        "with a vector of length sqrt(1 + 1/(K-1)); equality for f along that vector. R_F is walked as in A0, with "
        "|s(x)| <= b g(b) for activations s(x) = x g(|x|), sqrt(k) tanh(b / sqrt(k)) for tanh on rows of width k (soft caps "
        "alike), the mass of sigmoid and softmax1 at the largest score, and 0 for a matrix of rank 0; for K > 1 a read-out "
        "adds at most its (2,1) norm to the margin per unit of its input, and a soft cap c behind it leaves a margin of M "
        "at most 2c tanh(M / 2c).",
        source=KOLTCHINSKII2002,
        compute=largest_margin,
        applies=no_member,
    ),
    Statement(
        "G1",
        "chaining with entropy links",
        r"\mathcal R_m\le e_J+\sum_{j=1}^Je_{j-1}\sqrt{\frac{2\log N_j}{m}},\qquad e_0=\min(\tfrac12,L_\ell R_F)",
        "R_m is the Rademacher complexity of the losses in [0, 1] on m samples; e_0 > e_1 > ... > e_J, N_j = N(F, "
        "e_j/L_l) on these samples, non-decreasing in j (a finer cover is also a coarser one); any J >= 0. R_F = "
        "sup |f|: every loss is within e_0 of a fixed centre, 1/2 or l(0, y_i).",
        "Let g attain the supremum for signs s, C_j its centre at level j, p_0 the fixed centre, p_j = C_j for 0 "
        "< j < J, and p_J the centre C_J clipped into every box [p_i - e_i, p_i + e_i], i < J, all of which "
        "contain g: |g - p_J| <= e_J, |p_J - p_i| <= e_i. With S_j = E[s | C_1..C_j], E<s, p_J> = sum_j E<S_j - "
        "S_{j-1}, p_J - p_{j-1}> <= sqrt(m) sum_j e_{j-1} sqrt(a_j), a_j = E|S_j - S_{j-1}|^2. Signs are "
        "sub-Gaussian, so a_1 + .. + a_j = E|S_j|^2 <= 2 I(s; C_1..C_j) <= 2(log N_1 + .. + log N_j). As "
        "e_{j-1}/sqrt(log N_j) falls with j, concavity of the root and summation by parts give sum e_{j-1} "
        "sqrt(a_j) <= sum e_{j-1} sqrt(2 log N_j).",
        "Dudley's integral as quoted has 12 where a geometric chain of these has e sqrt 2 = 3.844",
        compute=_complexity,
        applies=_falling,
    ),
    Statement(
        "G2",
        "from covers to the gap",
        r"\mathbb Eg-\tfrac1m\sum_ig_i\le2e_J+\phi\sum_{j=1}^Je_{j-1}\sqrt{\frac{2\log "
        r"N_j}{m}}+\sqrt{\frac{\log(1/\delta)}{2m}}",
        "With probability at least 1 - delta, for every loss g of the class. phi = 2 with N_j on m samples; phi = "
        "1 + 1/alpha with N_j on (1 + alpha) m samples, any whole alpha >= 1; phi = 1 for uniform covers. A "
        "single uniform cover: 2e + sqrt((log N + log(1/delta))/(2m)). In one line, for log N(e) <= C_F/e^2 on 17 "
        "m samples and k = (17/32) e sqrt(2 C_F/m): "
        f"2k({gap.CLOSED_OFFSET:g} + log^+(1/(2k))) + sqrt(log(1/delta)/(2m)).",
        "McDiarmid puts the supremum within sqrt(log(1/delta)/(2m)) of its mean. phi = 2: symmetrisation and G1. "
        "Uniform: in G1 put the law Q_j^k of sample k given C_1..C_j for S_j; E(P - P_m)p_J = -(1/m) sum_jk "
        "E(Q_j^k - Q_{j-1}^k)(p_J - p_{j-1}), Pinsker, and sum_k I(X_k; C_1..C_j) <= I(X_1..X_m; C_1..C_j) by "
        "independence. Ghosts: compare with the mean of alpha m further samples; split all (1+alpha)m into m "
        "blocks of 1+alpha, of which one each, uniformly, is for training; ghost mean - train mean = (1 + "
        "1/alpha)(mean of all - train mean), and given the blocks the uniform argument applies to the m "
        "independent choices. One line: alpha = 16, e_j = u^{-j}/2, and the best u for J scales give 2k (J+1) "
        "e^{(t+1)/(J+1) - 1} with t = log(1/(2k)); the least over J >= 0 is at most 2k(t + 4/e + 1 - 2 log 2), "
        "with equality at t = 2 log 2 - 1.",
        "published with 2 R_m + 3 sqrt(log(2/delta)/(2m))",
        compute=_gap,
        applies=_falling,
    ),
    Statement(
        "G3",
        "margin bound from a uniform cover",
        r"\mathrm{risk}(f)\le\mathrm{kl}^{-1}\Big(\mathrm{train}_\gamma(f),\ \frac{\log "
        r"N(F,\gamma/2)+\log(1/\delta)}m\Big)",
        "Uniform covers, ramp margin gamma (multiclass: N at gamma/(2 sqrt 2)), any training error. kl^{-1}(q, c) "
        "= sup{p >= q : kl(q|p) <= c}, computed as (1 - e^{-mu q - c})/(1 - e^{-mu}) at some mu > 0, which is "
        "never less.",
        "Errors of f are margin-gamma/2 errors of its centre, those are margin-gamma errors of f; Chernoff for "
        "each centre. The dual form is the Donsker-Varadhan inequality with -mu x, with equality at the best mu.",
        source=LANGFORD2005,
        compute=gap.risk_uniform,
        applies=_needs_ramp,
    ),
    Statement(
        "G4",
        "margin bound from an empirical cover, no margin errors",
        r"\mathrm{risk}(f)\le\frac1{\alpha m}\min\Big\{\Big\lceil\frac{\log(2N/\delta)}{\log(1+1/\alpha)}\Big"
        r"\rceil,\ \Big\lceil(1+\alpha)m\big(1-(\delta/2N)^{1/m}\big)\Big\rceil\Big\}",
        "train_gamma(f) = 0, N = N(F, gamma/2) on (1 + alpha) m samples (multiclass: at gamma/(2 sqrt 2)), alpha "
        "a fixed whole number.",
        "If risk(f) > k/(alpha m), then alpha m ghost samples have at least k errors with probability 1/2 or more "
        "(the median of a binomial is at least the floor of its mean). Among all (1+alpha)m samples the centre of "
        "f then has k errors, all of them ghosts; under a random permutation that has probability at most "
        "(alpha/(1+alpha))^k, and at most (1 - k/((1+alpha)m))^m. A union over centres makes it at most delta/2.",
        source=BARTLETT2017,
        compute=gap.risk_realizable,
        applies=_needs_no_error,
    ),
    Statement(
        "G5",
        "margin bound from an empirical cover, any training error",
        r"\mathrm{risk}(f)\le\max_{q'\le q}\frac{(1+\alpha)\,\mathrm{kl}^{-1}(q',c)-q'+1/m}\alpha,\quad c=\frac{"
        r"\log N+\log(2/\delta)}m,\ q=\mathrm{train}_\gamma(f)",
        "N = N(F, gamma/2) on (1 + alpha) m samples (multiclass: at gamma/(2 sqrt 2)). kl^{-1} as in G3; for "
        "fixed mu the maximum is at a stationary point clamped to [0, q].",
        "As G4, with Hoeffding's reduction of sampling without replacement: the centre's error rate among all "
        "(1+alpha)m samples is at most kl^{-1}(q', c), q' its rate on the m training samples. Ghosts have the rest, "
        "and at least alpha m risk - 1.",
        source=BARTLETT2017,
        compute=gap.risk_ghost,
        applies=_needs_ramp,
    ),
    Statement(
        "G7",
        "Occam's bound",
        r"\mathrm{risk}\le\mathrm{kl}^{-1}\Big(\mathrm{train},\ \frac{B\log2+\log(1/\delta)}m\Big)",
        "A predictor described in B bits of a prefix-free code fixed before the data.",
        "Chernoff for each predictor at delta 2^{-B}; Kraft's inequality sums these to delta.",
        source=LANGFORD2005,
        compute=gap.occam_risk,
    ),
    Statement(
        "G11",
        "margin bound by noise that one example does not notice",
        r"\mathrm{risk}(f)\le\frac1{1-\eta}\mathrm{kl}^{-1}\Big(\mathrm{train}_\gamma(f)+\eta,\ \frac{I+\log(1/\delta)"
        r"+\log(2+\sqrt{\pi m/2})}m\Big)",
        "Every map gets Gaussian noise (V), or a centre of a uniform cover (T), so near that, but for a chance eta, one "
        "example's loss moves by at most 1/2 (A0, ramp margin gamma); I is the sum of the divergences of V and the log N "
        "of T, 0 < eta <= 1/2 fixed in advance. For the network without noise, at any training error.",
        "Noise of a map is independent of the points it acts on, which know earlier noise only: V, a union over the "
        "events of one example, A0. A wrong example has margin at most gamma/2 under noise with chance 1 - eta, one "
        "with margin above gamma with chance eta. PAC-Bayes in its kl form, for all f at once; E exp(m kl) is at most "
        "2 + sqrt(pi m/2) by Stirling's formula.",
        source=LANGFORD2005,
        compute=gap.risk_noise,
        applies=_needs_ramp,
    ),
    Statement(
        "G12",
        "levels that refine one another",
        r"\mathbb Eg-\tfrac1m\sum_ig_i\le2e_J+\sum_{j=1}^Je_{j-1}\sqrt{\frac{2c_j}m}+\sqrt{\frac{\log(1/\delta)}{2m}}",
        "G2 for uniform covers, where given the centres of the levels before, level j has at most e^{c_j}; c_j/e_{j-1}^2 does "
        "not fall with j. A map whose centre at the level before was within eps' may pay for a cover of the ball of "
        "radius eps' at eps (T4r, T8, T9, T10 with bB = eps'; nothing if eps >= eps') instead of a fresh cover. The "
        "metric is that of the maps (spectral; of rows for tables and offsets), so empirical covers cannot be refined.",
        "The proof of G2 uses of the counts only that X_1..X_m tell C_1..C_j at most H_j nats for every j; the tuple has at "
        "most e^{c_1 + .. + c_j} values. W = V' + R with V' fixed by the levels before and |R|_op <= eps'/b, whatever W; a "
        "centre of R added to V' is one of W, and A0 composes the level's maps as before. Summation by parts needs "
        "e_{j-1}/sqrt(c_j) not to rise.",
        compute=_refined,
        applies=_falling,
    ),
    Statement(
        "G8",
        "sparse Boolean functions, for reference",
        r"\log|F|\le\log\binom Ts+2^s\log2,\qquad m\ge\log_2\binom Ts-1",
        "Functions of s of T bits. The floor: fewer labels, at inputs that do not depend on the support, cannot identify "
        "it with probability 1/2. (Low risk is another matter: a constant has risk 2^-s against AND.)",
        "Choose the support, then the truth table. m labels have 2^m values, so at most 2^m of the binom(T, s) "
        "supports are ever answered; for a random one the chance is at most 2^m/binom(T, s).",
        source=EDELMAN2022,
        compute=_sparse,
        applies=_fits,
    ),
)
