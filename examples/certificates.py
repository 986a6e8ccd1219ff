"""Certificates of trained predictors by every method: on sparse functions, with noise, on long sequences. Needs torch.

    python examples/certificates.py --quick          # every method once, on a small model: some 15 seconds
    python examples/certificates.py [--store certificates.db] [--out certificates.json]

For every task, m and seed: hidden bits, data, a certificate by each method, its risk and the error on fresh examples.
Settings were chosen on seeds 1 to 6 and, for p2l and for noise, on 401 to 410. The table is of seeds that none was
chosen on: 201 to 205 or, where a setting was changed after these were looked at, the seeds of `LATER`. Trials and
certificates are kept in the store, so the command goes on where it was interrupted. docs/certificates.md is made from
the JSON. Some thirty minutes of one core.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from example_script import Values, run

from boundcalc.base.rounding import up

DELTA = 0.05
SMALL = {"d": 8, "heads": 1, "d_ff": 8}
"""A model of width 8 with one head; the other is the default one, of width 64 with 16 heads."""
SEEDS = [201, 202, 203, 204, 205]
LATER = {
    "p2l": [501, 502, 503, 504, 505],
    "pac-bayes": [301, 302, 303, 304, 305],
}
"""Methods whose settings were not yet what they are when the seeds above were looked at, and the seeds they have."""
TRAIN = {"lr": 4e-3, "warmup": 100, "batch": 16, "steps": 3000, "stop_loss": 5e-3}
ALL = {"default": ("holdout", "p2l", "occam"), "small": ("occam", "pac-bayes")}
FEW = {"default": ("holdout", "p2l"), "small": ("occam", "pac-bayes")}
QUICK = {"quick": True}


class Part(NamedTuple):
    """Rows of the table."""

    task: dict[str, Any]
    sizes: list[int]
    methods: dict[str, tuple[str, ...]]
    """By model."""
    train: dict[str, Any]
    """What differs in training."""


PARTS = {
    "conjunction": Part({"task": "conjunction"}, [100, 300, 1000, 3000, 10_000], ALL, {}),
    "disjunction": Part({"task": "disjunction"}, [300, 1000], FEW, {}),
    "majority": Part({"task": "majority"}, [300, 1000], FEW, {}),
    "parity": Part({"task": "parity"}, [1000], FEW, {}),
    "noise": Part({"task": "conjunction", "noise": 0.1}, [1000], FEW, {"steps": 400}),
    "T 1024": Part({"task": "conjunction", "T": 1024}, [1000], FEW, {}),
}
FRESH = 100_000
"""Examples that errors are measured on."""


def sweep_of(
    part: str, model: str, seeds: list[int], *, sizes: list[int] | None = None, T: int = 128, n_test: int = FRESH
) -> Any:
    """The trials of a part."""
    from boundcalc.lab.train.sweep import sweep_from_json

    plan = PARTS[part]
    data: dict[str, Any] = {
        "task": {"s": 3, "T": T, **plan.task},
        "train": {**TRAIN, **plan.train},
        "seeds": seeds,
        "n_test": n_test,
        "grid": {"m": plan.sizes if sizes is None else sizes},
    }
    if model == "small":
        data["model"] = SMALL
    return sweep_from_json(data, name=f"certificates {part} {model} {seeds[0]}")


def measure(store: Path, parts: Iterable[str], seeds: int = len(SEEDS), **changes: Any) -> list[dict[str, Any]]:
    """Train and certify what the store does not have; one row per certificate."""
    from boundcalc.lab.train.run import certify_sweep, run_sweep
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.trial import Request

    rows: list[dict[str, Any]] = []
    with Store(store) as opened:
        for part, model, method in _rows_of(parts):
            sweep = sweep_of(part, model, LATER.get(method, SEEDS)[:seeds], **changes)
            run_sweep(sweep, opened)
            certify_sweep(sweep.trials, opened, [Request(method, DELTA)])
            for record in opened.records(sweep=sweep.name):
                where = {"part": part, "model": model, "m": record.config["m"], "seed": record.config["seed"]}
                rows += [
                    {**where, **stored["entry"], "fresh": record.config["n_test"]}
                    for stored in record.certificates
                    if stored["asked"] == Request(method, DELTA).to_json()
                ]
    return rows


def _rows_of(parts: Iterable[str]) -> list[tuple[str, str, str]]:
    """(part, model, method)."""
    return [(part, model, name) for part in parts for model, names in PARTS[part].methods.items() for name in names]


def grouped(rows: list[dict[str, Any]]) -> dict[tuple[str, int, str], list[dict[str, Any]]]:
    """Rows of one task, m and method, in order; a method by its name and model."""
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in rows:
        method = f"{row['method']}, width 8" if row["model"] == "small" else row["method"]
        groups.setdefault((row["part"], row["m"], method), []).append(row)
    order = list(dict.fromkeys(row["part"] for row in rows))
    return dict(sorted(groups.items(), key=lambda one: (order.index(one[0][0]), *one[0][1:])))


def risks_of(rows: list[dict[str, Any]]) -> list[float]:
    """Certified risks; 1 where a certificate was refused."""
    return [1.0 if row["risk"] is None else float(row["risk"]) for row in rows]


def table(rows: list[dict[str, Any]]) -> str:
    """Medians over seeds with the least and the largest, the largest test error, the median time: a Markdown table."""
    lines = [
        "| task | m | method | risk: median (least, largest) | test error | CPU-s |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    for (part, m, method), mine in grouped(rows).items():
        risks, certified = risks_of(mine), [row for row in mine if row["risk"] is not None]
        error = max((row["test_error"] for row in certified), default=1.0)
        seconds = median(row["cpu_seconds"] for row in certified) if certified else 0
        shown = f"{up(median(risks), 3)} ({up(min(risks), 3)}, {up(max(risks), 3)})"
        lines.append(f"| {part} | {m} | {method} | {shown} | {error:.5f} | {seconds:.1f} |")
    return "\n".join(lines) + "\n"


def row(rows: list[dict[str, Any]], part: str = "conjunction", target: float = 0.1) -> str:
    """Medians of every method by m, and the m at which they come down to the target: a Markdown table."""
    medians: dict[str, dict[int, float]] = {}
    for (_, m, method), mine in grouped([one for one in rows if one["part"] == part]).items():
        medians.setdefault(method, {})[m] = median(risks_of(mine))
    sizes = sorted({m for values in medians.values() for m in values})
    lines = [
        f"| method | {' | '.join(f'm = {m:,}' for m in sizes)} | m for {target:g} |",
        f"| --- |{' ---: |' * (len(sizes) + 1)}",
    ]
    for method, values in sorted(medians.items(), key=lambda one: where(one[1], target)):
        reached = where(values, target)
        cells = " | ".join(up(values[m], 3) if m in values else "-" for m in sizes)
        lines.append(f"| {method} | {cells} | {math.ceil(reached) if reached < math.inf else '-'} |")
    return "\n".join(lines) + "\n"


def where(medians: dict[int, float], target: float) -> float:
    """The m at which a curve through the medians, straight in logarithms, comes down to the target.

    Inf where it does not.
    """
    sizes = sorted(medians)
    for left, right in pairwise(sizes):
        above, below = medians[left], medians[right]
        if above > target >= below:
            share = math.log(above / target) / math.log(above / below)
            return left * (right / left) ** share
    return math.inf


def main(quick: bool = False, store: Path | None = None, out: Path | None = None) -> tuple[Values, Values]:
    """Certified risks, and the errors on fresh examples; the rows are written to `out` as JSON."""
    changes: dict[str, Any] = {"sizes": [60], "T": 16, "n_test": 4000, "seeds": 1} if quick else {}
    rows = measure(store or Path("certificates.db"), ["conjunction"] if quick else PARTS, **changes)
    if out is not None:
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table(rows), row(rows), sep="\n")
    runs = {(r["part"], r["method"], r["model"], r["m"], r["seed"]): r for r in rows if r["risk"] is not None}
    return {key: r["risk"] for key, r in runs.items()}, {key: r["test_error"] for key, r in runs.items()}


if __name__ == "__main__":
    run(main, words=("risk at most", "test error"))
