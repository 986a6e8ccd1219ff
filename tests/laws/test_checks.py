"""The checks themselves: what they report, and that what is missing is said."""

from __future__ import annotations

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.testing import Cases
from boundcalc.testing._judge import judge
from tests.mutations import MUTATIONS, ROOT, Mutation


def positive(subject: int, example: int) -> str | None:
    return None if subject * example > 0 else f"{subject * example} is not positive"


def finite(subject: int, example: int) -> str | None:
    return None if 1 / subject else "never"


def refuses(subject: int, what: int) -> str | None:
    if what > 9:
        raise InvalidSetting("too large")
    return None if what >= 0 else "it is negative"


WHOLE = Cases([1, 2], [(-1, "negative"), (10, "too large")], {"below": -3})


@pytest.mark.parametrize(
    ("subject", "cases", "complaint"),
    [
        (3, WHOLE, None),
        (-3, WHOLE, ("positive", "1", "-3 is not positive")),
        (0, WHOLE, ("finite", "1", "ZeroDivisionError: division by zero")),
        (3, Cases([1], None, {"below": -3}), None),
        (3, Cases([], None, {"below": -3}), ("complete", "", "no examples were brought")),
        (3, Cases([1], [], {"below": -3}), ("complete", "", "no refusals were brought")),
        (3, Cases([1], None, {}), ("complete", "", "no wrong were brought")),
        (3, Cases([1], [(5, "negative")], {"below": -3}), ("refusals", "5", "it is taken, and should be refused")),
        (3, Cases([1], [(-5, "positive")], {"below": -3}), ("refusals", "-5", "does not match 'positive'")),
        (3, Cases([1], None, {"below": -3, "as good": 4}), ("wrong", "as good", "every law holds for a variant")),
    ],
)
def test_what_is_broken_or_missing_is_said_with_its_place(
    subject: int, cases: Cases, complaint: tuple[str, str, str] | None
) -> None:
    complaints = judge(subject, cases, (positive, finite), refuses)
    if complaint is None:
        assert complaints == []
    else:
        law, example, says = complaint
        assert any((c.law, c.example) == (law, example) and says in c.says for c in complaints)


def stale(mutations: list[Mutation]) -> list[str]:
    """The mutations whose line is not there, or more than once."""
    files = {mutation.file: (ROOT / "boundcalc" / mutation.file).read_text("utf-8") for mutation in mutations}
    return [mutation.what for mutation in mutations if files[mutation.file].count(mutation.old) != 1]


def test_every_mutation_has_its_line() -> None:
    assert stale(MUTATIONS) == []
    assert stale([MUTATIONS[0]._replace(old="no such line")]) == [MUTATIONS[0].what]
