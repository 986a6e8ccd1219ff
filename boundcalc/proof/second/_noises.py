"""G11 in 50 digits: what noise on a map is compared with, and how far it moves a point."""

from collections.abc import Mapping
from typing import Any

from . import _centres as centres
from ._covers import View
from ._numbers import MP, Real, demand, num, within

_RANGES = {"s": (1e-9, 1e9), "r": (1e-12, 1e12)}
LAWS = {"V1": {}, "V2": _RANGES, "V3": _RANGES}


def events(view: View) -> int:
    """Gaussian rows that one example sees; a gain has its coordinates."""
    if view.kind == "summed":
        return 2 * max(1, view.count(1))
    return view.sizes.d * view.sizes.k if view.kind in ("gain", "numbers") else max(1, view.count(1))


def depth(seen: int, eta: Real) -> Real:
    """The t at which so many events have the chance eta together."""
    return MP.sqrt(-2 * MP.log(num(eta) / max(1, seen)))


def spread(view: View, t: Real) -> Real:
    """Exceeded with chance e^(-t^2/2): t for one Gaussian, sqrt(ka) for k, a two Newton steps from its start."""
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


def against(law: str, view: View, sigma: Real, parameters: Mapping[str, Any]) -> Real:
    """The divergence of noise of a size from a law."""
    sizes = view.sizes
    whole = {"vector": 1, "gain": sizes.k, "table": sizes.d}
    d, k = sizes.d, sizes.k
    n = num(d * k)
    if law == "V1":
        square = whole[view.kind] * sizes.op**2 if view.kind in whole else sizes.fro**2
        return n / 2 * MP.log(1 + square / (n * sigma**2))
    demand(law == "V3" or k > 1, "V2 is for several columns")
    mean, side, size = (
        (centres.matrix, max(d, k), sizes.nuclear) if law == "V3" else (centres.columns, d, sizes.two_one)
    )
    entropy = n / 2 * MP.log(2 * MP.pi * MP.e * sigma**2)
    return mean(d, k, size, side * sigma**2, num(parameters["s"]), num(parameters["r"])) - entropy
