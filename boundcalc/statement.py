"""A statement of the calculus, in words: what `boundcalc explain` and printed derivations show."""

from __future__ import annotations

from dataclasses import dataclass

from boundcalc.sources import HERE, Source


@dataclass(frozen=True, slots=True)
class Statement:
    """One numbered statement.

    Attributes:
        name: how code, tests and derivations refer to it.
        title: a few words.
        formula: LaTeX.
        conditions: when it holds.
        proof: why, short enough to check.
        constants: what is explicit here and what was published.
        source: where the idea is from.
    """

    name: str
    title: str
    formula: str
    conditions: str
    proof: str
    constants: str = "all explicit"
    source: Source = HERE
