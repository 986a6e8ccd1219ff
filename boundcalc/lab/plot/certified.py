"""Certificates of predictors as a store keeps them, by method and model, for figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.lab.plot.data import Series
from boundcalc.lab.plot.runs import all_records
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.train.record import Record
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.trial import model_for

WHY: Mapping[str, str] = {
    "p2l": "few picks",
    "occam": "few bits",
    "pac-bayes": "a wide posterior",
    "norms": "a small class",
}
"""What a certificate says beside its number."""


@dataclass(frozen=True)
class Group:
    """Certificates of one method and one model, over m.

    Attributes:
        method: how they were made.
        model: in few words, where it is not the default one.
        risks: by m, in increasing order; 1 where a certificate was refused.
        tests: by m, errors on fresh examples of what was certified.
        seconds: by m, median processor seconds.
    """

    method: str
    model: str
    risks: Mapping[int, Sequence[float]]
    tests: Mapping[int, Sequence[float]]
    seconds: Mapping[int, float]

    @property
    def series(self) -> Series:
        """Medians and ranges."""
        x = tuple(self.risks)
        lows, highs = (tuple(end(self.risks[m]) for m in x) for end in (min, max))
        label = f"{self.method}, {self.model}" if self.model else self.method
        counts = tuple(len(self.risks[m]) for m in x)
        middle = tuple(median(self.risks[m]) for m in x)
        return Series(self.method, label, "certificate", "risk", x, middle, (), lows, highs, counts, panel="risk")

    def to_json(self) -> dict[str, Any]:
        """For the facts of a figure."""
        return {
            "method": self.method,
            "model": self.model,
            "m": list(self.risks),
            "seconds": [self.seconds[m] for m in self.risks],
            "risks": [list(self.risks[m]) for m in self.risks],
            "test_errors": [list(self.tests[m]) for m in self.risks],
        }


def groups(spec: Spec, trials: Sequence[Record]) -> list[Group]:
    """The certificates beside some trials: of the sweeps named by runs, or of all trials of the same task."""
    found: dict[tuple[str, str], dict[int, list[Mapping[str, Any]]]] = {}
    task = trials[0].config["task"]
    for record in _records(spec):
        if record.config["task"] != task:
            continue
        for stored in record.certificates:
            if stored["asked"]["delta"] != _delta(spec) or stored["asked"]["prefix"]:
                continue
            key = stored["asked"]["method"], _model(record)
            found.setdefault(key, {}).setdefault(int(record.config["m"]), []).append(stored["entry"])
    if not found:
        raise NoSolution(
            f"{spec.store} has no certificates of the task drawn: `boundcalc sweep ... --certify all --store {spec.store}` "
            "makes them"
        )
    return [_group(method, model, entries) for (method, model), entries in sorted(found.items())]


def _delta(spec: Spec) -> float:
    return 0.05 if spec.setting is None else spec.setting.sample.delta


def _records(spec: Spec) -> Iterable[Record]:
    names = spec.runs.get("certified")
    if names is None:
        return all_records(Path(spec.store))
    if isinstance(names, str) or not isinstance(names, list | tuple):
        raise InvalidSetting(f'certified is a list of sweeps such as ["mine"], got {names!r}')
    with Store(Path(spec.store), create=False, read_only=True) as store:
        return [record for name in names for record in store.select(sweep=str(name))]


def _model(record: Record) -> str:
    """What is not the default model, in few words."""
    trial = record.trial
    width = trial.architecture.d
    return "" if width == model_for(trial.task).d else f"width {width}"


def _group(method: str, model: str, entries: Mapping[int, Sequence[Mapping[str, Any]]]) -> Group:
    ordered = {m: entries[m] for m in sorted(entries)}
    made = {m: [entry for entry in each if entry["risk"] is not None] for m, each in ordered.items()}
    return Group(
        method,
        model,
        {m: [1.0 if entry["risk"] is None else float(entry["risk"]) for entry in each] for m, each in ordered.items()},
        {m: [float(entry["test_error"]) for entry in each] for m, each in made.items()},
        {m: median([float(entry["cpu_seconds"]) for entry in each]) if each else 0.0 for m, each in made.items()},
    )
