"""The gap of trained Transformers against depth, below what is proved for their norms.

Run it with `python examples/gap_vs_depth.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Bounds at the trained norms (P1 paid), and lower ends of the measured gaps, by depth."""
    data = make("gap-vs-depth-measured", folder, quick=scale == "tiny")
    (paid,) = data.of(kind="a_posteriori", quantity="gap")
    (seen,) = data.of(kind="measured", quantity="gap")
    return paid.known(), seen.known("low")


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"depth = {place:g}: gap at most {value:.4g} (trained norms), measured at least {measured[place]:.4g}")
