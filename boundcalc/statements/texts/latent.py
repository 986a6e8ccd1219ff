"""X as statements: attention as inference of a latent variable. The values are the formulas of `calculus.latent`."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.sources import DIACONIS1980, PINELIS1994, SMALE2007, ZHANG2022
from boundcalc.base.statement import Statement
from boundcalc.statements import latent


def _ridge(ns: NumberSystem, noise_variance: Number, prior_variance: Number) -> Number:
    """X2: the ridge at which CME attention is the posterior mean."""
    return ns.number(noise_variance) / ns.number(prior_variance)


def _smooth(smoothness: float) -> Refusal | None:
    if 0.5 < smoothness <= 1.5:
        return None
    need = "1/2 < r <= 3/2 (above 3/2 ridge regression saturates: use r = 3/2)"
    return Refusal("X3", f"smoothness r = {smoothness:g}", need)


LATENT = (
    Statement(
        "X0",
        "means of vectors in Hilbert space",
        r"\Pr\Big(\big|\tfrac1n\sum_iX_i\big|>t\Big)\le\delta,\quad t=b\sqrt{\tfrac{2\ell}n}\quad\text{and}\quad "
        r"t=\tfrac{b\ell}{3n}+\sqrt{\big(\tfrac{b\ell}{3n}\big)^2+\tfrac{2\sigma^2\ell}n},\qquad\ell=\log(2/\delta)",
        "X_i independent, E X_i = 0, |X_i| <= b; for the second also E|X_i|^2 <= sigma^2. Any dimension.",
        "cosh(sqrt s) has only positive Taylor coefficients, so it is increasing and convex: for E X = 0, |X| <= b, "
        "E cosh|x + X| <= E cosh sqrt(|x|^2 + b^2 + 2<x, X>) <= cosh|x| cosh b (chord over |<x, X>| <= |x| b). So E "
        "cosh(tilt |sum X|) <= cosh(tilt b)^n <= exp(n tilt^2 b^2/2); Markov, with cosh >= exp/2. Second: along x + "
        "sX the second derivative of cosh|.| is at most |X|^2 cosh|x| e^(s|X|), so E cosh|x + X| <= cosh|x| (1 + "
        "E(e^(|X|) - 1 - |X|)); then Bennett's and Bernstein's usual steps.",
        source=PINELIS1994,
        compute=latent.hilbert_bernstein,
    ),
    Statement(
        "X1",
        "the posterior is a sufficient representation, and a minimal one",
        r"P(y\mid X)=\int P(y\mid z)\,P(z\mid X)\,dz;\qquad\big|P_k-\textstyle\int P_z^{\otimes "
        r"k}\big|_{TV}\le\frac{k(k-1)}{2n}",
        "Tokens of an infinitely exchangeable sequence X, y independent of X given z. The bound: k tokens of an "
        "exchangeable sequence of n, which need not be part of a longer one, against the nearest mixture of i.i.d. "
        "tokens.",
        "De Finetti: tokens are i.i.d. given z. P(y|X) depends on X through P(z|X) alone. If z is independent of X "
        "given S(X), then P(z|X) = P(z|S(X)): every sufficient S determines the posterior. Finite: given the "
        "multiset of n tokens, k of them are a draw without replacement; a draw with replacement is i.i.d. and "
        "agrees with it unless two of its k indices coincide, which has probability at most k(k-1)/(2n).",
        source=DIACONIS1980,
        compute=latent.finite_mixture_distance,
    ),
    Statement(
        "X2",
        "attention as a posterior mean",
        r"V^\top(K+\lambda I)^{-1}k(K,q)=\mathbb E[v(q)\mid K,V],\quad\mathrm{Var}(v_j(q)\mid K,V)=s^2+s^2\varphi(q)^"
        r"\top(\Phi^\top\Phi+\lambda I)^{-1}\varphi(q),\qquad\lambda=s^2/t^2",
        "v = z phi(k) + noise, entries of z independent N(0, t^2), noise N(0, s^2 I), k(x, y) = <phi(x), phi(y)>, keys "
        "independent of z.",
        "Conjugacy gives the mean V^T Phi (Phi^T Phi + lam I)^(-1) phi(q); push Phi through the inverse.",
        "the ridge lam = s^2/t^2 is computed",
        ZHANG2022,
        compute=_ridge,
    ),
    Statement(
        "X3",
        "CME attention against the conditional mean",
        r"\|\hat f-f^*\|_{\mathcal H}\le\frac1\rho\Big(\tfrac{b\ell}{3L}+\sqrt{\big(\tfrac{b\ell}{3L}\big)^2+\tfrac{2"
        r"\kappa^2M^2\ell}L}\Big)+c_r\,\rho^{r-1/2}\|g\|,\quad b=\kappa(M+\kappa F)+\min(\rho F,\kappa M),\ "
        r"F=\min(M\rho^{-1/2},"
        r"\kappa^{2r-1}\|g\|),\ c_r=a^a(1-a)^{1-a},\ a=r-\tfrac12",
        "(k_i, v_i) independent and of one law given z, |v| <= M, k(x, x) <= kappa^2, f*(k) = E[v|k, z] = L_K^r g "
        "with 1/2 < r <= 3/2, lam = L rho; with probability at least 1 - delta over the pairs, l = log(2/delta). At a query q: "
        "times sqrt(k(q, q)). rho may not depend on the values seen; it is optimised for the bound. |v| <= M and "
        "kappa are sup norms.",
        "f_hat - f_rho = (L_n + rho)^(-1) Z, Z the mean of X_i - E X, X = (v - f_rho(k)) phi(k), f_rho = "
        "(L_K + rho)^(-1) L_K f*. E|X|^2 <= kappa^2 E|v|^2, as |f* - f_rho| <= |f*| in L2. |f_rho|_H <= F, E X = "
        "rho f_rho, so X0 applies with (kappa M)^2 and b; |(L_n + rho)^(-1)| <= 1/rho. |f_rho - f*|_H <= sup_s "
        "rho s^a/(s + rho) |g|. Also always |f_hat|_H <= M/sqrt(rho).",
        "published: 6 kappa M log(2/delta)/(sqrt(L) rho) + rho^{r-1/2}|g|, r <= 1; never below this one",
        SMALE2007,
        compute=latent.cme_error,
        applies=_smooth,
    ),
    Statement(
        "X3k",
        "CME attention at one query, given the keys",
        r"|\hat f(q)-f^*(q)|\le E\,|\alpha|_2\sqrt{2\ell}+\|f^*\|_{\mathcal H}\,P(q),\quad\alpha=(K+\lambda "
        r"I)^{-1}k(K,q),\ P(q)=\Big|\varphi(q)-\sum_i\alpha_i\varphi(k_i)\Big|_{\mathcal H}",
        "Values independent given keys and z, |v - f*(k)| <= E; with probability at least 1 - delta over the values. "
        "alpha, P and lam may depend on keys and query. Gaussian noise of deviation s in dimension d: s(sqrt d + "
        "sqrt(2 log(1/delta))) for E sqrt(2 l).",
        "f_hat(q) - f*(q) = sum alpha_i (v_i - f*(k_i)) - <f*, phi(q) - sum alpha_i phi(k_i)>: X0 with radii E "
        "|alpha_i|, and Cauchy-Schwarz.",
        compute=latent.cme_error_given_keys,
    ),
    Statement(
        "X4",
        "softmax attention against its limit",
        r"|\mathrm{attn}_L-\mu|\le M\,t,\qquad-\theta t+\tfrac{\theta^2}2\Big(\psi\,\tfrac{R^2}{2R-1}+2t\sqrt{"
        r"\tfrac{(1+R)^2}{4R}\cdot\tfrac{R^2}{2R-1}}+t^2\tfrac{(1+R)^2}{4R}\Big)=-\tfrac{\ell}L,\quad "
        r"R=e^{2/\tau},\ \psi=\tfrac{2(e^{x}-1-x)}{x^2},\ x=2\theta R",
        "Keys and query on the unit sphere (or |q||k| <= 1), temperature tau, |v| <= M, pairs independent and of one "
        "law given z, q fixed; mu = E[wv]/E[w], w = exp(q.k/tau), the Nadaraya-Watson limit. Any theta > 0 with a real root t; "
        "as L grows t ~ sqrt(2 R^2 l/((2R-1)L)), about e^{1/tau} sqrt(l/L). Probability at least 1 - delta, l = "
        "log(2/delta).",
        "S = sum w(v - mu) is centred. |S| > t sum w makes cosh(x|S|) >= exp(xt sum w)/2; multiply X0's step by "
        "e^(-xtw) <= 1 - xtw + (xtw)^2/2: each pair contributes at most 1 - xtW + x^2/2 (psi E w^2|u|^2 + 2t E "
        "w^2|u| + t^2 E w^2) (W = E w, u = v - mu, theta = xW). E w^2 <= W^2 (1+R)^2/(4R) by Kantorovich, E "
        "w^2|u|^2 <= W^2 R^2/(2R-1): with h the w-mass moved to the largest weight and m1, m0 the means of v on the "
        "two sides, E_w[w|u|^2] <= Rh(1 - |m1|^2) + (1-h)(1 - |m0|^2) + K|m1 - m0|^2, K = h(1-h)(R(1-h) + h), at "
        "most max(R - p, R^2/(R + p)), p = (R-1)(1-h), while E_w[1/w] <= (1 + p)/R.",
        "plain form 2 e^{2/tau} sqrt(2 log(2/delta)/L): the numerator by X0, the denominator by its least value",
        ZHANG2022,
        compute=latent.softmax_error,
    ),
    Statement(
        "X5",
        "learning independent of the input size",
        r"\mathbb Eg-\tfrac1m\sum_ig_i\le\tfrac2m+\sqrt{\frac{\sum_jp_j\log(1+2Jm\,L_\ell\kappa_jb_jB_j)+\log(1/"
        r"\delta)}{2m}}",
        "J pieces with uniform covers (T4, T5, T8, T9), fixed or no positions: no T anywhere. p_j = dk, or r(d+k) "
        "with 4 for 2. Loss in [0, 1], probability at least 1 - delta for all g. Masked pre-training: a sample is a "
        "sequence with its mask, its loss the mean over masked tokens (0 where there are none). An empirical "
        "minimiser is within one more sqrt(log(1/delta)/(2m)) of the best of the class, with probability 1 - 2 delta.",
        "G2 for one uniform cover at scale 1/m; piece j gets eps_j = 1/(J m L_l kappa_j). A metric that takes the "
        "worst row serves the mean over any rows.",
        "published with O(.)",
        ZHANG2022,
        compute=latent.learning_gap,
    ),
    Statement(
        "X6",
        "from the pretext task to the downstream task",
        r"\mathbb E|a\hat y-wh|^2\le\big(|a|\sqrt{e_{\mathrm{pre}}}+|aM-w|\,s\big)^2;\quad a=wM^+:\ |wM^+|^2e_{\mathrm{"
        r"pre}}\le\big(|w|/\sigma_{\min}^+(M)\big)^2e_{\mathrm{pre}}",
        "E|yhat(X) - M h(X)|^2 <= e_pre, h = E[psi(z)|X], s^2 the largest eigenvalue of E hh^T. kappa = |w M^+| is the "
        "condition number of the pair of tasks; it is infinite where w leaves the row space of M.",
        "a yhat - w h = a (yhat - M h) + (aM - w) h, and Minkowski's inequality. For w in the row space w M^+ M = w.",
        source=ZHANG2022,
        compute=latent.transfer_error,
    ),
)
