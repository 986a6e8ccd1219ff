"""The gap of small attention models on masked tokens against the input size, below X5, which does not know it.

Run it with `python examples/gap_vs_L.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """X5 (at most 1, as any gap), and the lower ends of the measured gaps at the least m, by L."""
    data = make("gap-vs-L", folder, quick=scale == "tiny")
    bound = next(s for s in data.of(kind="bound") if s.key == "zhang2022")
    seen = data.of(kind="measured")[0]
    predicted = {length: most for length, most in zip(bound.x, bound.y, strict=True) if most is not None}
    return predicted, {length: low for length, low in zip(seen.x, seen.low, strict=True) if low is not None}


if __name__ == "__main__":
    found, seen = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for length, value in found.items():
        print(f"L = {length:g}: gap at most {value:.4g}, at least {seen[length]:.4g} measured")
