"""From the published constants to the best bound, one ingredient at a time.

Run it with `python examples/constants.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The gap before, and after, each step."""
    data = make("constants", folder, quick=scale == "tiny")
    gaps = [10 ** rung["log10"] for rung in data.facts["rungs"]]
    steps = range(1, len(gaps))
    return {float(i): gaps[i - 1] for i in steps}, {float(i): gaps[i] for i in steps}


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"step {place:g}: {value:.4g} to {measured[place]:.4g}")
