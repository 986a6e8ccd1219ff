"""What the page of `boundcalc explore` shows of trained networks, taken from two figures.

python examples/edelman2022/page.py          # after overlay.py and explained.py
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "boundcalc" / "lab" / "explore" / "runs.json"


def main() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the page computes (nothing here), and the medians and the attention that were measured."""
    overlay, explained = (_numbers(name) for name in ("overlay", "explained"))
    (runs,) = (series for series in overlay["series"] if series["key"] == "run")
    by_m: dict[float, list[float]] = defaultdict(list)
    for m, error in zip(runs["x"], runs["y"], strict=True):
        by_m[m].append(error)
    network = explained["facts"]["networks"][0]
    count = len(next(iter(by_m.values())))
    medians = {m: statistics.median(errors) for m, errors in sorted(by_m.items())}
    first = min(m for m, error in medians.items() if error == 0)
    measured = {
        "rows": list(map(list, medians.items())),
        "words": f"test error of trained networks, median of {count} ({overlay['subtitle'].rpartition(';')[0]}; "
        f"no errors from m = {first:g} on)",
        "network": {
            "attention": [[round(share, 3) for share in row] for row in network["attention"]],
            "positions": [position + 1 for position in network["positions"]],
            "words": "Attention of one trained network, a row for each head, a column for each bit. It is proved to "
            f"compute {network['rule']} on every input; the framed bits are those of the rule.",
        },
    }
    return {}, measured


def _numbers(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "figures" / f"{name}.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    TARGET.write_text(json.dumps(main()[1], separators=(",", ":")) + "\n", encoding="utf-8")
    print(TARGET.relative_to(ROOT))
