"""Everything that has a name: theorems, policies, statements and lemmas of the calculus, presets, strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import NamedTuple


class Entry(NamedTuple):
    """A name, what it is, and where it is from or what else is to be known of it."""

    group: str
    name: str
    title: str
    source: str


_Rows = Iterable[tuple[str, str, str]]


def _theorems() -> _Rows:
    from boundcalc.theorems import THEOREMS
    from boundcalc.theorems.prose import plain

    return ((theorem.name, plain(theorem.title), theorem.source.short) for theorem in THEOREMS.values())


def _policies() -> _Rows:
    from boundcalc.theorems import POLICIES

    return ((policy.name, policy.title, " ".join(sorted(policy.lemmas))) for policy in POLICIES.values())


def _calculus(group: str) -> _Rows:
    from boundcalc.predictors.statements import STATEMENTS as ABOUT_ONE
    from boundcalc.statements.texts import STATEMENTS

    lists = {"statements": [], "lemmas": []}
    for entry in STATEMENTS.values():
        lists["lemmas" if entry.name[0] in "TLS" else "statements"].append((entry.name, entry))
    lists["certificates"] = [(name, one.entry) for name, one in ABOUT_ONE.items() if name not in STATEMENTS]
    return ((name, entry.title, entry.source.short) for name, entry in lists[group])


def _presets() -> _Rows:
    from boundcalc.setting import PRESETS, preset

    for name, a in ((name, preset(name)) for name in PRESETS):
        sizes = f"depth {a.depth}, d {a.d}, heads {a.heads}, T {a.seq_len}"
        yield name, f"{a.style}, {a.normalisation}, {a.activation}", sizes


def _strategies() -> _Rows:
    from boundcalc.statements.strategies import STRATEGIES

    return ((s.name, f"{s.quantity}: {s.title}", " ".join(s.uses)) for s in STRATEGIES.values())


def _figures() -> _Rows:
    from boundcalc.cli.plot import FIGURES

    for name, about in FIGURES.items():
        yield name, about, "trials" if name == "overlay" else "bounds, and trials if given"


def _tasks() -> _Rows:
    from boundcalc.lab.train.tasks import TASKS, task_names

    for name in task_names():
        task = TASKS.get(name, TASKS["boolean"])
        yield name, (task.__doc__ or "").strip().splitlines()[0], " ".join(field.name for field in fields(task))


def _sweeps() -> _Rows:
    from boundcalc.lab.train.sweep import PRESETS

    return ((name, sweep["about"], str(sweep["task"]["task"])) for name, sweep in PRESETS.items())


def _families() -> _Rows:
    from boundcalc.checkpoints.families import FAMILIES

    return ((family.name, "", " ".join(sorted(family.model_types))) for family in FAMILIES.values())


_ROWS: dict[str, tuple[Callable[[], _Rows], str]] = {
    "theorems": (_theorems, "source"),
    "policies": (_policies, "lemmas"),
    **{name: (lambda name=name: _calculus(name), "source") for name in ("statements", "lemmas", "certificates")},
    "presets": (_presets, "sizes"),
    "strategies": (_strategies, "is based on"),
    "figures": (_figures, "shows"),
    "tasks": (_tasks, "fields"),
    "sweeps": (_sweeps, "task"),
    "families": (_families, "model types"),
}
"""By group its rows, and what the last of them is."""
HEADINGS = {group: heading for group, (_, heading) in _ROWS.items()}
MORE = ("figures", "tasks", "sweeps", "families")
"""Groups that are listed on request: what `plot`, `train`, `sweep` and `norms` take."""
GROUPS = tuple(group for group in _ROWS if group not in MORE)


def entries(group: str) -> list[Entry]:
    """All names of a group."""
    return [Entry(group, *row) for row in _ROWS[group][0]()]
