"""Norms of trained weights over T, within the budgets of the class that holds every trained model.

Run it with `python examples/norms.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot import measured as runs
from boundcalc.lab.plot.gallery import make, sweep_name
from boundcalc.lab.plot.spec import Spec
from boundcalc.setting import Setting

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Spectral budgets of W_QK for the class of all trials, and the norm below which 90% of trials lie, by T."""
    data = make("norms", folder, quick=scale == "tiny")
    name = sweep_name("conjunction", quick=scale == "tiny")
    records = runs.read(Spec("norms", store=str(folder / "runs.db"), runs={"sweep": name}), vary=("T", "m"))
    asked = Spec("gap-vs-m", store=str(folder / "runs.db"), norms="runs")
    budget = runs.setting_of(records, asked, Setting.of()).norms.find("W_QK").op or 0.0
    seen = next(s for s in data.of(panel="op") if s.key == "first")
    most = {at: value for at, value in zip(seen.x, seen.high, strict=True) if value is not None}
    return dict.fromkeys(most, budget), most


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"T = {place:g}: {measured[place]:.3g}, within {value:.3g}")
