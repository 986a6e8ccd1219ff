"""Everything that has a name: theorems, policies, statements and lemmas of the calculus, presets, strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

GROUPS = ("theorems", "policies", "statements", "lemmas", "certificates", "presets", "strategies")
MORE = ("figures", "tasks", "sweeps", "families")
"""Groups that are listed on request: what `plot`, `train`, `sweep` and `norms` take."""
_LEMMA_LETTERS = "TLS"
_Rows = Iterator[tuple[str, str, str]]


class Entry(NamedTuple):
    """A name, what it is and where it is from."""

    group: str
    name: str
    title: str
    source: str


def entries(group: str) -> Iterator[Entry]:
    """All names of a group."""
    for name, title, source in _LISTED[group]():
        yield Entry(group, name, title, source)


def names() -> list[str]:
    """What `explain` knows."""
    return [entry.name for group in GROUPS for entry in entries(group)]


def _theorems() -> _Rows:
    from boundcalc.theorems import THEOREMS
    from boundcalc.theorems.prose import plain

    for theorem in THEOREMS.values():
        yield theorem.name, plain(theorem.title), theorem.source.short


def _statements(*, lemmas: bool) -> _Rows:
    from boundcalc.statements.texts import STATEMENTS

    for entry in STATEMENTS.values():
        if (entry.name[0] in _LEMMA_LETTERS) == lemmas:
            yield entry.name, entry.title, entry.source.short


def _certificates() -> _Rows:
    """Statements about one predictor, but for those that are in the calculus too."""
    from boundcalc.predictors.statements import STATEMENTS as ABOUT_ONE
    from boundcalc.statements.texts import STATEMENTS

    for name, statement in ABOUT_ONE.items():
        if name not in STATEMENTS:
            yield name, statement.entry.title, statement.entry.source.short


def _policies() -> _Rows:
    from boundcalc.theorems import POLICIES

    for policy in POLICIES.values():
        yield policy.name, policy.title, " ".join(sorted(policy.lemmas))


def _presets() -> _Rows:
    from boundcalc.setting import PRESETS, preset

    for name in PRESETS:
        made = preset(name)
        sizes = f"depth {made.depth}, d {made.d}, heads {made.heads}, T {made.seq_len}"
        yield name, f"{made.style}, {made.normalisation}, {made.activation}", sizes


def _figures() -> _Rows:
    from boundcalc.cli.plot import FIGURES

    for name, about in FIGURES.items():
        yield name, about, "bounds, and trials if given" if name != "overlay" else "trials"


def _tasks() -> _Rows:
    from dataclasses import fields

    from boundcalc.lab.train.tasks import TASKS, task_names

    for name in task_names():
        made = TASKS.get(name, TASKS["boolean"])
        about = (made.__doc__ or "").strip().splitlines()[0]
        yield name, about, " ".join(field.name for field in fields(made))


def _sweeps() -> _Rows:
    from boundcalc.lab.train.presets import PRESETS

    for name, sweep in PRESETS.items():
        yield name, sweep["about"], str(sweep["task"]["task"])


def _families() -> _Rows:
    from boundcalc.checkpoints.families import FAMILIES

    for family in FAMILIES.values():
        yield family.name, "", " ".join(sorted(family.model_types))


def _strategies() -> _Rows:
    from boundcalc.statements.strategies import STRATEGIES

    for strategy in STRATEGIES.values():
        yield strategy.name, f"{strategy.quantity}: {strategy.title}", " ".join(strategy.uses)


_LISTED: Mapping[str, Callable[[], _Rows]] = {
    "theorems": _theorems,
    "statements": partial(_statements, lemmas=False),
    "lemmas": partial(_statements, lemmas=True),
    "certificates": _certificates,
    "policies": _policies,
    "presets": _presets,
    "strategies": _strategies,
    "figures": _figures,
    "tasks": _tasks,
    "sweeps": _sweeps,
    "families": _families,
}
