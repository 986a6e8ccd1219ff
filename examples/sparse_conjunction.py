"""How many examples a Transformer needs to learn a conjunction of 3 among T bits, and how that grows with T. Needs torch.

    python examples/sparse_conjunction.py [full]

Trials are kept in the store that all commands share (boundcalc-runs.db) and not run again. Some seconds of one core; with
`full`, the sweep `conjunction`, five minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.base.numbers import FLOAT
from boundcalc.cli.learning import default_store
from boundcalc.cli.progress import watched
from boundcalc.statements.gap import support_floor

Values = dict[float, float]
PROMISES = "below"
"""What `main` returns first must lie below what it returns second."""
TINY = {
    "name": "conjunction-tiny",
    "task": {"task": "conjunction", "s": 2},
    "model": {"d": 32, "heads": 8, "d_ff": 64},
    "train": {"lr": 4e-3, "steps": 400},
    "n_test": 256,
    "seeds": 4,
    "grid": {"T": [8, 12, 16], "m": [6, 12, 24, 48]},
}


def main(scale: str = "full", folder: Path | None = None) -> tuple[Values, Values]:
    """The examples without which no learner can tell the hidden set (G8), and the upper ends of the measured m*, by T."""
    from boundcalc.lab.train.presets import preset_sweep
    from boundcalc.lab.train.run import run_sweep
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import sweep_from_json
    from boundcalc.lab.train.threshold import analyse, cells

    sweep = sweep_from_json(TINY) if scale == "tiny" else preset_sweep("conjunction")
    with Store(default_store() if folder is None else folder / "runs.db") as opened, watched() as progress:
        run_sweep(sweep, opened, progress=progress)
        found = analyse(cells(opened.select(sweep=sweep.name), 0.95 if scale == "tiny" else 0.99))
    for line in found.words():
        print(line)
    s = int(sweep.data["task"]["s"])
    floors = {float(t.T): float(support_floor(FLOAT, s, t.T)) for t in found.thresholds}
    return floors, {float(t.T): t.high for t in found.thresholds}


if __name__ == "__main__":
    floors, measured = main(sys.argv[1] if len(sys.argv) > 1 else "tiny")
    for T, floor in floors.items():
        print(
            f"T = {T:g}: no learner can do with fewer than {floor:.1f} examples; training needs at most {measured[T]:.1f}"
        )
