"""Sweeps by name: the experiments of the figures."""

from __future__ import annotations

import copy
from typing import Any

from boundcalc.lab.train.sweep import Sweep, sweep_from_json
from boundcalc.setting import validate

_CONJUNCTION: dict[str, Any] = {"task": "conjunction", "s": 3}
_MINI: dict[str, Any] = {"lr": 4e-3, "warmup": 100, "batch": 16, "steps": 3000, "stop_loss": 5e-3}

PRESETS: dict[str, dict[str, Any]] = {
    "conjunction": {
        "about": "examples needed to learn a conjunction of 3 among T bits, T = 32..1024, mini-batches",
        "task": _CONJUNCTION,
        "train": _MINI,
        "seeds": 40,
        "grid": [
            {"T": [32, 64], "m": [16, 20, 24, 28, 32, 40, 48, 64]},
            {"T": [128, 256], "m": [20, 24, 28, 32, 40, 48, 56, 80]},
            {"T": [512, 1024], "m": [28, 32, 40, 48, 56, 64, 80, 96]},
        ],
    },
    "conjunction-2048": {
        "about": "the held-out length of the preset conjunction",
        "task": _CONJUNCTION,
        "train": _MINI,
        "seeds": 20,
        "grid": {"T": 2048, "m": [40, 48, 56, 64, 80, 96]},
    },
    "conjunction-fullbatch": {
        "about": "the same with full batches: every trial fits its examples, but needs far more of them",
        "task": _CONJUNCTION,
        "init": {"position_std": 0.3},
        "train": {"lr": 1e-3, "batch": 0, "steps": 1000, "stop_loss": 5e-3},
        "seeds": 20,
        "grid": [
            {"T": 32, "m": [20, 28, 40, 56, 80, 112]},
            {"T": 64, "m": [28, 40, 56, 80, 112, 160]},
            {"T": 128, "m": [40, 56, 80, 112, 160, 224, 320]},
            {"T": 256, "m": [56, 80, 112, 160, 224, 320, 448]},
            {"T": 512, "m": [112, 160, 224, 320, 448, 640]},
        ],
    },
    "parity": {
        "about": "parity of 3 among 20 bits, fresh batches: the loss curves and their transition",
        "task": {"task": "parity", "T": 20, "s": 3},
        "init": {"embedding_std": 4.0, "position_std": 2.0},
        "m": 0,
        "train": {"lr": 3e-3, "warmup": 50, "batch": 256, "steps": 1500, "stop_test_error": 0.005, "curve_every": 25},
        "seeds": 10,
    },
    "majority": {
        "about": "examples needed to learn a majority of 3 among T bits",
        "task": {"task": "majority", "s": 3},
        "train": _MINI,
        "seeds": 20,
        "grid": {"T": [32, 64, 128, 256], "m": [32, 48, 64, 96, 128, 192, 256, 384]},
    },
    "depth": {
        "about": "the gap of deeper models on a conjunction of 3 among 32 bits",
        "task": _CONJUNCTION | {"T": 32},
        "model": {"d": 32, "heads": 8, "d_ff": 128, "normalisation": "layernorm", "style": "pre"},
        "train": {"lr": 1e-3, "batch": 16, "steps": 600, "stop_loss": 5e-3},
        "seeds": 5,
        "grid": {"depth": [1, 2, 4, 8], "m": [32, 64, 128]},
    },
    "smoke": {
        "about": "a minute's check that everything works",
        "task": _CONJUNCTION,
        "model": {"d": 32, "heads": 8, "d_ff": 64},
        "train": _MINI | {"steps": 400},
        "n_test": 512,
        "seeds": 4,
        "grid": {"T": [16, 32], "m": [12, 24, 48]},
    },
}
"""What `boundcalc sweep NAME` runs."""


def preset_sweep(name: str, *, device: str = "cpu", seeds: int | None = None) -> Sweep:
    """A preset's trials."""
    data = copy.deepcopy(PRESETS[validate.choice("preset", name, PRESETS)])
    if seeds is not None:
        data["seeds"] = seeds
    return sweep_from_json({"name": name, **data}, device=device)
