"""A sweep: a file that says which trials there are, and a run that does those that are missing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_document
from boundcalc.lab.train import defaults
from boundcalc.lab.train.trial import Trial, trial_from_parts

_KEYS = ("name", "about", "task", "model", "init", "train", "m", "n_test", "seeds", "grid")
_PARTS = ("task", "model", "init", "train")
_SHORT = {"T": "task.T", "s": "task.s", "L": "task.L", "depth": "model.depth", "d": "model.d", "lr": "train.lr"}
_MOST_TRIALS = 1_000_000


@dataclass(frozen=True)
class Sweep:
    """A named set of trials.

    Attributes:
        name: under which the store lists them.
        trials: without repetition.
    """

    name: str
    trials: tuple[Trial, ...]


def read_sweep_file(path: Path) -> Any:
    """The content of a .json, .yaml or .toml file."""
    try:
        return read_document(path, "the sweep file")
    except OSError as error:
        raise InvalidSetting(f"cannot read the sweep file {path}: {error.strerror}") from None


def sweep_from_json(data: object, *, device: str = "cpu", name: str = "sweep") -> Sweep:
    """A sweep from its description.

    "task", "model", "init" and "train" describe one trial; "grid" is an object (or a list of objects) of dotted
    names ("task.T", "train.lr", "m") with lists of values, all combinations of which are run; "seeds" is a number
    or a list.
    """
    raw = validate.known_keys("sweep", data, _KEYS)
    if "task" not in raw:
        raise InvalidSetting('a sweep needs a "task", such as {"task": "conjunction", "s": 3}')
    grids = raw.get("grid", {})
    grids = grids if isinstance(grids, list) else [grids]
    seeds = _seeds(raw.get("seeds", 1))
    if sum(_points(grid) for grid in grids) * len(seeds) > _MOST_TRIALS:
        raise InvalidSetting(f"a sweep of more than {_MOST_TRIALS} trials is a slip: look at its grid and its seeds")
    trials: dict[str, Trial] = {}
    for grid in grids:
        for values in _combinations(grid):
            for seed in seeds:
                trial = _trial(raw, {**values}, seed, device)
                trials.setdefault(trial.hash, trial)
    return Sweep(str(raw.get("name", name)), tuple(trials.values()))


def _seeds(value: object) -> Sequence[int]:
    if isinstance(value, list) and value:
        return [validate.size("seed", seed, least=0) for seed in value]
    return range(validate.size("seeds", value))


def _points(grid: object) -> int:
    """How many combinations a grid has."""
    if not isinstance(grid, Mapping):
        return 1
    return math.prod(len(values) for values in grid.values() if isinstance(values, list))


def _combinations(grid: object) -> Iterator[dict[str, Any]]:
    if not isinstance(grid, Mapping):
        raise InvalidSetting('"grid" is an object like {"task.T": [32, 64], "m": [16, 32]}, or a list of such')
    axes: dict[str, list[Any]] = {}
    for key, values in grid.items():
        name = _SHORT.get(str(key), str(key))
        if values == []:
            raise InvalidSetting(f"the grid's {key!r} has no value")
        if name in axes:
            raise InvalidSetting(f"the grid sets {name!r} twice")
        axes[name] = values if isinstance(values, list) else [values]
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _trial(raw: Mapping[str, Any], values: dict[str, Any], seed: int, device: str) -> Trial:
    parts: dict[str, dict[str, Any]] = {}
    for part in _PARTS:
        value = raw.get(part, {})
        if not isinstance(value, Mapping):
            raise InvalidSetting(f"{part!r} of a sweep must be an object, got {value!r}")
        parts[part] = dict(value)
    m = values.pop("m", raw.get("m"))
    for key, value in values.items():
        part, _, name = key.partition(".")
        if part not in _PARTS or not name:
            raise InvalidSetting(
                f"the grid has no {key!r}: name m, or task., model., init. or train. and a field, such as 'task.T'"
            )
        parts[part][name] = value
    if m is None:
        raise InvalidSetting('a sweep needs "m", the number of training examples (0: fresh ones at every step)')
    return trial_from_parts(**parts, m=m, seed=seed, n_test=raw.get("n_test", defaults.N_TEST), device=device)


def missing(trials: Sequence[Trial], present: set[str]) -> list[Trial]:
    """The trials that are not in the store."""
    return [trial for trial in trials if trial.hash not in present]
