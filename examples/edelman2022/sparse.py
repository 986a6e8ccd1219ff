"""What sparse Boolean functions cost as Transformer weights: how norms grow with s and T, and the samples they call
for.

Run it with `python examples/edelman2022/sparse.py` (`--quick` for fewer s and T). The functions are parity, the
farthest from every other, and AND. By symmetry a function of other bits has the same norms, so every m holds for a
class of networks that contains the function of any s of the T bits.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from boundcalc import solve
from boundcalc.lab.represent.construct import DELTA, GAMMA, RISK, Construction, build, construct
from boundcalc.lab.represent.functions import parse
from boundcalc.lab.represent.tune import Reading, Tuner, bit_gains
from boundcalc.lab.represent.units import corner_units

Values = dict[float, float]
QUICK = {"quick": True}
S = 3
FITTED_FROM = 3
"""Fits start at this s: below, small terms still matter."""


def norms(construction: Construction) -> tuple[float, float, float]:
    """|W_QK|_F, |W_V|_op and |W_1|_op of certified weights of margin 1."""
    construction.certify(1.0)
    budgets = construction.network.norms.budgets
    scores, values, units = budgets["W_QK[0]"].fro, budgets["W_V[0]"].op, budgets["W_1[0]"].op
    return float(scores or 0), float(values or 0), float(units or 0)


def by_corners(s: int, seq_len: int) -> Construction:
    """Parity of s bits as any function is represented: one hidden unit per input of the rarer value."""
    function = parse(f"PARITY(0..{s - 1})").tabulated()
    signs, view = 2.0 * np.asarray(function.table) - 1, Reading(s, seq_len, shared=False, by_mean=False)
    tuner = Tuner(view, lambda _, sizes: corner_units(signs, sizes), lambda units, _: bit_gains(units, function.table))
    return build(function, view, None, "corners", tuner.best()).normalised()


def growth(quick: bool = False, seq_len: int = 512) -> dict[str, Values]:
    """The product of the three norms over s: parity as any function, parity as a symmetric one, AND as one."""
    most, sizes = (5, (1, 2, 3, 4, 6)) if quick else (8, (1, 2, 3, 4, 6, 8, 10, 14, 20, 28, 40))

    def over(rule: str, kind: str) -> Values:
        functions = {float(s): parse(f"{rule}(0..{s - 1})") for s in sizes}
        return {s: math.prod(norms(construct(function, seq_len, kind))) for s, function in functions.items()}

    return {
        "any function": {float(s): math.prod(norms(by_corners(s, seq_len))) for s in range(1, most + 1)},
        "symmetric": over("PARITY", "mean"),
        "threshold": over("AND", "mean"),
    }


def fitted(values: Values, *, exponential: bool) -> float:
    """The factor per bit, or the power of s, by least squares of logarithms from FITTED_FROM on."""
    kept = {s: value for s, value in values.items() if s >= FITTED_FROM}
    x = np.array(list(kept))
    slope = float(np.polyfit(x if exponential else np.log(x), np.log(list(kept.values())), 1)[0])
    return math.exp(slope) if exponential else slope


def samples(quick: bool = False) -> dict[float, dict[str, float]]:
    """By T, for AND of three bits: m by the closed log T theorem, the best bound, the finite class, the minimum
    (G8)."""
    lengths = (64, 512) if quick else (128, 512, 4096, 65536)
    sizes: dict[float, dict[str, float]] = {}
    for T in lengths:
        setting = construct(parse(f"AND(0..{S - 1})"), T, "mean").network.setting(GAMMA, delta=DELTA)
        needed = {name: solve(setting, "m", RISK, bound=name, quantity="risk").value for name in ("closed", "best")}
        places = math.comb(T, S)
        sizes[float(T)] = {
            **{name: float(m or math.inf) for name, m in needed.items()},
            "finite class": math.ceil(math.log(places / DELTA) / -math.log1p(-RISK)),
            "floor": math.ceil(math.log2(places) - 1),
        }
    return sizes


def main(quick: bool = False) -> tuple[Values, Values]:
    """The samples that suffice for a learner of the finite class, and the m of the best checked bound, by T."""
    rows = samples(quick)
    return {T: row["finite class"] for T, row in rows.items()}, {T: row["best"] for T, row in rows.items()}


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    print("|W_QK|_F |W_V|_op |W_1|_op at margin 1, T = 512, by s")
    for name, values in growth(quick).items():
        is_any = name == "any function"
        law = f"{fitted(values, exponential=True):.2f}^s" if is_any else f"s^{fitted(values, exponential=False):.2f}"
        print(f"{name:>12}: grows like {law}; " + ", ".join(f"{s:g}: {value:.4g}" for s, value in values.items()))
    keys = {T: norms(by_corners(S, T))[0] for T in (64, 512, 4096, 32768)}
    print("|W_QK|_F of parity of 3 bits: " + ", ".join(f"T = {T}: {value:.2f}" for T, value in keys.items()))
    print(f"\nAND of {S} bits, risk {RISK:g}, delta {DELTA:g}: smallest m")
    for T, row in samples(quick).items():
        print(f"T = {T:>6g}  " + "  ".join(f"{name} {value:.4g}" for name, value in row.items()))
