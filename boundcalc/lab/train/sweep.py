"""Sweeps: files, and the presets of presets.toml, that say which trials there are."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import read
from boundcalc.lab.train.parameters import Init
from boundcalc.lab.train.tasks import task_from_json
from boundcalc.lab.train.trial import N_TEST, Optimisation, Trial, model_for

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
    grids, seeds = raw.get("grid", {}), raw.get("seeds", 1)
    trials = [
        _trial(changed(raw, values), seed)
        for grid in (grids if isinstance(grids, list) else [grids])
        for values in _combinations(grid)
        for seed in (seeds if isinstance(seeds, list) and seeds else range(validate.size("seeds", seeds)))
    ]
    return Sweep(str(raw.get("name", name)), tuple({trial.hash: trial for trial in trials}.values()))


def changed(data: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A description with another m or n_test, or another field of a part, such as "task.T"."""
    result = dict(data)
    for name, value in values.items():
        part, _, field = _SHORT.get(name, name).partition(".")
        inner = result.get(part, {})
        if field and part in _PARTS and isinstance(inner, Mapping):
            result[part] = {**inner, field: value}
        elif name in ("m", "n_test"):
            result[name] = value
        else:
            raise InvalidSetting(
                f"there is no {name!r} to set: name m, n_test, or task., model., init. or train. and a field, such as "
                "task.T"
            )
    return result


def _combinations(grid: object) -> Iterator[dict[str, Any]]:
    if not isinstance(grid, Mapping) or [] in grid.values():
        raise InvalidSetting('"grid" is an object like {"task.T": [32, 64], "m": [16, 32]}, or a list of such')
    axes = [values if isinstance(values, list) else [values] for values in grid.values()]
    for values in itertools.product(*axes):
        yield dict(zip(map(str, grid), values, strict=True))


def _trial(raw: Mapping[str, Any], seed: int) -> Trial:
    parts = {part: raw.get(part, {}) for part in _PARTS}
    for part, value in parts.items():
        if not isinstance(value, Mapping):
            raise InvalidSetting(f"{part!r} of a sweep must be an object, got {value!r}")
    if raw.get("m") is None:
        raise InvalidSetting('a sweep needs "m", the number of training examples (0: fresh ones at every step)')
    task = task_from_json(parts["task"])
    init, rule = read(Init, parts["init"], "init"), read(Optimisation, parts["train"], "train")
    return Trial(task, model_for(task, **parts["model"]), raw["m"], seed, raw.get("n_test", N_TEST), init, rule)
