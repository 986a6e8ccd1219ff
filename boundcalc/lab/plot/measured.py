"""What training measured, from a store of trials or a JSON export of one. Nothing here needs torch."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from boundcalc.base.confidence import clopper_pearson, hoeffding
from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.output import reading
from boundcalc.engine.evaluate import compare
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.predicted import log_height, why_not
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import called, many
from boundcalc.lab.train.bounds import margin_error, setting_of_record
from boundcalc.lab.train.export import is_database, read_records
from boundcalc.lab.train.record import Record
from boundcalc.lab.train.store import Store
from boundcalc.setting import Budget, Norms, Setting

_MOST_MARKS = 5
"""A-posteriori bounds are computed for at most so many trials per place."""

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
    """Names of the sweeps of a store; an export knows none."""
    if not is_database(path):
        return []
    with Store(path, create=False, read_only=True) as store:
        return sorted(store.sweeps())


def _records(path: Path, spec: Spec) -> list[Record]:
    if "sweep" in spec.runs:
        if not is_database(path):
            raise InvalidSetting(f"{path} is an export, which knows no sweeps: choose by task=, T=, m=, lr=, batch=")
        with Store(path, create=False, read_only=True) as store:
            chosen = list(store.select(sweep=str(spec.runs["sweep"])))
        if not chosen and (names := _sweeps(path)):
            raise NoSolution(
                f"{path} has no sweep {spec.runs['sweep']!r}, it has {', '.join(names)}: choose one of them, "
                f"or `{make_runs(spec)}` makes it"
            )
        return chosen
    return all_records(path)


def all_records(path: Path) -> list[Record]:
    """The records of a store or of an export, with their certificates."""
    try:
        return [
            Record(
                **{key: item[key] for key in ("hash", "config", "result", "digest", "created", "weights")},
                certificates=tuple(item.get("certificates", ())),
            )
            for item in read_records(path)
        ]
    except KeyError as error:
        raise InvalidSetting(f"{path}: a record has no {error}; export with --format json") from None


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


def errors(records: Sequence[Record], letter: str, quantities: Sequence[str], margin: float = 1.0) -> list[Series]:
    """Mean gap, or test error where no training margin is below `margin`, with 95% intervals of the mean risk.

    The interval is exact for the test examples of these trained models (Clopper-Pearson over all of them together).
    """
    found: list[Series] = []
    for quantity in quantities:
        rows: list[tuple[float, tuple[float, ...], int]] = []
        for x, group in grouped(records, letter):
            used = group if quantity == "gap" else [r for r in group if margin_error(r.result, margin) == 0]
            if used:
                rows.append((x, _mean(used, subtract=quantity == "gap"), len(used)))
        if rows:
            found.append(Series.measured("measured", "measured, 95% interval", quantity, rows, panel=quantity))
    return found


def _mean(records: Sequence[Record], *, subtract: bool) -> tuple[float, float, float]:
    tests = [r.result["test"] for r in records]
    n = sum(test["n"] for test in tests)
    error = sum(test["error"] * test["n"] for test in tests) / n
    if all("wrong" in test for test in tests):
        low, high = clopper_pearson(sum(test["wrong"] for test in tests), n)
    else:
        low, high = hoeffding(error, n)
    train = statistics.fmean(r.result["train"]["error"] for r in records) if subtract else 0.0
    return error - train, low - train, high - train


_PAID = ("best", "closed")
"""The least bound; where it is trivial, the one that always counts something and so tells how far it is."""


def a_posteriori(
    records: Sequence[Record], letter: str, quantities: Sequence[str], asked: Setting, bounds: Sequence[str] = _PAID
) -> list[Series]:
    """A bound at the norms of trained models (which is paid for): the median over some trials, and their range.

    Of each quantity the first of the bounds that is not trivial for all of them.
    """
    found: list[Series] = []
    for bound in bounds:
        left = [quantity for quantity in quantities if quantity not in [one.quantity for one in found]]
        found += _paid(records, letter, left, asked, bound) if left else []
    return found


def _paid(
    records: Sequence[Record], letter: str, quantities: Sequence[str], asked: Setting, bound: str
) -> list[Series]:
    rows: dict[str, list[tuple[float, ...]]] = {quantity: [] for quantity in quantities}
    refusal = ""
    for x, group in grouped(records, letter):
        values = []
        for record in group[:_MOST_MARKS]:
            if "norms" not in record.result:
                continue
            setting = _trained_setting(record, asked)
            values.append(compare(setting, [bound])[0])
        for quantity in quantities:
            telling = [value for value in values if not why_not(value, quantity)]
            refusal = refusal or next((text for value in values if (text := why_not(value, quantity))), "")
            if telling:
                ordered = sorted(telling, key=lambda v: log_height(v, quantity))
                middle = ordered[len(ordered) // 2]
                ends = [v.of(quantity).value for v in (ordered[0], ordered[-1])]
                logs = log_height(middle, quantity)
                rows[quantity].append((x, middle.of(quantity).value, logs, *ends, len(telling)))
    found: list[Series] = []
    for quantity, each in rows.items():
        if each:
            x, y, logs, low, high, count = zip(*each, strict=True)
            label = f"{called(bound)}, at trained norms"
            counts = tuple(map(int, count))
            found.append(
                Series(bound, label, "a_posteriori", quantity, x, y, logs, low, high, counts, refusal, quantity)
            )
    return found


def _trained_setting(record: Record, asked: Setting) -> Setting:
    """A trial's own setting, its norms measured, at the margin and confidence asked for."""
    return setting_of_record(record, margin=asked.sample.margin, delta=asked.sample.delta)


def setting_of(records: Sequence[Record], spec: Spec, otherwise: Setting) -> Setting:
    """The setting of the curves: the one asked for, or the class that holds every model drawn.

    Its budgets are the largest norms among the trials, rounded up to two digits. For that class, had it been fixed
    before the data, the curves are bounds; the trained models themselves have their own, a-posteriori marks.
    """
    samples = {record.config["m"] for record in records}
    if FIGURES[spec.figure].of_one_m:
        otherwise = otherwise.but(n_train=samples.pop())  # they are of one m, or were refused
    if spec.norms != "runs":
        length = max(record.config["architecture"]["seq_len"] for record in records)
        return otherwise.but(seq_len=length) if spec.setting is None else otherwise
    known = [_trained_setting(record, otherwise) for record in records]
    found: dict[str, list[Budget]] = {}
    for one in known:
        for place, budget in one.norms.budgets.items():
            found.setdefault(place.partition("[")[0], []).append(budget)  # one budget per kind, for every block
    everywhere = {kind for kind in found if all(_has(one, kind) for one in known)}
    budgets = {kind: reduce(Budget.join, found[kind]).map(_two_digits) for kind in found if kind in everywhere}
    return Setting(known[0].architecture, Norms(budgets=budgets), otherwise.sample)


def _has(setting: Setting, kind: str) -> bool:
    """Whether a kind was measured; products were not before they could be used."""
    return any(place.partition("[")[0] == kind for place in setting.norms.budgets)


def _two_digits(value: float) -> float:
    """Two digits, upwards."""
    if value <= 0:
        return value
    text = float(f"{value:.1e}")
    step = 10.0 ** (int(f"{value:e}".split("e")[1]) - 1)
    return text if text >= value else float(f"{text + step:.1e}")
