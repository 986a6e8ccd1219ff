"""G11 and G14 in 50 digits: what noise on a map is compared with, how far it moves a point, and what levels tell through it."""

from collections.abc import Mapping, Sequence
from typing import Any

from .centres import RANGES, entropy_used, majorant, multigamma
from .covers import View
from .numbers import MP, Real, demand, log_ball, num, within

_RANGES = {"s": (1e-9, 1e9), "r": (1e-12, 1e12)}
LAWS = {"V1": {}, "V2": _RANGES, "V2t": _RANGES, "V3": _RANGES, "V5": {}}


def events(view: View) -> int:
    """Gaussian rows that one example sees; a gain has its coordinates."""
    if view.kind == "summed":
        return 2 * max(1, view.count(1))
    return view.sizes.d * view.sizes.k if view.kind in ("gain", "numbers") else max(1, view.count(1))


def depth(seen: int, eta: Real) -> Real:
    """The t at which so many events have the chance eta together."""
    return MP.sqrt(-2 * MP.log(num(eta) / max(1, seen)))


def spread(view: View, t: Real) -> Real:
    """What is not exceeded but for e^(-t^2/2): t for one Gaussian, sqrt(ka) for k, a two Newton steps from its start."""
    k = view.sizes.k
    if view.extra is not None:
        return t + view.extra
    if k <= 2 or view.kind in ("score", "gain", "numbers"):
        return t
    target = t**2 / num(k)
    a = 1 + MP.sqrt(2 * target) + target
    for _ in range(2):
        a -= (a - 1 - MP.log(a) - target) / (1 - 1 / a)
    return MP.sqrt(k * a)


def divergence(choice: Any, view: View, eps: Real, t: Real) -> Real:
    """What noise costs that leaves eps."""
    law = choice.lemma
    within(choice, LAWS[law])
    plain = view.kind not in ("vector", "gain", "table")
    others = ("map", "score", "summed", *(("numbers", "pooled") if law == "V3" else ()))
    demand(law == "V1" or (plain and view.kind in others), f"{law} is not for a {view.kind}")
    seen = eps / spread(view, t)
    return against(law, view, (seen if view.most is None else min(seen, view.most)) / view.radius, choice.params)


def against(law: str, view: View, sigma: Real, given: Mapping[str, Any]) -> Real:
    """The divergence of noise of a size from a law."""
    sizes = view.sizes
    whole = {"vector": 1, "gain": sizes.k, "table": sizes.d}
    d, k = (sizes.k, sizes.d) if law == "V2t" else (sizes.d, sizes.k)
    n = num(d * k)
    if law == "V1":
        square = whole[view.kind] * sizes.op**2 if view.kind in whole else sizes.fro**2
        return n / 2 * MP.log(1 + square / (n * sigma**2))
    own = n / 2 * MP.log(2 * MP.pi * MP.e * sigma**2)
    if law == "V3":
        s, r = num(given["s"]), num(given["r"])
        low, high = min(d, k), max(d, k)
        rho, beta = r * high * sigma**2, num(d + k - 1) / 2 + s
        mass = n / 2 * MP.log(MP.pi * rho) + multigamma(beta - num(high) / 2, low) - multigamma(beta, low)
        largest = majorant(sizes.nuclear / (low * MP.sqrt(rho + high * sigma**2)))
        return mass + beta * low * (MP.log(1 + high * sigma**2 / rho) + largest) - own
    demand(k > 1, f"{law} is for several columns")
    budget = sizes.two_one_t if law == "V2t" else sizes.two_one
    if law == "V5":
        apart = MP.sqrt(budget**2 + d * sigma**2) + (k - 1) * MP.sqrt(d) * sigma
        rate = n / apart
        return k * (log_ball(d) + MP.loggamma(d + 1)) - n * MP.log(rate) + rate * apart - own
    s, r = num(given["s"]), num(given["r"])
    rho, power = r * d * sigma**2, num(d) / 2 + s
    mass = MP.loggamma(s) + num(d) / 2 * MP.log(MP.pi * rho) - MP.loggamma(power)
    largest = majorant(budget / (k * MP.sqrt(rho + d * sigma**2)))
    return k * (mass + power * (MP.log(1 + d * sigma**2 / rho) + largest)) - own


def more(heard: dict[Any, Any], place: tuple[str, int], choice: Any, log_eps: float, view: View) -> Real:
    """G14: what one map says beyond what it has said; kept are the way it is seen, (a, eps) of every level, what they tell."""
    target, noises, before = heard.get(place, (choice.target, (), num(0)))
    demand(target == choice.target, f"{place[0]}: channels see it in two ways")
    eps = MP.exp(num(log_eps))
    if any(finer <= eps for _, finer in noises):
        return num(0)
    noises = (*noises, (num(choice.params.get("a", -1)), eps))
    heard[place] = (target, noises, told(choice, view, noises))
    return heard[place][2] - before


def told(choice: Any, view: View, noises: Sequence[tuple[Real, Real]]) -> Real:
    """KL of V_1, ..., V_j from their law, at levels of (a, eps): of their mean from a law of V, of the rest from a Gaussian."""
    law, (d, k), copies = choice.lemma, (view.sizes.d, view.sizes.k), 1
    within(choice, {"a": RANGES["T12"]["a"], **LAWS[law]})
    demand(view.kind in ("map", "query", "vector", "gain", "table"), f"no channel is for a {view.kind}")
    if view.kind not in ("map", "query"):
        demand(law == "V1", f"{law} is not for a {view.kind} behind a channel")
        d, k, copies = (1, 1, k) if view.kind == "gain" else (1, k, d)
    n, sharp, lacking = num(d * k), num(0), num(0)
    for a, eps in noises:
        size = num(eps) / view.radius
        square = size**2 / (d + k + 1 + 2 * num(a))
        sharp += 1 / square
        lacking += n / 2 * MP.log(2 * MP.pi * MP.e * square) - n * MP.log(size) - entropy_used(d, k, a)
    return against(law, view, 1 / MP.sqrt(sharp), choice.params) + copies * lacking
