"""A statement of the calculus: in words for readers, and as a value for programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from boundcalc.base.errors import Refusal
from boundcalc.base.sources import HERE, Source


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
        compute: its value, in any number system (the first argument): a number, or several by name.
        sharp: the least value this library proves, where that is not the formula a paper would print.
        applies: why it cannot be used on something, or None.
    """

    name: str
    title: str
    formula: str
    conditions: str
    proof: str
    constants: str = "all explicit"
    source: Source = HERE
    compute: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    sharp: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    applies: Callable[..., Refusal | None] | None = field(default=None, compare=False, repr=False)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What `compute` needs beside the number system."""
        return () if self.compute is None else tuple(inspect.signature(self.compute).parameters)[1:]
