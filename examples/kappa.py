"""Downstream errors against the condition number of the pretext tasks, below X6.

Run it with `python examples/kappa.py` (or with the word `tiny` behind it, for fewer runs).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[tuple[str, float], float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """X6, and mean downstream errors, by head and kappa."""
    data = make("kappa", folder, quick=scale == "tiny")
    predicted: Values = {}
    measured: Values = {}
    for bound in data.of(kind="bound"):
        seen = next(s for s in data.of(kind="measured") if s.key == bound.key)
        for kappa, most, value in zip(bound.x, bound.y, seen.y, strict=True):
            if most is not None and value is not None:
                predicted[bound.label, kappa], measured[bound.label, kappa] = most, value
    return predicted, measured


if __name__ == "__main__":
    found, seen = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for (head, kappa), value in found.items():
        print(f"{head:14} kappa = {kappa:7.2f}: error at most {value:.4g}, measured {seen[head, kappa]:.4g}")
