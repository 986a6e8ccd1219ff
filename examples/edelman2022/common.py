"""What the scripts of this folder share: sweeps, trials from one store, groups of them; `run` of example_script.py.

Trials are kept in the store that all commands share (--store) and are not trained again.
"""

from __future__ import annotations

import copy
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from example_script import Values
from example_script import run as run

TINY: Mapping[str, Any] = {
    "model": {"d": 32, "heads": 8, "d_ff": 64},
    "train": {"lr": 0.004, "batch": 16, "steps": 400, "stop_loss": 0.005},
    "n_test": 512,
}
"""Of sweeps that take seconds."""
TINY_PARITY: Mapping[str, Any] = {
    **TINY,
    "m": 0,
    "seeds": 3,
    "train": {"lr": 0.01, "batch": 64, "steps": 300, "stop_test_error": 0.005, "curve_every": 25},
}


def preset(sweep: str, **changes: Any) -> dict[str, Any]:
    """A sweep of the library under its name, or another, with some fields changed."""
    from boundcalc.lab.train.sweep import PRESETS

    return {**copy.deepcopy(PRESETS[sweep]), "name": sweep, **changes}


def trained(sweep: Mapping[str, Any], store: Path | None, methods: Sequence[str] = ()) -> list[Any]:
    """The records of a sweep: what the store does not have is trained, and certified by these methods."""
    from boundcalc.lab.train.run import certify_sweep, run_sweep
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import sweep_from_json
    from boundcalc.lab.train.trial import Request

    plan = sweep_from_json(dict(sweep))
    with Store(store or Path(os.environ.get("BOUNDCALC_STORE", "boundcalc-runs.db"))) as opened:
        run_sweep(plan, opened)
        certify_sweep(plan.trials, opened, [Request(method) for method in methods])
        hashes = {trial.hash for trial in plan.trials}
        return [record for record in opened.records(sweep=plan.name) if record.hash in hashes]


def by(records: Sequence[Any], *letters: str) -> dict[Any, list[Any]]:
    """Records by their position on some axes, in order."""
    groups: dict[Any, list[Any]] = {}
    for record in records:
        place = tuple(record.places[letter] for letter in letters)
        groups.setdefault(place if len(letters) > 1 else place[0], []).append(record)
    return dict(sorted(groups.items()))


def medians(values: Mapping[Any, Sequence[float]]) -> Values:
    """The median of the values under each key."""
    return {key: statistics.median(group) for key, group in values.items()}
