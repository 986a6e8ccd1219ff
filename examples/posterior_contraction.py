"""Posteriors of a latent variable narrow as the input grows, and say truly how far off their means are.

Run it with `python examples/posterior_contraction.py` (or with the word `tiny` behind it, for short inputs).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot.gallery import make

Values = dict[tuple[str, float], float]
PROMISES = ""
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The posterior's deviation, and the error its mean makes, by model and L: they agree, neither bounds the other."""
    data = make("posterior-contraction", folder, quick=scale == "tiny")
    predicted: Values = {}
    measured: Values = {}
    for own in data.of(panel="L", kind="reference"):
        seen = next(s for s in data.of(panel="L", kind="measured") if s.key == own.key)
        for length, deviation, error in zip(own.x, own.y, seen.y, strict=True):
            if deviation is not None and error is not None:
                predicted[own.label, length], measured[own.label, length] = deviation, error
    return predicted, measured


if __name__ == "__main__":
    found, seen = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for (name, length), value in found.items():
        print(f"{name:36} L = {length:5g}: {value:.4f}, error measured {seen[name, length]:.4f}")
