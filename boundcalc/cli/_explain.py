"""`boundcalc explain`: everything that has a name, as a list or in full."""

from __future__ import annotations

from collections.abc import Iterator

import click

from boundcalc.base.theory import glossary, page
from boundcalc.cli._lazy import near
from boundcalc.cli._options import command_with
from boundcalc.cli._text import say, write_table

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


@command_with("""\
  boundcalc explain
  boundcalc explain lemmas
  boundcalc explain A1
  boundcalc explain margin""")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """A theorem, a statement with its proof, a policy, preset or strategy, or a word of the glossary, in full.

    Without a name, everything that has one; or a group: theorems, policies, statements, lemmas, certificates,
    presets, strategies.
    """
    from boundcalc.theorems.prose import plain

    if name is None or name in GROUPS:
        shown = _FIRST if name is None else (name,)
        for group in shown:
            write_table([(group, "", GROUPS[group]), *entries(group)])
            say()
        say("boundcalc explain NAME says more about each.")
        if name is None:
            say(f"Also {', '.join(group for group in GROUPS if group not in shown)}: boundcalc explain lemmas, ...")
        return
    match = next((other for other in _names() if other.lower() == name.lower()), None)
    if match is None:
        raise click.UsageError(near(f"nothing is called {name[:80]!r}", name, list(_names())))
    words = {word.lower(): text for word, text in glossary().items()}
    parts = [("Word", words.get(match.lower(), "")), *_statement(match), *_theorem(match), *_other(match)]
    click.secho(match, bold=True)
    for title, text in parts:
        for number, line in enumerate(plain(text).split("\n") if text else ()):
            say(f"{'' if number else title:12}{line}")


def _names() -> Iterator[str]:
    """Everything that has a name; certificates at last, as they need NumPy."""
    yield from (row[0] for group in GROUPS if group != "certificates" for row in entries(group))
    yield from glossary()
    yield from (row[0] for row in entries("certificates"))


def entries(group: str) -> Iterator[tuple[str, str, str]]:
    """Name, title and source (or what else is to be known) of everything in a group."""
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
        for entry in page("certificates.md").values():
            if entry.name not in STATEMENTS:
                yield entry.name, entry.title, entry.source.short
    else:
        for entry in STATEMENTS.values():
            if (entry.name[0] in "TLS") == (group == "lemmas"):
                yield entry.name, entry.title, entry.source.short


def _statement(name: str) -> list[tuple[str, str]]:
    """A statement, as the page has it."""
    from boundcalc.statements.texts import STATEMENTS

    where = "theory.md" if name in STATEMENTS else "certificates.md"
    entry = STATEMENTS.get(name) or page(where).get(name)
    if entry is None:
        return []
    parts = [("Title", entry.title), ("Statement", entry.says), ("Proof", entry.proof)]
    return [*parts, ("Source", entry.cited.replace("theory.md", where))]


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
        ("Based on", " ".join(theorem.uses())),
        ("Source", str(theorem.source)),
    ]
    use = f"boundcalc derive --bound {theorem.name}, boundcalc eval --bound {theorem.name}"
    return [*([] if name in STATEMENTS else parts), ("Formulas", ", ".join(theorem.quantities)), ("Use", use)]


def _other(name: str) -> list[tuple[str, str]]:
    """A policy, a preset or a strategy."""
    from boundcalc.setting import PRESETS
    from boundcalc.statements.strategies import STRATEGIES
    from boundcalc.theorems import POLICIES

    if name in POLICIES:
        policy = POLICIES[name]
        lemmas = " ".join(sorted(policy.lemmas))
        covers = f"{lemmas}, and T8, T9, T10 for offsets, gains and tables" if lemmas else ""
        use = f"boundcalc eval --bound {name}"
        return [("Title", policy.title), ("Covers", covers), ("Search", policy.form), ("Use", use)]
    if name in PRESETS:
        differs = ", ".join(f"{field} {value}" for field, value in PRESETS[name].items())
        use = f"boundcalc eval --preset {name}"
        return [("Differs in", differs or "nothing: the default architecture"), ("Use", use)]
    strategy = STRATEGIES.get(name)
    if strategy is None:
        return []
    return [("Title", strategy.title), ("Bounds", strategy.quantity), ("Based on", " ".join(strategy.uses))]
