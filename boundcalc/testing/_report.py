"""What a check finds, as data: complaints, one per law that does not hold; and what a registration must bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from boundcalc.base.errors import BoundcalcError

_Subject = TypeVar("_Subject", covariant=True)
_Example = TypeVar("_Example", covariant=True)
Subject = TypeVar("Subject")
Example = TypeVar("Example")
_PARTS = {
    "examples": "the laws hold anywhere",
    "refusals": "it refuses what it is not for",
    "wrong": "the laws would see a mistake",
}


@dataclass(frozen=True, slots=True)
class Cases(Generic[_Subject, _Example]):
    """Where laws are tried; without any of the three a check is incomplete and complains.

    Attributes:
        examples: where the laws must hold.
        refusals: what must be refused, each with a regular expression that the reason must match; None if there is
            nothing that it could be asked and must refuse.
        wrong: false variants by name; the laws must reject each, or they would miss a mistake.
    """

    examples: Sequence[_Example]
    refusals: Sequence[tuple[Any, str]] | None
    wrong: Mapping[str, _Subject]

    @property
    def missing(self) -> tuple[str, ...]:
        """What is missing, and what therefore nothing shows."""
        return tuple(
            f"no {what} were brought, so nothing shows that {shows}"
            for what, shows in _PARTS.items()
            if getattr(self, what) is not None and not getattr(self, what)
        )


class LawBroken(BoundcalcError, AssertionError):
    """A check whose complaints were to be raised."""


class Complaint(NamedTuple):
    """One law that does not hold.

    Attributes:
        law: its name; "complete", "refusals" and "wrong" are about what was brought.
        example: where.
        says: what was found.
    """

    law: str
    example: str
    says: str

    def __str__(self) -> str:
        return f"{self.law}: {self.says}" + (f" [{self.example}]" if self.example else "")


class Report(NamedTuple):
    """What a check found.

    Attributes:
        name: what was checked, such as "lemma T3".
        laws: the laws that were tried.
        complaints: what does not hold.
    """

    name: str
    laws: tuple[str, ...]
    complaints: tuple[Complaint, ...]

    @property
    def ok(self) -> bool:
        """Whether there is nothing to complain about."""
        return not self.complaints

    def raise_if_broken(self) -> Report:
        """The report itself, or an error that lists its complaints."""
        if self.complaints:
            raise LawBroken("\n".join([f"{self.name}:", *(f"  {line}" for line in self.complaints)]))
        return self


Law = Callable[[Subject, Example], "str | None"]
"""What is wrong with a subject at an example, or None. Its name is the law's."""
Refuse = Callable[[Subject, Any], "object | None"]
"""Why a subject refuses something (anything with a text), or None if it takes it. It may raise its refusal."""


def judge(
    name: str,
    subject: Subject,
    cases: Cases[Subject, Example],
    laws: Sequence[Law[Subject, Example]],
    refuse: Refuse[Subject],
) -> Report:
    """Tries every law on every example, every refusal, and every law on every wrong variant."""
    complaints = [Complaint("complete", "", missing) for missing in cases.missing]
    complaints += [c for law in laws if (c := _broken(law, subject, cases.examples)) is not None]
    for what, pattern in cases.refusals or ():
        if says := _taken(subject, what, pattern, refuse):
            complaints.append(Complaint("refusals", f"{what!s:.200}", says))
    for variant, wrong in cases.wrong.items():
        if all(_broken(law, wrong, cases.examples) is None for law in laws):
            complaints.append(Complaint("wrong", variant, "every law holds for a variant that was given as false"))
    return Report(name, tuple(law.__name__ for law in laws), tuple(complaints))


def _broken(law: Law[Subject, Example], subject: Subject, examples: Sequence[Example]) -> Complaint | None:
    """The first example at which a law fails, or raises."""
    for example in examples:
        try:
            says = law(subject, example)
        except Exception as error:
            says = f"{type(error).__name__}: {error}"
        if says is not None:
            return Complaint(law.__name__, f"{example!s:.200}", says)
    return None


def _taken(subject: Subject, what: Any, pattern: str, refuse: Refuse[Subject]) -> str:
    """What is wrong with how something is refused, or ""."""
    try:
        reason = refuse(subject, what)
    except BoundcalcError as error:
        reason = error
    if reason is None:
        return "it is taken, and should be refused"
    return "" if re.search(pattern, str(reason)) else f"the reason {str(reason)!r} does not match {pattern!r}"
