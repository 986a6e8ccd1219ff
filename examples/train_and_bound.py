"""A Transformer trained inside norm balls, so that its class is fixed before the data, and what is then certain.

Needs torch.

    python examples/train_and_bound.py [tiny]

One attention block in the style of Edelman et al. (2022) learns a conjunction of 3 among 32 bits from 200,000 examples;
after each step every matrix is projected on its ball of radius C. The bounds for that class need no correction for
having looked at the weights, and the best is not vacuous. Half a minute of one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc import BoundValue, Norms, Setting, compare

Values = dict[str, float]
PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""
C, DELTA, GAMMA = 4.0, 0.05, 0.5
INSIDE = C * (1 - 1e-5)
"""Balls are a hair smaller than the class: projections round."""


def train_and_bound(scale: str) -> tuple[dict[str, float], list[BoundValue]]:
    """What training gave, and the bounds for the class it stayed in."""
    from boundcalc.lab.train.bounds import setting_of
    from boundcalc.lab.train.tasks import BooleanTask
    from boundcalc.lab.train.trainer import train
    from boundcalc.lab.train.trial import NormBall, Optimisation, Trial, model_for

    T, d, m, steps = (8, 8, 2000, 100) if scale == "tiny" else (32, 16, 200_000, 4000)
    task = BooleanTask(T=T, s=3)
    model = model_for(task, style="edelman", d=d, heads=1, activation="relu", positions="fixed", position_radius=1.0)
    balls: dict[str, NormBall] = {kind: ("21", INSIDE) for kind in ("W_QK", "W_V", "W_1")}
    balls |= {kind: ("F", INSIDE) for kind in ("readout", "embedding")}
    rule = Optimisation(lr=3e-3, batch=64, steps=steps, stop_loss=0.0, balls=balls)
    trial = Trial(task, model, m, n_test=8192, optimisation=rule)
    result = train([trial])[0].result
    sample = setting_of(trial, result, margin=GAMMA, delta=DELTA).sample
    measured = {
        "training error": result["train"]["error"],
        "share of training margins at most gamma": sample.train_error,
        "test error": result["test"]["error"],
        "test error at most": result["test"]["interval"][1],
    }
    return measured, compare(Setting(model, Norms(C=C), sample))


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Every bound of the gap for the class, and the upper end of the measured gap, by policy."""
    del folder  # nothing is written
    measured, bounds = train_and_bound(scale)
    gap = measured["test error at most"] - measured["training error"]
    computed = [bound for bound in bounds if bound.refusal is None]
    return {bound.name: bound.gap for bound in computed}, {bound.name: gap for bound in computed}


if __name__ == "__main__":
    measured, bounds = train_and_bound(sys.argv[1] if len(sys.argv) > 1 else "full")
    for name, value in measured.items():
        print(f"{name:<42}{value:.4f}")
    for bound in bounds:
        says = (
            "does not apply"
            if bound.refusal is not None
            else "trivial"
            if bound.trivial
            else "vacuous"
            if bound.vacuous
            else f"gap <= {bound.gap:.4f}, risk <= {bound.risk:.4f}"
        )
        print(f"{bound.name:<42}{says}")
