"""Sections G (covers to gaps), P1, PUB and E in 50-digit arithmetic, from the statements alone.

Covers enter as log-counts (natural log). Results are upper values: every bisection returns the
end of its bracket that is the larger bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.oracle.compose_mp import MP, golden_minimum, inf, num

Real = Any  # an int, a float or an mpf: mpmath has no type stubs

BISECTIONS = 180  # 2^-180 is below 50 digits


# ---------------------------------------------------------------------------------------------- G0


def g0_lipschitz(gamma: Real, *, multiclass: bool = False) -> Real:
    """G0: Lipschitz constant of the ramp loss in the scores (l2 over the logits if multiclass)."""
    return (MP.sqrt(2) if multiclass else MP.mpf(1)) / num(gamma)


def g0_cover_radius(gamma: Real, *, multiclass: bool = False) -> Real:
    """G0/G3: the score error that moves a margin by at most gamma/2."""
    return num(gamma) / (2 * MP.sqrt(2)) if multiclass else num(gamma) / 2


def g0_ramp(margin: Real, gamma: Real) -> Real:
    """G0: 1 at margin <= 0, 0 at margin >= gamma, linear between."""
    return min(MP.mpf(1), max(MP.mpf(0), 1 - num(margin) / num(gamma)))


def g0_margin_error(margins: Sequence[Real], gamma: Real) -> Real:
    """G0: #{margin <= gamma}/m, non-strict; gamma = 0 gives the error rate."""
    return MP.mpf(sum(1 for v in margins if num(v) <= num(gamma))) / len(margins)


# ---------------------------------------------------------------------------------------------- G1


def g1_first_radius(lip_loss: Real, radius: Real) -> Real:
    """G1: e_0 = min(1/2, L_l R_F)."""
    return min(MP.mpf(1) / 2, num(lip_loss) * num(radius))


def g1_links(levels: Sequence[Real], kinds: Sequence[str]) -> list[Real]:
    """G1: the link of each level. ``levels`` is e_0 > e_1 > ... > e_J; ``kinds`` has J entries."""
    _check_levels(levels)
    links = []
    for j, kind in enumerate(kinds, start=1):
        coarse, fine = num(levels[j - 1]), num(levels[j])
        if kind not in ("tree", "clip", "entropy"):
            raise ValueError(kind)
        links.append(coarse + fine if kind == "tree" and j > 1 else coarse)
    return links


def g1_log_counts(log_n: Sequence[Real], kinds: Sequence[str]) -> list[Real]:
    """G1: what each level pays: N_j (tree), or N_j times what the level above paid (clip)."""
    paid: list[Real] = []
    for j, kind in enumerate(kinds):
        own = num(log_n[j])
        paid.append(own if kind == "tree" or j == 0 else own + paid[j - 1])
    return paid


def g1_chain(levels: Sequence[Real], kinds: Sequence[str], log_n: Sequence[Real], m: Real) -> Real:
    """G1: e_J + sum_j link_j sqrt(2 log count_j / m), capped at 1/2."""
    return min(MP.mpf(1) / 2, num(levels[-1]) + _chain_sum(levels, kinds, log_n, m))


def g1_entropy_chain(levels: Sequence[Real], log_n: Sequence[Real], m: Real) -> Real:
    """G1, entropy links: e_J + sum_j e_{j-1} sqrt(2 log N_j / m): the clip link, the tree count.

    Proof. Let g = g(sigma) attain the supremum, C_j its centre at level j, p_0 the constant centre,
    p_j = C_j for 0 < j < J, and p_J the centre C_J clipped into every box [p_i - e_i, p_i + e_i],
    i < J: all of them contain g, so |g - p_J| <= e_J and |p_J - p_i| <= e_i. With the martingale
    S_j = E[sigma | C_1..C_j], S_0 = 0, and p_{j-1} a function of C_1..C_{j-1},
    E<sigma, p_J> = E<S_J, p_J> = sum_j E<S_j - S_{j-1}, p_J - p_{j-1}>
    <= sqrt(m) sum_j e_{j-1} sqrt(a_j), a_j = E|S_j - S_{j-1}|^2. Signs are sub-Gaussian, so
    |E_Q sigma|^2 <= 2 KL(Q|P), hence a_1 + .. + a_j = E|S_j|^2 <= 2 H(C_1..C_j)
    <= 2 (log N_1 + .. + log N_j) for every j. Since e_{j-1}/sqrt(log N_j) does not increase,
    concavity of the root and summation by parts give sum_j e_{j-1} sqrt(a_j)
    <= sum_j e_{j-1} sqrt(2 log N_j). Counts are made monotone first: a finer cover is a coarser
    one too.
    """
    return min(MP.mpf(1) / 2, num(levels[-1]) + _entropy_sum(levels, log_n, m))


def g1_tree_closed(c_f: Real, m: Real, levels: int, ratio: Real) -> Real:
    """G1 closed form, tree links, log N = C_F/e^2, e_j = u^-j/2."""
    u = num(ratio)
    return u**-levels / 2 + MP.sqrt(2 * num(c_f) / num(m)) * ((1 + u) * levels - 1)


def g1_clip_closed(c_f: Real, m: Real, levels: int, ratio: Real) -> Real:
    """G1 closed form, clip links, log N = C_F/e^2, e_j = u^-j/2."""
    u = num(ratio)
    roots = MP.fsum(u * MP.sqrt((1 - u ** (-2 * j)) / (1 - u**-2)) for j in range(1, levels + 1))
    return u**-levels / 2 + MP.sqrt(2 * num(c_f) / num(m)) * roots


def g1_entropy_closed(c_f: Real, m: Real, levels: int, ratio: Real) -> Real:
    """Entropy links, log N = C_F/e^2, e_j = u^-j/2: u^-J/2 + sqrt(2 C_F/m) u J."""
    u = num(ratio)
    return u**-levels / 2 + MP.sqrt(2 * num(c_f) / num(m)) * u * levels


def g1_one_line(c_f: Real, m: Real) -> Real:
    """G1's one line k (2.132 + log(1/(2k))), k = 4.094 sqrt(C_F/m); 1/2 when k > 1/2."""
    k = MP.mpf("4.094") * MP.sqrt(num(c_f) / num(m))
    half = MP.mpf(1) / 2
    return half if k > half else min(half, k * (MP.mpf("2.132") + MP.log(1 / (2 * k))))


def g1_entropy_one_line(c_f: Real, m: Real) -> Real:
    """Entropy links: k (1.0853 + log(1/(2k))), k = e sqrt(2 C_F/m); 1/2 when k > 1/2.

    Proof. Put t = log(1/(2k)) >= 0 and u^J = e^t: the closed form is k (1 + J e^{t/J - 1}).
    J (e^x - 1 - x), x = t/J - 1, exceeds 0.1233 for the nearest J only while t < 0.4586, where 1/2
    = k e^t is smaller than k (1.1233 + t).
    """
    k = MP.e * MP.sqrt(2 * num(c_f) / num(m))
    half = MP.mpf(1) / 2
    return half if k > half else min(half, k * (MP.mpf("1.0853") + MP.log(1 / (2 * k))))


def massart(radius: Real, log_count: Real, m: Real) -> Real:
    """E max over the vectors v, |v|_inf <= radius, of <sigma, v>/m."""
    return num(radius) * MP.sqrt(2 * num(log_count) / num(m))


def _check_levels(levels: Sequence[Real]) -> None:
    if any(num(a) <= num(b) for a, b in pairwise(levels)):
        raise ValueError("levels must decrease")


def _chain_sum(levels: Sequence[Real], kinds: Sequence[str], log_n: Sequence[Real], m: Real) -> Real:
    if not len(levels) - 1 == len(kinds) == len(log_n):
        raise ValueError("one kind and one count per level below e_0")
    pairs = zip(g1_links(levels, kinds), g1_log_counts(log_n, kinds), strict=True)
    return MP.fsum(massart(link, count, m) for link, count in pairs)


def _entropy_sum(levels: Sequence[Real], log_n: Sequence[Real], m: Real) -> Real:
    if len(levels) - 1 != len(log_n):
        raise ValueError("one count per level below e_0")
    _check_levels(levels)
    total, least = MP.mpf(0), inf
    for j in range(len(log_n) - 1, -1, -1):
        least = min(least, num(log_n[j]))
        total += massart(levels[j], least, m)
    return total


# ---------------------------------------------------------------------------------------------- G2


def deviation(delta: Real, m: Real) -> Real:
    """McDiarmid's term sqrt(log(1/delta)/(2m))."""
    return MP.sqrt(MP.log(1 / num(delta)) / (2 * num(m)))


def g2_gap(rademacher: Real, m: Real, delta: Real) -> Real:
    """G2: 2 R_m + sqrt(log(1/delta)/(2m))."""
    return 2 * num(rademacher) + deviation(delta, m)


def g2_uniform_chain(
    levels: Sequence[Real],
    kinds: Sequence[str],
    log_n: Sequence[Real],
    m: Real,
    delta: Real | None,
) -> Real:
    """G2, uniform covers: 2 e_J + sum_j link_j sqrt(2 log count_j/m) + deviation.

    ``delta=None`` bounds the expected supremum.
    """
    tail = MP.mpf(0) if delta is None else deviation(delta, m)
    return 2 * num(levels[-1]) + _chain_sum(levels, kinds, log_n, m) + tail


def g2_uniform_entropy_chain(levels: Sequence[Real], log_n: Sequence[Real], m: Real, delta: Real | None) -> Real:
    """G2, uniform covers with entropy links: link e_{j-1}, count N_j.

    Proof. As for Rademacher sums, with Q_j^k the law of X_k given C_1..C_j:
    E (P - P_m) p_J = -(1/m) sum_j sum_k E (Q_j^k - Q_{j-1}^k)(p_J - p_{j-1})
    <= sum_j e_{j-1} sqrt(2 b_j/m), b_j = sum_k I(X_k; C_j | C_1..C_{j-1}), by Pinsker and Jensen;
    b_1 + .. + b_j = sum_k I(X_k; C_1..C_j) <= I(X_1..X_m; C_1..C_j), the X_k being independent.
    """
    tail = MP.mpf(0) if delta is None else deviation(delta, m)
    return 2 * num(levels[-1]) + _entropy_sum(levels, log_n, m) + tail


def g2_ghost_entropy_chain(
    levels: Sequence[Real], log_n: Sequence[Real], m: Real, delta: Real | None, alpha: int
) -> Real:
    """G2, empirical covers, a ghost of alpha m samples: counts on (1+alpha) m samples.

    2 e_J + (1 + 1/alpha) sum_j e_{j-1} sqrt(2 log N_j/m) + deviation, in place of the factor 2 of
    symmetrisation. Proof. E sup (P - P_m) g <= E sup (ghost mean - train mean). Split all samples
    into m blocks of 1+alpha; exchangeability lets each block choose its training sample uniformly
    and independently. Ghost mean - train mean = (1 + 1/alpha)(mean of all - train mean), and given
    the blocks the uniform argument applies to the m independent choices.
    """
    tail = MP.mpf(0) if delta is None else deviation(delta, m)
    factor = 1 + MP.mpf(1) / alpha
    return 2 * num(levels[-1]) + factor * _entropy_sum(levels, log_n, m) + tail


def g2_ghost_chain(
    levels: Sequence[Real],
    kinds: Sequence[str],
    log_n: Sequence[Real],
    m: Real,
    delta: Real | None,
    alpha: int,
) -> Real:
    """The ghost form of G2 with tree and clip links (Massart within the same blocks)."""
    tail = MP.mpf(0) if delta is None else deviation(delta, m)
    factor = 1 + MP.mpf(1) / alpha
    return 2 * num(levels[-1]) + factor * _chain_sum(levels, kinds, log_n, m) + tail


def g2_uniform_single(eps: Real, log_n: Real, m: Real, delta: Real) -> Real:
    """G2, uniform cover, one scale: 2 e + sqrt((log N + log(1/delta))/(2m))."""
    return 2 * num(eps) + MP.sqrt((num(log_n) + MP.log(1 / num(delta))) / (2 * num(m)))


def g2_uniform_single_kl(mean: Real, eps: Real, log_n: Real, m: Real, delta: Real) -> Real:
    """One scale through kl (Chernoff for [0,1] losses): a bound on E g, not on the gap.

    E g <= e + E p <= e + klinv(mean p, c) <= e + klinv(min(1, mean g + e), c).
    """
    c = (num(log_n) + MP.log(1 / num(delta))) / num(m)
    return min(MP.mpf(1), num(eps) + klinv(min(MP.mpf(1), num(mean) + num(eps)), c))


# ---------------------------------------------------------------------------------------------- kl


def kl(q: Real, p: Real) -> Real:
    """The Bernoulli relative entropy kl(q|p)."""
    q, p = num(q), num(p)
    if (p == 0 and q > 0) or (p == 1 and q < 1):
        return inf
    left = MP.mpf(0) if q == 0 else q * MP.log(q / p)
    right = MP.mpf(0) if q == 1 else (1 - q) * MP.log((1 - q) / (1 - p))
    return left + right


def klinv_bracket(q: Real, c: Real) -> tuple[Real, Real]:
    """(low, high) with kl(q|low) <= c < kl(q|high), or high = 1: encloses klinv(q, c)."""
    low, high, c = num(q), MP.mpf(1), num(c)
    if c < 0:
        raise ValueError("c must be non-negative")
    if low >= 1:
        return high, high
    for _ in range(BISECTIONS):
        mid = (low + high) / 2
        if kl(q, mid) <= c:
            low = mid
        else:
            high = mid
    return low, high


def klinv(q: Real, c: Real) -> Real:
    """sup{p >= q : kl(q|p) <= c}, the upper end of the bracket."""
    return klinv_bracket(q, c)[1]


def klinv_mu(q: Real, c: Real, mu: Real) -> Real:
    """(1 - e^{-mu q - c})/(1 - e^{-mu}), at least klinv(q, c) for every mu > 0.

    kl(q|p) = sup_mu [-mu q - log(1 - p(1 - e^{-mu}))], so kl(q|p) <= c forces this at every mu.
    """
    return -MP.expm1(-num(mu) * num(q) - num(c)) / -MP.expm1(-num(mu))


def klinv_best_mu(q: Real, c: Real) -> Real:
    """The mu at which klinv_mu is tight: log(p(1-q)/(q(1-p))) at p = klinv(q, c)."""
    p = klinv(q, c)
    return MP.log(p * (1 - num(q)) / (num(q) * (1 - p)))


# ------------------------------------------------------------------------------------------ G3 - G5


def g3(train: Real, log_n: Real, m: Real, delta: Real) -> Real:
    """G3: klinv(train_gamma, (log N + log(1/delta))/m), a uniform cover."""
    return klinv(train, (num(log_n) + MP.log(1 / num(delta))) / num(m))


def stirling_tail(x: Real, m: Real, p: Real) -> Real:
    """Above P(Bin(m, p) <= x): the mass by Stirling's formula, and a geometric sum below it; 1 where there is none."""
    x, m, p = num(x), num(m), num(p)
    rest = m - x
    steep = rest - 1 - x * (1 - p) / p
    if not x > 0 or steep <= 0:
        return MP.mpf(1)
    mass = MP.exp(-m * kl(x / m, p) - 1 / (12 * x + 2)) / MP.sqrt(2 * MP.pi * x * rest / m)
    return min(MP.mpf(1), mass * rest / steep)


def g3_by_tail(q: Real, nats: Real, m: Real, mu: Real) -> Real:
    """Chernoff's limit, or what is left of it where the tail's own constant is used, found by two steps."""
    q, nats, m = num(q), num(nats), num(m)
    plain = klinv_mu(q, nats / m, mu)

    def left(p: Real) -> Real:
        spared = -m * kl(q, p) - MP.log(stirling_tail(q * m, m, p)) if q < p < 1 else MP.mpf(0)
        return klinv_mu(q, max(MP.mpf(0), nats - max(MP.mpf(0), spared)) / m, mu)

    near = left(plain)
    return min(plain, max(near, left(near)))


def binomial_cdf(x: int, m: int, p: Real) -> Real:
    """P(Bin(m, p) <= x) by direct summation."""
    p = num(p)
    return MP.fsum(MP.binomial(m, i) * p**i * (1 - p) ** (m - i) for i in range(x + 1))


def g3_binomial(errors: int, log_n: Real, m: int, delta: Real) -> Real:
    """G3 with the exact binomial tail: sup{p : P(Bin(m,p) <= errors) >= delta/N}."""
    if errors >= m:
        return MP.mpf(1)
    level = num(delta) * MP.exp(-num(log_n))
    low, high = MP.mpf(errors) / m, MP.mpf(1)
    for _ in range(BISECTIONS):
        mid = (low + high) / 2
        if binomial_cdf(errors, m, mid) >= level:
            low = mid
        else:
            high = mid
    return high


def g4(log_n: Real, m: int, delta: Real, alpha: int = 1) -> Real:
    """G4: ceil(log(2N/delta)/log(1+1/alpha))/(alpha m), N on (1+alpha)m samples, capped at 1."""
    need = MP.ceil((MP.log(2 / num(delta)) + num(log_n)) / MP.log1p(MP.mpf(1) / alpha))
    return min(MP.mpf(1), need / (num(alpha) * m))


def g4_log_ratio(k: int, m: int, alpha: int) -> Real:
    """log P(m draws out of (1+alpha)m miss all of k marked ones), k <= alpha m."""
    total = (1 + alpha) * m
    return (
        MP.loggamma(total - k + 1)
        - MP.loggamma(total - k - m + 1)
        - MP.loggamma(total + 1)
        + MP.loggamma(total - m + 1)
    )


def g4_exact(log_n: Real, m: int, delta: Real, alpha: int = 1) -> Real:
    """G4 with the exact permutation probability: least k/(alpha m) with N ratio(k) <= delta/2."""
    target = MP.log(num(delta) / 2) - num(log_n)
    low, high = 0, alpha * m
    if g4_log_ratio(high, m, alpha) > target:
        return MP.mpf(1)
    while high - low > 1:  # ratio(low) > target >= ratio(high)
        mid = (low + high) // 2
        if g4_log_ratio(mid, m, alpha) <= target:
            high = mid
        else:
            low = mid
    return MP.mpf(high) / (alpha * m)


def g4_hypergeometric(log_n: Real, m: int, delta: Real, alpha: int = 1) -> Real:
    """G4 through ratio(k) <= (1 - k/((1+alpha)m))^m: ceil((1+alpha)m(1-e^{-c}))/(alpha m).

    c = log(2N/delta)/m. Between g4_exact and min(g4, this) everything is proved.
    """
    c = (MP.log(2 / num(delta)) + num(log_n)) / m
    k = MP.ceil((1 + alpha) * m * -MP.expm1(-c))
    return min(MP.mpf(1), k / (num(alpha) * m))


def g4_middle(log_n: Real, m: int, delta: Real, alpha: int = 1) -> Real:
    """G4 through log ratio(k) = sum of f(i), i < k, f(x) = log((alpha m - x)/((1+alpha)m - x)) concave and falling.

    So it is at most k f(x) for every k >= 2x + 1; a good x is found by one step from a k that is large enough.
    """
    need, total = MP.log(2 / num(delta)) + num(log_n), (1 + alpha) * m

    def count(k: Real) -> Real:
        x = max((min(k, MP.mpf(alpha * m)) - 1) / 2, MP.mpf(0))
        return need / MP.log((total - x) / (alpha * m - x))

    enough = min(g4(log_n, m, delta, alpha), g4_hypergeometric(log_n, m, delta, alpha)) * alpha * m
    start = min(count(enough), MP.mpf(alpha * m))
    return min(MP.mpf(1), MP.ceil(max(start, count(start))) / (num(alpha) * m))


def g5_complexity(log_n: Real, m: Real, delta: Real) -> Real:
    """G5: c = (log N + log(2/delta))/m, N on (1+alpha)m samples."""
    return (num(log_n) + MP.log(2 / num(delta))) / num(m)


def g5(train: Real, log_n: Real, m: Real, delta: Real, alpha: int = 1) -> Real:
    """G5: max over q' <= q of [(1+alpha) klinv(q',c) - q' + 1/m]/alpha, capped at 1.

    The objective is concave in q' (klinv is a minimum of affine functions of q').
    """
    c, q = g5_complexity(log_n, m, delta), num(train)

    def objective(x: Real) -> Real:
        return ((1 + alpha) * klinv(x, c) - x + 1 / num(m)) / alpha

    best = objective(q) if q == 0 else -golden_minimum(lambda x: -objective(x), 0, q, 60)
    return min(MP.mpf(1), best)


def g5_mu(train: Real, c: Real, m: Real, alpha: int, mu: Real) -> Real:
    """G5 at a chosen mu > 0 (not capped): an upper bound of the maximum for every mu."""
    q, mu, c = num(train), num(mu), num(c)
    slope = -MP.expm1(-mu)
    star = max(MP.mpf(0), min(q, (MP.log((1 + alpha) * mu / slope) - c) / mu))
    return ((1 + alpha) * klinv_mu(star, c, mu) - star + 1 / num(m)) / alpha


# ------------------------------------------------------------------------------------------ G7, G8


def g7(train: Real, bits: Real, m: Real, delta: Real) -> Real:
    """G7 (Occam): klinv(train, (B log 2 + log(1/delta))/m)."""
    return klinv(train, (num(bits) * MP.log(2) + MP.log(1 / num(delta))) / num(m))


def g8_log_class(positions: int, sparsity: int) -> Real:
    """G8: log binom(T,s) + 2^s log 2, at least the log-number of s-sparse Boolean functions."""
    return MP.log(MP.binomial(positions, sparsity)) + 2**sparsity * MP.log(2)


def g8_counting_floor(positions: int, sparsity: int) -> Real:
    """G8: log_2 binom(T,s) - 1 labels are needed to identify the support with probability 1/2."""
    return MP.log(MP.binomial(positions, sparsity)) / MP.log(2) - 1


# ---------------------------------------------------------------------------------------------- P1


def p1_cost(one_sided: Sequence[int], two_sided: Sequence[int] = ()) -> Real:
    """P1: what is added to log(1/delta): log((k+1)(k+2)) each, plus log 1.5 if two-sided."""
    grids = [abs(k) for k in (*one_sided, *two_sided)]
    cost = MP.fsum(MP.log((k + 1) * (k + 2)) for k in grids)
    return cost + len(two_sided) * MP.log(MP.mpf(3) / 2)


def p1_round_up(value: Real, base: Real, ratio: Real, *, two_sided: bool = False) -> int:
    """P1: the least k (k >= 0 unless two-sided) with base ratio^k >= value."""
    k = 0
    while num(base) * num(ratio) ** k < num(value):
        k += 1
    while two_sided and num(base) * num(ratio) ** (k - 1) >= num(value):
        k -= 1
    return k


def p1_round_margin(gamma: Real, base: Real, ratio: Real) -> int:
    """P1: the greatest k with base ratio^k <= gamma, ratio > 1 (a two-sided grid): rounds down."""
    k = 0
    while num(base) * num(ratio) ** (k + 1) <= num(gamma):
        k += 1
    while num(base) * num(ratio) ** k > num(gamma):
        k -= 1
    return k


# --------------------------------------------------------------------------------------------- PUB


def pub_log_cover(norm: Real, radius: Real, eps: Real, points: Real) -> Real:
    """PUB for T1 and T2: 36 a log(2 ceil(4bB/eps + 2) N + 1), a = (bB/eps)^2."""
    scale = num(norm) * num(radius) / num(eps)
    return 36 * scale**2 * MP.log(2 * MP.ceil(4 * scale + 2) * num(points) + 1)


def pub_softmax_lipschitz() -> Real:
    """PUB for L1."""
    return MP.mpf(2)


def pub_head_lipschitz(c_v: Real, c_w: Real, radius: Real = 1) -> Real:
    """PUB for L7: C_V (1 + 4 C_W b^2)."""
    return num(c_v) * (1 + 4 * num(c_w) * num(radius) ** 2)


def pub_dudley(log_n: Callable[[Real], Real], cut: Real, m: Real, top: Real = 1) -> Real:
    """PUB: 4a + (12/sqrt m) int_a^top sqrt(log N), by quadrature on a logarithmic scale."""
    low, high = MP.log(num(cut)), MP.log(num(top))

    def integrand(t: Real) -> Real:
        e = MP.exp(t)
        return e * MP.sqrt(log_n(e))

    return 4 * num(cut) + 12 / MP.sqrt(num(m)) * MP.quad(integrand, MP.linspace(low, high, 9))


def pub_dudley_sum(log_n: Sequence[Real], levels: Sequence[Real], m: Real) -> Real:
    """PUB by levels e_0 > ... > e_J: each piece of the integral at most
    e_j sqrt(log N(e_j)) log(e_{j-1}/e_j), provided e^2 log N(e) does not increase with e.

    ``log_n[j]`` belongs to ``levels[j+1]``.
    """
    _check_levels(levels)
    total = MP.fsum(
        num(fine) * MP.sqrt(num(count)) * MP.log(num(coarse) / num(fine))
        for coarse, fine, count in zip(levels, levels[1:], log_n, strict=False)
    )
    return 4 * num(levels[-1]) + 12 / MP.sqrt(num(m)) * total


def pub_gap(rademacher: Real, m: Real, delta: Real) -> Real:
    """PUB: 2 R_m + 3 sqrt(log(2/delta)/(2m))."""
    return 2 * num(rademacher) + 3 * MP.sqrt(MP.log(2 / num(delta)) / (2 * num(m)))


# ----------------------------------------------------------------------------------------------- E


def e_log_cover(
    score: Callable[[Real], Real],
    value: Callable[[Real], Real],
    eps: Real,
    share: Real,
    *,
    lip_out: Real,
    bound_in: Real,
    c: Real = 1,
    mu: Real = 1,
) -> Real:
    """E: log N_score(t eps/(c L_out B_in)) + log N_in((1-t) eps/(mu L_out)) at t = ``share``."""
    eps, t, out = num(eps), num(share), num(lip_out)
    return score(t * eps / (num(c) * out * num(bound_in))) + value((1 - t) * eps / (num(mu) * out))


def e_head_shape(*, v_21: Real, v_op: Real, qk_21: Real, lip: Real, radius: Real, m: Real, seq_len: Real) -> Real:
    """E, published head shape at eps = 1 (constant unspecified: a proxy)."""
    q = MP.mpf(2) / 3
    inner = num(v_21) ** q + (num(v_op) * num(qk_21) * num(radius)) ** q
    return (num(lip) * num(radius)) ** 2 * inner**3 * MP.log(num(m) * num(seq_len))


Layer = Mapping[str, Any]
"""in_op, in_21, out_op, out_21: numbers; v_op, v_21, qk_op, qk_21: one number per head."""


def e_alphas(layers: Sequence[Layer], lip_act: Real) -> list[Real]:
    """E: alpha_l, the product over later layers of their published Lipschitz factors."""
    alphas, running = [], MP.mpf(1)
    for layer in reversed(layers):
        alphas.append(running)
        heads = MP.fsum(num(v) * (1 + 4 * num(w)) for v, w in zip(layer["v_op"], layer["qk_op"], strict=True))
        running *= num(lip_act) * num(layer["in_op"]) * num(layer["out_op"]) * heads
    return alphas[::-1]


def e_xi(layer: Layer) -> Real:
    """E: xi_l as used in the literature's experiments."""
    q = MP.mpf(2) / 3
    both = num(layer["out_op"]) * num(layer["in_op"])
    heads = MP.fsum(
        (both * num(v) * num(w)) ** q for v, w in zip(layer["v_op"], layer["qk_21"], strict=True)
    ) + MP.fsum((both * num(v)) ** q for v in layer["v_21"])
    return heads + (num(layer["out_op"]) * num(layer["in_21"])) ** q + num(layer["out_21"]) ** q


def e_deep_sum(layers: Sequence[Layer], lip_act: Real = 1) -> Real:
    """E: 1 + sum_l alpha_l^(2/3) xi_l."""
    q = MP.mpf(2) / 3
    pairs = zip(e_alphas(layers, lip_act), layers, strict=True)
    return 1 + MP.fsum(alpha**q * e_xi(layer) for alpha, layer in pairs)


def e_deep_shape(layers: Sequence[Layer], *, m: Real, width: Real, seq_len: Real, eps: Real, lip_act: Real = 1) -> Real:
    """E: log(mdT)/eps^2 (1 + sum alpha^(2/3) xi)^3 (constant unspecified: a proxy)."""
    size = MP.log(num(m) * num(width) * num(seq_len))
    return size / num(eps) ** 2 * e_deep_sum(layers, lip_act) ** 3


def e_deep_proxy(layers: Sequence[Layer], lip_act: Real = 1) -> Real:
    """E: (1 + sum alpha^(2/3) xi)^(3/2)."""
    return e_deep_sum(layers, lip_act) ** (MP.mpf(3) / 2)


def e_spectrum_proxy(matrices: Sequence[tuple[Sequence[Real], Real, Real]], *, depth: int, width: int) -> Real:
    """E: the spectrum-adaptive proxy. One (singular values, gamma, alpha_l) per matrix.

    sum of min_p (sum sigma^p)^(1/(p+2)) s^(p/(p+2)) d^((p+1)/(p+2)) + sqrt(D), s = gamma alpha D;
    p in {0, 1/g, .., 2}, g = ceil(D + log d); at p = 0 the first factor is sqrt(rank).
    """
    g = int(MP.ceil(depth + MP.log(width)))
    total = MP.sqrt(depth)
    for sigma, gamma, alpha in matrices:
        s = num(gamma) * num(alpha) * depth
        live = [num(v) for v in sigma if v > 0]
        options = []
        for i in range(2 * g + 1):
            p = MP.mpf(i) / g
            mass = MP.fsum(v**p for v in live) if live else MP.mpf(0)
            options.append(mass ** (1 / (p + 2)) * s ** (p / (p + 2)) * num(width) ** ((p + 1) / (p + 2)))
        total += min(options)
    return total
