"""Certificates of trained predictors on conjunctions of 3 among 128 bits, by every method. Needs torch.

    python examples/certificates.py [tiny] [--out certificates.json] [--m 300,1000] [--seeds 201,202] [--methods p2l]

For every m and seed: hidden bits, data, a certificate by each method, its risk and the error on 100,000 fresh examples.
Settings were chosen on seeds 1 to 6 and 101 to 105; the table is of seeds 201 to 205. About ten minutes of one core.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

Values = dict[str, float]
PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""
DELTA = 0.05
SIZES, SEEDS = (100, 300, 1000, 3000, 10_000), (201, 202, 203, 204, 205)


SMALL = {"d": 8, "heads": 1, "d_ff": 8}
PLANS: dict[str, tuple[str, dict[str, int]]] = {
    "holdout": ("holdout", {}),
    "p2l": ("p2l", {}),
    "occam": ("occam", {}),
    "occam d=8": ("occam", SMALL),
    "pac-bayes d=8": ("pac-bayes", SMALL),
}
"""Row of the table: method, and model where it is not the default one."""


def measure(
    m: int,
    seed: int,
    plans: tuple[str, ...] = tuple(PLANS),
    *,
    T: int = 128,
    fresh: int = 100_000,
    function: str = "conjunction",
) -> list[Any]:
    """One row per method."""
    import torch

    from boundcalc.cli.predictors import certify_trial
    from boundcalc.lab.train.tasks import BooleanTask
    from boundcalc.lab.train.trial import Optimisation, Trial, model_for

    torch.set_num_threads(1)
    task = BooleanTask(T=T, s=3, function=function)
    rule = Optimisation(lr=4e-3, warmup=100, batch=16, steps=3000)
    rows: list[Any] = []
    for plan in plans:
        method, model = PLANS[plan]
        trial = Trial(task, model_for(task, **model), m, seed=seed, n_test=fresh, optimisation=rule)
        started, cpu = time.time(), time.process_time()
        entry = certify_trial(trial, [method], DELTA, quiet=True)[0]
        seconds = {"seconds": round(time.time() - started, 2), "cpu_seconds": round(time.process_time() - cpu, 2)}
        rows.append({"function": function, "T": T, "m": m, "seed": seed, **entry, "method": plan, **seconds})
    return rows


def table(rows: list[Any]) -> str:
    """Median, best and worst over seeds, with the largest test error and the median time."""
    lines = ["m       method         median   best     worst    test error  CPU-s"]
    for m in sorted({row["m"] for row in rows}):
        for method in dict.fromkeys(row["method"] for row in rows):
            mine = [row for row in rows if row["m"] == m and row["method"] == method]
            risks = [1.0 if row["risk"] is None else row["risk"] for row in mine]
            worst = max((row["test_error"] for row in mine if row["risk"] is not None), default=0.0)
            lines.append(
                f"{m:<7} {method:<14} {median(risks):<8.5f} {min(risks):<8.5f} {max(risks):<8.5f} {worst:<11.5f} "
                f"{median(row['cpu_seconds'] for row in mine):.1f}"
            )
    return "\n".join(lines)


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Certified risks, and the errors on fresh examples."""
    del folder  # nothing is written
    sizes, seeds = SIZES, SEEDS
    options: dict[str, Any] = {}
    if scale == "tiny":
        sizes, seeds, options = (60,), (201,), {"T": 16, "fresh": 4000}
    rows = [row for m in sizes for seed in seeds for row in measure(m, seed, **options)]
    made = {f"{row['method']} m={row['m']} seed={row['seed']}": row for row in rows if row["risk"] is not None}
    return {key: row["risk"] for key, row in made.items()}, {key: row["test_error"] for key, row in made.items()}


def run(
    out: Path | None,
    sizes: tuple[int, ...],
    seeds: tuple[int, ...],
    functions: tuple[str, ...],
    plans: tuple[str, ...] = tuple(PLANS),
) -> None:
    """Measure what the file does not have yet, and print the table."""
    rows: list[Any] = json.loads(out.read_text(encoding="utf-8")) if out is not None and out.exists() else []
    there = {(row["function"], row["m"], row["seed"], row["method"]) for row in rows}
    for function in functions:
        for m in sizes:
            for seed in seeds:
                new = tuple(plan for plan in plans if (function, m, seed, plan) not in there)
                if not new:
                    continue
                rows += [without_file(row) for row in measure(m, seed, new, function=function)]
                if out is not None:
                    out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(f"{function}\n{table([row for row in rows if row['function'] == function])}")


def without_file(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the path it was written to."""
    return {name: value for name, value in row.items() if name != "file"}


def _option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


if __name__ == "__main__":
    if "tiny" in sys.argv:
        print(main("tiny"))
    else:
        where = _option("--out", "")
        run(
            Path(where) if where else None,
            tuple(int(word) for word in _option("--m", ",".join(map(str, SIZES))).split(",")),
            tuple(int(word) for word in _option("--seeds", ",".join(map(str, SEEDS))).split(",")),
            tuple(_option("--functions", "conjunction").split(",")),
            tuple(_option("--methods", ",".join(PLANS)).split(",")),
        )
