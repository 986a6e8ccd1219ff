"""The checker: what it accepts is true on every input; everything altered, missing or not a number is refused."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from boundcalc.base.errors import BoundcalcError, CertificateError, InvalidSetting
from boundcalc.lab.train.model import plain
from boundcalc.predictors.rules import check
from boundcalc.predictors.rules._rounding import float32_error
from boundcalc.predictors.rules.check import Bit, Leaf, Proof, least_value, prove
from boundcalc.predictors.rules.code import Rule
from boundcalc.predictors.rules.heads import Inputs
from boundcalc.predictors.rules.search import explain
from boundcalc.predictors.rules.slopes import leaves_of
from boundcalc.predictors.rules.tables import _refuse_other_architectures, tables_of
from tests.predictors.rules.networks import all_inputs, architecture, drawn, looking_at

T = 8
KINDS = [
    {},
    {"activation": "relu"},
    *({"style": style, "normalisation": norm} for style in ("post", "pre") for norm in ("layernorm", "rmsnorm")),
]
"""Architectures that rules are proved of."""


def kind(number: int) -> dict[str, Any]:
    """Fields of an architecture; one whose first row is normalised does not say what that row shows."""
    return {**KINDS[number], **({"own_row": None} if KINDS[number].get("style") == "pre" else {})}


def dictator(seed: int, number: int = 0):
    """A network whose first head looks at x2, with random weights besides."""
    return looking_at(T, (2,), seed, **kind(number))


def values_by_definition(a: Any, w: Any, dtype: Any = torch.float64, T: int = T) -> np.ndarray[Any, Any]:
    """The output on every input, by the plain module."""
    x = torch.from_numpy(all_inputs(T))
    tokens = torch.cat([torch.full((len(x), 1), 2), x], 1)
    weights = {name: torch.from_numpy(value).to(dtype) for name, value in w.items()}
    return plain(a, weights, tokens)[:, 0].double().numpy()


@pytest.mark.parametrize("size", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("number", range(len(KINDS)))
def test_least_values_are_never_above_any_value(size: float, number: int):
    """Random networks, slopes and sets of inputs, cut by bits and counts."""
    x, shown = all_inputs(T), 0
    for seed in range(8):
        g = np.random.default_rng(seed)
        a = architecture(T, **kind(number))
        w, sign = drawn(a, seed, size), 1 if seed % 2 else -1
        w["b_2[0]"] += 2 * sign * w["readout"][:, 0]  # else few of the normalised show anything
        tables, truth = tables_of(a, w), values_by_definition(a, w)
        assert np.abs(tables.floats.forward(x) - truth).max() < 1e-11 * (1 + np.abs(truth).max())
        fixed = {int(t): int(g.integers(2)) for t in g.permutation(T)[:3]}
        low, high = sorted(g.integers(0, T + 1, 2).tolist())
        inside = np.all([x[:, t] == c for t, c in fixed.items()], axis=0) & (x.sum(1) >= low) & (x.sum(1) <= high)
        inputs = Inputs(T, fixed, low, high)
        assert inputs.empty == (not inside.any())
        if inputs.empty:
            continue
        ((good, _),) = leaves_of(tables.floats, [(inputs, sign)])
        some = Leaf(tuple(g.standard_normal(a.d_ff or 0).tolist()), (0,), float(g.random()))
        far = [replace(good, scale=k * good.scale) for k in (-1.0, 0.0, 3.0)]
        for leaf in (good, replace(good, heads=()), replace(good, heads=(1, 1)), some, *far):
            value = least_value(tables, leaf, sign, inputs)
            assert value <= (sign * truth[inside]).min()
            shown += value > -math.inf
    assert shown > 5


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_what_is_proved_is_true_on_every_input(number: int):
    proved = 0
    for seed in range(8):
        a, w = dictator(seed, number)
        found = explain(tables_of(a, w), seconds=5)
        if found.proved is None:
            continue
        proved += 1
        truth, answers = values_by_definition(a, w), found.rule.answers(all_inputs(T))
        assert ((truth > 0) == answers)[answers >= 0].all()
        assert np.abs(truth[answers >= 0]).min() >= found.proved.margin
        assert (answers >= 0).all() or not found.proved.everywhere
    assert proved >= 2


@pytest.fixture(scope="module")
def good():
    """A network with its rule and proof."""
    a, w = dictator(1)
    tables = tables_of(a, w)
    found = explain(tables, seconds=60)
    assert found.rule.tree == (2, 0, 1)
    assert found.proved is not None
    assert found.proved.everywhere
    return a, w, tables, found


def refused(tables: Any, rule: Rule, proof: Proof) -> bool:
    with suppress(CertificateError):
        prove(tables, rule, proof)
        return False
    return True


def test_altered_rules_and_proofs_are_refused(good: Any):
    a, w, tables, found = good
    rule, tree = found.rule, found.proof.tree
    (t, low, high), (zero, one), further = rule.tree, tree.parts, (rule.tree[0] + 1) % T
    for other in (replace(rule, tree=(t, high, low)), replace(rule, tree=(further, low, high)), Rule(T + 1, rule.tree)):
        assert refused(tables, other, found.proof)
    for ones in ((1, T), (0, T - 1)):  # a window one off
        assert refused(tables, replace(rule, window=None), Proof(*ones, tree))
    slopes = [(bad, *one.slopes[1:]) for bad in (math.nan, math.inf, 1e300)] + [one.slopes[1:]]
    leaves = [None, replace(one, heads=(7,)), *(replace(one, slopes=bad) for bad in slopes)]
    trees = [None, zero, *(Bit(index, (tree, tree)) for index in (-1, T))]
    trees += [replace(tree, parts=parts) for leaf in leaves for parts in ((zero, leaf), (leaf, one))]
    trees += [Bit(further, parts) for parts in ((tree, None), (None, tree))]
    for other in trees:
        assert refused(tables, rule, Proof(0, T, other))
    for good_tree in (tree, Bit(further, (tree, tree))):
        assert not refused(tables, rule, Proof(0, T, good_tree))
    above = tables_of(a, {**w, "b_readout": w["b_readout"] + 1e4})
    assert refused(above, rule, Proof(0, T, one))  # one leaf shows no two answers


def test_a_value_that_is_no_number_is_refused_wherever_it_stands(good: Any, monkeypatch: pytest.MonkeyPatch):
    """Python's min([1.0, nan]) is 1.0."""
    _, _, tables, found = good
    for place in range(2):
        for bad in (math.nan, -math.inf, math.inf, 0.0):
            values = iter([bad if i == place else 1.0 for i in range(2)])
            monkeypatch.setattr(check, "least_value", lambda *_, values=values: next(values))
            assert refused(tables, found.rule, found.proof)


def test_a_network_that_is_right_on_the_sample_and_wrong_on_a_cube_is_refused(good: Any):
    """A second position is made to count as much: right where it shows 0, as in the sample, and wrong where it shows
    1."""
    a, w, _, found = good
    (read,), x = found.rule.positions, all_inputs(T)
    other = (read + 3) % T
    altered = {name: value.copy() for name, value in w.items()}
    altered["positions"][other + 1] = altered["positions"][read + 1]
    wrong = (values_by_definition(a, altered) > 0) != found.rule.answers(x)
    assert wrong.any()
    assert not wrong[x[:, other] == 0].any()
    tables = tables_of(a, altered)
    parts = [(Inputs(T, dict(path), 0, T), 1 if answer else -1) for path, answer in found.rule.paths]
    leaves = [leaf for leaf, _ in leaves_of(tables.floats, parts)]
    assert refused(tables, found.rule, Proof(0, T, Bit(found.rule.tree[0], (leaves[0], leaves[1]))))


def test_no_weights_make_a_false_proof(good: Any):
    """Weights changed at random or beyond floats: either the proof fails or its claim is true."""
    a, w, _, found = good
    random = np.random.default_rng(3)
    far = [{**w, name: 1e200 * w[name].astype(np.float64)} for name in ("W_K[0]", "positions", "readout", "W_1[0]")]
    altered = [{k: v + 0.3 * random.standard_normal(v.shape) for k, v in w.items()} for _ in range(25)] + far
    proofs = 0
    with np.errstate(all="ignore"):
        for weights in altered:
            if not refused(tables_of(a, weights), found.rule, found.proof):
                assert ((values_by_definition(a, weights) > 0) == found.rule.answers(all_inputs(T))).all()
                proofs += 1
    assert proofs < len(altered)


def test_ties_and_a_single_bit():
    """Outputs of 0 and -0 are no answers, and one bit is enough for a rule."""
    a, w = looking_at(1, (0,), 1, 20.0)
    tables = tables_of(a, w)
    found = explain(tables)
    assert found.proof is not None
    assert (found.rule.tree, found.proof.low, found.proof.high) == ((0, 0, 1), 0, 1)
    assert refused(tables, replace(found.rule, tree=(0, 1, 0)), found.proof)
    for zero in (0.0, -0.0):
        tied = tables_of(a, {**w, "readout": zero * w["readout"], "b_readout": np.array([zero], dtype=np.float32)})
        for answer in (0, 1):
            ((leaf, _),) = leaves_of(tied.floats, [(Inputs(1, {}, 0, 1), 2 * answer - 1)])
            assert refused(tied, Rule(1, answer), Proof(0, 1, leaf))


@pytest.mark.parametrize(
    "change",
    [
        {"activation": "gelu_tanh"},
        {"normalisation": "ball"},
        {"depth": 2},
        {"bias": False},
        {"residual": False},
        {"causal": True, "own_row": None},
        {"vocabulary": 4},
        {"classes": 3},
        {"positions": "none", "own_row": None},
    ],
)
def test_other_architectures_are_refused(change: dict[str, Any]):
    for number in range(len(KINDS)):
        _refuse_other_architectures(architecture(T, **kind(number)))
    with pytest.raises(InvalidSetting):
        _refuse_other_architectures(architecture(T, **change))


@pytest.mark.parametrize("number", [0, 2])
def test_weights_that_do_not_fit_are_refused(number: int):
    a = architecture(T, **kind(number))
    w = drawn(a, 0)
    for name in w:
        bad = w[name].copy()
        bad.flat[0] = math.nan
        for wrong in ({k: v for k, v in w.items() if k != name}, {**w, name: bad}, {**w, name: w[name][:-1]}):
            with pytest.raises(BoundcalcError):
                tables_of(a, wrong)
    with pytest.raises(BoundcalcError):
        tables_of(a, {**w, "more": np.ones(3, dtype=np.float32)})


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("size", [0.2, 1.0, 3.0])
def test_a_float32_pass_is_within_its_bound(number: int, size: float):
    a = architecture(T, d=16, heads=4, **kind(number))
    for seed in range(6):
        w = drawn(a, seed, size)
        off = np.abs(values_by_definition(a, w, torch.float32) - values_by_definition(a, w)).max()
        error = float32_error(a, w)
        assert error is not None
        assert off <= error
        assert error <= 3e4 * off or size > 1
        assert float32_error(a, {**w, "b_O[0]": w["b_O[0]"].astype(np.float64) / 3}) is None
        assert float32_error(a, {**w, "W_Q[0]": w["W_Q[0]"] * np.float32(1e34)}) is None
        assert float32_error(architecture(T, **kind(2)), w) is None


def test_exp_and_erf_are_as_exact_as_the_bound_supposes():
    z = torch.linspace(-87, 0, 500_001)
    exact = z.double().exp()
    assert float((z.exp().double() / exact - 1).abs().max()) < 2**-21
    z = torch.linspace(-8, 8, 500_001)
    assert float((z.erf().double() - z.double().erf()).abs().max()) < 2**-21
