"""Everything that has a name: theorems, policies, statements and lemmas of the calculus, presets, strategies."""

from __future__ import annotations

from typing import NamedTuple

GROUPS = ("theorems", "policies", "statements", "lemmas", "certificates", "presets", "strategies")
MORE = ("figures", "tasks", "sweeps", "families")
"""Groups that are listed on request: what `plot`, `train`, `sweep` and `norms` take."""
_LEMMA_LETTERS = "TLS"


class Entry(NamedTuple):
    """A name, what it is and where it is from."""

    group: str
    name: str
    title: str
    source: str


def entries(group: str) -> list[Entry]:
    """All names of a group."""
    return [Entry(group, *row) for row in (_rows(group) if group in GROUPS else _more(group))]


def names() -> list[str]:
    """What `explain` knows."""
    return [entry.name for group in GROUPS for entry in entries(group)]


def _rows(group: str) -> list[tuple[str, str, str]]:
    """Names of the calculus."""
    from boundcalc.predictors.statements import STATEMENTS as ABOUT_ONE
    from boundcalc.setting import PRESETS, preset
    from boundcalc.statements.strategies import STRATEGIES
    from boundcalc.statements.texts import STATEMENTS
    from boundcalc.theorems import POLICIES, THEOREMS
    from boundcalc.theorems.prose import plain

    if group == "theorems":
        return [(named.name, plain(named.title), named.source.short) for named in THEOREMS.values()]
    if group == "policies":
        return [(named.name, named.title, " ".join(sorted(named.lemmas))) for named in POLICIES.values()]
    if group == "strategies":
        return [(named.name, f"{named.quantity}: {named.title}", " ".join(named.uses)) for named in STRATEGIES.values()]
    if group == "presets":
        return [
            (
                name,
                f"{a.style}, {a.normalisation}, {a.activation}",
                f"depth {a.depth}, d {a.d}, heads {a.heads}, T {a.seq_len}",
            )
            for name, a in ((name, preset(name)) for name in PRESETS)
        ]
    of_calculus = [entry for entry in STATEMENTS.values() if (entry.name[0] in _LEMMA_LETTERS) == (group == "lemmas")]
    of_one = [(name, statement.entry) for name, statement in ABOUT_ONE.items() if name not in STATEMENTS]
    listed = of_one if group == "certificates" else [(entry.name, entry) for entry in of_calculus]
    return [(name, entry.title, entry.source.short) for name, entry in listed]


def _more(group: str) -> list[tuple[str, str, str]]:
    """Names that other commands take."""
    if group == "figures":
        from boundcalc.cli.plot import FIGURES

        needs = {"overlay": "trials"}
        return [(name, about, needs.get(name, "bounds, and trials if given")) for name, about in FIGURES.items()]
    if group == "tasks":
        from dataclasses import fields

        from boundcalc.lab.train.tasks import TASKS, task_names

        classes = {name: TASKS.get(name, TASKS["boolean"]) for name in task_names()}
        return [
            (name, (task.__doc__ or "").strip().splitlines()[0], " ".join(field.name for field in fields(task)))
            for name, task in classes.items()
        ]
    if group == "sweeps":
        from boundcalc.lab.train.sweep import PRESETS

        return [(name, sweep["about"], str(sweep["task"]["task"])) for name, sweep in PRESETS.items()]
    from boundcalc.checkpoints.families import FAMILIES

    return [(family.name, "", " ".join(sorted(family.model_types))) for family in FAMILIES.values()]
