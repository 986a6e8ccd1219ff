"""The phase transition of parity, and the labels without which no learner can find the coordinates.

Run it with `python examples/parity.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.base.numbers import FLOAT
from boundcalc.lab.plot.gallery import make
from boundcalc.statements.gap import support_floor

Values = dict[float, float]
PROMISES = "below"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The counting floor (G8), and the labels seen when a seed first was 99% right, by seed."""
    data = make("parity", folder, quick=scale == "tiny")
    floor = float(support_floor(FLOAT, data.facts["task"]["s"], data.facts["task"]["T"][0]))
    batch = 64 if scale == "tiny" else 256
    used = {float(seed): float(step * batch) for seed, step in enumerate(data.facts["learned"]) if step is not None}
    return dict.fromkeys(used, floor), used


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(
            f"seed {place:g}: {measured[place]:g} labels until 99% are right; none can do with fewer than {value:.3g}"
        )
