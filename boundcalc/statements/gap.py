"""G: from covers to a gap or a risk. Formulas only, generic over the number system.

The loss lies in [0, 1]. Scales e are on the loss: N_j = N(F, e_j / L_l).
"""

from __future__ import annotations

from collections.abc import Sequence

from boundcalc.base.numbers import Number, NumberSystem


def chain_links(ns: NumberSystem, scales: Sequence[Number], counts: Sequence[Number], m: Number) -> list[Number]:
    """G1, G12: e_(j-1) sqrt(2 c_j/m) for every level; scales[0] is e_0, counts belong to scales[1:].

    c_j is a log count, or what level j adds to that of all centres so far; c_j/e_(j-1)^2 does not fall with j.
    """
    return [coarser * ns.sqrt(2 * count / m) for coarser, count in zip(scales, counts, strict=False)]


def deviation(ns: NumberSystem, log_inverse_delta: Number, m: Number) -> Number:
    """McDiarmid (or Hoeffding) for a [0, 1] loss: sqrt(log(1/delta)/(2m))."""
    return ns.sqrt(log_inverse_delta / (2 * m))


def chain_factor(ns: NumberSystem, ghosts: int) -> Number:
    """What multiplies the links of G2 for covers of a sample with so many ghosts each; 1 is symmetrisation."""
    return 1 + 1 / ns.number(ghosts)


def gap_uniform_single(ns: NumberSystem, scale: Number, count: Number, log_inverse_delta: Number, m: Number) -> Number:
    """G2 for one uniform cover: 2e + sqrt((log N + log(1/delta))/(2m))."""
    return 2 * scale + deviation(ns, count + log_inverse_delta, m)


CLOSED_OFFSET = 1.0853
"""4/e + 1 - 2 log 2, rounded up: the most that n e^((t+1)/n - 1) exceeds t by for the best n >= 1, over t >= 0."""
CLOSED_GHOSTS = 16
"""Ghost samples per sample of the closed form: links count once and a sixteenth instead of twice, points 17-fold."""


def chain_closed(ns: NumberSystem, capacity: Number, factor: Number, m: Number) -> Number:
    """G1 in one line where log N(e) <= capacity/e^2: 2 e_J + factor * (links) <= 2k (1.0853 + max(0, log(1/(2k)))).

    k = (factor/2) e sqrt(2 capacity/m). With t = log(1/(2k)) and J = n - 1 scales falling by the ratio e^((t+1)/n) from
    1/2, the left side is 2k n e^((t+1)/n - 1); n = 1 is the loss' own range, which also settles k >= 1/2.
    """
    k = factor / 2 * ns.exp(ns.number(1)) * ns.sqrt(2 * capacity / m)
    return 2 * k * (ns.number(CLOSED_OFFSET) + ns.maximum(ns.number(0), ns.log(1 / (2 * k))))


def complexity_published(ns: NumberSystem, capacity: Number, m: Number) -> Number:
    """PUB: Dudley's 4a + (12/sqrt m) int_a^(1/2) sqrt(log N) where log N(e) <= capacity/e^2, at the best a = 3k.

    12 k (1 + max(0, log(1/(6k)))), k = sqrt(capacity/m); for k >= 1/6 it is at least 2 and the integral is empty.
    """
    k = ns.sqrt(capacity / m)
    return 12 * k * (1 + ns.maximum(ns.number(0), ns.log(1 / (6 * k))))


def binary_kl_inverse(ns: NumberSystem, q: Number, c: Number, mu: Number | None) -> Number:
    """An upper bound of klinv(q, c) = sup{p >= q : kl(q|p) <= c}, for any mu > 0: (1 - e^(-mu q - c)) / (1 - e^(-mu)).

    By the Donsker-Varadhan inequality with the function -mu x; equality at the best mu. mu = None means mu -> infinity,
    which is exact at q = 0: 1 - e^(-c).
    """
    if mu is None:
        return -ns.expm1(-c)
    return ns.expm1(-mu * q - c) / ns.expm1(-mu)


def noise_depth(ns: NumberSystem, eta: Number, events: Number) -> Number:
    """G11: the t with events * e^(-t^2/2) = eta."""
    return ns.sqrt(2 * ns.log(events / eta))


def averaging(ns: NumberSystem, m: Number) -> Number:
    """G11: log(2 + sqrt(pi m/2)), at least the log of E exp(m kl(mean of m coins | p)) for every p."""
    return ns.log(2 + ns.sqrt(ns.pi * m / 2))


def risk_noise(
    ns: NumberSystem, q: Number, cost: Number, eta: Number, log_inverse_delta: Number, m: Number, mu: Number | None
) -> Number:
    """G11: klinv(train error + eta, (I + log(1/delta) + log(2 + sqrt(pi m/2)))/m)/(1 - eta)."""
    c = (cost + log_inverse_delta + averaging(ns, m)) / m
    return binary_kl_inverse(ns, q + eta, c, mu) / (1 - eta)
