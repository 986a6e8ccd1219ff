"""Certificates on words: which of five languages one is of, by a small Transformer over letters. Needs torch.

    python examples/certified_words.py               # letters of numbers, from 200 examples: seconds
    python examples/certified_words.py full [--words /usr/share/dict] [--out certified_words.json] [--seeds 601,602]

Where the Debian packages wamerican, wfrench, wngerman, wspanish and witalian are installed (or unpacked under --words),
examples are words of their lists, each language alike, drawn with replacement: independent draws of one law. Errors are
measured on other draws. Everywhere, examples are also five letters in a row of the name of a number below a million
(`number_names`). Many are of several languages at once: no method is right on all. Settings were chosen on seeds 1 and
2.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from number_names import LANGUAGES, name_of

Values = dict[str, float]
PROMISES = "above"
"""What `main` returns first must lie above what it returns second."""
DELTA = 0.05
SEEDS = (601, 602, 603, 604, 605)
LATER = (701, 702, 703, 704, 705)
"""Where the steps were changed after the seeds above had been looked at."""
FRESH = 20_000
LISTS = dict(zip(LANGUAGES, ("american-english", "french", "ngerman", "spanish", "italian"), strict=True))
SIZES = {"words": (1000, 5000, 20_000), "numbers": (1000,)}
LENGTH = 16
WINDOW = 5
LETTERS = "abcdefghijklmnopqrstuvwxyzàáâäåæçèéêëìíîïñòóôöœßùúûü'- "
STEPS = {1000: 500, 5000: 2500, 20_000: 5000}
SEEDS_OF = {1000: SEEDS, 5000: LATER, 20_000: LATER}


@cache
def lists(folder: str) -> dict[str, list[str]]:
    """Words of 3 to 16 letters, lower case; every language's list sorted, so that a seed draws the same anywhere."""
    by_language: dict[str, list[str]] = {}
    for language, name in LISTS.items():
        lines = (Path(folder) / name).read_text(encoding="utf-8", errors="ignore").splitlines()
        words = {line.strip().lower() for line in lines}
        by_language[language] = sorted(word for word in words if word.isalpha() and 3 <= len(word) <= LENGTH)
    return by_language


def draws(source: str, folder: str, seed: int) -> Callable[[int], tuple[Any, Any]]:
    """What gives n more independent examples: letters as numbers (0: none, 1: another letter), and the language."""
    rng = random.Random(seed)
    places = {letter: place + 2 for place, letter in enumerate(LETTERS)}

    def one() -> tuple[list[int], int]:
        answer = rng.randrange(len(LANGUAGES))
        if source == "words":
            text = rng.choice(lists(folder)[LANGUAGES[answer]])
        else:
            whole = name_of(rng.randrange(1_000_000), LANGUAGES[answer])
            start = rng.randrange(max(1, len(whole) - WINDOW + 1))
            text = whole[start : start + WINDOW]
        row = [places.get(letter, 1) for letter in text]
        return row + [0] * (LENGTH - len(row)), answer

    def more(n: int) -> tuple[Any, Any]:
        rows = [one() for _ in range(n)]
        return np.array([row for row, _ in rows]), np.array([answer for _, answer in rows])

    return more


def make() -> Any:
    """Width 32, 4 heads, one block; the mean of the rows that are letters is read."""
    import torch
    from torch import nn

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(len(LETTERS) + 2, 32)
            self.places = nn.Parameter(0.3 * torch.randn(LENGTH, 32))
            self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
            self.norm = nn.LayerNorm(32)
            self.head = nn.Linear(32, len(LANGUAGES))

        def forward(self, x: Any) -> Any:
            letter = x > 0
            # Scores of rows without a letter are -1e9, not -inf, and the fast path is left alone: one kernel for all.
            mask = torch.where(letter, 0.0, -1e9)[:, None, None, :].expand(-1, 4, LENGTH, -1).flatten(0, 1)
            rows = self.norm(self.block(self.embed(x) + self.places, src_mask=mask))
            there = letter.unsqueeze(-1).to(rows.dtype)
            return self.head((rows * there).sum(1) / there.sum(1))

    return Words()


def falling(weights: Any, steps: int) -> Any:
    """AdamW whose rate falls to a tenth over the steps of the first training."""
    import torch

    class Falling(torch.optim.AdamW):
        taken = 0

        def step(self, closure: Any = None) -> Any:
            self.taken += 1
            for group in self.param_groups:
                group["lr"] = 3e-3 * max(0.1, 1 - 0.9 * self.taken / steps)
            return super().step(closure)

    return Falling(weights, lr=3e-3, weight_decay=0.1)


def plans(m: int) -> dict[str, Any]:
    """Holdout; and behind three quarters, some picks, or none: fixed before the data, each with its share of delta."""
    from boundcalc.predictors.plans import shared, splits, stops

    start = 3 * m // 4
    picks = stops(m - start, [16, 48], (0, 16, 64), prefix=start)
    return {"holdout": shared(splits([m // 2, start]), DELTA), "p2l": shared(picks, DELTA)}


def measure(source: str, folder: str, m: int, seed: int, steps: int, fresh: int = FRESH) -> list[dict[str, Any]]:
    """One row per method."""
    import torch

    from boundcalc import Data, pick_to_learn
    from boundcalc.base.answers import count_wrong
    from boundcalc.lab.train.pickers import ModuleLearner, PickRule

    torch.set_num_threads(1)
    more = draws(source, folder, seed)
    data, rest = Data(*more(m)), Data(*more(fresh))
    rule = PickRule(batch=64, prefix_steps=steps, prefix_loss=0.0, round_steps=min(steps, 100), round_loss=0.0)
    rows: list[dict[str, Any]] = []
    for method, plan in plans(m).items():
        started = time.process_time()
        learner = ModuleLearner(
            rule=rule,
            make=make,
            name="certified_words.py:make",
            loss=lambda outputs, y: torch.nn.functional.cross_entropy(outputs, y, label_smoothing=0.1),
            optimiser=lambda weights: falling(weights, steps),
        )
        learned = pick_to_learn(learner, data, plan, DELTA, method=method)
        seconds = round(time.process_time() - started, 1)
        error = count_wrong(learner.scores(learned.state, rest), len(rest)) / len(rest)
        entry = {**learned.certificate.summary(), "method": method, "test_error": error, "fresh": fresh}
        rows.append({"source": source, "m": m, "seed": seed, **entry, "cpu_seconds": seconds})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Medians over seeds: a Markdown table."""
    from boundcalc.base.rounding import up

    lines = [
        "| letters of | m | method | risk: median (least, largest) | test error: median | CPU-s |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    for key in sorted({(row["source"], row["m"], row["method"]) for row in rows}, reverse=False):
        mine = [row for row in rows if (row["source"], row["m"], row["method"]) == key]
        risks = [row["risk"] for row in mine]
        tests, seconds = [row["test_error"] for row in mine], [row["cpu_seconds"] for row in mine]
        shown = f"{up(median(risks), 3)} ({up(min(risks), 3)}, {up(max(risks), 3)})"
        lines.append(f"| {key[0]} | {key[1]} | {key[2]} | {shown} | {median(tests):.3f} | {median(seconds):.0f} |")
    return "\n".join(lines) + "\n"


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """Certified risks on letters of numbers, and the errors on fresh ones."""
    del folder  # nothing is written
    places = [(200, 1)] if scale == "tiny" else [(m, s) for m in SIZES["numbers"] for s in SEEDS_OF[m]]
    quick = {"steps": 30, "fresh": 1000} if scale == "tiny" else {}
    rows = [row for m, s in places for row in measure("numbers", "", m, s, **{"steps": STEPS.get(m, 0), **quick})]
    runs = {f"{row['m']} {row['method']} {row['seed']}": row for row in rows}
    return {key: row["risk"] for key, row in runs.items()}, {key: row["test_error"] for key, row in runs.items()}


def _option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


if __name__ == "__main__":
    if "full" not in sys.argv:
        from boundcalc.base.rounding import up

        for key, risk in (certified := main("tiny"))[0].items():
            print(f"{key:28}  risk <= {up(risk, 4)}  test error {certified[1][key]:.4f}")
    else:
        where = _option("--words", "/usr/share/dict")
        there_are_lists = all((Path(where) / name).exists() for name in LISTS.values())
        places = sorted((m, name) for name in SIZES if name != "words" or there_are_lists for m in SIZES[name])
        seeds = [int(word) for word in _option("--seeds", "").split(",") if word]
        out = Path(_option("--out", "")) if "--out" in sys.argv else None
        rows: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8")) if out and out.exists() else []
        there = {(row["source"], row["m"], row["seed"]) for row in rows}
        for m, source in places:
            for seed in seeds or SEEDS_OF[m]:
                if (source, m, seed) not in there:
                    rows += measure(source, where, m, seed, STEPS[m])
                    if out:
                        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(table(rows))
