"""The transition of parity: for long nothing is learned, then everything within a few steps. Needs torch.

    python examples/sparse_parity.py [tiny]

Trials are kept in the store that all commands share (boundcalc-runs.db) and not run again; a quarter of a minute of one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.cli.learning import default_store
from boundcalc.cli.progress import watched

Values = dict[float, float]
PROMISES = "below"
"""What `main` returns first must lie below what it returns second."""
TINY = {
    "name": "parity-tiny",
    "task": {"task": "parity", "T": 8, "s": 2},
    "model": {"d": 32, "heads": 8, "d_ff": 64},
    "init": {"embedding_std": 4.0, "position_std": 2.0},
    "m": 0,
    "train": {"lr": 3e-3, "warmup": 20, "batch": 64, "steps": 600, "stop_test_error": 0.005, "curve_every": 10},
    "n_test": 256,
    "seeds": 3,
}


def main(scale: str = "full", folder: Path | None = None) -> tuple[Values, Values]:
    """The last step at which a seed was not yet 75% right, and the first at which it was 99% right, by seed."""
    from boundcalc.lab.train.presets import preset_sweep
    from boundcalc.lab.train.run import run_sweep
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import sweep_from_json

    sweep = sweep_from_json(TINY) if scale == "tiny" else preset_sweep("parity")
    before: Values = {}
    after: Values = {}
    with Store(default_store() if folder is None else folder / "runs.db") as opened, watched() as progress:
        run_sweep(sweep, opened, progress=progress)
        for record in opened.select(sweep=sweep.name):
            curve = [(point["step"], point["test_error"]) for point in record.result["curves"]]
            learned = [step for step, error in curve if error <= 0.01]
            if learned:
                seed = float(record.config["seed"])
                before[seed] = max(step for step, error in curve if error > 0.25 and step < learned[0])
                after[seed] = float(learned[0])
    return before, after


if __name__ == "__main__":
    before, after = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    for seed, step in after.items():
        print(f"seed {seed:g}: below 75% at step {before[seed]:g}, 99% at step {step:g}")
