"""Formulas are read as written, and nothing else is read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.exhaust import all_inputs
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.functions import from_table

BITS = 5


def _python(text: str) -> str:
    """The same formula in Python's own syntax, on the columns of X (values 0 and 1)."""
    out = text.replace("~", "1^") if "~" not in text else _negations(text)
    for i in range(BITS):
        out = out.replace(f"x{i}", f"X[:,{i}]")
    return out


def _negations(text: str) -> str:
    return text.replace("~", "N*")


class _Not:
    """N * column is its negation, and binds as tightly as ~ does."""

    def __mul__(self, other: np.ndarray) -> np.ndarray:
        return 1 - other


formulas = st.recursive(
    st.integers(0, BITS - 1).map(lambda i: f"x{i}"),
    lambda inner: st.one_of(
        inner.map(lambda a: f"~({a})"),
        st.tuples(inner, st.sampled_from("&|^"), inner).map(lambda t: f"({t[0]}) {t[1]} {t[2]}"),
        st.tuples(inner, st.sampled_from("&|^"), inner).map(lambda t: f"{t[0]}{t[1]}{t[2]}"),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(formulas)
def test_agrees_with_python_operators(text: str) -> None:
    # Python's ~, &, ^, | have the same order of precedence; N * x stands for ~x, which binds tighter than &.
    X = all_inputs(BITS, 0, 1 << BITS).astype(int)
    expected = eval(_python(text), {"X": X, "N": _Not(), "__builtins__": {}})
    assert (parse(text).values(X) == expected).all()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("AND(0, 2, 4)", lambda X: X[:, [0, 2, 4]].all(1)),
        ("OR(0..3)", lambda X: X[:, :4].any(1)),
        ("maj(x1, x2, ~x3)", lambda X: X[:, 1] + X[:, 2] + 1 - X[:, 3] >= 2),
        ("MAJ(0..3)", lambda X: X[:, :4].sum(1) > 2),
        ("PARITY(0..2, x4)", lambda X: X[:, [0, 1, 2, 4]].sum(1) % 2),
        ("PARITY(x0 & x1, 2)", lambda X: (X[:, 0] * X[:, 1] + X[:, 2]) % 2),
        ("not x0 and (x1 or x2)", lambda X: (1 - X[:, 0]) * ((X[:, 1] + X[:, 2]) > 0)),
        ("x0 & 1 | 0 & x1", lambda X: X[:, 0]),
        ("MAJ(x0, x0, x1)", lambda X: X[:, 0]),
    ],
)
def test_names_and_words(text: str, rule) -> None:
    X = all_inputs(BITS, 0, 1 << BITS).astype(int)
    assert (parse(text).values(X) == rule(X).astype(int)).all()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("x3 &", "cannot read"),
        ("x3 x4", "cannot read"),
        ("3 & x1", "'3' is no formula"),
        ("foo(x1)", "'foo(x1)' is no formula"),
        ("x1 & $", "cannot read"),
        ("MAJ(1,", "cannot read"),
        ("MAJ()", "no formula"),
        ("x1 if x2 else x3", "no formula"),
        ("x1 + x2", "no formula"),
        ("x1 < x2", "no formula"),
        ("MAJ(5..3)", "empty or far too long"),
        ("PARITY(0..99999999999)", "empty or far too long"),
        ("x99999999999999999999", "no formula"),
        ("1 | 0", "names no bit"),
        ("True & x1", "no formula"),
        ("~" * 20_000, "nested too deeply"),
        ("(" * 300 + "x0" + ")" * 300, "cannot read"),
        ("__import__('os')", "cannot read"),
        ("x0" + " & x0" * 9000, "characters"),
        (" | ".join(f"x{i} & x{i + 1}" for i in range(0, 40, 2)), "at most 16 variables"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, says: str) -> None:
    with pytest.raises(InvalidSetting, match=None) as error:
        parse(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_symmetric_functions_of_many_bits_need_no_table() -> None:
    function = parse("~PARITY(~x7, 10..300)")
    assert function.arity == 292
    assert not function.table
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (50, 301))
    assert (function.values(X) == 1 - ((1 - X[:, 7]) + X[:, 10:].sum(1)) % 2).all()


@pytest.mark.parametrize("text", ["011", "0", "01x1", "", "0" * 2**17])
def test_tables_are_checked(text: str) -> None:
    with pytest.raises(InvalidSetting, match="truth table"):
        from_table(text)


def test_a_table_names_its_bits() -> None:
    function = from_table("0110 1001", [2, 5, 9])
    X = np.eye(12, dtype=int)
    assert function.values(X).tolist() == [int(i in (2, 5, 9)) for i in range(12)]
    with pytest.raises(InvalidSetting, match="2 bits are named"):
        from_table("01101001", [2, 5])
    with pytest.raises(InvalidSetting, match="different numbers"):
        from_table("0110", [2, 2])
