"""Numbers in and out of the command line."""

from __future__ import annotations

import math

import pytest

from boundcalc.base.rounding import upper
from boundcalc.cli.options import number


def test_amounts_beyond_floats_are_powers_of_ten_rounded_up() -> None:
    assert upper(345.41) == "10^345.5"
    assert upper(-1000.07) == "10^-1000.0"
    assert upper(-math.inf) == "0"


@pytest.mark.parametrize(
    ("text", "value"), [("1e6", 1e6), ("10^6", 1e6), ("1_000", 1e3), ("0.05", 0.05), ("10^-3", 1e-3)]
)
def test_numbers_are_read_as_people_write_them(text: str, value: float) -> None:
    assert number(text) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("text", ["", "abc", "1e", "10^", "2^x", "0^-1", "1,5"])
def test_what_is_no_number_is_none(text: str) -> None:
    assert number(text) is None
