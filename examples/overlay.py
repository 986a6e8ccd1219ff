"""Risks that certificates of one predictor promise, against the errors of what they certify.

Run it with `python examples/overlay.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The least certified risk of a method, and the largest error of what it certified, by m (of p2l)."""
    data = make("overlay", folder, quick=scale == "tiny")
    (held,) = [each for each in data.facts["certificates"] if each["method"] == "p2l"]
    places = [float(m) for m in held["m"]]
    least = {m: min(risks) for m, risks in zip(places, held["risks"], strict=True)}
    largest = {m: max(tests, default=0.0) for m, tests in zip(places, held["test_errors"], strict=True)}
    return least, largest


if __name__ == "__main__":
    certified, tested = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in certified.items():
        print(
            f"m = {place:g}: risk at most {value:.4g} certified by p2l, error at most {tested[place]:.4g} on fresh examples"
        )
