"""T13, T14 in 50 digits: covers by random centres of a chosen law, reached through noise on the spectral ball."""

from collections.abc import Mapping
from functools import lru_cache

from ._numbers import MP, Real, num

RANGES = {"a": (0.0, 1e9), "s": (1e-9, 1e9), "r": (1e-12, 1e12), "t": (1e-15, 0.75)}


@lru_cache(maxsize=1024)
def multigamma(z: Real, order: int) -> Real:
    """Logarithm of prod Gamma(z - i/2), i < order."""
    return sum((MP.loggamma(z - num(i) / 2) for i in range(order)), MP.mpf(0))


def log_mass(d: int, k: int, a: Real) -> Real:
    """Logarithm of the integral of det(I - u'u)^a over the unit spectral ball."""
    low, high = min(d, k), max(d, k)
    z = num(a) + num(low + 1) / 2
    return num(d * k) / 2 * MP.log(MP.pi) + multigamma(z, low) - multigamma(z + num(high) / 2, low)


def entropy_used(d: int, k: int, a: Real) -> Real:
    """The bound from below: the slope is at most three differences over 1/2 less the next."""
    at, half, one = (log_mass(d, k, num(a) + num(i) / 2) for i in range(3))
    return at - num(a) * (3 * (half - at) - (one - half))


def majorant(y: Real) -> Real:
    """At least the least concave function above log(1+y^2)."""
    return MP.log(1 + y**2) if y >= num(1.9803) else min(num(0.804743) * y, MP.log(1 + num(1.9803) ** 2))


def columns(d: int, k: int, size: Real, c2: Real, s: Real, r: Real) -> Real:
    """T13, V2: the mean of -log p, p of Student columns, at (2,1) norm `size` and noise of mean square c2 a column."""
    rho, power = r * c2, num(d) / 2 + s
    mass = MP.loggamma(s) + num(d) / 2 * MP.log(MP.pi * rho) - MP.loggamma(power)
    return k * (mass + power * (MP.log(1 + 1 / r) + majorant(size / (k * MP.sqrt(rho + c2)))))


def matrix(d: int, k: int, size: Real, c2: Real, s: Real, r: Real) -> Real:
    """T14, V3: the same for the matrix-t law and the nuclear norm; c2 is that of a row or column on the longer side."""
    low, high = min(d, k), max(d, k)
    rho, beta = r * c2, num(d + k - 1) / 2 + s
    mass = num(d * k) / 2 * MP.log(MP.pi * rho) + multigamma(beta - num(high) / 2, low) - multigamma(beta, low)
    return mass + beta * low * (MP.log(1 + 1 / r) + majorant(size / (low * MP.sqrt(rho + c2))))


def count(name: str, d: int, k: int, y: Real, params: Mapping[str, Real]) -> Real:
    """I + log L + e^-I / L at eps = 1/y for a budget of 1, I at (1-t) eps."""
    a, s, r, t = (num(params[name]) for name in ("a", "s", "r", "t"))
    eps, n = (1 - t) / num(y), num(d * k)
    law, side = (columns, d) if name == "T13" else (matrix, max(d, k))
    c2 = eps**2 * side / (d + k + 1 + 2 * a)  # by the mean of |u_j|^2 of a column
    missed = law(d, k, num(1), c2, s, r) - n * MP.log(eps) - entropy_used(d, k, a)
    net = n * MP.log(1 + 2 * num(y) / t)
    return missed + MP.log(net) + MP.exp(-missed) / net
