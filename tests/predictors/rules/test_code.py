"""The prefix code of rules: its probabilities sum to at most 1, rules answer as they say, what is no rule is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.rules import code
from boundcalc.predictors.rules.code import NAMES, WINDOWS, Cube, Rule, window_bounds
from boundcalc.predictors.statements.counts import G7
from tests.predictors.rules.networks import all_inputs


def functions(T: int, most: int) -> Fraction:
    """The sum over all rules of up to `most` bits with the main window and nothing removed."""
    total = Fraction(0)
    for s in range(most + 1):
        for table in itertools.product((0, 1), repeat=2**s):
            total += math.comb(T, s) * Rule(T, tuple(range(s)), table).probability()
    return total


def spelled(T: int, s: int) -> Fraction:
    """An upper bound of the same for the rules of s bits: each named once, and all tables spelled."""
    named = {Rule(T, tuple(range(s)), table_of(name, s)).probability() for name in NAMES}
    table = Rule(T, tuple(range(s)), (0, 1) * 2 ** (s - 1)).probability(names=False)
    return math.comb(T, s) * (len(NAMES) * max(named) + 2 ** (2**s) * table)


def table_of(name: str, s: int) -> tuple[int, ...]:
    """A named function by its definition."""
    plain = name.removeprefix("not ")
    by = {"AND": min, "OR": max, "XOR": lambda b: sum(b) % 2, "MAJ": lambda b: int(2 * sum(b) > len(b))}[plain]
    values = [by(b) for b in itertools.product((0, 1), repeat=s)]
    return tuple(v if plain == name else 1 - v for v in values)


def cubes(T: int, s: int):
    """Every cube that a rule of the first s bits can remove."""
    for pattern in itertools.product((0, 1), repeat=s):
        for u in range(T - s + 1):
            for positions in itertools.combinations(range(s, T), u):
                for values in itertools.product((0, 1), repeat=u):
                    yield Cube(pattern, positions, values)


@pytest.mark.parametrize("T", [4, 5])
def test_probabilities_sum_to_at_most_one(T: int):
    main = functions(T, 4) + (spelled(T, 5) if T == 5 else 0)
    rule = Rule(T, (0, 1), (0, 0, 0, 1))
    domains = sum(replace(rule, window=window).probability() for window in WINDOWS) / rule.probability()
    assert domains == 2  # the main window is half of all domains
    worst = Fraction(0)
    for s in range(T + 1):
        whole = Rule(T, tuple(range(s)), (0,) * 2**s)
        each = [replace(whole, removed=(cube,)).probability() / whole.probability() for cube in cubes(T, s)]
        worst = max(worst, sum(each))  # each holds the factor 1/2 of one cube more
    assert worst <= Fraction(1, 2)
    assert 0 < main * domains * sum(worst**k for k in range(60)) + main * domains / 2**59 <= 1


def test_cubes_cost_their_factor_one_by_one():
    rule = Rule(9, (1, 4), (0, 1, 1, 0))
    a, b = Cube((0, 1), (0, 2, 3), (1, 1, 1)), Cube((1, 1), (0, 2), (0, 1))
    alone = [replace(rule, removed=(cube,)).probability() for cube in (a, b)]
    assert replace(rule, removed=(a, b)).probability() * rule.probability() == alone[0] * alone[1]
    of_a = Fraction(1, 2) * Fraction(1, 4) * Fraction(1, 20) * Fraction(1, math.comb(7, 3)) * Fraction(1, 4)
    assert alone[0] == rule.probability() * of_a
    assert replace(rule, removed=(Cube((0, 0)),)).probability() == rule.probability() / 2 / 4 / 2  # s + 2 bits


def test_a_conjunction_of_three_among_128_bits():
    rule = Rule(128, (3, 17, 90), (0,) * 7 + (1,))
    assert rule.name == "AND"
    assert str(rule) == "x3 & x17 & x90"
    assert rule.ones == (18, 107)
    assert 27.7029 < rule.bits() < 27.7030
    assert 34.7029 < rule.bits(names=False) < 34.7030
    for bits, m in ((rule.bits(), 211), (rule.bits(names=False), 257)):
        assert G7.risk({"errors": 0, "n": m, "bits": bits}, 0.05) <= 0.1
        assert G7.risk({"errors": 0, "n": m - 1, "bits": bits}, 0.05) > 0.1


@pytest.mark.parametrize("s", [1, 2, 3])
def test_names_mean_what_they_say(s: int):
    for name in NAMES:
        rule = Rule(6, tuple(range(s)), table_of(name, s))
        assert rule.name is not None
        assert table_of(rule.name, s) == rule.table
        assert (rule.probability() > rule.probability(names=False)) or s == 1


@pytest.mark.parametrize(("T", "s"), [(5, 0), (8, 2), (9, 3), (128, 3), (1024, 3)])
def test_windows_hold_what_their_definition_says(T: int, s: int):
    for window in WINDOWS:
        low, high = window_bounds(T, s, window)
        inside = [k for k in range(T - s + 1) if window is None or abs(2 * k - (T - s)) ** 2 <= window**2 * T]
        assert (low, high) == (inside[0], inside[-1])
        assert len(inside) == high - low + 1


def test_a_rule_answers_by_its_table_within_its_window_and_cubes():
    T = 7
    cube = Cube((1, 0), (0, 6), (1, 0))
    rule = Rule(T, (2, 5), (0, 1, 1, 0), 4, (cube,))
    x = all_inputs(T)
    low, high = rule.ones
    assert (low, high) == (0, 5)
    narrow = replace(rule, T=7, window=4)
    for row, answer in zip(x, narrow.answers(x), strict=True):
        inside = row[2] == 1 and row[5] == 0 and row[0] == 1 and row[6] == 0
        assert answer == (-1 if inside else row[2] ^ row[5])
    y = (x[:, 2] ^ x[:, 5]).astype(np.int64)
    assert rule.errors(x, y) == 2 ** (T - 4)


def test_inputs_outside_the_window_have_no_answer():
    rule = Rule(100, (0,), (0, 1), 4)
    assert rule.ones == (30, 69)  # 99 other bits, 2 sqrt(100) around 49.5
    x = np.zeros((2, 100), dtype=np.uint8)
    x[0, 1:31], x[1, 1:30] = 1, 1
    assert rule.answers(x).tolist() == [0, -1]
    x[0, 1:70], x[1, 1:71] = 1, 1
    assert rule.answers(x).tolist() == [0, -1]


@pytest.mark.parametrize(
    "change",
    [
        {"positions": [1, 1]},
        {"positions": [4, 1]},
        {"positions": [1, 9]},
        {"positions": [1, True]},
        {"table": "000"},
        {"table": "0002"},
        {"window": 9},
        {"window": True},
        {"T": 0},
        {"removed": [{"pattern": "1", "positions": [], "values": ""}]},
        {"removed": [{"pattern": "11", "positions": [1], "values": "0"}]},
        {"removed": [{"pattern": "11", "positions": [2, 2], "values": "00"}]},
        {"removed": [{"pattern": "11", "positions": [2], "values": "00"}]},
        {"removed": [{"pattern": "11", "positions": [9], "values": "0"}]},
        {"more": 1},
    ],
)
def test_what_is_no_rule_of_the_code_is_refused(change: dict[str, object]):
    rule = Rule(9, (1, 4), (0, 0, 0, 1), 8, (Cube((1, 1), (2, 3), (0, 1)),))
    assert Rule.from_json(rule.to_json()) == rule
    with pytest.raises(CertificateError):
        Rule.from_json({**rule.to_json(), **change})


def messages(T: int) -> Fraction:
    """The sum over all messages that remove nothing, times 2 for the others: names and tables are messages of their own."""
    total, zero = Fraction(0), Rule(T, (), (0,))
    for s in range(T + 1):
        zero = Rule(T, tuple(range(s)), (0,) * 2**s)
        spelled_out = 2 ** (2**s) * zero.probability(names=False)
        # a name costs less than a table from s = 3 on; for fewer bits several names may mean one function
        three = Rule(T + 3, (0, 1, 2), table_of("AND", 3))
        named = sum(Rule(T + 3, (0, 1, 2), table_of(name, 3)).probability() for name in NAMES)
        by_name = named / (256 * three.probability(names=False)) * spelled_out
        total += math.comb(T, s) * (spelled_out + by_name)
    domains = sum(replace(zero, window=window).probability() for window in WINDOWS) / zero.probability()
    return 2 * total * domains


@pytest.mark.parametrize("T", [4, 5, 9])
def test_all_messages_sum_to_what_the_forks_say(T: int, monkeypatch: pytest.MonkeyPatch):
    assert messages(T) == 1 - Fraction(1, T + 2)
    monkeypatch.setattr(code, "_size", lambda count: Fraction(1, count + 1))  # no prefix code: the control
    assert messages(T) > 1
