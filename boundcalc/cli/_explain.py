"""`boundcalc explain`: everything that has a name, as a list or in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from boundcalc.base.theory import glossary, page
from boundcalc.cli._lazy import near
from boundcalc.cli._options import command_with
from boundcalc.cli._text import say, write_table

if TYPE_CHECKING:
    from boundcalc.theorems import Theorem

GROUPS = {
    "statements": "source",
    "lemmas": "source",
    "theorems": "source",
    "policies": "lemmas",
    "presets": "sizes",
    "strategies": "is based on",
    "certificates": "source",
}
"""What has a name, and what the last column of each list is."""
_FIRST = ("theorems", "policies", "presets")
"""Groups that are listed unless one is named."""

Parts = list[tuple[str, str]]
"""Paragraphs, each with its title."""


@command_with("""\
  boundcalc explain
  boundcalc explain lemmas
  boundcalc explain A1
  boundcalc explain margin""")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """A theorem, a statement with its proof, a policy, preset or strategy, or a word of the glossary, in full.

    Without a name, everything that has one; or a group: statements, lemmas, theorems, policies, presets, strategies,
    certificates.
    """
    from boundcalc.theorems.prose import plain

    if name is None or name in GROUPS:
        shown = _FIRST if name is None else (name,)
        for group in shown:
            write_table([(group, "", GROUPS[group]), *(row for row, _ in entries(group))])
            say()
        say("boundcalc explain NAME says more about each.")
        if name is None:
            say(f"Also {', '.join(group for group in GROUPS if group not in shown)}: boundcalc explain lemmas, ...")
        return
    word, parts = _explained(name)
    click.secho(word, bold=True)
    for title, text in parts:
        for number, line in enumerate(plain(text).split("\n") if text else ()):
            say(f"{'' if number else title:12}{line}")


def _explained(name: str) -> tuple[str, Parts]:
    """What has a name, whatever its capitals, and what there is to say of it."""
    words = {word.lower(): word for word in glossary()}
    parts = [("Word", glossary()[words[name.lower()]])] if name.lower() in words else []
    for group in GROUPS:
        for (word, *_), explain in entries(group):
            words[word.lower()] = word
            parts += explain() if word.lower() == name.lower() else []
    if not parts:
        raise click.UsageError(near(f"nothing is called {name[:80]!r}", name, [*words.values()]))
    return words[name.lower()], parts


def entries(group: str) -> Iterator[tuple[tuple[str, str, str], Callable[[], Parts]]]:
    """Everything in a group: name, title and source (or what else is to be known), and what there is to say of it."""
    from boundcalc.setting import PRESETS, Setting
    from boundcalc.statements.strategies import STRATEGIES
    from boundcalc.statements.texts import STATEMENTS
    from boundcalc.theorems import POLICIES, THEOREMS
    from boundcalc.theorems.prose import plain

    if group == "theorems":
        for theorem in THEOREMS.values():
            row = theorem.name, plain(theorem.title), theorem.source.short
            yield row, lambda theorem=theorem: [] if theorem.name in STATEMENTS else _of_theorem(theorem)
    elif group == "policies":
        for policy in POLICIES.values():
            lemmas, use = " ".join(sorted(policy.lemmas)), f"boundcalc eval --bound {policy.name}"
            covers = f"{lemmas}, and T8, T9, T10 for offsets, gains and tables" if lemmas else ""
            parts = [("Title", policy.title), ("Covers", covers), ("Search", policy.form), ("Use", use)]
            yield (policy.name, policy.title, lemmas), lambda parts=parts: parts
    elif group == "presets":
        for name, fields in PRESETS.items():
            a, use = Setting.of(name).architecture, f"boundcalc eval --preset {name}"
            sizes = f"depth {a.depth}, d {a.d}, heads {a.heads}, T {a.seq_len}"
            differs = ", ".join(f"{field} {value}" for field, value in fields.items())
            parts = [("Differs in", differs or "nothing: the default architecture"), ("Use", use)]
            yield (name, f"{a.style}, {a.normalisation}, {a.activation}", sizes), lambda parts=parts: parts
    elif group == "strategies":
        for one in STRATEGIES.values():
            parts = [("Title", one.title), ("Bounds", one.quantity), ("Based on", " ".join(one.uses))]
            yield (one.name, f"{one.quantity}: {one.title}", " ".join(one.uses)), lambda parts=parts: parts
    else:
        where = "certificates.md" if group == "certificates" else "theory.md"
        listed = [entry for entry in STATEMENTS.values() if (entry.name[0] in "TLS") == (group == "lemmas")]
        if group == "certificates":
            listed = [entry for entry in page(where).values() if entry.name not in STATEMENTS]
        for entry in listed:
            parts = [("Title", entry.title), ("Statement", entry.says), ("Proof", entry.proof)]
            parts.append(("Source", entry.cited.replace("theory.md", where)))
            parts += [use for t in THEOREMS.values() if t.statement_name == entry.name for use in _uses(t)]
            yield (entry.name, entry.title, entry.source.short), lambda parts=parts: parts


def _of_theorem(theorem: Theorem) -> Parts:
    """A theorem of the registry."""
    parts = [
        ("Title", theorem.title),
        ("Says", theorem.statement),
        ("Assumes", "; ".join(theorem.assumed())),
        ("Published", theorem.published_note),
        ("Differs", "; ".join(theorem.differences())),
        ("Based on", " ".join(theorem.uses())),
        ("Source", str(theorem.source)),
    ]
    return [*parts, *_uses(theorem)]


def _uses(theorem: Theorem) -> Parts:
    """What a theorem has formulas of, and the commands that take it."""
    use = f"boundcalc derive --bound {theorem.name}, boundcalc eval --bound {theorem.name}"
    return [("Formulas", ", ".join(theorem.quantities)), ("Use", use)]
