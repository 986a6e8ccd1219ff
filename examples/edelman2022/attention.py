"""Where trained attention lies, over tasks: on the positions that matter, or nearly evenly on all.

    python examples/edelman2022/attention.py          (18 networks: two minutes)

Computed: the share of the positions that matter, which even attention would put there; measured: the share of the
attention, heads weighted by the norm of what they add to the row, median over networks; by task.

Networks of one kind are trained on tasks of which few positions matter (a conjunction, a majority, a formula of two
parts, a parity) and of which all do (a majority of all bits, masked tokens); attention is that of the row that is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from common import Values, run
from numpy.typing import NDArray

from boundcalc.lab.train.model import attention_of_read
from boundcalc.lab.train.parameters import Init
from boundcalc.lab.train.source import Source
from boundcalc.lab.train.stack import with_read_row
from boundcalc.lab.train.tasks import Task, task_from_json
from boundcalc.lab.train.trainer import Outcome, train
from boundcalc.lab.train.trial import Optimisation, Trial, model_for

QUICK = {"quick": True}

_Array = NDArray[np.float64]
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


def trials(case: Case, seeds: int = 3, steps: int | None = None) -> list[Trial]:
    """One per seed, of width 32 with 4 heads; `steps`: most steps of training, if not the task's own."""
    task = task_from_json(case.task)
    values = {**_RULE, **case.rule, **({} if steps is None else {"steps": steps})}
    bits = task.shape.inputs == "bits"
    rule = Optimisation(**values, stop_loss=0.0, stop_test_error=_STOP if bits else None, curve_every=25)
    model = model_for(task, d=32, heads=4, d_ff=64, positions="learned" if bits else "none")
    return [Trial(task, model, m=0, seed=s, n_test=1024, init=case.init, optimisation=rule) for s in range(seeds)]


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """Shares of the attention on the positions that matter: if it were even, and in trained networks; by task."""
    del store  # nothing is kept: what is measured is no part of a trial
    even: Values = {}
    measured: Values = {}
    for case in CASES[:2] if quick else CASES:
        outcomes = train(trials(case, 1, 30) if quick else trials(case))
        looks = [looked(outcome, case.all_matter) for outcome in outcomes]
        rows = outcomes[0].trial.task.shape.rows
        even[case.name] = len(looks[0].places) / rows
        measured[case.name] = float(np.median([one.share for one in looks]))
        positions = float(np.median([one.looks_at for one in looks]))
        error = float(np.median([outcome.result["test"]["error"] for outcome in outcomes]))
        print(f"{case.name}: effective number of positions {positions:.1f} of {rows}, test error {error:.2g}")
    return even, measured


class Looked(NamedTuple):
    """Attention weights (sequences, heads, rows) of one network's read row, and the rows that matter.

    The sizes of what each head adds to the row sum to 1.
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
    layer, x, mix = attention_of_read(trial.architecture, outcome.weights, tokens)[0]
    values, offset, out = (outcome.weights[f"{kind}[0]"] for kind in ("W_V", "b_V", "W_O"))
    means = torch.einsum("nht,ntd,hdv->nhv", mix, x, values) + offset * mix.sum(-1, keepdim=True)
    added = torch.einsum("nhv,hvd->nhd", means, out.unflatten(0, (layer.heads, layer.out)))
    sizes = added.norm(dim=-1).mean(0).double().numpy()
    matter = tuple(range(1, trial.task.shape.rows)) if all_matter else places
    return Looked(mix.double().numpy(), sizes / max(sizes.sum(), 1e-300), matter)


def _fresh(task: Task, world: Mapping[str, Any], seed: int) -> tuple[torch.Tensor, tuple[int, ...]]:
    """Tokens as a network reads them, and the rows of the coordinates."""
    x, _ = task.sample(world, Source(10**6 + seed), _FRESH)
    tokens = x.long()
    if task.shape.inputs == "bits":
        tokens = with_read_row(tokens)
    return tokens, tuple(int(c) + 1 for c in world.get("coordinates", ()))


if __name__ == "__main__":
    run(main, words=("even attention", "trained"))
