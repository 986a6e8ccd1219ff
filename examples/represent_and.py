"""An AND of three bits as explicit weights: what is certified of all 2^T inputs, and the least score among them.

Run it with `python examples/represent_and.py` (or with the word `tiny` behind it, for shorter sequences). Weakened by a
fifth, the attention no longer keeps the margin: the certificate says so, and there are inputs that show it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.represent.exhaust import exhaust
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.represent import represent

Values = dict[float, float]
PROMISES = "below"
"""What `main` returns first must lie above, or below, what it returns second."""
EXPRESSION = "AND(1, 5, 9)"


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The certified margin and the least score of all inputs, by T; those of the weakened attention at -T."""
    del folder  # nothing is written
    lengths = (10, 12) if scale == "tiny" else (12, 16, 20)
    certified: Values = {}
    met: Values = {}
    for T in lengths:
        # bits in one coordinate, so that the bits which do not matter leak in and attention must be sharp
        construction = represent(parse(EXPRESSION), T, kind="mean").construction
        for key, network in ((float(T), construction), (-float(T), construction.with_beta(0.8))):
            certified[key] = network.certify().margin - 1e-9  # scores are computed in floats
            met[key] = exhaust(network.network, network.function).score
    return certified, met


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        which = "as constructed" if place > 0 else "beta lowered by a fifth"
        print(f"T = {abs(place):g}, {which}: certified {value:.6f}, smallest over all inputs {measured[place]:.6f}")
