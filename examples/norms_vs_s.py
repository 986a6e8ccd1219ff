"""How large the norms are that represent sparse functions, by the number of bits that matter.

Run it with `python examples/norms_vs_s.py` (or with the word `tiny` behind it, for fewer of them).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[tuple[str, float], float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Norms that suffice for a whole class, and those of one certified member, by class and s."""
    data = make("norms-vs-s", folder, quick=scale == "tiny")
    predicted: Values = {}
    measured: Values = {}
    for suffices in data.of(kind="bound"):
        own = next(s for s in data.of(kind="measured") if s.key == suffices.key)
        for s, most, value in zip(suffices.x, suffices.y, own.y, strict=True):
            if most is not None and value is not None:
                predicted[suffices.label, s], measured[suffices.label, s] = most, value
    return predicted, measured


if __name__ == "__main__":
    found, built = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for (name, bits), value in found.items():
        print(
            f"{name:20} s = {bits:2g}: {value:10.4g} suffices, {built[name, bits]:10.4g} in the member that was built"
        )
