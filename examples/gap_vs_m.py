"""The gap of trained Transformers against the number of samples, below what is proved for their norms.

Run it with `python examples/gap_vs_m.py` (or with the word `tiny` behind it, for a minute's version).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.plot import gallery, render
from boundcalc.lab.plot.spec import Spec

Values = dict[float, float]
PROMISES = "above"
"""What `main` returns first must lie above, or below, what it returns second."""


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Bounds at the trained norms (P1 paid), and lower ends of the measured gaps, by m."""
    quick = scale == "tiny"
    gallery.make("overlay", folder, quick=quick)  # trains what the store does not have
    runs = {"sweep": gallery.sweep_name("overlay", quick=quick)}
    values = (1e3, 1e7) if quick else ()
    data = render.collect(Spec("gap-vs-m", store=str(folder / "runs.db"), runs=runs, norms="runs", values=values))
    (paid,) = data.of(kind="a_posteriori", quantity="gap")
    (seen,) = data.of(kind="measured", quantity="gap")
    return paid.known(), seen.known("low")


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for place, value in predicted.items():
        print(f"m = {place:g}: gap at most {value:.4g} at the trained norms, at least {measured[place]:.4g} measured")
