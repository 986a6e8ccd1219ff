"""Sweeps by name: the experiments of the figures, as presets.toml lists them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from boundcalc.base.documents import read_document
from boundcalc.lab.train.sweep import Sweep, sweep_from_json
from boundcalc.setting import validate

PRESETS: dict[str, dict[str, Any]] = read_document(Path(__file__).with_name("presets.toml"), "the presets")
"""What `boundcalc sweep NAME` runs."""


def preset_sweep(name: str, *, seeds: int | None = None) -> Sweep:
    """A preset's trials."""
    data = copy.deepcopy(PRESETS[validate.choice("preset", name, PRESETS)])
    if seeds is not None:
        data["seeds"] = seeds
    return sweep_from_json({"name": name, **data})
