"""Sweeps: files, and the presets of presets.toml, that say which trials there are."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.trial import N_TEST, Trial, trial_from_parts

PRESETS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
"""What `boundcalc sweep NAME` runs: the experiments of the figures."""
_PARTS = ("task", "model", "init", "train")
_KEYS = (*_PARTS, "name", "about", "m", "n_test", "seeds", "grid")
_SHORT = {"T": "task.T", "s": "task.s", "L": "task.L", "depth": "model.depth", "d": "model.d", "lr": "train.lr"}


@dataclass(frozen=True)
class Sweep:
    """A named set of trials.

    Attributes:
        name: under which the store lists them.
        trials: without repetition.
    """

    name: str
    trials: tuple[Trial, ...]


def sweep_from_json(data: object, *, name: str = "sweep") -> Sweep:
    """A sweep from its description.

    "task", "model", "init" and "train" describe one trial; "grid" is an object (or a list of objects) of dotted
    names ("task.T", "train.lr", "m") with lists of values, all combinations of which are run; "seeds" is a number
    or a list.
    """
    raw = validate.known_keys("sweep", data, _KEYS)
    grids = raw.get("grid", {})
    seeds = _seeds(raw.get("seeds", 1))
    trials = [
        _trial(raw, values, seed)
        for grid in (grids if isinstance(grids, list) else [grids])
        for values in _combinations(grid)
        for seed in seeds
    ]
    return Sweep(str(raw.get("name", name)), tuple({trial.hash: trial for trial in trials}.values()))


def _seeds(value: object) -> Sequence[int]:
    return value if isinstance(value, list) and value else range(validate.size("seeds", value))


def _combinations(grid: object) -> Iterator[dict[str, Any]]:
    if not isinstance(grid, Mapping):
        raise InvalidSetting('"grid" is an object like {"task.T": [32, 64], "m": [16, 32]}, or a list of such')
    axes: dict[str, list[Any]] = {}
    for key, values in grid.items():
        name = _SHORT.get(str(key), str(key))
        if values == [] or name in axes:
            raise InvalidSetting(f"the grid's {name!r} has no value, or is given twice")
        axes[name] = values if isinstance(values, list) else [values]
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _trial(raw: Mapping[str, Any], values: dict[str, Any], seed: int) -> Trial:
    parts: dict[str, dict[str, Any]] = {}
    for part in _PARTS:
        value = raw.get(part, {})
        if not isinstance(value, Mapping):
            raise InvalidSetting(f"{part!r} of a sweep must be an object, got {value!r}")
        parts[part] = dict(value)
    m = values.get("m", raw.get("m"))
    if m is None:
        raise InvalidSetting('a sweep needs "m", the number of training examples (0: fresh ones at every step)')
    for key, value in values.items():
        part, _, name = key.partition(".")
        if name and part in _PARTS:
            parts[part][name] = value
        elif key != "m":
            raise InvalidSetting(
                f"the grid has no {key!r}: name m, or task., model., init. or train. and a field, such as 'task.T'"
            )
    return trial_from_parts(**parts, m=m, seed=seed, n_test=raw.get("n_test", N_TEST))
