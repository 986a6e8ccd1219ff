"""Everything that has a name: statements, policies, presets, strategies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

GROUPS = ("theorems", "lemmas", "policies", "presets", "strategies")
_LEMMA_LETTERS = "TLS"


class Entry(NamedTuple):
    """A name, what it is and where it is from."""

    group: str
    name: str
    title: str
    source: str


def entries(group: str) -> Iterator[Entry]:
    """All names of a group."""
    yield from {
        "theorems": lambda: _statements("theorems"),
        "lemmas": lambda: _statements("lemmas"),
        "policies": _policies,
        "presets": _presets,
        "strategies": _strategies,
    }[group]()


def _statements(group: str) -> Iterator[Entry]:
    from boundcalc.calculus.statements import STATEMENTS
    from boundcalc.sources import HERE

    for statement in STATEMENTS.values():
        lemma = statement.name[0] in _LEMMA_LETTERS
        if lemma == (group == "lemmas"):
            source = statement.source
            where = "this library" if source == HERE else f"{source.authors.split(',')[0].split()[-1]} {source.year}"
            yield Entry(group, statement.name, statement.title, where)


def _policies() -> Iterator[Entry]:
    from boundcalc.theorems import POLICIES

    for policy in POLICIES.values():
        yield Entry("policies", policy.name, policy.title, " ".join(sorted(policy.lemmas)))


def _presets() -> Iterator[Entry]:
    from boundcalc.setting import PRESETS, preset

    for name in PRESETS:
        made = preset(name)
        sizes = f"depth {made.depth}, d {made.d}, heads {made.heads}, T {made.seq_len}"
        yield Entry("presets", name, f"{made.style}, {made.normalisation}, {made.activation}", sizes)


STRATEGY_TITLES = {
    "chain": "chaining by entropy links over several scales, symmetrisation",
    "ghost-chain": "chaining, with several ghost samples per sample instead of symmetrisation",
    "uniform-chain": "chaining of covers that serve every sample",
    "uniform-single": "one cover that serves every sample",
    "closed": "chaining in closed form of an optimally split cover",
    "published": "Dudley's integral with the constants of the literature",
    "uniform-margin": "one cover that serves every sample, at half the margin; any training error",
    "ghost-realizable": "one cover of the sample and its ghosts, at half the margin; training error 0",
    "ghost": "one cover of the sample and its ghosts, at half the margin; any training error",
}


def _strategies() -> Iterator[Entry]:
    from boundcalc.calculus.statements import STRATEGY_USES
    from boundcalc.certificate import STRATEGIES

    for name, quantity in STRATEGIES.items():
        title = f"{quantity}: {STRATEGY_TITLES.get(name, '')}"
        yield Entry("strategies", name, title, " ".join(STRATEGY_USES.get(name, ())))
