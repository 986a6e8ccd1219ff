"""The checks themselves: what they report, and that what is missing is said."""

from __future__ import annotations

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.testing import Cases, LawBroken
from boundcalc.testing._report import judge
from tests.mutations import MUTATIONS, ROOT, Mutation


def positive(subject: int, example: int) -> str | None:
    return None if subject * example > 0 else f"{subject * example} is not positive"


def finite(subject: int, example: int) -> str | None:
    return None if 1 / subject else "never"


def refuses(subject: int, what: int) -> str | None:
    if what > 9:
        raise InvalidSetting("too large")
    return None if what >= 0 else "it is negative"


def check(subject: int, cases: Cases[int, int]) -> list[str]:
    return list(map(str, judge("number n", subject, cases, (positive, finite), refuses).complaints))


WHOLE: Cases[int, int] = Cases([1, 2], [(-1, "negative"), (10, "too large")], {"below": -3})


def test_a_check_that_holds_says_which_laws_it_tried() -> None:
    report = judge("number n", 3, WHOLE, (positive, finite), refuses)
    assert report.ok
    assert report.raise_if_broken().laws == ("positive", "finite")


@pytest.mark.parametrize(
    ("subject", "cases", "says"),
    [
        (-3, WHOLE, "positive: -3 is not positive [1]"),
        (0, WHOLE, "finite: ZeroDivisionError: division by zero [1]"),
        (3, Cases([1], None, {"below": -3}), None),
        (3, Cases([], None, {"below": -3}), "complete: no examples were brought"),
        (3, Cases([1], [], {"below": -3}), "complete: no refusals were brought"),
        (3, Cases([1], None, {}), "complete: no wrong were brought"),
        (3, Cases([1], [(5, "negative")], {"below": -3}), "refusals: it is taken, and should be refused [5]"),
        (3, Cases([1], [(-5, "positive")], {"below": -3}), "does not match 'positive'"),
        (3, Cases([1], None, {"below": -3, "as good": 4}), "wrong: every law holds for a variant"),
    ],
)
def test_what_is_broken_or_missing_is_said_with_its_place(
    subject: int, cases: Cases[int, int], says: str | None
) -> None:
    said = check(subject, cases)
    assert any(says in line for line in said) if says else not said
    if said:
        with pytest.raises(LawBroken, match="number n:\n  "):
            judge("number n", subject, cases, (positive, finite), refuses).raise_if_broken()


def stale(mutations: list[Mutation]) -> list[str]:
    """The mutations whose line is not there, or more than once."""
    files = {mutation.file: (ROOT / "boundcalc" / mutation.file).read_text("utf-8") for mutation in mutations}
    return [mutation.what for mutation in mutations if files[mutation.file].count(mutation.old) != 1]


def test_every_mutation_has_its_line() -> None:
    assert stale(MUTATIONS) == []
    assert stale([MUTATIONS[0]._replace(old="no such line")]) == [MUTATIONS[0].what]
