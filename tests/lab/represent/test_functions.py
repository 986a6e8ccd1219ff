"""True support and structure, against brute force; formulas are read as written, and nothing else is read."""

from __future__ import annotations

import itertools
import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boundcalc.lab.represent.functions import SparseFunction, parse
from tests.lab.represent.conftest import all_functions, all_inputs


def _symmetric_by_force(table: tuple[int, ...]) -> bool:
    s = len(table).bit_length() - 1
    for mask in range(1 << s):
        by_weight: dict[int, set[int]] = {}
        for row in range(1 << s):
            by_weight.setdefault((row ^ mask).bit_count(), set()).add(table[row])
        if all(len(values) == 1 for values in by_weight.values()):
            return True
    return False


def _check(function: SparseFunction) -> None:
    X = all_inputs(max(function.variables, default=0) + 1)
    found = function.symmetric
    assert (found is not None) == _symmetric_by_force(function.table)
    if found is not None:
        assert (found.values(X) == function.values(X)).all()
        assert 2 * sum(found.negated) <= function.arity


def test_every_function_of_three_bits() -> None:
    functions = list(all_functions(3, (0, 1, 2)))
    assert len(functions) == 254
    for function in functions:
        _check(function)


def test_random_functions_of_four_bits() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        _check(SparseFunction((0, 1, 2, 3), tuple(int(v) for v in rng.integers(0, 2, 16))).minimised())
    for mask, profile in itertools.product(range(16), itertools.product((0, 1), repeat=5)):
        table = tuple(profile[(row ^ mask).bit_count()] for row in range(16))
        if len(set(table)) > 1:
            _check(SparseFunction((0, 1, 2, 3), table).minimised())


def test_support_is_minimised() -> None:
    function = parse("x3 & x7 | x3 & ~x7 | x11 & ~x11").minimised()
    assert function.variables == (3,)
    assert function.table == (0, 1)
    assert parse("x1 ^ x1 ^ x2 ^ x5").minimised().variables == (2, 5)
    assert parse("x1 ^ x1").minimised().constant
    assert parse("MAJ(x0, x1, x1)").minimised().variables == (1,)


def test_detection_is_not_lenient() -> None:
    """One changed entry of a threshold's table must be noticed (of parity's it would be another symmetric function)."""
    threshold = [int(k.bit_count() >= 2) for k in range(16)]
    for row in (k for k in range(16) if k.bit_count() in (1, 2, 3)):
        table = list(threshold)
        table[row] ^= 1
        assert SparseFunction((0, 1, 2, 3), tuple(table)).symmetric is None


# -- formulas

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
    X = all_inputs(BITS)
    expected = eval(_python(text), {"X": X, "N": _Not(), "__builtins__": {}})
    assert (parse(text).values(X) == expected).all()


def test_symmetric_functions_of_many_bits_need_no_table() -> None:
    function = parse("~PARITY(~x7, 10..300)")
    assert function.arity == 292
    assert not function.table
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (50, 301))
    assert (function.values(X) == 1 - ((1 - X[:, 7]) + X[:, 10:].sum(1)) % 2).all()
