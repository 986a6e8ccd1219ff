"""Certificates on real data: scikit-learn's digits, all ten or even against odd, by a small Vision Transformer.

Needs torch.

    python examples/certified_digits.py --quick      # even or odd, from 400 images: seconds
    python examples/certified_digits.py [--out certified_digits.json]          # the table: minutes

A random part of the 1,797 images is what is learned from; the rest measures. The claim is about a fresh image of the
same law (G10r, H); images count as independent draws. Settings were chosen on the split of seed 1; the table is of
seeds 101 to 105. This is also how your own module is certified: `make`, arrays, a plan, `pick_to_learn`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from certificates import table as table_of
from example_script import Values, run

QUICK = {"quick": True}
DELTA = 0.05
SEEDS = (101, 102, 103, 104, 105)
SIZES = {"ten": (600, 1200), "even or odd": (1200,)}


def make(classes: int) -> Any:
    """16 patches of 2 x 2 pixels, width 48, 4 heads, one block; all patches are read."""
    import torch
    from torch import nn

    class Digits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(4, 48)
            self.places = nn.Parameter(0.5 * torch.randn(16, 48))
            block = nn.TransformerEncoderLayer(48, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
            self.block = nn.TransformerEncoder(block, 1, enable_nested_tensor=False)
            self.norm = nn.LayerNorm(48)
            self.head = nn.Linear(16 * 48, classes)

        def forward(self, x: Any) -> Any:
            rows = x.unfold(1, 2, 2).unfold(2, 2, 2).reshape(len(x), 16, 4)
            return self.head(self.norm(self.block(self.embed(rows) + self.places)).flatten(1))

    return Digits()


def data_of(task: str, m: int, seed: int) -> tuple[Any, Any]:
    """A random part to learn from, and the rest."""
    from sklearn.datasets import load_digits

    from boundcalc import Data

    digits: Any = load_digits()
    x = (digits.images / 16).astype(np.float32)
    y = digits.target % 2 if task == "even or odd" else digits.target
    places = np.random.default_rng(seed).permutation(len(y))
    return Data(x[places[:m]], y[places[:m]].astype(np.int64)), Data(x[places[m:]], y[places[m:]].astype(np.int64))


def plans(m: int) -> dict[str, Any]:
    """Holdout, and a short list of prefixes and picks in which holdout is too: fixed before the data, each with its
    share."""
    from boundcalc.predictors.plans import Member, default_splits, stops

    quarter, half = m // 4, m // 2
    listed = (
        *stops(m - quarter, [8] * 4, (16, 32), prefix=quarter),
        Member(half),
        *stops(m - half, [8] * 2, (16,), prefix=half),
    )
    return {"holdout": default_splits(m), "p2l": listed}


def measure(task: str, m: int, seed: int, steps: int = 700) -> list[dict[str, Any]]:
    """One row per method."""
    import torch

    from boundcalc import pick_to_learn
    from boundcalc.base.answers import count_wrong
    from boundcalc.lab.train.pickers import ModuleLearner, PickRule

    torch.set_num_threads(1)
    data, rest = data_of(task, m, seed)
    rule = PickRule(batch=32, prefix_steps=steps, prefix_loss=0.0, round_steps=150, round_loss=0.0, round_lr=5e-4)
    rows: list[dict[str, Any]] = []
    for method, plan in plans(m).items():
        started = time.process_time()
        learner = ModuleLearner(
            rule=rule,
            make=lambda: make(2 if task == "even or odd" else 10),
            name="certified_digits.py:make",
            optimiser=lambda weights: torch.optim.AdamW(weights, lr=2e-3, weight_decay=0.02),
        )
        learned = pick_to_learn(learner, data, plan, DELTA)
        error = count_wrong(learner.scores(learned.state, rest), len(rest)) / len(rest)
        entry = {**learned.certificate.summary(), "method": method, "test_error": error}
        seconds = round(time.process_time() - started, 1)
        rows.append({"task": task, "m": m, "seed": seed, **entry, "cpu_seconds": seconds})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as those of certificates.py are shown."""
    return table_of([{**row, "part": f"digits, {row['task']}", "model": "default"} for row in rows])


def main(quick: bool = False, out: Path | None = None) -> tuple[Values, Values]:
    """Certified risks, and the errors on the rest of the images; rows that `out` has are not measured again."""
    places = [(task, m, seed) for task in SIZES for m in SIZES[task] for seed in SEEDS]
    rows: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8")) if out and out.exists() else []
    for task, m, seed in [("even or odd", 400, 1)] if quick else places:
        if (task, m, seed) not in {(row["task"], row["m"], row["seed"]) for row in rows}:
            rows += measure(task, m, seed, steps=60 if quick else 700)
            if out is not None:
                out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table(rows))
    runs = {(row["task"], row["m"], row["method"], row["seed"]): row for row in rows}
    return {key: row["risk"] for key, row in runs.items()}, {key: row["test_error"] for key, row in runs.items()}


if __name__ == "__main__":
    run(main, words=("risk at most", "test error"))
