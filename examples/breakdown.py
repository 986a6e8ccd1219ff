"""Where a bound's entropy goes, and that its parts make the whole.

Run it with `python examples/breakdown.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc import Setting, evaluate
from boundcalc.lab.plot.gallery import make

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The checked gap bound, and what its parts add up to, by depth."""
    data = make("breakdown", folder, quick=scale == "tiny")
    setting = Setting.from_json(data.facts["setting"])
    checked = {float(row["depth"]): float(row["gap"]) for row in data.facts["values"]}
    parts = {at: float(evaluate(setting.but(depth=round(at))).breakdown.value) for at in checked}
    return checked, {at: value * (1 - 1e-9) for at, value in parts.items()}  # floats round both ways


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"depth {place:g}: {value:.6g}, its parts make {measured[place]:.6g}")
