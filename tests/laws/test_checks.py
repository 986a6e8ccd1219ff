"""The checks themselves: what they report, and that what is missing is said."""

from __future__ import annotations

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.testing import Cases, LawBroken
from boundcalc.testing.report import judge
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


def test_nothing_to_complain_about() -> None:
    report = judge("number n", 3, WHOLE, (positive, finite), refuses)
    assert report.ok
    assert report.raise_if_broken() is report
    assert report.laws == ("positive", "finite")


def test_what_is_broken_is_said_with_its_place() -> None:
    assert check(-3, WHOLE)[0] == "positive: -3 is not positive [1]"
    assert check(0, WHOLE)[1] == "finite: ZeroDivisionError: division by zero [1]"
    with pytest.raises(LawBroken, match="number n:\n  positive: -3"):
        judge("number n", -3, WHOLE, (positive,), refuses).raise_if_broken()


def test_what_is_missing_is_said() -> None:
    said = check(3, Cases([], [], {}))
    assert [line.partition(",")[0] for line in said] == [
        f"complete: no {w} were brought" for w in ("examples", "refusals", "wrong")
    ]
    assert check(3, Cases([1], None, {"below": -3})) == []


def test_refusals_and_wrong_variants_are_tried() -> None:
    assert check(3, Cases([1], [(5, "negative")], {"below": -3})) == [
        "refusals: it is taken, and should be refused [5]"
    ]
    (said,) = check(3, Cases([1], [(-5, "positive")], {"below": -3}))
    assert "does not match 'positive'" in said
    (said,) = check(3, Cases([1], [(-5, "negative")], {"below": -3, "as good": 4}))
    assert said == "wrong: every law holds for a variant that was given as false [as good]"


def stale(mutations: list[Mutation]) -> list[str]:
    """The mutations whose line is not there, or more than once."""
    files = {mutation.file: (ROOT / "boundcalc" / mutation.file).read_text("utf-8") for mutation in mutations}
    return [mutation.what for mutation in mutations if files[mutation.file].count(mutation.old) != 1]


def test_every_mutation_has_its_line() -> None:
    assert stale(MUTATIONS) == []
    assert stale([MUTATIONS[0]._replace(old="no such line")]) == [MUTATIONS[0].what]
