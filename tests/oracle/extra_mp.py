"""The library's own forms of T, A4, G2 and PUB in 50 digits, from the mathematics of docs/theory.md.

The other oracle modules hold the statements in their simplest and their sharpest forms; where the library evaluates
something in between (an upper bound of a count that needs no integers, say), that form is written out here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tests.oracle import compose_mp, covers_mp
from tests.oracle.covers_mp import MP, Mpf, Real, frac, num, ratio
from tests.oracle.gap_mp import deviation

# ---------------------------------------------------------------- counting


def lattice_upper(n: int, s: int) -> Mpf:
    """At least log D(n, s), without integers: the least of (2n+1)^s, (2s+1)^n, AM-GM with Robbins, asinh."""
    if s == 0:
        return MP.mpf(0)
    square = num((2 * n + 1) ** 2 + Fraction((s - 1) * (2 * s - 1), 3))
    factorial = s * MP.log(s) - s + MP.log(2 * MP.pi * s) / 2 + MP.mpf(1) / (12 * s + 1)
    by_roots = num(Fraction(s, 2)) * MP.log(square) - factorial
    return min(s * MP.log(2 * n + 1), n * MP.log(2 * s + 1), by_roots, covers_mp.log_lattice_asinh(n, s))


def random_upper(n: int, y: Mpf, offset: Mpf, t: Mpf) -> Mpf:
    """At least log(1 + x) for x = (n log(1+2/(ty)) + R) e^R (1+1/((1-t)y))^n: log x + 1/x. y is eps/(bB)."""
    net = n * MP.log(1 + 2 / (t * y)) + offset
    log_x = MP.log(net) + offset + n * MP.log(1 + 1 / ((1 - t) * y))
    return log_x + MP.exp(-log_x)


# ---------------------------------------------------------------- T


def lam(columns: int, points: Real) -> Mpf:
    """Lambda(k, N) = rho log((2Nk+1) rho^2/(rho-1)) at rho = 1 + 1/log(2Nk+1)."""
    wide = 2 * num(points) * columns + 1
    rho = 1 + 1 / MP.log(wide)
    return rho * MP.log(wide * rho**2 / (rho - 1))


def t1_sharp(b: Real, budget: Real, eps: Real, n: int) -> Mpf:
    """T1: signed counts of the steps."""
    return lattice_upper(n, covers_mp.t1_steps(b, budget, eps))


def t2_closed(b: Real, budget: Real, eps: Real, k: int, n: int) -> Mpf:
    """T2: a Lambda(k, N)."""
    return num(ratio(b, budget, eps)) * lam(k, n)


def t2_sharp(b: Real, budget: Real, eps: Real, k: int, n: int, rho: float) -> Mpf:
    """T2 at one rho: net steps, and levels coded or listed."""
    s = covers_mp.t2_steps(b, budget, eps, rho)
    a, r = num(ratio(b, budget, eps)), num(rho)
    active = min(k, s)
    coded = MP.log(r / (r - 1)) + MP.log(r**2 * a / active)
    listed = MP.log(MP.ceil(2 + MP.log(a) / MP.log(r)))
    return lattice_upper(n * k, s) + active * min(coded, listed)


def t3_closed(b: Real, budget: Real, eps: Real, d: int, k: int) -> Mpf:
    """T3: (a/2 + 1) log(2dk+1), at least ceil(a/2) log(2dk+1)."""
    return (num(ratio(b, budget, eps)) / 2 + 1) * MP.log(2 * d * k + 1)


def t3_sharp(b: Real, budget: Real, eps: Real, d: int, k: int, lam_: float) -> Mpf:
    """T3: the sparse form at one lambda, or half the draws."""
    x = num(lam_)
    psi = 2 * MP.exp(-2 * x) + 2 * MP.exp(-8 * x / 3) / (1 - MP.exp(-x))
    sparse = x * num(covers_mp.t3_sparse_budget(b, budget, eps)) + d * k * MP.log(1 + psi)
    return min(sparse, lattice_upper(d * k, covers_mp.t3_half_units(b, budget, eps)))


def t4r(b: Real, budget: Real, eps: Real, n: int, t: float) -> Mpf:
    """T4r."""
    return random_upper(n, num(eps) / (num(b) * num(budget)), MP.mpf(0), num(t))


def t4_body(b: Real, budget: Real, eps: Real, d: int, k: int, norm: str, t: float) -> Mpf:
    """T4v (norm "21") and T4f ("F"): random centres, volumes compared in spectral norm."""
    y = covers_mp.op_scale(norm, d, k) * num(eps) / (num(b) * num(budget))
    return random_upper(d * k, y, covers_mp.t4o_offset(norm, d, k), num(t))


def factors(x: Mpf, d: int, k: int, r: int, theta: float) -> Mpf:
    """Random covers of both factors of a rank-r matrix of norm 1, at spectral distance x."""
    if r == 0:
        return MP.mpf(0)
    t = num(Fraction(1, 2 * r * d))
    first = num(theta) * x
    second = covers_mp.t5_second_radius(x, first, t)
    left = random_upper(r * d, first, MP.mpf(0), t)
    return left + random_upper(r * k, second, MP.mpf(0), num(Fraction(1, 2 * r * k)))


def t5_sharp(b: Real, budget: Real, eps: Real, d: int, k: int, rank: int, theta: float) -> Mpf:
    """T5, random centres."""
    return factors(num(eps) / (num(b) * num(budget)), d, k, min(rank, d, k), theta)


def t6_sharp(b: Real, budget: Real, schatten: Real, eps: Real, p: float, t: float, d: int, k: int) -> Mpf:
    """T6: soft threshold at t eps/b, then T5 on what is left, of norm B - t eps/b, at (1-t) eps."""
    r = covers_mp.t6_rank(b, schatten, eps, p, t, d, k)
    left = num(b) * num(budget) - num(t) * num(eps)
    return factors((1 - num(t)) * num(eps) / left, d, k, r, d / (d + k))


def t10_sharp(row: Real, eps: Real, vocabulary: int, d: int, t: float) -> Mpf:
    """T10: rows one by one."""
    return vocabulary * random_upper(d, num(eps) / num(row), MP.mpf(0), num(t))


def pub_closed(norm: Real, radius: Real, eps: Real, points: Real) -> Mpf:
    """Tpub without its ceiling: 36 a log(2 (4bB/eps + 3) N + 1)."""
    y = num(norm) * num(radius) / num(eps)
    return 36 * y**2 * MP.log(2 * (4 * y + 3) * num(points) + 1)


# ---------------------------------------------------------------- A4


def a4_pieces(net: compose_mp.DeepNet) -> list[tuple[Any, Any]]:
    """(A_j, k_j) of every piece of the post-norm network of A4, with the Lambda above."""
    m, t, d = int(net.n_train), int(net.seq_len), int(net.width)
    c, cols, act = num(net.op), num(net.cols), num(net.lip_act)
    pieces: list[tuple[Any, Any]] = [(num(net.readout) ** 2 * MP.log(2 * m + 1), MP.mpf(1))]
    for block in range(1, net.depth + 1):
        rows = 1 if block == net.depth else t
        later = num(net.readout) * compose_mp.a4_block_lipschitz(net) ** (net.depth - block)
        matrix = cols**2 * lam(d, m * rows)
        score = min(num(net.frob_qk) ** 2 * MP.log(2 * m * rows * t + 1), matrix)
        for _ in range(net.heads):
            pieces += [(score, later * act * c**2), (matrix, later * act * c)]
        pieces.append((matrix, later))
    return pieces


def a4_direct(net: compose_mp.DeepNet) -> Mpf:
    """A4 as a direct A1 sum."""
    pieces = a4_pieces(net)
    return compose_mp.a1_minimum([a for a, _ in pieces], [k for _, k in pieces])


def a4_closed(net: compose_mp.DeepNet) -> Mpf:
    """A4 as printed: B_w^2 [log(2m+1)^(1/3) + S(1) + S(T) (r^(2D/3) - r^(2/3))/(r^(2/3) - 1)]^3."""
    third = MP.mpf(1) / 3
    m, t = int(net.n_train), int(net.seq_len)
    c, cols, act = num(net.op), num(net.cols), num(net.lip_act)

    def block(n: int) -> Mpf:
        wide = lam(int(net.width), m * n)
        score = min((num(net.frob_qk) / cols) ** 2 * MP.log(2 * m * n * t + 1), wide)
        inner = score**third * c ** (4 * third) + wide**third * c ** (2 * third)
        return cols ** (2 * third) * (net.heads * act ** (2 * third) * inner + wide**third)

    q = compose_mp.a4_block_lipschitz(net) ** (2 * third)
    series = num(net.depth - 1) if q == 1 else (q**net.depth - q) / (q - 1)
    return num(net.readout) ** 2 * (MP.log(2 * m + 1) ** third + block(1) + block(t) * series) ** 3


# ---------------------------------------------------------------- G2, PUB


def gap_closed(capacity: Real, m: Real, delta: Real, offset: Real) -> Mpf:
    """G2 in one line: 2k(offset + log^+(1/(2k))) + deviation, k = (17/32) e sqrt(2C/m)."""
    k = num(Fraction(17, 32)) * MP.e * MP.sqrt(2 * num(capacity) / num(m))
    return 2 * k * (num(offset) + max(MP.mpf(0), MP.log(1 / (2 * k)))) + deviation(delta, m)


def gap_by_scales(capacity: Real, m: Real, delta: Real) -> Mpf:
    """The bound that the line above is a bound of: ghosts alpha = 16, geometric scales, the best number of them."""
    link = num(Fraction(17, 16)) * MP.sqrt(2 * num(capacity) / num(m))
    t = max(0, int(-MP.log(MP.e * link)))  # about the best number of scales
    best = MP.mpf(1)  # the range of the loss
    for levels in range(max(1, t - 1), t + 4):

        def chain(log_ratio: Mpf, levels: int = levels) -> Mpf:
            return MP.exp(-levels * log_ratio) + link * levels * MP.exp(log_ratio)

        best = min(best, compose_mp.golden_minimum(chain, MP.mpf("0.001"), MP.mpf(12), 60))
    return best + deviation(delta, m)


def pub_gap(capacity: Real, m: Real, delta: Real) -> Mpf:
    """PUB: 24 k (1 + log^+(1/(6k))) + 3 sqrt(log(2/delta)/(2m)), k = sqrt(C/m)."""
    k = MP.sqrt(num(capacity) / num(m))
    tail = 3 * MP.sqrt(MP.log(2 / num(delta)) / (2 * num(m)))
    return 24 * k * (1 + max(MP.mpf(0), MP.log(1 / (6 * k)))) + tail


def steps_are_generic(b: Real, budget: Real, eps: Real, factor: Real = 1) -> bool:
    """Whether factor * a is far enough from an integer for float ceilings to be the exact ones."""
    a = float(frac(factor) * ratio(b, budget, eps))
    return abs(a - round(a)) > 1e-9 * max(1.0, a) and math.isfinite(a)
