"""Every theorem at one setting: its bound, how it reacts to each input, and where it leaves the paper.

Run it with `python examples/compare_theorems.py`.
"""

from __future__ import annotations

from boundcalc.theorems import THEOREMS

POINT = {"C": 1.0, "K": 4.0, "T": 512, "m": 10**10, "depth": 2, "d": 64, "heads": 1, "gamma": 1.0, "delta": 0.05}


def main() -> dict[str, tuple[float, dict[str, float]]]:
    """(gap, elasticities) by theorem."""
    gaps: dict[str, tuple[float, dict[str, float]]] = {}
    for name, theorem in THEOREMS.items():
        if "gap" in theorem.quantities:
            values = {symbol.name: POINT[symbol.name] for symbol in theorem.gap.inputs}
            gaps[name] = theorem.gap.value(**values), theorem.gap.exponents(**values)
    return gaps


if __name__ == "__main__":
    for name, (gap, exponents) in main().items():
        reacts = ", ".join(f"{x} {e:+.2f}" for x, e in exponents.items() if abs(e) > 0.005)
        print(f"{name:16} gap <= {gap:.3g}   d log gap / d log x: {reacts}")
