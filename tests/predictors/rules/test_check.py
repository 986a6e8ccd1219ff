"""The checker: what it accepts is true on every input; everything altered, missing or not a number is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from boundcalc.base.errors import BoundcalcError, CertificateError, InvalidSetting
from boundcalc.lab.train.model import plain
from boundcalc.predictors.rules import check
from boundcalc.predictors.rules.check import Leaf, Proof, covers, inputs_of, least_value, prove
from boundcalc.predictors.rules.code import Cube, Rule
from boundcalc.predictors.rules.search import explain, prove_leaves
from boundcalc.predictors.rules.tables import described, tables_of
from tests.predictors.rules.networks import all_inputs, architecture, drawn, looking_at

T = 8


def dictator(seed: int, strength: float, activation: str = "gelu"):
    """A network whose first head looks at x2, with random weights besides."""
    return looking_at(T, (2,), seed, strength, activation)


def values_by_definition(a: Any, w: Any) -> np.ndarray[Any, Any]:
    """The output on every input, by the plain module in float64."""
    x = torch.from_numpy(all_inputs(T))
    tokens = torch.cat([torch.full((len(x), 1), 2), x], 1)
    weights = {name: torch.from_numpy(value).double() for name, value in w.items()}
    return plain(a, weights, tokens)[:, 0].numpy()


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_tables_give_the_network(activation: str):
    for seed in range(5):
        a, w = dictator(seed, 1.0, activation)
        tables = tables_of(a, w)
        truth = values_by_definition(a, w)
        assert np.abs(tables.floats.forward(all_inputs(T)) - truth).max() < 1e-12 * (1 + np.abs(truth).max())
        for i in (0, 77, 255):
            assert abs(float(tables.value(all_inputs(T)[i]).mid()) - truth[i]) < 1e-12 * (1 + abs(truth[i]))


@pytest.mark.parametrize("size", [0.3, 1.0, 4.0])
def test_least_values_are_never_above_any_value(size: float):
    """Random networks, random sets of inputs: the bound holds on every input of the set."""
    x = all_inputs(T)
    for seed in range(12):
        g = np.random.default_rng(seed)
        a = architecture(T, activation="gelu" if seed % 2 else "relu")
        w = drawn(a, seed, size)
        truth = values_by_definition(a, w)
        tables = tables_of(a, w)
        rule = Rule(T, (1, 5), (0, 1, 1, 0))
        cube = Cube((int(g.integers(2)), int(g.integers(2))), (3,), (int(g.integers(2)),))
        low, high = sorted(g.integers(0, T - 1, 2).tolist())
        inputs = inputs_of(rule, cube, low, high)
        ones = x.sum(1) - x[:, 1] - x[:, 5]
        inside = cube.contains(x[:, [1, 5]], x) & (ones >= low) & (ones <= high)
        if inputs.empty:
            assert not inside.any()
            continue
        for sign in (1, -1):
            slopes = tuple(float(s) for s in g.standard_normal(a.d_ff))
            for heads in ((), (0,), (0, 1)):
                assert least_value(tables, Leaf(cube, slopes, heads), sign, inputs) <= (sign * truth[inside]).min()


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_what_is_proved_is_true_on_every_input(activation: str):
    proved = 0
    for seed in range(12):
        a, w = dictator(seed, 6.0, activation)
        found = explain(tables_of(a, w), seconds=5)
        if found.proved is None:
            continue
        proved += 1
        truth, answers = values_by_definition(a, w), found.rule.answers(all_inputs(T))
        assert ((truth > 0) == answers)[answers >= 0].all()
        assert np.abs(truth[answers >= 0]).min() >= found.proved.margin
        if found.proved.everywhere:
            assert (answers >= 0).all()
    assert proved >= 4


@pytest.fixture(scope="module")
def good():
    """A network with its rule and proof."""
    for seed in range(50):
        a, w = dictator(seed, 6.0)
        tables = tables_of(a, w)
        found = explain(tables, seconds=5)
        if found.proved is not None and found.proved.everywhere and len(found.rule.positions) == 1:
            return a, w, tables, found
    raise AssertionError("no network of the list is a dictator")


def refused(tables: Any, rule: Rule, proof: Proof) -> bool:
    try:
        prove(tables, rule, proof)
    except CertificateError:
        return True
    return False


def test_altered_rules_and_proofs_are_refused(good: Any):
    _, _, tables, found = good
    rule, proof = found.rule, found.proof
    assert not refused(tables, rule, proof)
    assert refused(tables, replace(rule, table=rule.table[::-1]), proof)
    assert refused(tables, rule, Proof(proof.low, proof.high, proof.leaves[:-1]))
    assert refused(tables, rule, Proof(proof.low, proof.high, ()))
    assert refused(tables, rule, Proof(proof.low + 1, proof.high, proof.leaves))
    assert refused(tables, rule, Proof(proof.low, proof.high - 1, proof.leaves))
    for bad in (math.nan, math.inf, 1e300):
        leaf = replace(proof.leaves[-1], slopes=(bad, *proof.leaves[-1].slopes[1:]))
        assert refused(tables, rule, Proof(proof.low, proof.high, (*proof.leaves[:-1], leaf)))
        assert refused(tables, rule, Proof(proof.low, proof.high, (leaf, *proof.leaves[1:-1])))
    short = replace(proof.leaves[0], slopes=proof.leaves[0].slopes[1:])
    assert refused(tables, rule, Proof(proof.low, proof.high, (short, *proof.leaves[1:])))
    beyond = replace(proof.leaves[0], heads=(7,))
    assert refused(tables, rule, Proof(proof.low, proof.high, (beyond, *proof.leaves[1:])))
    other = Rule(T + 1, rule.positions, rule.table)
    assert refused(tables, other, proof)


def test_a_value_that_is_no_number_is_refused_wherever_it_stands(good: Any, monkeypatch: pytest.MonkeyPatch):
    """Python's min([1.0, nan]) is 1.0."""
    _, _, tables, found = good
    for place in range(len(found.proof.leaves)):
        for bad in (math.nan, -math.inf, math.inf, 0.0):
            values = iter([bad if i == place else 1.0 for i in range(len(found.proof.leaves))])
            monkeypatch.setattr(check, "least_value", lambda *_, values=values: next(values))
            assert refused(tables, found.rule, found.proof)


def test_one_altered_weight_is_refused(good: Any):
    a, w, _, found = good
    position = found.rule.positions[0]
    altered = {name: value.copy() for name, value in w.items()}
    altered["positions"][(position + 1) % T + 1] = altered["positions"][position + 1]
    assert refused(tables_of(a, altered), found.rule, found.proof)


def test_a_network_that_is_right_on_the_sample_and_wrong_on_a_cube_is_refused(good: Any):
    """A second position is made to matter: right where it shows 0, as in the sample, and wrong where it shows 1."""
    a, w, _, found = good
    position = found.rule.positions[0]
    other = (position + 3) % T
    for size in (10.0, 30.0, 100.0):
        altered = {name: value.copy() for name, value in w.items()}
        random = np.random.default_rng(int(size))
        for _ in range(200):
            altered["positions"][other + 1] = (size * random.standard_normal(a.d)).astype(np.float32)
            truth, answers = values_by_definition(a, altered), found.rule.answers(all_inputs(T))
            wrong = (truth > 0) != answers
            if wrong.any() and not wrong[all_inputs(T)[:, other] == 0].any():
                tables = tables_of(a, altered)
                cubes = [Cube(pattern) for pattern in found.rule.patterns]
                leaves, _ = prove_leaves(tables.floats, found.rule, cubes, 0, T - 1)
                assert refused(tables, found.rule, Proof(0, T - 1, tuple(leaves)))
                return
    raise AssertionError("no such network was found")


def test_no_weights_make_a_false_proof(good: Any):
    """Weights changed at random: either the proof fails or its claim is true."""
    a, w, _, found = good
    random = np.random.default_rng(3)
    refusals = 0
    for _ in range(25):
        altered = {k: v + (0.3 * random.standard_normal(v.shape)).astype(np.float32) for k, v in w.items()}
        truth = values_by_definition(a, altered)
        right = ((truth > 0) == found.rule.answers(all_inputs(T))).all()
        said_no = refused(tables_of(a, altered), found.rule, found.proof)
        assert said_no or right
        refusals += said_no
    assert refusals > 0


def test_covers():
    assert covers([{}])
    assert covers([{1: 0}, {1: 1, 2: 0}, {2: 1}])
    assert covers([{3: 1}, {3: 0}])
    assert not covers([])
    assert not covers([{1: 0}])
    assert not covers([{1: 0}, {1: 1, 2: 0}, {2: 1, 5: 1}])
    random = np.random.default_rng(0)
    x = all_inputs(5)
    for _ in range(300):
        cubes = [
            {int(t): int(random.integers(2)) for t in random.permutation(5)[: random.integers(1, 4)]}
            for _ in range(random.integers(1, 12))
        ]
        inside = np.zeros(len(x), dtype=bool)
        for cube in cubes:
            inside |= np.all([x[:, t] == c for t, c in cube.items()], axis=0)
        assert covers(cubes) == inside.all()


@pytest.mark.parametrize(
    "change",
    [
        {"activation": "gelu_tanh"},
        {"activation": "silu"},
        {"normalisation": "layernorm"},
        {"depth": 2},
        {"bias": False},
        {"residual": False},
        {"own_row": None},
        {"vocabulary": 4},
        {"classes": 3},
        {"positions": "none"},
    ],
)
def test_other_architectures_are_refused(change: dict[str, Any]):
    described(architecture(T))
    with pytest.raises(InvalidSetting):
        described(architecture(T, **change))


def test_weights_that_do_not_fit_are_refused():
    a = architecture(T)
    w = drawn(a, 0)
    for name in w:
        with pytest.raises(BoundcalcError):
            tables_of(a, {k: v for k, v in w.items() if k != name})
        bad = w[name].copy()
        bad.flat[0] = math.nan
        with pytest.raises(BoundcalcError):
            tables_of(a, {**w, name: bad})
        with pytest.raises(BoundcalcError):
            tables_of(a, {**w, name: w[name][:-1]})
    with pytest.raises(BoundcalcError):
        tables_of(a, {**w, "gain": np.ones(3, dtype=np.float32)})
