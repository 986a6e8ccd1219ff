"""Formulas are read as written, and nothing else is read."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boundcalc.lab.represent.functions import parse
from boundcalc.lab.represent.network import all_inputs

BITS = 5


def _python(text: str) -> str:
    """The same formula in Python's own syntax, on the columns of X (values 0 and 1)."""
    return re.sub(r"x(\d)", r"X[:,\1]", text.replace("~", "N*"))


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


def test_symmetric_functions_of_many_bits_need_no_table() -> None:
    function = parse("~PARITY(~x7, 10..300)")
    assert function.arity == 292
    assert not function.table
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (50, 301))
    assert (function.values(X) == 1 - ((1 - X[:, 7]) + X[:, 10:].sum(1)) % 2).all()
