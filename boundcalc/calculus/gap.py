"""G and P1: from covers to a gap or a risk. Formulas only, generic over the number system.

The loss lies in [0, 1]. Scales e are on the loss: N_j = N(F, e_j / L_l).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from boundcalc.numbers import Number, NumberSystem

Link = Literal["tree", "clip"]


def chain_links(scales: Sequence[Number], counts: Sequence[Number], links: Sequence[Link]) -> list[tuple[Number, Number]]:
    """G1: (link length, log count) of every level; scales[0] is e_0, counts[j] and links[j] belong to level j+1.

    A tree link joins a level to its parents: e_j + e_(j-1), counting N_j alone. A clip link joins it to a box of
    radius e_(j-1) around the whole path: the counts multiply, back to the last tree link. From the root both are the same.
    """
    lengths: list[tuple[Number, Number]] = []
    path: Number = 0
    for level, (count, link) in enumerate(zip(counts, links, strict=True)):
        if link == "tree" and level > 0:
            path = count
            lengths.append((scales[level] + scales[level + 1], path))
        else:
            path = path + count
            lengths.append((scales[level], path))
    return lengths


def chain_sum(ns: NumberSystem, links: Sequence[tuple[Number, Number]], m: Number) -> Number:
    """Massart on every level: sum of link * sqrt(2 log count / m)."""
    total = ns.number(0)
    for length, count in links:
        total = total + length * ns.sqrt(2 * count / m)
    return total


def deviation(ns: NumberSystem, log_inverse_delta: Number, m: Number) -> Number:
    """McDiarmid (or Hoeffding) for a [0, 1] loss: sqrt(log(1/delta)/(2m))."""
    return ns.sqrt(log_inverse_delta / (2 * m))


def gap_from_complexity(ns: NumberSystem, complexity: Number, log_inverse_delta: Number, m: Number) -> Number:
    """G2: 2 R_m + sqrt(log(1/delta)/(2m))."""
    return 2 * complexity + deviation(ns, log_inverse_delta, m)


def gap_uniform_chain(
    ns: NumberSystem, last: Number, links: Sequence[tuple[Number, Number]], log_inverse_delta: Number, m: Number
) -> Number:
    """G2 for uniform covers, without symmetrisation: 2 e_J + sum of links + deviation."""
    return 2 * last + chain_sum(ns, links, m) + deviation(ns, log_inverse_delta, m)


def gap_uniform_single(ns: NumberSystem, scale: Number, count: Number, log_inverse_delta: Number, m: Number) -> Number:
    """G2 for one uniform cover: 2e + sqrt((log N + log(1/delta))/(2m))."""
    return 2 * scale + deviation(ns, count + log_inverse_delta, m)


CLOSED_FACTOR = 4.094
CLOSED_OFFSET = 2.132


def complexity_closed(ns: NumberSystem, capacity: Number, m: Number) -> Number:
    """G1 in one line, for log N(e) <= capacity/e^2: k (2.132 + max(0, log(1/(2k)))), k = 4.094 sqrt(capacity/m).

    For k >= 1/2 this is above 1/2, which bounds every R_m of a [0, 1] loss, so the line holds for all k.
    """
    k = ns.number(CLOSED_FACTOR) * ns.sqrt(capacity / m)
    return k * (ns.number(CLOSED_OFFSET) + ns.maximum(ns.number(0), ns.log(1 / (2 * k))))


def complexity_published(ns: NumberSystem, capacity: Number, m: Number) -> Number:
    """PUB: Dudley's 4a + (12/sqrt m) int_a^(1/2) sqrt(log N) at its best a = 3k, for log N(e) <= capacity/e^2 on [a, 1/2].

    12 k (1 + max(0, log(1/(6k)))), k = sqrt(capacity/m); for k >= 1/6 it is at least 2 and the integral is empty.
    """
    k = ns.sqrt(capacity / m)
    return 12 * k * (1 + ns.maximum(ns.number(0), ns.log(1 / (6 * k))))


def gap_published(ns: NumberSystem, complexity: Number, log_inverse_delta: Number, m: Number) -> Number:
    """PUB: 2 R_m + 3 sqrt(log(2/delta)/(2m))."""
    return 2 * complexity + 3 * deviation(ns, log_inverse_delta + ns.log(ns.number(2)), m)


def binary_kl_inverse(ns: NumberSystem, q: Number, c: Number, mu: Number | None) -> Number:
    """An upper bound of klinv(q, c) = sup{p >= q : kl(q|p) <= c}, for any mu > 0: (1 - e^(-mu q - c)) / (1 - e^(-mu)).

    By the Donsker-Varadhan inequality with the function -mu x; equality at the best mu. mu = None means mu -> infinity,
    which is exact at q = 0: 1 - e^(-c).
    """
    if mu is None:
        return 1 - ns.exp(-c)
    return (1 - ns.exp(-mu * q - c)) / (1 - ns.exp(-mu))


def risk_uniform(ns: NumberSystem, q: Number, count: Number, log_inverse_delta: Number, m: Number, mu: Number | None) -> Number:
    """G3: klinv(train error, (log N + log(1/delta))/m)."""
    return binary_kl_inverse(ns, q, (count + log_inverse_delta) / m, mu)


def risk_realizable(ns: NumberSystem, count: Number, log_inverse_delta: Number, m: Number, alpha: int) -> Number:
    """G4: ceil(log(2N/delta)/log(1+1/alpha))/(alpha m), N on (1+alpha)m samples, margin training error 0."""
    errors = (count + ns.log(ns.number(2)) + log_inverse_delta) / ns.log1p(1 / ns.number(alpha))
    return ns.ceil(errors) / (alpha * m)


def risk_ghost(
    ns: NumberSystem, q: Number, count: Number, log_inverse_delta: Number, m: Number, alpha: int, mu: Number | None
) -> Number:
    """G5: max over q' <= q of [(1+alpha) klinv(q', c) - q' + 1/m]/alpha, c = (log N + log(2/delta))/m.

    For fixed mu the bound of klinv is concave in q', so its maximum is at the stationary point, clamped to [0, q].
    """
    c = (count + ns.log(ns.number(2)) + log_inverse_delta) / m
    most = 1 + ns.number(alpha)
    if mu is None:
        return (most * (1 - ns.exp(-c)) + 1 / m) / alpha
    stationary = (ns.log(most * mu / (1 - ns.exp(-mu))) - c) / mu
    worst = ns.maximum(ns.number(0), ns.minimum(q, stationary))
    return (most * binary_kl_inverse(ns, worst, c, mu) - worst + 1 / m) / alpha


def occam_risk(ns: NumberSystem, q: Number, bits: Number, log_inverse_delta: Number, m: Number, mu: Number | None) -> Number:
    """G7: klinv(train, (bits log 2 + log(1/delta))/m)."""
    return binary_kl_inverse(ns, q, (bits * ns.log(ns.number(2)) + log_inverse_delta) / m, mu)


def sparse_class_size(ns: NumberSystem, s: int, seq_len: Number) -> Number:
    """G8: log of the number of s-sparse Boolean functions of T bits, at most log binom(T, s) + 2^s log 2."""
    factors = ns.number(0)
    for i in range(s):
        factors = factors + ns.log((seq_len - i) / ns.number(s - i))
    return factors + 2**s * ns.log(ns.number(2))


def support_floor(ns: NumberSystem, s: int, seq_len: Number) -> Number:
    """G8: labels without which no learner finds the support with probability 1/2: log_2 binom(T, s) - 1."""
    return (sparse_class_size(ns, s, seq_len) / ns.log(ns.number(2))) - 2**s - 1


def union_cost(ns: NumberSystem, steps: Sequence[int], two_sided: Sequence[bool]) -> Number:
    """P1: added to log(1/delta) for budgets k_j steps up their grids: sum log((k+1)(k+2)), + log 1.5 if two-sided.

    The weights 1/((k+1)(k+2)) sum to 1 over k >= 0; over all integers, with |k|, they sum to 3/2.
    """
    total = ns.number(0)
    for k, both in zip(steps, two_sided, strict=True):
        total = total + ns.log(ns.number((abs(k) + 1) * (abs(k) + 2)))
        if both:
            total = total + ns.log(ns.number(3) / 2)
    return total
