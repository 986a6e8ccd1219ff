"""Attention against the conditional mean over growing inputs, below X3, X3k and X4.

Run it with `python examples/attention_error.py` (or with the word `tiny` behind it, for short inputs).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[tuple[str, float], float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Bounds, and the 95% quantiles of the errors, by estimator and L."""
    data = make("attention-error", folder, quick=scale == "tiny")
    predicted: Values = {}
    measured: Values = {}
    for bound in data.of(kind="bound"):
        seen = next(s for s in data.of(kind="measured") if s.key == bound.key)
        for length, most, value in zip(bound.x, bound.y, seen.y, strict=True):
            if most is not None and value is not None:
                predicted[bound.label, length], measured[bound.label, length] = most, value
    return predicted, measured


if __name__ == "__main__":
    found, seen = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for (name, length), value in found.items():
        print(f"{name:18} L = {length:5g}: at most {value:.4g}, 95% of errors below {seen[name, length]:.4g}")
