"""The trials of a store that a figure shows: chosen, distinguished, and the class that holds them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.lab.figures.runs import Run
from boundcalc.lab.train.bounds import largest, margin_error
from boundcalc.lab.train.store import Record, Store
from boundcalc.setting import Budget, Norms, Setting

_AXES = ("task", "T", "s", "law", "m", "depth", "d", "lr", "batch", "steps", "seed")
"""What trials are chosen by, as `Record.places` has it."""


def select(path: Path, chosen: Mapping[str, Any]) -> list[Record]:
    """The finished trials of a store that are chosen by sweep, task, T, m and so on."""
    validate.known_keys("--runs", chosen, ("sweep", *_AXES))
    if not path.exists():
        raise NoSolution(f"there is no store {path}: `boundcalc sweep conjunction --store {path}` makes one")
    with Store(path, create=False) as store:
        every = store.records(sweep=str(chosen.get("sweep", "")))
        sweeps = ", ".join(sorted(store.sweeps()))
    records = [
        record
        for record in every
        if all(record.places[name] == value for name, value in chosen.items() if name != "sweep")
        and record.result["status"] == "done"
    ]
    if not records:
        wanted = ", ".join(f"{name}={value}" for name, value in chosen.items()) or "any task"
        raise NoSolution(f"{path} has no finished trials with {wanted}; its sweeps are: {sweeps or 'none'}")
    return records


def refuse_mixture(records: Sequence[Record], vary: Iterable[str]) -> None:
    """Refuse trials that differ in more than the seed and what the figure varies."""
    letters = [letter for letter in _AXES if letter not in (*vary, "seed")]
    for letter in letters:
        values = sorted({str(record.places[letter]) for record in records})
        if len(values) > 1:
            raise InvalidSetting(
                f"the trials mix {letter} = {', '.join(values[:4])}: choose one, such as --runs {letter}={values[0]}"
            )
    rest = {json.dumps([r.config["init"], _rest(r, "optimisation"), _rest(r, "architecture")]) for r in records}
    if len(rest) > 1:
        raise InvalidSetting("the trials mix several kinds of model or training: choose one with --runs sweep=NAME")


def _rest(record: Record, part: str) -> list[tuple[str, Any]]:
    left_out = (*_AXES, "seq_len", "d_ff", "d_head")
    return sorted((name, value) for name, value in record.config[part].items() if name not in left_out)


def as_runs(records: Sequence[Record], gamma: float) -> list[Run]:
    """Trials as runs on the axes m, T and depth."""
    return [
        Run(
            {letter: float(record.places[letter]) for letter in ("m", "T", "depth")},
            record.result["train"]["error"],
            record.result["test"]["error"],
            record.result["test"]["n"],
            margin_error(record.result, gamma) == 0,
            record.hash[:12],
        )
        for record in records
    ]


def describe(records: Sequence[Record]) -> str:
    """The task, the model and the number of trials, in a line."""
    places, model = [record.places for record in records], records[0].trial.architecture
    task, s = places[0]["task"], places[0]["s"]
    lengths = sorted({place["T"] for place in places})
    bits = f" of {s} of {_range(lengths)} bits" if s else f", length {_range(lengths)}"
    layers = _range(sorted({place["depth"] for place in places}))
    return f"{task}{bits}; depth {layers}, width {model.d}, {model.heads} heads; {len(records)} trials"


def _range(values: Sequence[float]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g}"


def class_of(records: Sequence[Record], otherwise: Setting) -> Setting:
    """The class that holds every model drawn: budgets are the largest norms among them, rounded up to two digits.

    Had that class been fixed before the data, its bounds would hold. It was not: figures say so. A trial without a
    training margin up to gamma is a network that a bound of the risk is about: the training error is then a measured
    one.
    """
    sample = otherwise.sample
    if any(margin_error(record.result, sample.margin) <= sample.train_error for record in records):
        sample = replace(sample, measured=(*sample.measured, "train_error"))
    norms = [Norms.from_json(record.result["norms"]) for record in records]
    first, *others = (largest(norm, lambda place: place.partition("[")[0]) for norm in norms)  # alike for every block
    shared = {
        kind: [first[kind], *(other[kind] for other in others)] for kind in first if all(kind in o for o in others)
    }
    budgets = {kind: reduce(Budget.join, every).map(_two_digits) for kind, every in shared.items()}
    return Setting(records[0].trial.model, Norms(budgets=budgets), sample)


def _two_digits(value: float) -> float:
    """Two digits, upwards."""
    near = float(f"{value:.1e}")
    return near if near >= value else float(f"{near + 10.0 ** (math.floor(math.log10(value)) - 1):.1e}")
