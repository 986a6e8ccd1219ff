"""How much attention trained Transformers pay to the coordinates that matter.

Run it with `python examples/attention.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = ""
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Even attention, and the median share of the best head, by T; nothing is promised."""
    data = make("attention", folder, quick=scale == "tiny")
    even = next(s for s in data.series if s.kind == "reference")
    best = next(s for s in data.of(panel="axis") if s.key == "second")
    return even.known(), best.known()


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"T = {place:g}: {measured[place]:.0%} by the best head, {value:.1%} if attention were even")
