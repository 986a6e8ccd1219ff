"""T13, T14 in 50 digits: covers by random centres of a chosen law, reached through noise on the spectral ball."""

from collections.abc import Mapping
from functools import lru_cache

from .numbers import MP, Real, num

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


def _missed(name: str, d: int, k: int, y: Real, params: Mapping[str, Real]) -> Real:
    """I at eps' = 1/y for a budget of 1."""
    a, n = num(params["a"]), num(d * k)
    eps = 1 / num(y)
    own = n * MP.log(eps) + entropy_used(d, k, a)
    c2 = eps**2 * d / (d + k + 1 + 2 * a)  # by the mean of |u_j|^2 of a column
    s = num(params["s"])
    if name == "T13":
        rho, power = num(params["r"]) * c2, num(d) / 2 + s
        mass = MP.loggamma(s) + num(d) / 2 * MP.log(MP.pi * rho) - MP.loggamma(power)
        levels = k * majorant(1 / (k * MP.sqrt(rho + c2)))
        return k * mass + power * (k * MP.log(1 + c2 / rho) + levels) - own
    low, high = min(d, k), max(d, k)
    c2 = eps**2 * high / (d + k + 1 + 2 * a)
    rho, beta = num(params["r"]) * c2, num(d + k - 1) / 2 + s
    mass = n / 2 * MP.log(MP.pi * rho) + multigamma(beta - num(high) / 2, low) - multigamma(beta, low)
    levels = low * majorant(1 / (low * MP.sqrt(rho + c2)))
    return mass + beta * (low * MP.log(1 + c2 / rho) + levels) - own


def count(name: str, d: int, k: int, y: Real, params: Mapping[str, Real]) -> Real:
    """I + log L + e^-I / L at eps = 1/y."""
    t = num(params["t"])
    chance = _missed(name, d, k, num(y) / (1 - t), params)
    net = num(d * k) * MP.log(1 + 2 * num(y) / t)
    return chance + MP.log(net) + MP.exp(-chance) / net
