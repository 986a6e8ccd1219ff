"""X: attention as inference in a latent-variable model: formulas for every number system.

Here n is the number of key-value pairs a query sees (L in the papers) and `log_term` is log(2/delta).
Parameters called `tilt` come from Chernoff's method: any value above 0 is valid, so they are searched for
in floats and the value is checked at what was found.
"""

from __future__ import annotations

from boundcalc.base.system import Number, NumberSystem


def finite_mixture_distance(ns: NumberSystem, tokens: Number, length: Number) -> Number:
    """X1: total variation between k of n exchangeable tokens and a mixture of i.i.d. ones: k(k-1)/(2n), at most 1."""
    tokens = ns.number(tokens)
    return ns.minimum(ns.number(1), tokens * (tokens - 1) / (2 * ns.number(length)))


def hilbert_bernstein(ns: NumberSystem, variance: Number, radius: Number, log_term: Number, n: Number) -> Number:
    """X0: the mean of n independent centred vectors, |X| <= radius and E|X|^2 <= variance, is at most this long.

    B + sqrt(b^2 + 2 variance log(2/delta)/n), b = radius log(2/delta)/(3n).
    """
    b = radius * log_term / (3 * n)
    return b + ns.sqrt(b**2 + 2 * variance * log_term / n)


def hilbert_bennett(
    ns: NumberSystem, variance: Number, radius: Number, log_term: Number, n: Number, tilt: Number
) -> Number:
    """X0 before Bernstein's relaxation: log/(tilt n) + variance (e^x - 1 - x)/(tilt radius^2), x = tilt radius."""
    x = tilt * radius
    return log_term / (tilt * n) + variance * (ns.expm1(x) - x) / (tilt * radius**2)


def saturation(ns: NumberSystem, smoothness: Number) -> Number:
    """Sup over s > 0 of s^a/(1 + s) = a^a (1-a)^(1-a) at a = smoothness - 1/2 in (0, 1]; 1 at a = 1."""
    a = ns.number(smoothness) - ns.number(1) / 2
    rest = 1 - a
    if rest == 0:
        return ns.number(1)
    return ns.exp(a * ns.log(a) + rest * ns.log(rest))


def cme_summands(
    ns: NumberSystem, reg: Number, smoothness: Number, kappa: Number, most: Number, source: Number
) -> tuple[Number, Number]:
    """X3: (variance, radius) of the centred terms (v - f_reg(k)) phi(k).

    |f_reg|_K is at most M/sqrt(reg), and at most |f*|_K <= kappa^(2r-1) |g|; the mean is reg f_reg, and its norm at
    most the root of the variance.
    """
    largest = ns.minimum(most / ns.sqrt(reg), kappa ** (2 * smoothness - 1) * source)
    return (kappa * most) ** 2, kappa * (most + kappa * largest) + ns.minimum(reg * largest, kappa * most)


def cme_error(
    ns: NumberSystem,
    n: Number,
    reg: Number,
    smoothness: Number,
    kappa: Number,
    most: Number,
    source: Number,
    log_term: Number,
    tilt: Number | None = None,
) -> Number:
    """X3: error of CME attention in RKHS norm, sampling and regularisation added; reg is lam/L.

    With a tilt the sampling part uses Bennett's form, without one Bernstein's.
    """
    reg, kappa, most, source = (ns.number(x) for x in (reg, kappa, most, source))
    variance, radius = cme_summands(ns, reg, smoothness, kappa, most, source)
    if tilt is None:
        mean = hilbert_bernstein(ns, variance, radius, log_term, n)
    else:
        mean = hilbert_bennett(ns, variance, radius, log_term, n, tilt)
    bias = saturation(ns, smoothness) * reg ** (ns.number(smoothness) - ns.number(1) / 2) * source
    largest = ns.minimum(most / ns.sqrt(reg), kappa ** (2 * smoothness - 1) * source)
    always = most / ns.sqrt(reg) + largest  # |f_hat| <= M/sqrt(reg), and the regularised target's norm
    return ns.minimum(mean / reg, always) + bias


def cme_error_given_keys(
    ns: NumberSystem, weights: Number, noise: Number, power: Number, norm: Number, log_term: Number
) -> Number:
    """X3k: noise |alpha|_2 sqrt(2 log(2/delta)) + |f*|_K P(q): the error at one query, given the keys.

    alpha are the attention weights, P(q) = |phi(q) - sum_i alpha_i phi(k_i)| the distance they leave.
    """
    return noise * weights * ns.sqrt(2 * log_term) + norm * power


def softmax_moments(ns: NumberSystem, ratio: Number) -> tuple[Number, Number, Number]:
    """X4: (second, spread, top) for weights whose largest is at most `ratio` times the least, whatever their law.

    With W = E w and u = v - mu: E w^2 <= second W^2 (Kantorovich), E w^2 |u|^2 <= spread W^2, w <= top W.
    """
    second = (1 + ratio) ** 2 / (4 * ratio)
    return second, ratio**2 / (2 * ratio - 1), ratio


def self_normalised_error(
    ns: NumberSystem, n: Number, second: Number, spread: Number, top: Number, log_term: Number, tilt: Number
) -> Number:
    """X4: the least t with -tilt t + tilt^2/2 (psi spread + 2t sqrt(second spread) + t^2 second) = -log(2/delta)/n.

    psi = 2 (e^b - 1 - b)/b^2 at b = 2 tilt top. The value is for values of norm at most 1.
    """
    b = 2 * tilt * top
    psi = 2 * (ns.expm1(b) - b) / b**2
    a = tilt**2 * second / 2
    half = (tilt - tilt**2 * ns.sqrt(second * spread)) / 2
    c = tilt**2 * spread * psi / 2 + log_term / n
    return c / (half + ns.sqrt(half**2 - a * c))


def default_tilt(ns: NumberSystem, n: Number, spread: Number, log_term: Number) -> Number:
    """The tilt that is best as n grows: sqrt(2 log(2/delta)/(n spread))."""
    return ns.sqrt(2 * log_term / (n * spread))


def excess_risk(ns: NumberSystem, gap: Number, log_inverse_delta: Number, m: Number) -> Number:
    """X5: an empirical minimiser against the best of the class: one more Hoeffding term, probability 1 - 2 delta."""
    return gap + ns.sqrt(log_inverse_delta / (2 * m))


def transfer_error(
    ns: NumberSystem, head: Number, pretext_error: Number, missed: Number = 0, spread: Number = 0
) -> Number:
    """X6: (|a| sqrt(e_pre) + |aM - w| s)^2 for any head a on the pretext outputs.

    s^2 is the largest eigenvalue of E h h^T. With a = w M^+ and w in the row space of M the second term is 0, and
    the value |w M^+|^2 e_pre.
    """
    head, pretext_error, missed, spread = (ns.number(x) for x in (head, pretext_error, missed, spread))
    return (head * ns.sqrt(pretext_error) + missed * spread) ** 2
