"""How many samples a conjunction needs: promised by the best bound, and measured.

Run it with `python examples/sample_complexity.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The m that the best bound asks for, and the upper end of the measured m*, by T."""
    data = make("sample-complexity", folder, quick=scale == "tiny")
    best = next(s for s in data.of(kind="bound") if s.key == "best")
    (seen,) = data.of(kind="measured")
    return best.known(), seen.known("high")


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"T = {place:g}: m = {value:g} is enough by the best bound, training needs at most {measured[place]:.4g}")
