"""The prefix code of rules: its probabilities sum to at most 1, rules answer as they say, what is no rule is
refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.predictors._statements import G15, read_as
from boundcalc.predictors.rules import code
from boundcalc.predictors.rules.code import _WINDOWS, NAMES, Rule, Tree
from tests.predictors.rules.networks import all_inputs

DEFINED = {"AND": min, "OR": max, "XOR": lambda b: sum(b) % 2, "MAJ": lambda b: int(2 * sum(b) > len(b))}


def named(T: int, s: int, name: str = "XOR") -> Rule:
    """A named function of the first s of T bits."""
    return Rule.of_table(T, tuple(range(s)), tuple(DEFINED[name](b) for b in itertools.product((0, 1), repeat=s)))


def cubes(T: int, s: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Every cube that shows all of the first s bits and some others."""
    for pattern in itertools.product((0, 1), repeat=s):
        for u in range(T - s + 1):
            for positions in itertools.combinations(range(s, T), u):
                for values in itertools.product((0, 1), repeat=u):
                    yield (*enumerate(pattern), *zip(positions, values, strict=True))


def removing(T: int, cube: tuple[tuple[int, int], ...]) -> Rule:
    """A rule that is silent on this cube alone."""
    tree: Tree = -1
    for t, c in reversed(cube):
        tree = (t, tree, 0) if c == 0 else (t, 0, tree)
    return Rule(T, tree)


def sum_of_tables(T: int) -> Fraction:
    """All messages of tables and names, in all domains, with any number of cubes removed."""
    total = Fraction(0)
    for s in range(T + 1):
        rule, read = named(T, s), tuple(range(s))
        by_kind = 2 ** (2**s) * rule.probabilities["table"] + len(NAMES) * rule.probabilities[str(rule.name)]
        one = sum(removing(T, cube)._of_removed(read) / rule._of_removed(read) for cube in cubes(T, s))
        if one >= 1:
            return Fraction(1000)
        total += math.comb(T, s) * by_kind / (1 - one)  # any number of cubes: a geometric series
    return total * domains(T)


def domains(T: int) -> Fraction:
    """All domains, in parts of the main window."""
    return sum((Rule(T, 0, w).probabilities["tree"] for w in _WINDOWS), Fraction(0)) / Rule(T, 0).probabilities["tree"]


def sum_of_trees(T: int) -> Fraction:
    """All decision trees, in all domains: two trees below every position."""
    total = Fraction(0)
    for left in range(T + 1):
        leaf = code._of_tree(0, left - 1) if left else Fraction(0)
        node = left * code._of_tree((0, 0, 0), left) / leaf**2 if left else Fraction(0)
        total = sum((code._of_tree(answer, left) for answer in (-1, 0, 1)), node * total**2)
    return total * Rule(T, 0).probabilities["tree"] / code._of_tree(0, T) * domains(T)


@pytest.mark.parametrize("T", [4, 5])
def test_probabilities_of_all_messages_sum_to_at_most_one(T: int, monkeypatch: pytest.MonkeyPatch):
    assert domains(T) == 2  # the main window is half of all domains
    assert Fraction(6, 10) < sum_of_tables(T) + sum_of_trees(T) <= 1
    assert sum_of_tables(T) <= Fraction(3, 4)
    assert sum_of_trees(T) <= Fraction(1, 4)
    monkeypatch.setattr(code, "_size", lambda count: Fraction(1, count + 1))  # no prefix code: the control
    assert sum_of_tables(T) + sum_of_trees(T) > 1


def test_cubes_cost_their_factor_one_by_one():
    rule = named(9, 2)
    t, (s, low, _), high = rule.tree
    long = replace(rule, tree=(t, (s, low, (2, 1, (3, 1, (4, 1, -1)))), high))  # where the bits read are 01
    of_long = Fraction(1, 2) * Fraction(1, 4) * Fraction(1, 20) * Fraction(1, math.comb(7, 3)) * Fraction(1, 4)
    assert long.table == rule.table
    for kind in ("table", "XOR"):
        assert long.probabilities[kind] == rule.probabilities[kind] * of_long
    nodes = Fraction(1, 2 * 7) * Fraction(1, 2 * 6) * Fraction(1, 2 * 5) * Fraction(15, 64) ** 2 / 32
    assert long.probabilities["tree"] == rule.probabilities["tree"] * nodes


def test_a_conjunction_of_three_among_128_bits():
    rule = Rule.of_table(128, (3, 17, 90), (0,) * 7 + (1,))
    assert rule.tree == (3, 0, (17, 0, (90, 0, 1)))
    assert rule.name == "AND"
    assert str(rule) == "x3 & x17 & x90"
    assert rule.ones == (19, 109)
    assert rule.price()[0] == "AND"
    assert rule.price(names=False)[0] == "table"
    bits = {kind: -math.log2(p) for kind, p in rule.probabilities.items()}
    expected = {"AND": (27.703, 211), "table": (34.703, 257), "tree": (35.338, 261)}
    for kind, (about, m) in expected.items():
        assert abs(bits[kind] - about) < 5e-4
        for examples, enough in ((m, True), (m - 1, False)):
            risk = G15.risk({"errors": 0, "n": examples, "bits": bits[kind]}, 0.05)
            assert (risk <= 0.1) == enough


@pytest.mark.parametrize("s", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_names_mean_what_they_say(s: int, name: str):
    rule, x = named(6, s, name), all_inputs(6)
    assert (replace(rule, window=None).answers(x) == [DEFINED[name](row[:s]) for row in x.tolist()]).all()
    assert named(6, s, str(rule.name)).table == rule.table


@pytest.mark.parametrize("T", [5, 8, 128, 1024])
def test_windows_hold_what_their_definition_says(T: int):
    for window in _WINDOWS:
        low, high = Rule(T, 0, window).ones
        inside = [k for k in range(T + 1) if window is None or abs(2 * k - T) ** 2 <= window**2 * T]
        assert (low, high) == (inside[0], inside[-1])
        assert len(inside) == high - low + 1


def test_a_rule_answers_by_its_tree_within_its_window():
    T = 7
    rule = Rule(T, (2, (5, 0, 1), (5, (0, 1, (6, -1, 1)), 0)), 4)
    x = all_inputs(T)
    for row, answer in zip(x, rule.answers(x), strict=True):
        silent = (row[2], row[5], row[0], row[6]) == (1, 0, 1, 0)
        assert answer == (-1 if silent else row[2] ^ row[5])
    assert rule.errors(x, (x[:, 2] ^ x[:, 5]).astype(np.int64)) == 2 ** (T - 4)
    assert rule.table == ((2, 5), (0, 1, 1, 0))
    assert rule.answers_on({2: 1}) == {-1, 0, 1}
    assert rule.answers_on({2: 1, 5: 1}) == {0}
    assert rule.silent == 1
    for labels in (np.full(len(x), -1), np.zeros((len(x), 1)), np.full(len(x), np.nan)):
        with pytest.raises(CertificateError, match="0 or 1"):  # a silent rule must not agree with a label of -1
            rule.errors(x, labels)
    rule = Rule(100, (0, 0, 1), 4)
    x = (np.arange(100) < np.array([[29], [30], [70], [71]])).astype(np.int64)
    assert rule.answers(x).tolist() == [-1, 1, 1, -1]  # 2 sqrt(100) around 50


@pytest.mark.parametrize("seed", range(20))
def test_the_tree_of_a_table_is_the_table(seed: int):
    random, x = np.random.default_rng(seed), all_inputs(6)
    positions = sorted(random.permutation(6)[: seed % 5].tolist())
    table = random.integers(0, 2, 2 ** len(positions))
    index = x[:, positions] @ 2 ** np.arange(len(positions))[::-1]
    assert (Rule.of_table(6, tuple(positions), tuple(table.tolist()), None).answers(x) == table[index]).all()


@pytest.mark.parametrize(
    "change",
    [
        {"tree": [1, [1, 0, 1], 1]},
        {"tree": [9, 0, 1]},
        {"tree": [-1, 0, 1]},
        {"tree": [True, 0, 1]},
        {"tree": [1, 0, 2]},
        {"tree": [1, 0, True]},
        {"tree": [1, 0]},
        {"tree": "0"},
        {"tree": reduce(lambda tree, _: [1, tree, 0], range(100), 0)},
        {"window": 9},
        {"window": True},
        {"T": 0},
        {"more": 1},
    ],
)
def test_what_is_no_rule_of_the_code_is_refused(change: dict[str, object]):
    rule = {"T": 9, "tree": [1, 0, [4, 0, [2, -1, 1]]], "window": 8}
    assert read_as(Rule, "a rule", rule) == Rule(9, (1, 0, (4, 0, (2, -1, 1))), 8)
    with pytest.raises(CertificateError):
        read_as(Rule, "a rule", rule | change)
