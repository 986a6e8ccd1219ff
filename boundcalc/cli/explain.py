"""`boundcalc explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from boundcalc.base.theory import glossary
from boundcalc.cli.catalogue import GROUPS, MORE, entries, names
from boundcalc.cli.lazy import near
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.text import Line, say, wrapped, write_table

if TYPE_CHECKING:
    from boundcalc.predictors.statements import Fact


_LAST = {"policies": "lemmas", "presets": "sizes", "strategies": "is based on", "figures": "shows", "tasks": "fields"}
_LAST |= {"sweeps": "task", "families": "model types"}
"""The last column of a group, if it is not the source."""


@click.command(
    epilog="""\b
Examples:
  boundcalc explain
  boundcalc explain lemmas
  boundcalc explain A1
  boundcalc explain edelman2022
  boundcalc explain margin
  boundcalc explain A1 --format json""",
)
@click.argument("name", required=False)
@form_option("table", "json")
def command(name: str | None, form: str) -> None:
    """A theorem, a statement with its proof, a policy, preset or strategy, or a word of the glossary, in full.

    Without a name, everything that has one; or a group: theorems, policies, statements, lemmas, certificates,
    presets, strategies, figures, tasks, sweeps, families. JSON has Markdown with LaTeX, as the pages do.
    """
    if name is None or name in (*GROUPS, *MORE):
        _list(name, form)
        return
    words = {word.lower(): text for word, text in glossary().items()}
    choices = [*names(), *words]
    match = next((other for other in choices if other.lower() == name.lower()), None)
    if match is None:
        raise click.UsageError(near(f"nothing is called {name!r}", name, choices))
    parts = [*_statement(match), *_theorem(match), *_other(match)]
    if match.lower() in words:
        parts.insert(0, ("Word", words[match.lower()]))
    if form == "json":
        write_json({"name": match, **{title.lower(): text for title, text in parts}}, ensure_ascii=False)
        return
    _show(match, parts)


def _list(group: str | None, form: str) -> None:
    """The names of a group, or of theorems, policies and presets, and how many others there are."""
    listed = {name: entries(name) for name in ([group] if group else GROUPS)}
    if form == "json":
        write_json([entry._asdict() for several in listed.values() for entry in several])
        return
    first = [group] if group else ["theorems", "policies", "presets"]
    for name in first:
        write_table((name, "", _LAST.get(name, "source")), [Line(entry[1:]) for entry in listed[name]])
        say()
    say("boundcalc explain NAME says more about each.")
    if group is None:
        others = ", ".join(f"{len(several)} {name}" for name, several in listed.items() if name not in first)
        say(f"Also {others}: boundcalc explain lemmas, ...")


def _statement(name: str) -> list[tuple[str, str]]:
    """A statement, as the page has it."""
    from boundcalc.predictors.statements import STATEMENTS as ABOUT_ONE
    from boundcalc.statements.texts import STATEMENTS

    if name not in STATEMENTS and name not in ABOUT_ONE:
        return []
    entry = STATEMENTS[name] if name in STATEMENTS else ABOUT_ONE[name].entry
    parts = [
        ("Title", entry.title),
        ("Statement", entry.says),
        ("Proof", entry.proof),
        ("Facts", "; ".join(f"{fact}: {meant.meaning}" for fact, meant in _facts(name).items())),
        ("Source", entry.cited.replace("theory.md", "theory.md" if name in STATEMENTS else "certificates.md")),
    ]
    return [(title, text) for title, text in parts if text]


def _facts(name: str) -> Mapping[str, Fact]:
    """What a certificate of one predictor is based on, by this statement."""
    from boundcalc.predictors.statements import STATEMENTS

    return STATEMENTS[name].facts if name in STATEMENTS else {}


def _theorem(name: str) -> list[tuple[str, str]]:
    """A theorem of the registry; of one that is a statement, only how it is used."""
    from boundcalc.statements.texts import STATEMENTS
    from boundcalc.theorems import theorem_called

    theorem = theorem_called(name)
    if theorem is None:
        return []
    commands = [f"boundcalc {word} --bound {theorem.name}" for word in ("derive", "eval")]
    uses = [("Formulas", ", ".join(theorem.quantities)), ("Use", ", ".join(commands))]
    if name in STATEMENTS:
        return uses
    return [
        ("Title", theorem.title),
        ("Says", theorem.statement),
        ("Assumes", "; ".join(theorem.assumed())),
        ("Published", theorem.published_note),
        ("Differs", "; ".join(theorem.differences())),
        ("Based on", " ".join(theorem.uses)),
        ("Source", str(theorem.source)),
        *uses,
    ]


def _other(name: str) -> list[tuple[str, str]]:
    from boundcalc.setting import PRESETS, preset
    from boundcalc.statements.strategies import STRATEGIES
    from boundcalc.theorems import BOUNDS, THEOREMS

    if name in BOUNDS:
        policy = BOUNDS[name]
        covers = [
            ("Covers", " ".join(sorted(policy.lemmas)) + ", and T8, T9, T10 for offsets, gains and tables"),
            ("Search", policy.form),
        ]
        if name in THEOREMS:
            return covers
        return [("Title", policy.title), *covers, ("Use", f"boundcalc eval --bound {name}")]
    if name in PRESETS:
        architecture = preset(name)
        fields = (
            ", ".join(f"{field} {value}" for field, value in architecture.to_json().items())
            or "the default architecture"
        )
        blocks = f"{architecture.depth} blocks, style {architecture.style}"
        return [("Title", blocks), ("Differs in", fields), ("Use", f"boundcalc eval --preset {name}")]
    if name not in STRATEGIES:
        return []
    return [
        ("Title", STRATEGIES[name].title),
        ("Bounds", STRATEGIES[name].quantity),
        ("Based on", " ".join(STRATEGIES[name].uses)),
    ]


def _show(name: str, parts: list[tuple[str, str]]) -> None:
    from boundcalc.theorems.prose import plain

    click.secho(name, bold=True)
    label = max(len(title) for title, _ in parts) + 2
    for title, text in parts:
        for number, line in enumerate(plain(text).split("\n")):
            indent = " " * (len(line) - len(line.lstrip()))
            click.echo("\n".join(wrapped(line.split(), first=("" if number else title).ljust(label) + indent)))
