"""A statement of the calculus: in words for readers, and as a value for programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from boundcalc.base import theory
from boundcalc.base.errors import Refusal
from boundcalc.base.sources import Source


@dataclass(frozen=True, slots=True)
class Statement:
    """One numbered statement, whose words are those of docs/theory.md.

    Attributes:
        name: how code, tests and derivations refer to it.
        compute: its value, in any number system (the first argument): a number, or several by name.
        sharp: the least value this library proves, where that is not the formula a paper would print.
        applies: why it cannot be used on something, or None.
        text: its entry, "### NAME. Title" and what follows, where it is none of docs/theory.md.
    """

    name: str
    compute: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    sharp: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    applies: Callable[..., Refusal | None] | None = field(default=None, compare=False, repr=False)
    text: str = ""

    @property
    def entry(self) -> theory.Entry:
        """What it says, and why."""
        return theory.parse(self.text)[self.name] if self.text else theory.page()[self.name]

    @property
    def title(self) -> str:
        """A few words."""
        return self.entry.title

    @property
    def source(self) -> Source:
        """Where the idea is from."""
        return self.entry.source

    @property
    def arguments(self) -> tuple[str, ...]:
        """What `compute` needs besides the number system."""
        return () if self.compute is None else tuple(inspect.signature(self.compute).parameters)[1:]
