"""What a check finds, as data: complaints, one per law that does not hold; and what a registration must bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from boundcalc.base.errors import BoundcalcError

_Subject = TypeVar("_Subject", covariant=True)
_Example = TypeVar("_Example", covariant=True)
Subject = TypeVar("Subject")
Example = TypeVar("Example")


_PARTS = (
    ("examples", "the laws hold anywhere"),
    ("refusals", "it refuses what it is not for"),
    ("wrong", "the laws would see a mistake"),
)


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
            for what, shows in _PARTS
            if getattr(self, what) is not None and not getattr(self, what)
        )


class LawBroken(BoundcalcError, AssertionError):
    """A check whose complaints were to be raised."""


@dataclass(frozen=True, slots=True)
class Complaint:
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


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found.

    Attributes:
        kind: what was checked: "lemma", "layer", ...
        name: which.
        laws: the laws that were tried.
        complaints: what does not hold and was not expected to fail.
        expected: laws that were expected to fail and do, with the reason given.
    """

    kind: str
    name: str
    laws: tuple[str, ...]
    complaints: tuple[Complaint, ...]
    expected: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def ok(self) -> bool:
        """Whether there is nothing to complain about."""
        return not self.complaints

    def raise_if_broken(self) -> Report:
        """The report itself, or an error that lists its complaints."""
        if self.complaints:
            raise LawBroken("\n".join([f"{self.kind} {self.name}:", *(f"  {line}" for line in self.complaints)]))
        return self

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "kind": self.kind,
            "name": self.name,
            "laws": list(self.laws),
            "complaints": [{"law": c.law, "example": c.example, "says": c.says} for c in self.complaints],
            "expected": dict(self.expected),
        }


Law = Callable[[Subject, Example], "str | None"]
"""What is wrong with a subject at an example, or None. Its name is the law's."""
Refuse = Callable[[Subject, Any], "object | None"]
"""Why a subject refuses something (anything with a text), or None if it takes it. It may raise its refusal."""


def judge(
    kind: str,
    name: str,
    subject: Subject,
    cases: Cases[Subject, Example],
    laws: Sequence[Law[Subject, Example]],
    refuse: Refuse[Subject],
    expected_failures: Mapping[str, str] | None = None,
) -> Report:
    """Tries every law on every example, every refusal, and every law on every wrong variant."""
    expected = dict(expected_failures or {})
    complaints = [Complaint("complete", "", missing) for missing in cases.missing]
    for law in laws:
        complaint = _broken(law, subject, cases.examples)
        if complaint is not None and law.__name__ not in expected:
            complaints.append(complaint)
        if complaint is None and law.__name__ in expected:
            complaints.append(Complaint(law.__name__, "", "it was expected to fail, but holds"))
    names = {law.__name__ for law in laws}
    complaints += [Complaint(law, "", "there is no such law") for law in expected if law not in names]
    complaints += [
        c for what, pattern in cases.refusals or () if (c := _taken(subject, what, pattern, refuse)) is not None
    ]
    for variant, wrong in cases.wrong.items():
        if all(_broken(law, wrong, cases.examples) is None for law in laws):
            complaints.append(Complaint("wrong", variant, "every law holds for a variant that was given as false"))
    return Report(kind, name, tuple(law.__name__ for law in laws), tuple(complaints), expected)


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


def _taken(subject: Subject, what: Any, pattern: str, refuse: Refuse[Subject]) -> Complaint | None:
    """What is wrong with how something is refused."""
    try:
        reason = refuse(subject, what)
    except BoundcalcError as error:
        reason = error
    if reason is None:
        return Complaint("refusals", f"{what!s:.200}", "it is taken, and should be refused")
    if re.search(pattern, str(reason)) is None:
        return Complaint("refusals", f"{what!s:.200}", f"the reason {str(reason)!r} does not match {pattern!r}")
    return None
