"""Bounds against measured errors: conjunctions of 3 of 128 bits, certificates of one network, the bound of its class.

    python examples/edelman2022/overlay.py -o figures/overlay.png     (285 networks and 50 certificates: five minutes)

Computed: the median certified risk; measured: the test error of what was certified; by method and m.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import median

from common import TINY, Values, medians, preset, run, trained

from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.overlay import collect as overlay
from boundcalc.lab.figures.overlay import draw, title
from boundcalc.setting import Setting

QUICK = {"quick": True}

SIZES = (16, 20, 24, 28, 32, 40, 48, 56, 80, 128, 192, 256, 512)
METHODS = ("holdout", "p2l")
"""Compression and PAC-Bayes, which certify smaller networks, are measured by examples/certificates.py."""


def certified(quick: bool, store: Path | None) -> list:
    """Networks with certificates, on seeds that no choice was made on."""
    fresh = preset("conjunction", seeds=[301, 302, 303, 304, 305], n_test=20_000)
    fresh["grid"] = {"T": 128, "m": [100, 300, 1000, 3000, 10_000]}
    if quick:
        fresh = {
            "task": {"task": "conjunction", "s": 3},
            **TINY,
            "seeds": [201, 202, 203],
            "grid": {"T": 16, "m": [60, 200]},
        }
    return trained({**fresh, "name": "certified"}, store, METHODS)


def collect(quick: bool = False, store: Path | None = None) -> Figure:
    """Everything the figure shows."""
    sweep = preset("conjunction", name="overlay", seeds=20, grid={"T": 128, "m": list(SIZES)})
    if quick:
        sweep = {"name": "overlay", "task": {"task": "conjunction", "s": 3}, **TINY, "seeds": 3}
        sweep["grid"] = {"T": 16, "m": [12, 24, 48, 96]}
    setting = Setting.of("edelman", seq_len=sweep["grid"]["T"], depth=1, margin=0.5)  # trained margins exceed it
    values = (1e3, 1e5, 1e7) if quick else ()
    figure = overlay(trained(sweep, store), certified(quick, store), setting, values=values)
    return figure if quick else with_rules(figure)


def with_rules(figure: Figure) -> Figure:
    """The figure with what rules.py has measured: the rule that each of 20 networks provably follows, by m."""
    rows = json.loads((Path(__file__).parent / "rules.json").read_text(encoding="utf-8"))["rows"]
    risks: dict[int, list[float]] = {}
    for row in rows:
        if (row["task"], row["T"]) == ("conjunction", 128):
            risks.setdefault(row["m"], []).append(row["risk"] if row["risk"] is not None else 1.0)
    points = [(float(m), median(values), min(values), max(values)) for m, values in sorted(risks.items())]
    rule = Series.of_rows("rule", "certificate", "risk", points, "risk")
    series = (*(one for one in figure.series if one.key != "rule"), rule)
    return replace(figure, title=title(series, figure.facts["needs"]), series=series)


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """Certified risks and test errors by method and m: the first lie above the second."""
    risks: dict[tuple[str, int], list[float]] = {}
    errors: dict[tuple[str, int], list[float]] = {}
    for record in certified(quick, store):
        for stored in record.certificates:
            key = stored["asked"]["method"], record.config["m"]
            if stored["entry"]["risk"] is not None:
                risks.setdefault(key, []).append(stored["entry"]["risk"])
                errors.setdefault(key, []).append(stored["entry"]["test_error"])
    return medians(risks), medians(errors)


if __name__ == "__main__":
    run(main, collect, draw, ("certified", "measured"))
