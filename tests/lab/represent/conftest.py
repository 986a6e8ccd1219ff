"""Shared helpers: random functions, and constructions made once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from boundcalc.lab.represent.construct import Construction, construct, possible_kinds
from boundcalc.lab.represent.functions import SparseFunction


def all_functions(s: int, variables: tuple[int, ...]) -> Iterator[SparseFunction]:
    """Every function of s bits that is not constant, reduced to the bits it depends on."""
    for code in range(1, (1 << (1 << s)) - 1):
        yield SparseFunction(variables, tuple((code >> k) & 1 for k in range(1 << s))).minimised()


def random_table(s: int, rng: np.random.Generator, seq_len: int) -> SparseFunction:
    """A random function of s random bits; constants are replaced by a bit."""
    places = tuple(int(v) for v in np.sort(rng.choice(seq_len, s, replace=False)))
    table = rng.integers(0, 2, 1 << s)
    table[:2] = (0, 1) if len(set(table.tolist())) == 1 else table[:2]
    return SparseFunction(places, tuple(int(v) for v in table)).minimised()


@pytest.fixture(scope="session")
def built() -> dict[tuple[str, str, int], Construction]:
    """A few constructions, of every kind, by (kind, expression, T)."""
    from boundcalc.lab.represent.functions import parse

    constructions: dict[tuple[str, str, int], Construction] = {}
    for text in ("AND(1, 4, 6)", "PARITY(0, 3, 5)", "~x1 & x4 & x6", "x0 & x3 | ~x0 & x5"):
        for T in (10, 300):
            function = parse(text).minimised()
            for kind in possible_kinds(function):
                constructions[kind, text, T] = construct(function, T, kind)
    return constructions
