"""What learning an s-sparse function of T bits takes: the counting floor, the finite class, and the best checked bound.

Run it with `python examples/sparse_sample_complexity.py` (or with the word `tiny` behind it, for fewer T).
"""

from __future__ import annotations

import sys
from pathlib import Path

from boundcalc.lab.represent.samples import SampleComplexity, sample_complexity

Values = dict[float, float]
PROMISES = "below"
"""What `main` returns first must lie above, or below, what it returns second."""
S, RISK, DELTA = 3, 0.05, 0.01
POLICIES = ("best", "log-T", "trauger")


def table(scale: str = "full") -> dict[float, SampleComplexity]:
    """Everything, by T, with compact positions."""
    lengths = (512, 1024) if scale == "tiny" else (512, 2048, 8192, 32768, 65536)
    return {float(T): sample_complexity(S, T, RISK, DELTA, positions="compact", policies=POLICIES) for T in lengths}


def main(scale: str = "full", folder: Path = Path("examples-output")) -> tuple[Values, Values]:
    """The samples a learner of the finite class needs, and the m of the best checked bound, by T."""
    del folder  # nothing is written
    found = table(scale)
    best = {T: row.rows[0].solution.value for T, row in found.items() if row.rows[0].solution is not None}
    return {T: float(row.finite_class) for T, row in found.items()}, best


if __name__ == "__main__":
    rows = table(sys.argv[1] if len(sys.argv) > 1 else "full")
    print(f"{'T':>8} {'floor':>6} {'finite class':>13} " + " ".join(f"{name:>10}" for name in POLICIES))
    for T, row in rows.items():
        needed = " ".join(f"{r.solution.value if r.solution else float('nan'):>10.4g}" for r in row.rows)
        print(f"{T:>8g} {row.floor:>6} {row.finite_class:>13} {needed}")
