"""Numbers in and out of the command line."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundcalc.cli.values import number, short, upper


@given(st.floats(min_value=-12, max_value=12), st.integers(min_value=2, max_value=8))
def test_shown_amounts_are_upper_bounds_and_tight(log10: float, digits: int) -> None:
    shown = Fraction(upper(log10, digits))
    assert shown >= Fraction(10**log10) * (1 - Fraction(1, 10**15))
    assert float(shown) <= 10**log10 * (1 + 1.01 * 10.0 ** (1 - digits))


def test_an_exact_value_is_not_shown_below_itself() -> None:
    for value in (0.1, 0.05, 0.3, 43.94, 0.9999, 0.99999, 123456.0):
        assert Fraction(upper(math.log10(value))) >= Fraction(value) * (1 - Fraction(1, 10**15))
    assert upper(math.log10(0.99999)) == "1.000"


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


@pytest.mark.parametrize(("x", "text"), [(512, "512"), (1e6, "10^6"), (3_096_000, "3.096e6"), (0.05, "0.05")])
def test_short(x: float, text: str) -> None:
    assert short(x) == text
