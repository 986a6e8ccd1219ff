"""Independent high-precision values of the covering-number statements T1-T10.

Every function returns the natural logarithm of an upper bound on a covering number, computed with
50 digits (counts with exact integers). Step counts and ranks use exact rational arithmetic: floats
are read as the binary rationals they are, so a tie in a ceiling is decided exactly. Functions
whose docstring says "improved" prove more than the specification states; the docstring says why.

Common arguments: ``b`` radius of the inputs, ``budget`` norm budget of the matrix, ``eps``
tolerance, ``d`` rows, ``k`` columns, ``n_points`` number of distinct points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath

Real = int | float | Fraction
Mpf = Any

MP = mpmath.MPContext()
MP.dps = 50


def frac(x: Real) -> Fraction:
    """The exact rational value of a number."""
    return Fraction(x)


def num(x: Real | Mpf) -> Mpf:
    """A 50-digit number."""
    if isinstance(x, Fraction):
        return MP.mpf(x.numerator) / x.denominator
    return MP.mpf(x)


def ratio(b: Real, budget: Real, eps: Real) -> Fraction:
    """a = (b * budget / eps)^2, exactly."""
    return (frac(b) * frac(budget) / frac(eps)) ** 2


def trivial(b: Real, budget: Real, eps: Real) -> bool:
    """True when the zero map alone is a cover."""
    return frac(eps) >= frac(b) * frac(budget)


# ---------------------------------------------------------------- counting


def log_binomial(n: int, s: int) -> Mpf:
    """log binom(n + s, s): multisets of size s from n + 1 kinds (one of them 'nothing')."""
    return MP.log(math.comb(n + s, s))


def log_binomial_closed(n: int, s: int) -> Mpf:
    """s log((n+s)/s) + n log(1+s/n) >= log binom(n+s, s)."""
    if s == 0 or n == 0:
        return MP.mpf(0)
    return s * MP.log(num(Fraction(n + s, s))) + n * MP.log(num(Fraction(n + s, n)))


def log_binomial_stirling(n: int, s: int) -> Mpf:
    """s log(n+(s+1)/2) - [s log s - s + log(2 pi s)/2 + 1/(12 s+1)] >= log binom(n+s, s).

    The product (n+1)...(n+s) by AM-GM, s! by Robbins' lower bound.
    """
    if s == 0:
        return MP.mpf(0)
    log_factorial = s * MP.log(s) - s + MP.log(2 * MP.pi * s) / 2 + MP.mpf(1) / (12 * s + 1)
    return s * MP.log(num(Fraction(2 * n + s + 1, 2))) - log_factorial


def lattice_count(n: int, s: int) -> int:
    """D(n, s): integer vectors of length n with l1 norm at most s, exactly."""
    return sum(2**i * math.comb(n, i) * math.comb(s, i) for i in range(min(n, s) + 1))


def log_lattice(n: int, s: int) -> Mpf:
    """log D(n, s)."""
    return MP.log(lattice_count(n, s))


def log_lattice_asinh(n: int, s: int) -> Mpf:
    """Improved closed form: log D(n,s) <= n asinh(s/n) + s asinh(n/s).

    For 0 < z < 1, D(n,s) <= sum over all integer vectors of z^(|v|_1 - s)
    = z^(-s) ((1+z)/(1-z))^n; the best z is s/(n + sqrt(n^2+s^2)).
    """
    if n == 0 or s == 0:
        return MP.mpf(0)
    return n * MP.asinh(num(Fraction(s, n))) + s * MP.asinh(num(Fraction(n, s)))


def log_lattice_amgm(n: int, s: int) -> Mpf:
    """Improved closed form: D(n,s) <= ((2n+1)^2 + (s-1)(2s-1)/3)^(s/2) / s!; symmetric in n, s.

    q_s = s! D(n,s) obeys q_s = M q_(s-1) + (s-1)^2 q_(s-2), M = 2n+1, hence has only imaginary
    roots: q_s^2 is a product of s factors M^2 + y^2 with sum of y^2 = s(s-1)(2s-1)/3; AM-GM.
    """
    best = None
    for p, q in ((n, s), (s, n)):
        square = (2 * p + 1) ** 2 + Fraction((q - 1) * (2 * q - 1), 3) if q else Fraction(1)
        value = num(Fraction(q, 2)) * MP.log(num(square)) - MP.loggamma(q + 1)
        best = value if best is None or value < best else best
    return best


def log_ball(q: int) -> Mpf:
    """log volume of the unit l2 ball of R^q."""
    return num(Fraction(q, 2)) * MP.log(MP.pi) - MP.loggamma(num(Fraction(q, 2)) + 1)


def log_vol_21(d: int, k: int) -> Mpf:
    """log volume of the unit (2,1) ball of R^(d x k): (v_d d!)^k / (dk)!."""
    return k * (log_ball(d) + MP.loggamma(d + 1)) - MP.loggamma(d * k + 1)


def log_vol_op(d: int, k: int) -> Mpf:
    """log volume of the unit operator-norm ball of R^(d x k).

    pi^(dk/2) prod_(i=1..k) Gamma((i+1)/2) / Gamma((d+i+1)/2): the matrix-variate beta integral for
    W^T W; symmetric in d and k.
    """
    total = num(Fraction(d * k, 2)) * MP.log(MP.pi)
    for i in range(1, k + 1):
        total += MP.loggamma(num(Fraction(i + 1, 2))) - MP.loggamma(num(Fraction(d + i + 1, 2)))
    return total


def _minimise(f: Callable[[Mpf], Mpf], lo: Mpf, hi: Mpf, grid: int = 400) -> tuple[Mpf, Mpf]:
    """(argmin, min) over [lo, hi]: grid, then golden section around the best grid point."""
    step = (hi - lo) / grid
    values = [f(lo + i * step) for i in range(grid + 1)]
    i = min(range(grid + 1), key=lambda j: values[j])
    left, right = lo + max(i - 1, 0) * step, lo + min(i + 1, grid) * step
    golden = (MP.sqrt(5) - 1) / 2
    for _ in range(130):
        x, y = right - golden * (right - left), left + golden * (right - left)
        if f(x) <= f(y):
            right = y
        else:
            left = x
    x = (left + right) / 2
    candidates = [(f(x), x), (values[i], lo + i * step)]
    value, arg = min(candidates, key=lambda pair: pair[0])
    return arg, value


# ---------------------------------------------------------------- T1


def t1_steps(b: Real, budget: Real, eps: Real) -> int:
    """T1: the perceptron makes at most s = ceil(a) - 1 steps."""
    return max(0, math.ceil(ratio(b, budget, eps)) - 1)


def t1_closed(b: Real, budget: Real, eps: Real, n_points: int) -> Mpf:
    """T1, closed form: a log(2N+1)."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    return num(ratio(b, budget, eps)) * MP.log(2 * n_points + 1)


def t1_binomial(b: Real, budget: Real, eps: Real, n_points: int) -> Mpf:
    """T1: log binom(2N+s, s)."""
    return log_binomial(2 * n_points, t1_steps(b, budget, eps))


def t1_sharp(b: Real, budget: Real, eps: Real, n_points: int) -> Mpf:
    """T1, sharper: log D(N, s), signed points cancel."""
    return log_lattice(n_points, t1_steps(b, budget, eps))


# ---------------------------------------------------------------- T2


def t2_lam_at(k: int, n_points: int, rho: Real | Mpf) -> Mpf:
    """T2: rho log(2Nk+1) + rho^2 log(rho/(rho-1)), valid for 1 < rho <= e/(e-1)."""
    r = num(rho)
    return r * MP.log(2 * n_points * k + 1) + r**2 * MP.log(r / (r - 1))


def t2_lam(k: int, n_points: int) -> Mpf:
    """T2: Lam(k, N), minimised numerically over 1 < rho <= 1.58."""
    lo = MP.mpf(1) + MP.mpf("1e-6")
    return _minimise(lambda r: t2_lam_at(k, n_points, r), lo, MP.mpf("1.58"))[1]


def t2_rho_hint(k: int, n_points: int) -> Mpf:
    """T2: the near-optimal rho = min(1.58, 1 + 1/log(2Nk+1))."""
    return min(MP.mpf("1.58"), 1 + 1 / MP.log(2 * n_points * k + 1))


def t2_closed(b: Real, budget: Real, eps: Real, k: int, n_points: int) -> Mpf:
    """T2, closed form: a Lam(k, N)."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    return num(ratio(b, budget, eps)) * t2_lam(k, n_points)


def t2_lam_improved(k: int, n_points: int) -> Mpf:
    """Improved T2: min over every rho > 1 of rho log((2Nk+1) rho^2/(rho-1)); always below Lam.

    With u_j = rho^(-i_j), the code of q active columns costs sum (c0 + log(rho^i_max u_j))
    <= q (c0 + log(rho^i_max / q)) by concavity and sum u_j <= 1. This grows with q up to rho a
    (its derivative is at least log(rho^2/(rho-1)) - 1 > 0), and q <= s < rho a.
    """
    kinds = 2 * n_points * k + 1

    def value(r: Mpf) -> Mpf:
        return r * MP.log(kinds * r**2 / (r - 1))

    return _minimise(value, MP.mpf(1) + MP.mpf("1e-6"), MP.mpf(4))[1]


def t2_closed_improved(b: Real, budget: Real, eps: Real, k: int, n_points: int) -> Mpf:
    """Improved T2, closed form: a times t2_lam_improved."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    return num(ratio(b, budget, eps)) * t2_lam_improved(k, n_points)


def t2_steps(b: Real, budget: Real, eps: Real, rho: Real) -> int:
    """T2: all columns together make at most s = ceil(rho a) - 1 steps."""
    return max(0, math.ceil(frac(rho) * ratio(b, budget, eps)) - 1)


def t2_levels(b: Real, budget: Real, eps: Real, rho: Real) -> int:
    """T2: number of levels I of an active column, I = ceil(2 + log(a)/log(rho)), ties exact."""
    a, r = ratio(b, budget, eps), frac(rho)
    top = math.ceil(2 + MP.log(num(a)) / MP.log(num(r)))
    while r ** (top - 1) >= r**2 * a:  # level top-1 must satisfy rho^(top-1) < rho^2 a
        top -= 1
    while r**top < r**2 * a:
        top += 1
    return max(top, 1)


def t2_level_cost(b: Real, budget: Real, eps: Real, k: int, rho: Real, *, improved: bool) -> Mpf:
    """T2: log-count of the levels. As stated (rho <= e/(e-1) for its first term) or improved."""
    a, s = ratio(b, budget, eps), t2_steps(b, budget, eps, rho)
    active = min(k, s)
    if active == 0:
        return MP.mpf(0)
    r = num(rho)
    uniform = active * MP.log(t2_levels(b, budget, eps, rho))
    c0 = MP.log(r / (r - 1))
    if improved:
        return min(uniform, active * (c0 + MP.log(r**2 * num(a) / active)))
    return min(uniform, r**2 * num(a) * c0) if c0 >= 1 else uniform


def t2_sharp(b: Real, budget: Real, eps: Real, k: int, n_points: int, rho: Real) -> Mpf:
    """T2, sharper, at a given rho: log binom(2Nk+s, s) + levels."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    s = t2_steps(b, budget, eps, rho)
    return log_binomial(2 * n_points * k, s) + t2_level_cost(b, budget, eps, k, rho, improved=False)


def t2_lattice(b: Real, budget: Real, eps: Real, k: int, n_points: int, rho: Real) -> Mpf:
    """Improved T2 at a given rho > 1: log D(Nk, s) + improved level cost.

    Column j of V is (e_j/b^2) sum_i n_ji x_i with net signed counts; |n|_1 is at most the number of
    steps, and a column whose net counts vanish needs no level.
    """
    if trivial(b, budget, eps):
        return MP.mpf(0)
    s = t2_steps(b, budget, eps, rho)
    return log_lattice(n_points * k, s) + t2_level_cost(b, budget, eps, k, rho, improved=True)


# ---------------------------------------------------------------- T3


def t3_draws(b: Real, budget: Real, eps: Real) -> int:
    """T3: s = max(1, ceil(a)) draws."""
    return max(1, math.ceil(ratio(b, budget, eps)))


def t3_closed(b: Real, budget: Real, eps: Real, d: int, k: int) -> Mpf:
    """T3, closed form: s log(2dk+1)."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    return t3_draws(b, budget, eps) * MP.log(2 * d * k + 1)


def t3(b: Real, budget: Real, eps: Real, d: int, k: int) -> Mpf:
    """T3: log binom(2dk+s, s)."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    return log_binomial(2 * d * k, t3_draws(b, budget, eps))


def t3_lattice(b: Real, budget: Real, eps: Real, d: int, k: int) -> Mpf:
    """Improved T3: log D(dk, s); the mean of the draws is budget/s times an integer vector."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    return log_lattice(d * k, t3_draws(b, budget, eps))


def t3_half_units(b: Real, budget: Real, eps: Real) -> int:
    """Improved T3: s = max(1, ceil(a/2)) units are enough."""
    return max(1, math.ceil(ratio(b, budget, eps) / 2))


def t3_half(b: Real, budget: Real, eps: Real, d: int, k: int) -> Mpf:
    """Improved T3: log D(dk, s) with s = ceil(a/2).

    Round y = sW/budget (|y|_1 <= s) towards zero, fractional parts f. Either keep that, squared
    error sum f^2, or round a random set up, i with chance f_i, its size never above ceil(sum f):
    expected error sum f(1-f). The smaller is at most (sum f)/2 <= s/2, and |n|_1 <= s either way.
    """
    if trivial(b, budget, eps):
        return MP.mpf(0)
    return log_lattice(d * k, t3_half_units(b, budget, eps))


def t3_weight(n: int) -> Fraction:
    """The weight psi(n) of an entry n in t3_sparse: 0, 2, then n + 2/3."""
    return Fraction(0) if n == 0 else Fraction(2) if n == 1 else n + Fraction(2, 3)


def t3_sparse_budget(b: Real, budget: Real, eps: Real) -> Fraction:
    """Improved T3: the integer vectors of t3_sparse have total weight at most a/2 + 2."""
    return ratio(b, budget, eps) / 2 + 2


def t3_sparse(b: Real, budget: Real, eps: Real, d: int, k: int) -> Mpf:
    """Improved T3, about (a/4) log(dk/a): integer vectors of total weight psi at most a/2 + 2.

    L = a/2, y = LW/budget; an integer n with |y-n|^2 <= L/2 is needed. For one entry y let E be the
    piecewise linear interpolation of (y-u)^2 at integers u, and u(y) least with E <= y/2. Then
    psi, interpolated, is at most y at u(y): u = y/2 for 1/2 <= y <= 2; for 1 <= u <= 2 it reads
    (2/3)(y-1/2) <= 2y-3; for u >= 2, (y-u)^2 >= y/2 - 1/4 >= 3/4 > (2/3)^2. So some fractional
    rounding has weight at most L; a vertex of that linear programme has one fractional entry, which
    is rounded up. Count: exp(lam (L+2)) (1 + 2 sum_n exp(-lam psi(n)))^(dk), any lam > 0.
    """
    if trivial(b, budget, eps):
        return MP.mpf(0)
    total = num(t3_sparse_budget(b, budget, eps))

    def value(lam: Mpf) -> Mpf:
        tail = MP.exp(-8 * lam / 3) / (1 - MP.exp(-lam))
        return lam * total + d * k * MP.log1p(2 * MP.exp(-2 * lam) + 2 * tail)

    return _minimise(value, MP.mpf("0.01"), MP.log(d * k + 2) + 3)[1]


# ---------------------------------------------------------------- T4


def t4(b: Real, budget: Real, eps: Real, d: int, k: int) -> Mpf:
    """T4: dk log(1 + 2bB/eps) for the operator-norm ball."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    return d * k * MP.log(1 + 2 * num(b) * num(budget) / num(eps))


def t4r_unit(n: int, x: Real | Mpf, t: Real | Mpf) -> Mpf:
    """T4r for a unit ball of dimension n at radius x: log(1 + n log(1+2/(tx)) (1+1/((1-t)x))^n)."""
    x, t = num(x), num(t)
    if x >= 1:
        return MP.mpf(0)
    return MP.log(1 + n * MP.log(1 + 2 / (t * x)) * (1 + 1 / ((1 - t) * x)) ** n)


def t4r(b: Real, budget: Real, eps: Real, d: int, k: int, t: Real | None = None) -> Mpf:
    """T4r: random covering of the operator-norm ball; t defaults to 1/n (1/2 when n = 1)."""
    n = d * k
    share = (Fraction(1, n) if n > 1 else Fraction(1, 2)) if t is None else t
    return t4r_unit(n, num(eps) / (num(b) * num(budget)), share)


def t4r_samples(n: int, x: Real | Mpf, t: Real | Mpf) -> int:
    """T4r: the number M = floor(log|Q|/p) + 1 of random centres in the proof."""
    x, t = num(x), num(t)
    log_net = n * MP.log(1 + 2 / (t * x))
    return int(MP.floor(log_net * (1 + 1 / ((1 - t) * x)) ** n)) + 1


def t4r_rogers_unit(n: int, x: Real | Mpf, t: Real | Mpf) -> Mpf:
    """Improved T4r: log(1 + (1 + log(|Q| p))/p): missed net points become centres.

    M = ceil(log(|Q|p)/p) random points miss at most |Q| exp(-pM) <= 1/p net points on average.
    """
    x, t = num(x), num(t)
    if x >= 1:
        return MP.mpf(0)
    net, inverse = 1 + 2 / (t * x), 1 + 1 / ((1 - t) * x)
    return MP.log(1 + inverse**n * (1 + n * MP.log(net / inverse)))


def t4v_offset(d: int, k: int) -> Mpf:
    """T4v: R = k log(v_d d!) - log (dk)! - log v_dk + (n/2) log k."""
    return log_vol_21(d, k) - log_ball(d * k) + num(Fraction(d * k, 2)) * MP.log(k)


def t4v(b: Real, budget: Real, eps: Real, d: int, k: int) -> Mpf:
    """T4v: n log(1 + 2bK/(sqrt(k) eps)) + R for the (2,1) ball."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    x = num(eps) / (num(b) * num(budget))
    return d * k * MP.log(1 + 2 / (MP.sqrt(k) * x)) + t4v_offset(d, k)


def random_cover(n: int, y: Mpf, offset: Mpf, t: Real | Mpf) -> Mpf:
    """Random form of a volume bound: log(1 + (n log(1+2/(ty)) + R) e^R (1 + 1/((1-t)y))^n)."""
    t = num(t)
    net = n * MP.log(1 + 2 / (t * y)) + offset
    return MP.log(1 + net * MP.exp(offset) * (1 + 1 / ((1 - t) * y)) ** n)


def t4v_random(b: Real, budget: Real, eps: Real, d: int, k: int, t: Real) -> Mpf:
    """T4v, random covering: the factor 2 goes."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    y = MP.sqrt(k) * num(eps) / (num(b) * num(budget))
    return random_cover(d * k, y, t4v_offset(d, k), t)


def op_scale(norm: str, d: int, k: int) -> Mpf:
    """The lambda with |W|_norm <= lambda |W|_op: sqrt(q), sqrt(kq), sqrt(dkq), q = min(d, k)."""
    q = min(d, k)
    return MP.sqrt({"F": q, "21": k * q, "11": d * k * q}[norm])


def t4o_offset(norm: str, d: int, k: int) -> Mpf:
    """log vol(lambda unit ball of the norm) - log vol(unit operator ball); nonnegative."""
    n = d * k
    log_vol = {
        "F": lambda: log_ball(n),
        "21": lambda: log_vol_21(d, k),
        "11": lambda: n * MP.log(2) - MP.loggamma(n + 1),
    }[norm]()
    return n * MP.log(op_scale(norm, d, k)) + log_vol - log_vol_op(d, k)


def t4o(b: Real, budget: Real, eps: Real, d: int, k: int, norm: str) -> Mpf:
    """Improved T4v for norm F, 21 or 11: n log(1 + 2bK/(lambda eps)) + R', operator-norm covers.

    |x(W-V)| <= b|W-V|_op, so pack in operator norm at eta = eps/b; the operator ball of radius h
    lies in the ball of radius lambda h of the budget's norm, and both volumes are explicit.
    R' is at most about 0.45 n (d = k) and smaller for rectangular matrices.
    """
    if trivial(b, budget, eps):
        return MP.mpf(0)
    y = op_scale(norm, d, k) * num(eps) / (num(b) * num(budget))
    return d * k * MP.log(1 + 2 / y) + t4o_offset(norm, d, k)


def t4o_random(b: Real, budget: Real, eps: Real, d: int, k: int, norm: str, t: Real) -> Mpf:
    """Improved T4v, random covering in operator norm."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    y = op_scale(norm, d, k) * num(eps) / (num(b) * num(budget))
    return random_cover(d * k, y, t4o_offset(norm, d, k), t)


# ---------------------------------------------------------------- T5, T6


def t5(b: Real, budget: Real, eps: Real, d: int, k: int, rank: int, theta: Real = Fraction(1, 2)) -> Mpf:
    """T5: rd log(1+2bB/(th eps)) + rk log(1+2bB/((1-th) eps)), r <- min(r, d, k)."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    r, th = min(rank, d, k), num(theta)
    y = 2 * num(b) * num(budget) / num(eps)
    return r * d * MP.log(1 + y / th) + r * k * MP.log(1 + y / (1 - th))


def t5_second_radius(x: Real | Mpf, first: Real | Mpf, t: Real | Mpf) -> Mpf:
    """Improved T5: the radius x2 left for the second factor, x1 + (1+(1-t)x1) x2 = x."""
    x, x1, t = num(x), num(first), num(t)
    return (x - x1) / (1 + (1 - t) * x1)


def t5_random(
    b: Real,
    budget: Real,
    eps: Real,
    d: int,
    k: int,
    rank: int,
    theta: Real = Fraction(1, 2),
    t: Real | None = None,
) -> Mpf:
    """Improved T5: both factors by T4r, about r(d+k) log(1 + 2bB/eps): the 4 becomes 2.

    W = B P Q. The random centres P' have norm at most 1+(1-t)x1, so
    |PQ - P'Q'| <= |P-P'||Q| + |P'||Q-Q'| <= x1 + (1+(1-t)x1) x2; take x1 = theta x.
    """
    if trivial(b, budget, eps):
        return MP.mpf(0)
    r = min(rank, d, k)
    if r == 0:
        return MP.mpf(0)
    x = num(eps) / (num(b) * num(budget))
    x1 = num(theta) * x
    t1 = (Fraction(1, max(2, r * d))) if t is None else t
    t2 = (Fraction(1, max(2, r * k))) if t is None else t
    x2 = t5_second_radius(x, x1, t1)
    return t4r_unit(r * d, x1, t1) + t4r_unit(r * k, x2, t2)


def t6_rank(b: Real, schatten: Real, eps: Real, p: Real, t: Real, d: int, k: int) -> int:
    """T6: r = min(d, k, ceil(R (b/(t eps))^p) - 1); exact for integer p."""
    y = frac(b) / (frac(t) * frac(eps))
    if frac(p).denominator == 1:
        value = math.ceil(frac(schatten) * y ** int(frac(p)))
    else:
        value = int(MP.ceil(num(schatten) * num(y) ** num(p)))
    return max(0, min(d, k, value - 1))


def t6(b: Real, budget: Real, schatten: Real, eps: Real, p: Real, t: Real, d: int, k: int) -> Mpf:
    """T6: r(d+k) log(1 + 4bB/((1-t) eps)) with the rank above."""
    if trivial(b, budget, eps):
        return MP.mpf(0)
    r = t6_rank(b, schatten, eps, p, t, d, k)
    return r * (d + k) * MP.log(1 + 4 * num(b) * num(budget) / ((1 - num(t)) * num(eps)))


def t6_soft(b: Real, budget: Real, schatten: Real, eps: Real, p: Real, t: Real, d: int, k: int) -> Mpf:
    """Improved T6: shrink every singular value by t eps/b (same rank, same error), then T5.

    The shrunk matrix has operator norm at most B - t eps/b, so bB becomes bB - t eps.
    """
    if trivial(b, budget, eps):
        return MP.mpf(0)
    r = t6_rank(b, schatten, eps, p, t, d, k)
    rest, share = num(b) * num(budget) - num(t) * num(eps), (1 - num(t)) * num(eps)
    return r * (d + k) * MP.log(1 + 4 * rest / share) if rest > share else MP.mpf(0)


# ---------------------------------------------------------------- T8-T10


def t8(budget: Real, eps: Real, k: int) -> Mpf:
    """T8: bias vector of l2 norm at most budget: k log(1 + 2|c|/eps)."""
    return t4(1, budget, eps, k, 1)


def t9_cells(b: Real, half_width: Real, eps: Real) -> int:
    """T9: cells per coordinate, ceil(bG/eps)."""
    return max(1, math.ceil(frac(b) * frac(half_width) / frac(eps)))


def t9(b: Real, half_width: Real, eps: Real, d: int) -> Mpf:
    """T9: diagonal gain within half_width of its reference: d log ceil(bG/eps)."""
    return d * MP.log(t9_cells(b, half_width, eps))


def t9b(half_width: Real, eps: Real, d: int) -> Mpf:
    """T9b: offset within l2 distance G of its reference: d log(1 + 2G/eps)."""
    return t4(1, half_width, eps, d, 1)


def t10_points(samples: int, seq_len: int, vocabulary: int) -> int:
    """T10: distinct one-hot points, min(mT, vocabulary); then T1-T6 with b = 1."""
    return min(samples * seq_len, vocabulary)


def t10_rows(row_norm: Real, eps: Real, vocabulary: int, d: int) -> Mpf:
    """Improved T10: one-hot inputs see rows only, V d log(1 + 2r/eps) with r the largest row norm."""
    return vocabulary * t4(1, row_norm, eps, 1, d)
