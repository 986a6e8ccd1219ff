"""G14 in 50 digits: what levels tell of a map that they see through noise."""

from __future__ import annotations

from collections.abc import Sequence

from boundcalc.proof.certificate import Choice
from boundcalc.proof.second.centres import RANGES, entropy_used
from boundcalc.proof.second.covers import View
from boundcalc.proof.second.noises import PARAMETERS, against
from boundcalc.proof.second.numbers import MP, Real, demand, num, unknown


def told(choice: Choice, view: View, noises: Sequence[tuple[Real, Real]]) -> Real:
    """KL of V_1, ..., V_j from their law, at levels of (a, eps): of their mean from a law of V, of the rest from a Gaussian."""
    law, given = choice.lemma, dict(choice.params)
    if law not in PARAMETERS:
        raise unknown("law of noise", law)
    demand(set(given) == {"a", *PARAMETERS[law]}, f"a channel with {law} takes a and the parameters of {law}")
    for name, value in given.items():
        demand(RANGES[name][0] <= num(value) <= RANGES[name][1], f"a channel with {law}: {name} is out of range")
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
    return against(law, view, 1 / MP.sqrt(sharp), given) + copies * lacking
