"""The trials a figure is of, from a store or a JSON export of one: read, told apart, described. Nothing here needs torch."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.output import reading
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import many
from boundcalc.lab.train.record import Record
from boundcalc.lab.train.store import Store

_OWN_SWEEP = ("conjunction", "parity", "majority")
"""Tasks that a preset of their name trains."""


def _depth(record: Record) -> int:
    return int(record.config["architecture"].get("depth", 2))


def _length(record: Record) -> int:
    """T, or L of the latent-variable tasks; a default is not recorded, but one row asks beside those that inform."""
    task = record.config["task"]
    return int(task.get("T", task.get("L", record.config["architecture"]["seq_len"] - 1)))


_READ: Mapping[str, Callable[[Record], Any]] = {
    "task": lambda r: r.config["task"].get("function", r.config["task"]["task"]),
    "T": _length,
    "s": lambda r: r.config["task"].get("s"),
    "m": lambda r: r.config["m"],
    "depth": _depth,
    "lr": lambda r: r.config["optimisation"]["lr"],
    "batch": lambda r: r.config["optimisation"]["batch"],
    "steps": lambda r: r.config["optimisation"]["steps"],
    "seed": lambda r: r.config["seed"],
    "law": lambda r: r.config["task"].get("law", "balanced"),
    "d": lambda r: r.trial.architecture.d,
}


def where(record: Record, letter: str) -> Any:
    """A trial's place on an axis."""
    return _READ[letter](record)


def make_runs(spec: Spec) -> str:
    """The command that makes trials for a figure."""
    if "@" in str(spec.runs.get("sweep", "")):
        names = _plates_of(str(spec.runs["sweep"]).partition("@")[0])
        return f"boundcalc gallery {names}--store {spec.store}"
    if "sweep" in spec.runs:
        return f"boundcalc sweep {spec.runs['sweep']} --store {spec.store}"
    if spec.figure == "gap-vs-L":
        return f"boundcalc latent learn --store {spec.store}"
    default = {"parity": "parity", "gap-vs-depth": "depth"}.get(spec.figure, "conjunction")
    task = str(spec.runs.get("task", default))
    return f"boundcalc sweep {task if task in _OWN_SWEEP else default} --store {spec.store}"


def _plates_of(sweep: str) -> str:
    """The option that trains a sweep of the gallery and no other."""
    from boundcalc.lab.plot.gallery import PLATES

    plate = next((plate.name for plate in PLATES if plate.sweep == sweep), None)
    return "" if plate is None else f"--only {plate} "


def read(spec: Spec, *, vary: str | Iterable[str] = "m", online: bool = False) -> list[Record]:
    """The trials asked for, of one kind: they may differ only in their seed and in what is varied."""
    path = Path(spec.store)
    if not path.exists():
        raise NoSolution(f"there is no store {path}: `{make_runs(spec)}` makes one")
    reading(path)
    found = [
        r
        for r in _records(path, spec)
        if all(where(r, k) == v for k, v in spec.runs.items() if k not in ("sweep", "certified"))
    ]
    found = [r for r in found if (r.config["m"] == 0) is online]
    if not found:
        asked = ", ".join(f"{key}={value}" for key, value in spec.runs.items())
        what = ("fresh examples at every step" if online else "a fixed sample") + (f" and {asked}" if asked else "")
        raise NoSolution(f"{path} has no trials with {what}: `{make_runs(spec)}` makes them")
    kept = [r for r in found if r.result["status"] == "done"]
    if not kept:
        raise NoSolution(f"all {many(len(found), 'trial')} diverged: see boundcalc runs list --store {path}")
    _refuse_mixture(kept, {vary} if isinstance(vary, str) else set(vary), _sweeps(path))
    return kept


def _sweeps(path: Path) -> list[str]:
    """Names of the sweeps of a store."""
    with Store(path, read_only=True) as store:
        return sorted(store.sweeps())


def _records(path: Path, spec: Spec) -> list[Record]:
    if "sweep" not in spec.runs:
        return all_records(path)
    with Store(path, read_only=True) as store:
        chosen = list(store.select(sweep=str(spec.runs["sweep"])))
    if not chosen and (names := _sweeps(path)):
        raise NoSolution(
            f"{path} has no sweep {spec.runs['sweep']!r}, it has {', '.join(names)}: choose one of them, "
            f"or `{make_runs(spec)}` makes it"
        )
    return chosen


def all_records(path: Path) -> list[Record]:
    """The records of a store, with their certificates; damaged ones are left out with a warning."""
    with Store(path, read_only=True) as store:
        records = list(store.records())
    for text in store.damaged:
        warnings.warn(f"{path}: left out a record: {text}", stacklevel=2)
    return records


def _kind(record: Record, vary: set[str]) -> dict[str, Any]:
    """What must agree, by words that people know."""
    config = record.config
    model = {key: value for key, value in config["architecture"].items() if key not in ("seq_len", "depth")}
    if "d" in vary:  # and what goes with it
        model = {key: value for key, value in model.items() if key not in ("d", "d_ff", "d_head")}
    found = {name: where(record, name) for name in ("task", "s", "law", "T", "m", "depth", "lr", "batch", "steps")}
    found = {name: value for name, value in found.items() if name not in vary}
    rest = {key: value for key, value in config["task"].items() if key not in ("T", "L", "s", "function", "law")}
    rule = {key: value for key, value in config["optimisation"].items() if key not in ("lr", "batch", "steps")}
    return {**found, "rest of the task": rest, "model": model, "init": config["init"], "optimisation": rule}


def _refuse_mixture(records: Sequence[Record], vary: set[str], sweeps: Sequence[str]) -> None:
    kinds: dict[str, dict[str, Any]] = {}
    for record in records:
        kind = _kind(record, vary)
        kinds.setdefault(json.dumps(kind, sort_keys=True, default=str), kind)
    if len(kinds) == 1:
        return
    for name in next(iter(kinds.values())):
        values = list(
            {json.dumps(kind[name], sort_keys=True, default=str): kind[name] for kind in kinds.values()}.values()
        )
        if len(values) < 2:
            continue
        shown = ", ".join(str(v) for v in values[:4]) + (", ..." if len(values) > 4 else "")
        if name in _READ:
            raise InvalidSetting(f"the trials mix {name} = {shown}: choose one, such as --runs {name}={values[0]}")
        known = f" ({', '.join(sweeps)})" if sweeps else ""
        raise InvalidSetting(
            f"the trials mix several kinds of {name} (the sweep was changed, or there are several): "
            f"choose one with --runs sweep=NAME{known}, or put the others into another store"
        )


def described(records: Sequence[Record]) -> dict[str, Any]:
    """What the trials are, for captions."""
    first = records[0]
    model = first.trial.architecture
    return {
        "task": where(first, "task"),
        "s": where(first, "s"),
        "T": sorted({where(r, "T") for r in records}),
        "m": sorted({where(r, "m") for r in records}),
        "model": {"depth": sorted({where(r, "depth") for r in records}), "d": model.d, "heads": model.heads},
        "trials": len(records),
    }


def shown(series: Iterable[Series], records: Sequence[Record], **facts: Any) -> FigureData:
    """Series of trials, with what the trials are."""
    return FigureData(tuple(series), {"task": described(records), **facts}, tuple(record.hash for record in records))


def grouped(records: Sequence[Record], letter: str) -> list[tuple[float, list[Record]]]:
    """Trials by their place on the axis, in order."""
    groups: dict[float, list[Record]] = {}
    for record in records:
        groups.setdefault(float(where(record, letter)), []).append(record)
    return sorted(groups.items())
