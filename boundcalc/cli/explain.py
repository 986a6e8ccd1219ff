"""`boundcalc explain`."""

from __future__ import annotations

import click

from boundcalc.base.theory import glossary
from boundcalc.cli.catalogue import GROUPS, HEADINGS, entries
from boundcalc.cli.lazy import near
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.text import say, write_table


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
    if name is None or name in HEADINGS:
        _list(name, form)
        return
    words = {word.lower(): text for word, text in glossary().items()}
    choices = [*(entry.name for group in GROUPS for entry in entries(group)), *words]
    match = next((other for other in choices if other.lower() == name.lower()), None)
    if match is None:
        raise click.UsageError(near(f"nothing is called {name!r}", name, choices))
    parts = [("Word", words.get(match.lower(), "")), *_statement(match), *_theorem(match), *_other(match)]
    parts = [(title, text) for title, text in parts if text]
    if form == "json":
        write_json({"name": match, **{title.lower(): text for title, text in parts}}, ensure_ascii=False)
        return
    from boundcalc.theorems.prose import plain

    click.secho(match, bold=True)
    label = max(len(title) for title, _ in parts) + 2
    for title, text in parts:
        for number, line in enumerate(plain(text).split("\n")):
            say(f"{'' if number else title:{label}}{line}")


def _list(group: str | None, form: str) -> None:
    """The names of a group, or of theorems, policies and presets, and how many others there are."""
    listed = {name: entries(name) for name in ([group] if group else GROUPS)}
    if form == "json":
        write_json([entry._asdict() for several in listed.values() for entry in several])
        return
    first = [group] if group else ["theorems", "policies", "presets"]
    for name in first:
        write_table((name, "", HEADINGS[name]), [entry[1:] for entry in listed[name]])
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
    facts = ABOUT_ONE[name].meanings if name in ABOUT_ONE else {}
    return [
        ("Title", entry.title),
        ("Statement", entry.says),
        ("Proof", entry.proof),
        ("Facts", "; ".join(f"{fact}: {words}" for fact, words in facts.items())),
        ("Source", entry.cited.replace("theory.md", "theory.md" if name in STATEMENTS else "certificates.md")),
    ]


def _theorem(name: str) -> list[tuple[str, str]]:
    """A theorem of the registry; of one that is a statement, only how it is used."""
    from boundcalc.statements.texts import STATEMENTS
    from boundcalc.theorems import theorem_called

    theorem = theorem_called(name)
    if theorem is None:
        return []
    parts = [
        ("Title", theorem.title),
        ("Says", theorem.statement),
        ("Assumes", "; ".join(theorem.assumed())),
        ("Published", theorem.published_note),
        ("Differs", "; ".join(theorem.differences())),
        ("Based on", " ".join(theorem.uses)),
        ("Source", str(theorem.source)),
    ]
    commands = ", ".join(f"boundcalc {word} --bound {theorem.name}" for word in ("derive", "eval"))
    return [*([] if name in STATEMENTS else parts), ("Formulas", ", ".join(theorem.quantities)), ("Use", commands)]


def _other(name: str) -> list[tuple[str, str]]:
    """A policy, a preset or a strategy."""
    from boundcalc.setting import PRESETS, preset
    from boundcalc.statements.strategies import STRATEGIES
    from boundcalc.theorems import BOUNDS, THEOREMS

    if name in BOUNDS:
        policy = BOUNDS[name]
        covers = " ".join(sorted(policy.lemmas)) + ", and T8, T9, T10 for offsets, gains and tables"
        parts = [("Covers", covers), ("Search", policy.form)]
        use = ("Use", f"boundcalc eval --bound {name}")
        return parts if name in THEOREMS else [("Title", policy.title), *parts, use]
    if name in PRESETS:
        architecture = preset(name)
        differs = ", ".join(f"{field} {value}" for field, value in architecture.to_json().items())
        blocks = f"{architecture.depth} blocks, style {architecture.style}"
        use = ("Use", f"boundcalc eval --preset {name}")
        return [("Title", blocks), ("Differs in", differs or "the default architecture"), use]
    strategy = STRATEGIES.get(name)
    if strategy is None:
        return []
    return [("Title", strategy.title), ("Bounds", strategy.quantity), ("Based on", " ".join(strategy.uses))]
