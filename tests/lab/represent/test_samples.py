"""Sample complexity: every m is a checked bound, the references are what they say, the formulas agree."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import sympy

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints.margins import Margins
from boundcalc.engine.solve import solve
from boundcalc.formulas.theorems import POLICIES
from boundcalc.lab.represent import symbolic
from boundcalc.lab.represent.classes import class_budgets
from boundcalc.lab.represent.construct import build
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.positions import orthonormal
from boundcalc.lab.represent.represent import represent
from boundcalc.lab.represent.samples import counting_floor, finite_class, log_functions, sample_complexity
from boundcalc.lab.represent.selection import Selected, Selection
from boundcalc.lab.represent.tune import Choice
from boundcalc.lab.represent.units import Units, corners
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import verify
from boundcalc.setting import Architecture, Budget, Norms, Sample, Setting
from boundcalc.statements.capacity import capacity as calculus_capacity
from boundcalc.statements.compose import lower
from boundcalc.statements.covers import LEMMAS

RISK, DELTA = 0.05, 0.01


@pytest.mark.parametrize(("s", "T", "where"), [(2, 64, "orthonormal"), (3, 512, "orthonormal"), (3, 4096, "compact")])
def test_every_m_is_confirmed_by_the_checker(s: int, T: int, where) -> None:
    found = sample_complexity(s, T, RISK, DELTA, positions=where)
    assert [row.policy for row in found.rows] == list(POLICIES)
    values = {}
    for row in found.rows:
        if row.solution is None:
            assert row.reason
            continue
        bound = row.solution.bound
        assert bound.setting.sample.n_train == row.solution.value
        assert bound.risk <= RISK * (1 + 1e-9)
        proof = bound.by_risk or bound.by_gap
        assert proof is not None
        again = Certificate.from_json(proof.certificate.to_json())
        assert verify(again).log_value <= math.log(RISK) + 1e-9
        values[row.policy] = row.solution.value
        with pytest.raises(CertificateError):
            verify(replace(again, log_value=again.log_value - 0.01))
    assert values["best"] == min(values.values())
    assert found.floor < found.finite_class < values["best"]


def test_the_best_bound_with_compact_positions_hardly_grows_with_the_length() -> None:
    needed = {
        T: sample_complexity(3, T, RISK, DELTA, positions="compact", policies=("best",)).rows[0].solution
        for T in (512, 4096, 65536)
    }
    values = {T: solution.value for T, solution in needed.items() if solution is not None}
    assert values[4096] < 1.1 * values[512]
    assert values[65536] < 2.5 * values[512]
    exact = sample_complexity(3, 4096, RISK, DELTA, policies=("best",)).rows[0].solution
    assert exact is not None
    assert values[4096] < 0.1 * exact.value


def test_log_t_covers_grow_with_a_power_of_log_t() -> None:
    values = [
        row.solution.value
        for T in (64, 512, 4096, 32768)
        for row in sample_complexity(3, T, RISK, DELTA, policies=("log-T",)).rows
        if row.solution is not None
    ]
    ratios = [b / a for a, b in itertools.pairwise(values)]
    assert all(1 < ratio < 2.5 for ratio in ratios)
    assert ratios[-1] < ratios[0]


def test_the_finite_class_by_brute_force() -> None:
    """Distinct functions of T bits that depend on at most s of them; the learner fails with at most |F| (1 - r)^m."""
    T, s = 4, 2
    functions = {
        tuple((code >> ((row >> a & 1) | (row >> b & 1) << 1)) & 1 for row in range(1 << T))
        for a, b in itertools.combinations(range(T), s)
        for code in range(1 << (1 << s))
    }
    assert math.log(len(functions)) <= float(log_functions("any", s, T).lower())
    m = finite_class("any", s, T, RISK, DELTA)
    size = math.comb(T, s) * 2 ** (2**s)
    assert size * (1 - RISK) ** m <= DELTA < size * (1 - RISK) ** (m - 1)


def answers(T: int, s: int, m: int, runs: int, seed: int, parity: bool = False) -> np.ndarray:
    """What every conjunction (or parity) of s of T bits says of m draws of fair coins: (runs, m, functions)."""
    bits = np.random.default_rng(seed).integers(0, 2, (runs, m, T))
    some = bits[:, :, list(itertools.combinations(range(T), s))]
    return np.asarray(some.sum(-1) % 2 if parity else some.all(-1).astype(np.int64))


def test_a_bad_function_of_a_finite_class_survives_rarely_and_with_samples_that_forget_the_class_often() -> None:
    """1,000 draws: another conjunction of 2 of the 3 bits errs with probability 1/8, which is just too much to be good."""
    T, s, risk, delta = 12, 3, 0.1249, 0.05
    size = math.comb(T, s)

    def survived(m: int) -> int:
        said = answers(T, s, m, 1000, 0)
        return int((said[:, :, 1:] == said[:, :, :1]).all(1).any(1).sum())

    enough = math.ceil((math.log(size) + math.log(1 / delta)) / -math.log1p(-risk))
    assert enough <= finite_class("threshold", s, T, risk, delta)
    assert survived(enough) <= delta * 1000
    assert survived(math.ceil(math.log(1 / delta) / -math.log1p(-risk))) > 3 * delta * 1000


@pytest.mark.parametrize("parity", [True, False])
def test_no_learner_finds_the_bits_below_the_floor_and_one_does_a_little_above_it(parity: bool) -> None:
    """1,000 draws of inputs. The best learner is right as often as labels tell: patterns that occur, over functions."""
    T, s = 16, 3

    def chance(m: int) -> float:
        said = answers(T, s, m, 1000, 1, parity)
        codes = (said << np.arange(m)[None, :, None]).sum(1)
        return float(np.mean([len(set(row)) for row in codes.tolist()])) / math.comb(T, s)

    below = counting_floor(s, T) - 1
    assert chance(below) <= 2**below / math.comb(T, s) < 0.5
    if parity:  # its labels are nearly as many bits: a floor three labels higher would be false
        assert chance(below + 3) > 0.5


@pytest.mark.parametrize("name", ["any", "symmetric", "threshold", "signed-symmetric", "signed-threshold"])
def test_class_sizes_count_every_rule(name: str) -> None:
    s = 3
    rules = set()
    for code in range(1 << (1 << s)):
        function = SparseFunction((0, 1, 2), tuple((code >> k) & 1 for k in range(1 << s)))
        smallest = function.minimised()
        if smallest.arity < s:
            continue
        found = smallest.symmetric
        if name != "any" and (
            found is None
            or (any(found.negated) and not name.startswith("signed"))
            or (name.endswith("threshold") and found.changes != 1)
        ):
            continue
        rules.add(function.table)
    assert rules
    assert math.log(len(rules)) <= float(log_functions(name, s, s).upper())


def test_members_have_no_errors_at_the_margin_of_the_question() -> None:
    """G0 counts margins that equal gamma as errors, and constructions reach margin 1 exactly."""
    margins = Margins(np.ones(4))
    assert margins.error(class_budgets("any", 3, 32).setting().sample.margin) == 0
    assert margins.error(represent(parse("x1 & x4"), 12).needed.bound.setting.sample.margin) == 0
    assert margins.error(1.0) == 1


def test_the_counting_floor() -> None:
    assert counting_floor(3, 512) == math.ceil(math.log2(math.comb(512, 3)) - 1) == 24
    assert counting_floor(1, 2) == 0


@pytest.mark.parametrize(
    ("s", "T", "name", "says"),
    [
        (5, 4, "any", "cannot hide"),
        (11, 64, "any", "at most 10"),
        (600, 1024, "threshold", "at most 512"),
        (3, 1 << 21, "any", "at most 2^20"),
        (0, 4, "any", "s must lie between"),
        (2, 4, "every", "class must be one of"),
    ],
)
def test_what_is_not_offered(s: int, T: int, name: str, says: str) -> None:
    with pytest.raises(InvalidSetting) as error:
        class_budgets(name, s, T)
    assert says in str(error.value)


class TestFormulas:
    """The symbolic page: its norms belong to constructions, and its capacity to the calculus."""

    def simple(self, s: int, T: int, table: tuple[int, ...]) -> tuple:
        """The construction of the formulas, for one function."""
        size = math.sqrt(float(symbolic.largest_squared.subs(symbolic.s, s)))
        signs = 2.0 * np.asarray(table) - 1
        rare = 1.0 if (signs > 0).sum() <= (signs < 0).sum() else -1.0
        chosen = corners(s)[signs == rare]
        units = Units(
            np.concatenate([chosen.T / 2, np.zeros((s, 1))], axis=1),
            np.concatenate([np.full(len(chosen), 1 - s / 2), [1.0]]),
            rare * np.concatenate([np.full(len(chosen), 2.0), [-1.0]]),
        )
        choice = Choice(math.sqrt(0.5), 0.5, 0.5, math.log((T - s + 1) / s), 1 / size, size, units, 0.0)
        function = SparseFunction(tuple(range(1, s + 1)), table)
        view = Selected(Selection(orthonormal(T), function.variables), shared=False, signs=None)
        return function, build(function, view, "corners", choice)

    def test_norms_are_those_of_constructions(self) -> None:
        rng = np.random.default_rng(0)
        for s, T in ((1, 4), (2, 16), (3, 16), (3, 200), (5, 40), (7, 64)):
            at = {symbolic.s: s, symbolic.T: T}
            limits = {
                ("W_QK[0]", "fro"): symbolic.W_QK,
                ("W_V[0]", "op"): symbolic.W_V,
                ("W_V[0]", "two_one"): symbolic.W_V_21,
                ("W_1[0]", "fro"): symbolic.W_1,
            }
            parity = tuple(row.bit_count() % 2 for row in range(1 << s))
            for table in (parity, tuple(int(v) for v in rng.integers(0, 2, 1 << s))):
                if SparseFunction(tuple(range(s)), table).minimised().arity < s:
                    continue
                _, made = self.simple(s, T, table)
                assert made.certify().margin >= 1 - 1e-6
                for (key, norm), formula in limits.items():
                    assert getattr(made.network.norms.budgets[key], norm) <= float(formula.subs(at)) * (1 + 1e-6)
                assert made.network.blocks[0].w_1.shape[0] <= symbolic.units.subs(at)

    def setting(self, s: int, T: int, m: int) -> Setting:
        at = {symbolic.s: s, symbolic.T: T}
        keys, op, two_one, w_1, units = (
            float(x.subs(at)) for x in (symbolic.W_QK, symbolic.W_V, symbolic.W_V_21, symbolic.W_1, symbolic.units)
        )
        budgets = {
            "W_QK[0]": Budget(op=keys, fro=keys, rank=1),
            "W_V[0]": Budget(op=op, two_one=max(op, two_one)),
            "W_1[0]": Budget(op=w_1, fro=w_1, two_one=w_1, rank=1),
            "readout": Budget(op=1.0, fro=1.0, two_one=1.0),
        }
        layers = class_budgets("any", s, T).setting().architecture.layers
        architecture = Architecture(seq_len=T + 1, layers=layers, input_radius=1.0, depth=1)
        del units
        return Setting(
            architecture, Norms(budgets=budgets), Sample(n_train=m, delta=DELTA, margin=math.nextafter(1.0, 0.0))
        )

    @pytest.mark.parametrize(("s", "T"), [(2, 64), (3, 512), (5, 4096)])
    def test_capacity_is_at_least_that_of_the_calculus(self, s: int, T: int) -> None:
        m = 10**6
        setting = self.setting(s, T, m)
        lemmas = [LEMMAS["T1"], LEMMAS["T2"]]
        calculus = calculus_capacity(FLOAT, lower(setting, FLOAT), m, lemmas)
        formula = float(symbolic.capacity(symbolic.m).subs({symbolic.s: s, symbolic.T: T, symbolic.m: m}))
        assert calculus <= formula * (1 + 1e-9)
        assert formula <= 1.3 * calculus

    @pytest.mark.parametrize(("s", "T"), [(2, 64), (3, 512)])
    def test_the_formula_for_m_is_a_bound(self, s: int, T: int) -> None:
        m = symbolic.samples_needed(s, T, RISK, DELTA)
        at = {symbolic.s: s, symbolic.T: T, symbolic.m: m, symbolic.risk: RISK, symbolic.delta: DELTA}
        assert float(symbolic.right_side.subs(at)) <= m
        checked = solve(self.setting(s, T, m), "m", RISK, bound="log-T", quantity="risk")
        assert checked.value <= m  # the search over the same covers does better than the closed form

    def test_the_leading_part_leads(self) -> None:
        at = {symbolic.s: 3, symbolic.m: 10**9}
        ratios = [
            float(
                (symbolic.capacity(2 * symbolic.m) / symbolic.leading).subs(at | {symbolic.T: sympy.Integer(10) ** k})
            )
            for k in (3, 6, 12, 60)
        ]
        assert ratios == sorted(ratios, reverse=True)
        assert 1 <= ratios[-1] < 2
