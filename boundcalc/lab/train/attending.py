"""Where trained attention looks, over tasks: on the positions that matter, or at nearly all alike.

Networks of one kind are trained on tasks of which few positions matter (a conjunction, a majority, a formula of two parts, a
parity) and of which all do (a majority of all bits, masked tokens). Of the row that is read, every head's weights over fresh
sequences are put in a histogram by size, each weight counting as much as it is, and each head as much as it adds to the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from boundcalc.lab.latent.experiments.numbers import Numbers
from boundcalc.lab.train.layers import weights_of_read
from boundcalc.lab.train.measure import head_sizes
from boundcalc.lab.train.model import rows_before
from boundcalc.lab.train.parameters import Init, read_row
from boundcalc.lab.train.source import NumpySource
from boundcalc.lab.train.stack import with_read_row
from boundcalc.lab.train.tasks import Task, task_from_json
from boundcalc.lab.train.trainer import Outcome, train
from boundcalc.lab.train.trial import Optimisation, Trial, model_for
from boundcalc.setting import validate
from boundcalc.setting.attention import attentions

_Array = NDArray[np.float64]
EDGES = tuple(2.0**i for i in range(-6, 6))
"""Sizes of a weight as multiples of the even one, 1/rows; what is beyond counts in the bins at the ends."""
_FRESH = 256


@dataclass(frozen=True)
class Case:
    """A task and how it is trained.

    Attributes:
        name: for a reader.
        task: as JSON.
        all_matter: whether every position but the one read matters.
        rule: of training, on fresh sequences at every step.
        init: of the tables.
    """

    name: str
    task: Mapping[str, Any]
    all_matter: bool = False
    rule: Mapping[str, Any] = field(default_factory=dict[str, Any])
    init: Init = field(default_factory=Init)


_PARITY = {"lr": 3e-3, "warmup": 50, "batch": 256, "steps": 1500}
CASES = (
    Case("conjunction of 3 of 32", {"task": "conjunction", "T": 32, "s": 3}),
    Case("majority of 5 of 32", {"task": "majority", "T": 32, "s": 5}),
    Case("two pairs, ab or cd, of 32", {"task": "boolean", "T": 32, "function": "x0 & x1 | x2 & x3"}),
    Case(
        "parity of 3 of 20",
        {"task": "parity", "T": 20, "s": 3},
        rule=_PARITY,
        init=Init(embedding_std=4.0, position_std=2.0),
    ),
    Case("majority of all 15", {"task": "majority", "T": 15, "s": 15, "law": "natural"}, all_matter=True),
    Case("masked token, 32 shown", {"task": "masked-token", "L": 32, "V": 6}, all_matter=True),
)
_RULE: Mapping[str, Any] = {"lr": 4e-3, "warmup": 50, "batch": 64, "steps": 800}
_STOP = 0.005


@dataclass(frozen=True)
class AttendingPlan:
    """What is run.

    Attributes:
        seeds: networks per task.
        steps: most steps of training; unset, each task's own.
        d: width.
        heads: of attention.
    """

    seeds: int = 3
    steps: int | None = None
    d: int = 32
    heads: int = 4

    def __post_init__(self) -> None:
        for name in ("seeds", "d", "heads"):
            validate.size(name, getattr(self, name))
        if self.steps is not None:
            validate.size("steps", self.steps)

    def trials(self, case: Case) -> list[Trial]:
        """One per seed."""
        task = task_from_json(case.task)
        values = {**_RULE, **case.rule, **({} if self.steps is None else {"steps": self.steps})}
        stop = _STOP if task.shape.inputs == "bits" else None
        rule = Optimisation(**values, stop_loss=0.0, stop_test_error=stop, curve_every=25)
        positions = {"positions": "learned" if task.shape.inputs == "bits" else "none"}
        model = model_for(task, d=self.d, heads=self.heads, d_ff=2 * self.d, **positions)
        return [
            Trial(task, model, m=0, seed=seed, n_test=1024, init=case.init, optimisation=rule)
            for seed in range(self.seeds)
        ]


@dataclass(frozen=True)
class Row(Numbers):
    """Networks of one task.

    Attributes:
        name: of the task.
        positions: rows that attention may see, the one read included.
        matter: how many of them matter.
        on_them: share of the attention on those that matter, heads as much as they add; median over networks.
        even: the share if attention were even.
        looks_at: positions looked at (exp of the entropy of a head's weights), heads likewise; median over networks.
        mass: share of all attention by size of weight, on positions that matter.
        rest: the same on the others.
        error: of the test, median over networks.
    """

    name: str
    positions: int
    matter: int
    on_them: float
    even: float
    looks_at: float
    mass: tuple[float, ...]
    rest: tuple[float, ...]
    error: float


def attending(plan: AttendingPlan, cases: tuple[Case, ...] = CASES) -> list[Row]:
    """Trains and looks."""
    return [_row(plan, case) for case in cases]


def _row(plan: AttendingPlan, case: Case) -> Row:
    outcomes = train(plan.trials(case))
    looks = [looked(outcome, case.all_matter) for outcome in outcomes]
    rows = outcomes[0].trial.task.shape.rows
    matter = len(looks[0].places)
    histograms = [histogram(one) for one in looks]
    return Row(
        case.name,
        rows,
        matter,
        float(np.median([one.share for one in looks])),
        matter / rows,
        float(np.median([one.looks_at for one in looks])),
        tuple(np.mean([mass for mass, _ in histograms], axis=0).tolist()),
        tuple(np.mean([rest for _, rest in histograms], axis=0).tolist()),
        float(np.median([outcome.result["test"]["error"] for outcome in outcomes])),
    )


@dataclass(frozen=True, eq=False)
class Looked:
    """Attention weights of one network's read row.

    Attributes:
        weights: (sequences, heads, rows).
        sizes: of what each head adds to the row; they sum to 1.
        places: rows that matter.
    """

    weights: _Array
    sizes: _Array
    places: tuple[int, ...]

    @property
    def share(self) -> float:
        """Attention on the rows that matter."""
        return float(self.sizes @ self.weights[..., list(self.places)].sum(-1).mean(0))

    @property
    def looks_at(self) -> float:
        """Effective number of positions: exp of the entropy of a head's weights."""
        shares = self.weights / np.maximum(self.weights.sum(-1, keepdims=True), 1e-300)
        entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum(-1)
        return float(self.sizes @ np.exp(entropy).mean(0))


@torch.no_grad()
def looked(outcome: Outcome, all_matter: bool = False) -> Looked:
    """The first block's attention over fresh sequences."""
    trial = outcome.trial
    tokens, places = _fresh(trial.task, outcome.result["world"] or {}, trial.seed)
    layer = next(attentions(trial.architecture.stages))
    _, x = rows_before(trial.architecture, outcome.weights, tokens, layer.block or 0)
    mix = weights_of_read(layer, outcome.weights, x, read_row(trial.architecture))
    sizes = head_sizes(trial.architecture, outcome.weights, layer.block, mix, x).double().numpy()
    matter = tuple(range(1, trial.task.shape.rows)) if all_matter else places
    return Looked(mix.double().numpy(), sizes / max(sizes.sum(), 1e-300), matter)


def _fresh(task: Task, world: Mapping[str, Any], seed: int) -> tuple[torch.Tensor, tuple[int, ...]]:
    """Tokens as a network reads them, and the rows of the coordinates."""
    x, _ = task.sample(world, NumpySource(10**6 + seed), _FRESH)
    tokens = torch.from_numpy(np.ascontiguousarray(x)).long()
    if task.shape.inputs == "bits":
        tokens = with_read_row(tokens)
    return tokens, tuple(int(c) + 1 for c in world.get("coordinates", ()))


def histogram(seen: Looked) -> tuple[_Array, _Array]:
    """Shares of the attention by the size of a weight, on rows that matter and on others; together they sum to 1."""
    rows = seen.weights.shape[-1]
    inside = np.clip(seen.weights * rows, EDGES[0], EDGES[-1] * (1 - 1e-12))
    counted = seen.weights * seen.sizes[:, None] / len(seen.weights)
    matter = np.zeros(rows, dtype=bool)
    matter[list(seen.places)] = True
    first, other = (
        np.histogram(inside[..., chosen], bins=EDGES, weights=counted[..., chosen])[0] for chosen in (matter, ~matter)
    )
    return first, other
