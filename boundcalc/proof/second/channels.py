"""G14 in 50 digits: what levels tell of maps that they see through noise."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .centres import RANGES, entropy_used
from .covers import View
from .noises import LAWS, against
from .numbers import MP, Real, demand, num, unknown, within


class Said(NamedTuple):
    """Which way a map is seen, (a, eps) of every level so far, and what they tell of it."""

    target: int
    noises: tuple[tuple[Real, Real], ...]
    told: Real


def more(heard: dict[tuple[str, int], Said], place: tuple[str, int], choice: Any, log_eps: float, view: View) -> Real:
    """What one map says beyond what it has said, which is kept."""
    said = heard.get(place, Said(choice.target, (), num(0)))
    demand(said.target == choice.target, f"{place[0]}: channels see it in two ways")
    eps = MP.exp(num(log_eps))
    if any(finer <= eps for _, finer in said.noises):
        return num(0)
    noises = (*said.noises, (num(choice.params.get("a", -1)), eps))
    heard[place] = Said(choice.target, noises, told(choice, view, noises))
    return heard[place].told - said.told


def told(choice: Any, view: View, noises: Sequence[tuple[Real, Real]]) -> Real:
    """KL of V_1, ..., V_j from their law, at levels of (a, eps): of their mean from a law of V, of the rest from a Gaussian."""
    law = choice.lemma
    if law not in LAWS:
        raise unknown("law of noise", law)
    within(choice, {"a": RANGES["T12"]["a"], **LAWS[law]})
    demand(view.kind in ("map", "query", "vector", "gain", "table"), f"no channel is for a {view.kind}")
    matrix = view.kind in ("map", "query")
    demand(matrix or law == "V1", f"{law} is not for a {view.kind} behind a channel")
    d, k, copies = view.sizes.d, view.sizes.k, 1
    if not matrix:
        d, k, copies = (1, 1, k) if view.kind == "gain" else (1, k, d)
    n = num(d * k)
    sharp, lacking = num(0), num(0)
    for a, eps in noises:
        size = num(eps) / view.radius
        square = size**2 / (d + k + 1 + 2 * num(a))
        sharp += 1 / square
        lacking += n / 2 * MP.log(2 * MP.pi * MP.e * square) - n * MP.log(size) - entropy_used(d, k, a)
    return against(law, view, 1 / MP.sqrt(sharp), choice.params) + copies * lacking
