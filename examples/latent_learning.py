"""Learning: the generalization gap of small attention models does not grow with the input size. Needs torch.

    python examples/latent_learning.py [full]

Trials are kept in the store that all commands share (boundcalc-runs.db) and not run again. Some seconds of one core; with
`full`, which trains what the figure `gap-vs-L` shows, a minute or two.
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.cli.learning import default_store
from boundcalc.cli.progress import watched
from boundcalc.lab.latent.experiments.learn import LearnPlan, flatness, gap_points, gap_rows, with_bounds

Values = dict[tuple[int, int], float]
PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""


def main(scale: str = "full", folder: Path | None = None) -> tuple[Values, Values]:
    """X5, and lower ends of the measured gaps, by m and L (masked tokens)."""
    from boundcalc.lab.train.run import run_sweep
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import sweep_from_json

    plan = LearnPlan(kinds=("masked",))
    if scale == "tiny":
        plan = LearnPlan(lengths=(4, 8, 16), samples=(32,), kinds=("masked",), seeds=3, steps=60, n_test=512)
    sweep = sweep_from_json(plan.sweep("masked"))
    with Store(default_store() if folder is None else folder / "runs.db") as opened, watched() as progress:
        run_sweep(sweep, opened, progress=progress)
        wanted = {trial.hash for trial in sweep.trials}
        points = gap_points(record.to_json() for record in opened.records() if record.hash in wanted)
    for found in flatness(points):
        size = "all m" if found.m is None else f"m = {found.m}"
        print(f"{size}: the gap changes by {found.slope} per unit of log L")
    predicted: Values = {}
    measured: Values = {}
    models = {trial.architecture.seq_len - 1: trial.architecture for trial in sweep.trials}
    for row in (with_bounds(row, plan, models[row.length]) for row in gap_rows(points)):
        if row.x5 is not None:
            predicted[row.m, row.length], measured[row.m, row.length] = row.x5, row.gap.low
    return predicted, measured


if __name__ == "__main__":
    predicted, measured = main(sys.argv[1] if len(sys.argv) > 1 else "tiny")
    for (m, length), value in predicted.items():
        print(f"m = {m}, L = {length}: gap at least {measured[m, length]:.3f} measured, X5 {value:.4g}")
