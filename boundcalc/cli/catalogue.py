"""Everything that has a name: theorems, policies, statements and lemmas of the calculus, presets, strategies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

GROUPS = ("theorems", "policies", "statements", "lemmas", "presets", "strategies")
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
        "theorems": _theorems,
        "statements": lambda: _statements("statements"),
        "lemmas": lambda: _statements("lemmas"),
        "policies": _policies,
        "presets": _presets,
        "strategies": _strategies,
    }[group]()


def _theorems() -> Iterator[Entry]:
    from boundcalc.formulas.theorems import THEOREMS

    for theorem in THEOREMS.values():
        yield Entry("theorems", theorem.name, theorem.title, theorem.source.short)


def _statements(group: str) -> Iterator[Entry]:
    from boundcalc.statements.texts import STATEMENTS

    for statement in STATEMENTS.values():
        lemma = statement.name[0] in _LEMMA_LETTERS
        if lemma == (group == "lemmas"):
            yield Entry(group, statement.name, statement.title, statement.source.short)


def _policies() -> Iterator[Entry]:
    from boundcalc.formulas.theorems import POLICIES

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
    from boundcalc.proof.certificate import STRATEGIES
    from boundcalc.statements.texts import STRATEGY_USES

    for name, quantity in STRATEGIES.items():
        title = f"{quantity}: {STRATEGY_TITLES.get(name, '')}"
        yield Entry("strategies", name, title, " ".join(STRATEGY_USES.get(name, ())))
