"""Sweeps by name: the experiments of the figures."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from boundcalc.lab.train.sweep import Sweep, sweep_from_json
from boundcalc.setting import validate

_CONJUNCTION: dict[str, Any] = {"task": "conjunction", "s": 3}
_ANY_S: dict[str, Any] = {"task": "conjunction"}
_MINI: dict[str, Any] = {"lr": 4e-3, "warmup": 100, "batch": 16, "steps": 3000, "stop_loss": 5e-3}
_LONG: list[dict[str, Any]] = [
    {"T": 32, "m": [24, 29, 35, 42, 50]},
    {"T": 64, "m": [28, 34, 40, 48, 58]},
    {"T": 128, "m": [32, 38, 45, 54, 65]},
    {"T": 256, "m": [37, 44, 53, 64, 76]},
    {"T": 512, "m": [42, 50, 60, 72, 87]},
    {"T": 1024, "m": [49, 58, 70, 84, 101]},
    {"T": 2048, "m": [57, 68, 82, 98, 118]},
    {"T": 4096, "m": [64, 76, 92, 110, 132]},
]
"""Around the m* that the preset conjunction measured, and between what its two fits foretell beyond T = 1024."""

_HALF: list[dict[str, Any]] = [
    {"T": 32, "m": [15, 20, 26, 34, 44]},
    {"T": 64, "m": [18, 23, 30, 39, 50]},
    {"T": 128, "m": [21, 28, 36, 47, 60]},
    {"T": 256, "m": [24, 31, 40, 52, 68]},
    {"T": 512, "m": [27, 35, 45, 58, 76]},
    {"T": 1024, "m": [27, 36, 48, 64, 84]},
    {"T": 2048, "m": [30, 40, 54, 72, 96]},
    {"T": 4096, "m": [34, 46, 62, 84, 113]},
]
"""Around the m at which half of the trials of conjunction-long succeed, further apart: a middle needs both sides."""


def _coins(lengths: Sequence[int], first: Mapping[int, int]) -> list[dict[str, Any]]:
    """Grids for fair coins: five m in steps of the root of 2, whose first is so much larger for the next length."""
    return [
        {"s": s, "T": T, "m": [round(start * 2 ** ((i + k) / 2)) for k in range(5)]}
        for s, start in first.items()
        for i, T in enumerate(lengths)
    ]


_PARITY: dict[str, Any] = {
    "init": {"embedding_std": 4.0, "position_std": 2.0},
    "m": 0,
    "train": {"lr": 3e-3, "warmup": 50, "batch": 256, "steps": 1500, "stop_test_error": 0.005, "curve_every": 25},
}

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
    "conjunction-long": {
        "about": "power law or logarithm: lengths to 4096, on seeds of its own (docs/learning.md fixes the criterion)",
        "task": _CONJUNCTION,
        "train": _MINI,
        "seeds": list(range(1000, 1024)),
        "grid": _LONG,
    },
    "conjunction-half": {
        "about": "power law or logarithm once more, by half of the trials, on fresh seeds (docs/learning.md)",
        "task": _CONJUNCTION,
        "train": _MINI,
        "seeds": list(range(2000, 2160)),
        "grid": _HALF,
    },
    "conjunction-natural": {
        "about": "the law where all bits are fair coins: s = 2, 3, 4 among T = 32..512",
        "task": _ANY_S | {"law": "natural"},
        "train": _MINI,
        "seeds": 10,
        "grid": _coins((32, 128, 512), {2: 20, 3: 40, 4: 80}),
    },
    "conjunction-natural-4096": {
        "about": "the same among T = 4096",
        "task": _ANY_S | {"law": "natural", "T": 4096},
        "train": _MINI,
        "seeds": 8,
        "grid": [
            {"s": 2, "m": [43, 60, 85, 120, 180]},
            {"s": 3, "m": [50, 70, 100, 140, 210]},
            {"s": 4, "m": [95, 130, 180, 270, 405]},
        ],
    },
    "conjunction-sparsity": {
        "about": "the balanced law with 2 and with 4 bits that matter",
        "task": _ANY_S,
        "train": _MINI,
        "seeds": 10,
        "grid": [
            {"s": 2, "T": 32, "m": [12, 16, 22, 30, 40]},
            {"s": 2, "T": 128, "m": [20, 26, 32, 40, 52]},
            {"s": 2, "T": 512, "m": [24, 32, 40, 52, 70]},
            {"s": 4, "T": 32, "m": [28, 38, 50, 66, 90]},
            {"s": 4, "T": 128, "m": [38, 50, 66, 88, 120]},
            {"s": 4, "T": 512, "m": [50, 66, 88, 120, 160]},
        ],
    },
    "conjunction-width": {
        "about": "examples needed at T = 128 by models of width d = 16..128",
        "task": _CONJUNCTION | {"T": 128},
        "train": _MINI,
        "seeds": 10,
        "grid": [{"d": d, "model.d_ff": 4 * d, "m": [24, 32, 40, 48, 64, 90]} for d in (16, 32, 64, 128)],
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
        **_PARITY,
        "seeds": 10,
    },
    "parity-growth": {
        "about": "steps until the transition of parity against T and s, to T = 60",
        "task": {"task": "parity"},
        **_PARITY,
        "train": _PARITY["train"] | {"lr": 1e-3, "steps": 6000},
        "n_test": 512,
        "seeds": 10,
        "grid": [
            {"s": 2, "T": [10, 20, 40, 60]},
            {"s": 3, "T": [10, 20, 30, 40, 60]},
            {"s": 4, "T": [10, 15, 20, 30, 40]},
        ],
    },
    "parity-late": {
        "about": "parity of 3 among 16 bits from 150 examples: right on all of them long before it generalises",
        "task": {"task": "parity", "T": 16, "s": 3},
        "init": _PARITY["init"],
        "m": 150,
        "train": {
            "optimiser": "adamw",
            "weight_decay": 0.5,
            "lr": 3e-3,
            "warmup": 50,
            "batch": 32,
            "steps": 4000,
            "stop_loss": 0.0,
            "stop_test_error": 0.01,
            "curve_every": 50,
        },
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


def preset_sweep(name: str, *, seeds: int | None = None) -> Sweep:
    """A preset's trials."""
    data = copy.deepcopy(PRESETS[validate.choice("preset", name, PRESETS)])
    if seeds is not None:
        data["seeds"] = seeds
    return sweep_from_json({"name": name, **data})
