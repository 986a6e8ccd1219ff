"""`boundcalc explain`: everything that has a name, as a list or in full."""

from __future__ import annotations

from collections.abc import Iterator

import click

from boundcalc.base.theory import glossary
from boundcalc.cli.lazy import near
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.text import say, write_table

GROUPS = {
    "theorems": "source",
    "policies": "lemmas",
    "statements": "source",
    "lemmas": "source",
    "certificates": "source",
    "presets": "sizes",
    "strategies": "is based on",
}
"""What has a name, and what the last column of each list is."""
_FIRST = ("theorems", "policies", "presets")
"""Groups that are listed unless one is named."""


@click.command(
    epilog="""\b
Examples:
  boundcalc explain
  boundcalc explain lemmas
  boundcalc explain A1
  boundcalc explain margin""",
)
@click.argument("name", required=False)
@form_option("table", "json")
def command(name: str | None, form: str) -> None:
    """A theorem, a statement with its proof, a policy, preset or strategy, or a word of the glossary, in full.

    Without a name, everything that has one; or a group: theorems, policies, statements, lemmas, certificates,
    presets, strategies. JSON has Markdown with LaTeX, as the pages do.
    """
    listed = {group: list(entries(group)) for group in GROUPS}
    if name is None or name in GROUPS:
        listed = listed if name is None else {name: listed[name]}
        if form == "json":
            keys = ("group", "name", "title", "source")
            write_json([dict(zip(keys, (group, *row), strict=True)) for group in listed for row in listed[group]])
        else:
            _list(listed)
        return
    words = {word.lower(): text for word, text in glossary().items()}
    choices = [*(row[0] for rows in listed.values() for row in rows), *words]
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


def _list(listed: dict[str, list[tuple[str, str, str]]]) -> None:
    """The names of a group, or of theorems, policies and presets, and how many others there are."""
    shown = [group for group in listed if len(listed) == 1 or group in _FIRST]
    for group in shown:
        write_table((group, "", GROUPS[group]), listed[group])
        say()
    say("boundcalc explain NAME says more about each.")
    if others := [f"{len(rows)} {group}" for group, rows in listed.items() if group not in shown]:
        say(f"Also {', '.join(others)}: boundcalc explain lemmas, ...")


def entries(group: str) -> Iterator[tuple[str, str, str]]:
    """Name, title and source (or what else is to be known) of everything in a group."""
    from boundcalc.predictors.statements import STATEMENTS as ABOUT_ONE
    from boundcalc.setting import PRESETS, Setting
    from boundcalc.statements.strategies import STRATEGIES
    from boundcalc.statements.texts import STATEMENTS
    from boundcalc.theorems import POLICIES, THEOREMS
    from boundcalc.theorems.prose import plain

    if group == "theorems":
        yield from ((theorem.name, plain(theorem.title), theorem.source.short) for theorem in THEOREMS.values())
    elif group == "policies":
        yield from ((policy.name, policy.title, " ".join(sorted(policy.lemmas))) for policy in POLICIES.values())
    elif group == "presets":
        for name in PRESETS:
            a = Setting.of(name).architecture
            sizes = f"depth {a.depth}, d {a.d}, heads {a.heads}, T {a.seq_len}"
            yield name, f"{a.style}, {a.normalisation}, {a.activation}", sizes
    elif group == "strategies":
        yield from ((s.name, f"{s.quantity}: {s.title}", " ".join(s.uses)) for s in STRATEGIES.values())
    elif group == "certificates":
        for name, one in ABOUT_ONE.items():
            if name not in STATEMENTS:
                yield name, one.entry.title, one.entry.source.short
    else:
        for entry in STATEMENTS.values():
            if (entry.name[0] in "TLS") == (group == "lemmas"):
                yield entry.name, entry.title, entry.source.short


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
    from boundcalc.setting import PRESETS
    from boundcalc.statements.strategies import STRATEGIES
    from boundcalc.theorems import BOUNDS, THEOREMS

    if name in BOUNDS:
        policy = BOUNDS[name]
        covers = " ".join(sorted(policy.lemmas)) + ", and T8, T9, T10 for offsets, gains and tables"
        parts = [("Covers", covers), ("Search", policy.form)]
        use = ("Use", f"boundcalc eval --bound {name}")
        return parts if name in THEOREMS else [("Title", policy.title), *parts, use]
    if name in PRESETS:
        differs = ", ".join(f"{field} {value}" for field, value in PRESETS[name].items())
        use = ("Use", f"boundcalc eval --preset {name}")
        return [("Differs in", differs or "nothing: the default architecture"), use]
    strategy = STRATEGIES.get(name)
    if strategy is None:
        return []
    return [("Title", strategy.title), ("Bounds", strategy.quantity), ("Based on", " ".join(strategy.uses))]
