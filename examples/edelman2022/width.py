"""Whether the examples needed depend on the width d: in training at T = 128, and in bounds at norms of at most 1.

    python examples/edelman2022/width.py            (240 networks: two minutes)

Computed: the m at which the bound `closed` promises a risk of 0.01 (`bound`: another); measured: m* of training; both
by d.
"""

from __future__ import annotations

from pathlib import Path

from common import TINY, Values, by, preset, run, trained
from thresholds import analyse, cells

from boundcalc.lab.figures.gap import least_m
from boundcalc.setting import Setting

QUICK = {"quick": True}

SHARE, TARGET = 0.8, 0.01


def main(quick: bool = False, store: Path | None = None, bound: str = "closed") -> tuple[Values, Values]:
    """The m of a bound and the measured m*, by width."""
    if quick:
        sweep = {"name": "width", "task": {"task": "conjunction", "s": 2, "T": 8}, **TINY, "seeds": 6}
        sweep["model"] = {"heads": 8, "d_ff": 64}
        chosen = trained({**sweep, "grid": {"d": [16, 32], "m": [8, 16, 32, 64]}}, store)
    else:
        chosen = trained(preset("conjunction-width"), store)
    target = 0.1 if quick else TARGET
    length = chosen[0].config["task"]["T"]
    setting = Setting.of("edelman", depth=1, seq_len=length + 1, margin=0.3, delta=1 - SHARE, train_error=0.0)
    measured: Values = {}
    computed: Values = {}
    for d, some in by(chosen, "d").items():
        (threshold,) = analyse(cells(some, 1 - target), level=SHARE, draws=500).thresholds
        measured[d] = threshold.m_star
        computed[d] = least_m(setting.but(d=d), bound, TARGET) or float("inf")
    return computed, measured


if __name__ == "__main__":
    run(main, words=("the bound needs m =", "training m* ="))
