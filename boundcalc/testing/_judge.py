"""Laws tried on cases: what a check complains of, and the cases that an addition must bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from boundcalc.base.errors import BoundcalcError

Law = Callable[[Any, Any], "str | None"]
"""What is wrong with a subject at an example, or None. Its name is the law's."""
_SHOWS = {
    "examples": "the laws hold anywhere",
    "refusals": "it refuses what it is not for",
    "wrong": "the laws would see a mistake",
}


class Cases(NamedTuple):
    """Where laws are tried; without any of the three a check is incomplete and complains.

    Attributes:
        examples: where the laws must hold.
        refusals: what must be refused, each with a regular expression that the reason must match; None if there is
            nothing that it could be asked and must refuse.
        wrong: false variants by name; the laws must reject each, or they would miss a mistake.
    """

    examples: Sequence[Any]
    refusals: Sequence[tuple[Any, str]] | None
    wrong: Mapping[str, Any]


class Complaint(NamedTuple):
    """One law that does not hold.

    Attributes:
        law: its name; "complete", "refusals" and "wrong" are about what was brought.
        example: where.
        says: what is wrong.
    """

    law: str
    example: str
    says: str


def judge(
    subject: Any, cases: Cases, laws: Sequence[Law], refuse: Callable[[Any, Any], object | None]
) -> list[Complaint]:
    """Tries every law on every example, every refusal, and every law on every wrong variant.

    `refuse`: why a subject refuses something (anything with a text), or None if it takes it. It may raise its refusal.
    """
    complaints = [
        Complaint("complete", "", f"no {what} were brought, so nothing shows that {shows}")
        for what, shows in _SHOWS.items()
        if getattr(cases, what) is not None and not getattr(cases, what)
    ]
    complaints += _broken(subject, cases.examples, laws)
    for what, pattern in cases.refusals or ():
        try:
            reason = refuse(subject, what)
        except BoundcalcError as error:
            reason = error
        if reason is None:
            complaints.append(Complaint("refusals", f"{what!s:.200}", "it is taken, and should be refused"))
        elif not re.search(pattern, str(reason)):
            says = f"the reason {str(reason)!r} does not match {pattern!r}"
            complaints.append(Complaint("refusals", f"{what!s:.200}", says))
    for variant, wrong in cases.wrong.items():
        if next(_broken(wrong, cases.examples, laws), None) is None:
            complaints.append(Complaint("wrong", variant, "every law holds for a variant that was given as false"))
    return complaints


def _broken(subject: Any, examples: Sequence[Any], laws: Sequence[Law]) -> Iterator[Complaint]:
    """The first example at which each law fails, or raises."""
    for law in laws:
        for example in examples:
            try:
                says = law(subject, example)
            except Exception as error:
                says = f"{type(error).__name__}: {error}"
            if says is not None:
                yield Complaint(law.__name__, f"{example!s:.200}", says)
                break
