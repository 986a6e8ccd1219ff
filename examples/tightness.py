"""How many times the best bound exceeds the gap that was measured.

Run it with `python examples/tightness.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Uncapped bound over the upper end of the measured gap, and 1, by m."""
    data = make("tightness", folder, quick=scale == "tiny")
    best = next(s for s in data.of(panel="ratio", kind="a_posteriori"))
    ratios = {at: low for at, low in zip(best.x, best.low, strict=True) if low is not None}
    return ratios, dict.fromkeys(ratios, 1.0)


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"m = {place:g}: at least {value:.4g} times {measured[place]:g}")
