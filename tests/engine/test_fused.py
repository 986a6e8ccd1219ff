"""Formulas that are written down before they are computed: values, places, and comparisons that do not hold alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import FLOAT, NumberSystem
from boundcalc.engine import fused
from boundcalc.engine.fused import ArraySystem, Graph

_ARRAY: Any = ArraySystem()


def _formula(ns: NumberSystem, x: Any, y: Any) -> Any:
    """Every operation at least once; `x` twice, so that there is something in common."""
    part = ns.log1p(x) * 3 + ns.sqrt(y) / (2 - 1 / (x + 1)) - ns.exp(-y) ** 1.5
    other = (ns.minimum(x, y, ns.number(0.7)) + 2**y) ** 2 * ns.maximum(x**3, y) + (x / 5) ** 0.5
    return part * other + ns.log(part * part + 1) + ns.expm1(y / 9) - ns.ceil(x * 10) + ns.lgamma(x + 2) + ns.pi


@pytest.mark.parametrize("block", [1, 4, 5, 1 << 10])
def test_values_are_those_of_floats(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(fused, "BLOCK", block)
    random = np.random.default_rng(1)
    x, y = random.uniform(0.1, 5, (7, 1)), random.uniform(0.1, 5, (1, 9))
    graph = Graph((7, 9))
    value = _formula(_ARRAY, graph.array(x), graph.array(y))
    found = np.empty((7, 9))
    for index, (values,) in graph.blocks(value):
        found[index] = values
    expected = [[_formula(FLOAT, float(a), float(b)) for b in y[0]] for a in x[:, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_equal_terms_are_one() -> None:
    graph = Graph((3,))
    x = graph.array(np.arange(3.0))
    assert (x + 1) * 2 is 2 * (1 + x)
    assert (x - 1) is not (1 - x)
    assert all(same is x for same in (x * 1, 1 * x, x + 0, x - 0, x / 1, x**1))
    before = len(graph.nodes)
    assert _ARRAY.log(x + 1) is _ARRAY.log(1 + x)
    assert len(graph.nodes) == before + 1


def test_cube_roots_of_products_share_their_factors() -> None:
    graph = Graph((4,))
    values = np.array([0.5, 1.0, 2.0, 9.0])
    x = graph.array(values)
    r = x * x + 1
    roots = [_ARRAY.cube_root((r**j * x / 3) ** 2) for j in range(1, 4)]
    assert sum(node.name == "cbrt" for node in graph.nodes) <= 4  # of x, of x^2 + 1, of its first power as a factor
    for _, found in graph.blocks(*roots):
        for j, root in enumerate(found, 1):
            np.testing.assert_allclose(root, np.cbrt(((values**2 + 1) ** j * values / 3) ** 2), rtol=1e-14)


def test_the_cube_root_of_a_long_product() -> None:
    """Deeper than Python calls itself."""
    graph = Graph((2,))
    x = graph.array(np.array([0.999, 1.001]))
    product = x
    for _ in range(5000):
        product = product * x
    ((_, (found,)),) = graph.blocks(_ARRAY.cube_root(product))
    np.testing.assert_allclose(found, np.array([0.999, 1.001]) ** (5001 / 3), rtol=1e-11)


def test_comparisons_hold_for_all_or_are_refused() -> None:
    graph = Graph((3,))
    x, y = graph.array(np.array([1.0, 2.0, 3.0])), graph.array(np.array([2.0, 3.0, 4.0]))
    assert all((x < y, y > x, x <= 3, x >= 1, x == x + 0, x != 7, x + 1 == y))
    assert not any((x > 3, x < 1, x == 7, x == "1"))
    for compare in (lambda: x < 2, lambda: x == 2, lambda: y - x + x < 3, lambda: x * x < y):
        with pytest.raises(InvalidSetting, match="swept in arrays"):
            compare()


def test_what_is_not_needed_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("computed")

    monkeypatch.setitem(fused._FUNCTIONS, "exp", never)
    graph = Graph((3,))
    x = graph.array(np.arange(3.0))
    _ARRAY.exp(x)
    ((_, (found, one)),) = graph.blocks(_ARRAY.sqrt(x), 2.5)
    assert found.tolist() == [0.0, 1.0, math.sqrt(2)]
    assert one == 2.5
