"""Does the generalization gap grow with the input size? A sweep to run, and what its records say.

Supervised: the value of one more key from L pairs that share a latent z. Masked: the hidden token of a sequence whose
tokens share a law of their own. In both longer inputs tell more: the Bayes risk falls with L. Models have no positions
(the sequences are exchangeable) and weights projected onto norm balls after every step, so that the bound without T holds
for the whole class they are trained in. The sweep is plain data for `boundcalc sweep`, its records are those of the store:
this module imports no training code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boundcalc.engine.evaluate import evaluate
from boundcalc.lab.latent.experiments.numbers import Numbers
from boundcalc.lab.latent.experiments.statistics import Interval, fit_slope, mean_interval
from boundcalc.lab.latent.learning import learning_bound
from boundcalc.setting import Architecture, Budget, Norms, Sample, Setting, validate

TASKS = {"supervised": "gaussian-linear", "masked": "masked-token"}
_KINDS = ("W_patch", "W_QK", "W_V", "W_1", "readout")


@dataclass(frozen=True)
class LearnPlan:
    """What is trained.

    Attributes:
        lengths: L, tokens that inform (one more row asks).
        samples: m.
        kinds: "supervised", "masked" or both.
        seeds: trials per point.
        d: width of the model.
        heads: attention heads.
        C: radius of the norm balls.
        steps: most optimisation steps.
        n_test: fresh sequences the gap is measured with.
    """

    lengths: tuple[int, ...] = (8, 32, 128, 512)
    samples: tuple[int, ...] = (64, 256)
    kinds: tuple[str, ...] = ("supervised", "masked")
    seeds: int = 10
    d: int = 16
    heads: int = 2
    C: float = 6.0
    steps: int = 600
    n_test: int = 4096

    def __post_init__(self) -> None:
        for kind in self.kinds:
            validate.choice("kind", kind, TASKS)
        for name in ("lengths", "samples"):
            for value in getattr(self, name):
                validate.size(name, value, least=2)
        validate.size("seeds", self.seeds, least=2)
        validate.positive("C", self.C)

    def sweep(self, kind: str) -> dict[str, Any]:
        """The sweep file of one kind of task."""
        supervised = validate.choice("kind", kind, TASKS) == "supervised"
        balls = {name: ["op", self.C] for name in _KINDS if supervised or name != "W_patch"}
        if not supervised:
            balls["embedding"] = ["F", self.C]  # no row of the table is longer than C
        return {
            "name": f"latent-{kind}",
            "about": f"gap against input size, {kind}",
            "task": {"task": TASKS[kind]} if supervised else {"task": TASKS[kind], "alpha": 0.5},
            "model": {
                "style": "edelman",
                "depth": 1,
                "d": self.d,
                "heads": self.heads,
                "positions": "none",
                "d_head": None,
            },
            "train": {"lr": 3e-3, "batch": 32, "steps": self.steps, "stop_loss": 0.0, "balls": balls},
            "n_test": self.n_test,
            "seeds": self.seeds,
            "grid": {"task.L": list(self.lengths), "m": list(self.samples)},
        }


@dataclass(frozen=True)
class GapRow(Numbers):
    """Trials of one kind, L and m.

    Attributes:
        kind: supervised or masked.
        length: L.
        m: training sequences.
        gap: test error minus training error, mean over trials.
        train: training error, mean over trials.
        test: test error, mean over trials.
        trials: how many.
        x5: the bound without T for the class trained in.
        log_t: the closed form of covers that count points, uncapped, which grows like a power of log T.
        bayes: the least risk of anyone who sees L tokens.
    """

    kind: str
    length: int
    m: int
    gap: Interval
    train: float
    test: float
    trials: int
    x5: float | None = None
    log_t: float | None = None
    bayes: float | None = None


@dataclass(frozen=True)
class Flatness(Numbers):
    """Slope of the gap against log L at matched m.

    Attributes:
        kind: supervised or masked.
        m: training sequences; None for all sizes together, each with a level of its own.
        slope: per unit of log L, with its 95% interval.
    """

    kind: str
    m: int | None
    slope: Interval

    @property
    def rises(self) -> bool:
        """Whether the gap grows with the input, beyond chance."""
        return self.slope.low > 0

    def to_json(self) -> dict[str, Any]:
        """The numbers and the verdict."""
        return {**super().to_json(), "rises": self.rises}


def gap_points(records: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[int, int, Mapping[str, Any]]]]:
    """(L, m, result) by kind, of finished trials of the two tasks."""
    kinds = {task: kind for kind, task in TASKS.items()}
    found: dict[str, list[tuple[int, int, Mapping[str, Any]]]] = {}
    for record in records:
        task = record["config"]["task"]
        if record["result"]["status"] == "done" and task["task"] in kinds:
            point = int(task.get("L", 32)), int(record["config"]["m"]), record["result"]
            found.setdefault(kinds[task["task"]], []).append(point)
    return found


def gap_rows(points: Mapping[str, list[tuple[int, int, Mapping[str, Any]]]]) -> list[GapRow]:
    """Means over trials."""
    rows: list[GapRow] = []
    for kind, all_points in points.items():
        for length, m in sorted({(length, m) for length, m, _ in all_points}, key=lambda pair: (pair[1], pair[0])):
            results = [result for a, b, result in all_points if (a, b) == (length, m)]
            if len(results) < 2:
                continue
            train = float(np.mean([result["train"]["error"] for result in results]))
            test = float(np.mean([result["test"]["error"] for result in results]))
            gap = mean_interval([result["gap"] for result in results])
            rows.append(GapRow(kind, length, m, gap, train, test, len(results)))
    return rows


def flatness(points: Mapping[str, list[tuple[int, int, Mapping[str, Any]]]]) -> list[Flatness]:
    """Slopes of the gap against log L: for every m, and for all together with a level of its own for each m."""
    found: list[Flatness] = []
    for kind, all_points in points.items():
        sizes = sorted({m for _, m, _ in all_points})
        xs: list[float] = []
        ys: list[float] = []
        for m in sizes:
            x = np.array([math.log(length) for length, b, _ in all_points if b == m])
            y = np.array([float(result["gap"]) for _, b, result in all_points if b == m])
            if len(set(x.tolist())) < 2 or len(x) < 3:
                continue
            found.append(Flatness(kind, m, fit_slope(x, y)))
            xs += (x - x.mean()).tolist()
            ys += (y - y.mean()).tolist()
        if len(sizes) > 1 and xs:
            found.append(Flatness(kind, None, fit_slope(xs, ys)))
    return found


_ROW_RADIUS = 6.0
"""Rows of the supervised task are normal, so only nearly all of them are this short: its bounds are proxies."""


def with_bounds(row: GapRow, plan: LearnPlan, architecture: Architecture, delta: float = 0.05) -> GapRow:
    """The row with both bounds, without T and with log T, of the class its models were trained in."""
    rows = bool(architecture.d_patch)
    budgets = {name: Budget(op=plan.C) for name in _KINDS if rows or name != "W_patch"}
    if not rows:
        budgets["embedding"] = Budget(row=plan.C)
    loss: dict[str, Any] = {"lipschitz": 2.0} if rows else {"margin": 1.0}
    setting = Setting(
        replace(architecture, input_radius=_ROW_RADIUS) if rows else architecture,
        Norms(budgets=budgets),
        # squared error cut at 1 is 2-Lipschitz; for tokens the ramp of margin 1
        Sample(n_train=row.m, delta=delta, **loss),
    )
    log_t = 10 ** evaluate(setting, "closed").log10  # uncapped: the others stop growing where they say nothing
    return replace(row, x5=learning_bound(setting).value, log_t=log_t)
