"""From how many samples on models as they come out of training have a risk of at most 0.1, by their own norms.

Needs torch.

    python examples/as_trained.py [tiny]

Models of width 64 learn a conjunction of 3 among 128 bits, as the figure `overlay` has them, from 512 examples each.
Norms and margins are read off afterwards, so the bound is corrected for both (P1): norms go up to their grid, the least
margin of a training example down to a power of 2. The m is that of examples with such norms and margins. A quarter of a
minute.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace
from pathlib import Path

PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""
RISK = 0.1
Needs = dict[int, float]


def needs(scale: str) -> tuple[Needs, Needs]:
    """By seed: the smallest m with a risk of at most 0.1 at a trained model's norms and margin, and the m it was
    trained on."""
    from boundcalc.engine.solve import solve
    from boundcalc.lab.train.bounds import setting_of
    from boundcalc.lab.train.sweep import PRESETS, sweep_from_json
    from boundcalc.lab.train.trainer import train

    T, m, seeds = (16, 96, 2) if scale == "tiny" else (128, 512, 40)
    plan = sweep_from_json({**PRESETS["conjunction"], "grid": {"T": T, "m": m}, "seeds": seeds})
    promised: Needs = {}
    for record in train(list(plan.trials)):
        least = min(record.result["train"]["margins"].values())
        if least <= 0:  # it errs on a training example
            continue
        trained = setting_of(record.trial, record.result)
        own = replace(trained.sample, margin=least, train_error=0.0, measured=("margin",))
        solution = solve(replace(trained, sample=own), "m", RISK, quantity="risk", digits=3, alone=True)
        promised[record.trial.seed] = solution.value
    return promised, dict.fromkeys(promised, float(m))


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Needs, Needs]:
    """Samples that the bound asks for, and samples used, by seed."""
    del folder  # nothing is written
    return needs(scale)


if __name__ == "__main__":
    promised, used = main(sys.argv[1] if len(sys.argv) > 1 else "full")
    values = sorted(promised.values())
    print(f"{len(values)} models, trained on {next(iter(used.values())):.0f} examples each, err on none of them")
    print(f"risk <= {RISK:g} from m = {values[0]:.3g} to {values[-1]:.3g}, median {statistics.median(values):.3g}")
