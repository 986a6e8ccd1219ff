"""A Transformer trained inside norm balls, so that its class is fixed before the data, and what is then certain.

Needs torch.

    python examples/train_and_bound.py [--quick]

One attention block in the style of Edelman et al. (2022) learns a conjunction of 3 among 32 bits from 200,000 examples;
after each step every matrix is projected on its ball of radius C. The bounds for that class need no correction for
having looked at the weights, and the best is not vacuous. Half a minute of one core.
"""

from __future__ import annotations

from example_script import Values, run

from boundcalc import Norms, Setting, compare
from boundcalc.lab.train.bounds import setting_of
from boundcalc.lab.train.tasks import BooleanTask
from boundcalc.lab.train.trainer import train
from boundcalc.lab.train.trial import NormBall, Optimisation, Trial, model_for

QUICK = {"quick": True}
C, DELTA, GAMMA = 4.0, 0.05, 0.5
INSIDE = C * (1 - 1e-5)
"""Balls are a hair smaller than the class: projections round."""


def main(quick: bool = False) -> tuple[Values, Values]:
    """Every bound of the gap for the class that training stayed in, and the upper end of the measured gap, by name."""
    T, d, m, steps = (8, 8, 2000, 100) if quick else (32, 16, 200_000, 4000)
    task = BooleanTask(T=T, s=3)
    model = model_for(task, style="edelman", d=d, heads=1, activation="relu", positions="fixed", position_radius=1.0)
    balls: dict[str, NormBall] = {kind: ("21", INSIDE) for kind in ("W_QK", "W_V", "W_1")}
    balls |= {kind: ("F", INSIDE) for kind in ("readout", "embedding")}
    rule = Optimisation(lr=3e-3, batch=64, steps=steps, stop_loss=0.0, balls=balls)
    trial = Trial(task, model, m, n_test=8192, optimisation=rule)
    result = train([trial])[0].result
    sample = setting_of(trial, result, margin=GAMMA, delta=DELTA).sample
    error, most = result["train"]["error"], result["test"]["interval"][1]
    print(f"training error {error:.4f}, test error at most {most:.4f}")
    print(f"share of training margins at most gamma: {sample.train_error:.4f}")
    bounds = {bound.name: bound.gap for bound in compare(Setting(model, Norms(C=C), sample)) if bound.refusal is None}
    return bounds, {name: most - error for name in bounds}


if __name__ == "__main__":
    run(main, words=("gap at most", "measured at most"))
