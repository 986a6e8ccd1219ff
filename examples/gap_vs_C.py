"""The gap bound against the norms allowed: the published constants, and the least bound that is proved here.

Run it with `python examples/gap_vs_C.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The bound with published constants, and the best one (in place of a measurement), by C."""
    data = make("gap-vs-C", folder, quick=scale == "tiny")
    by_key = {s.key: s for s in data.of(kind="bound")}
    return by_key["published"].known(), by_key["best"].known()


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"C = {place:g}: published {value:.4g}, best {measured[place]:.4g}")
