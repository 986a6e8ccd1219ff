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


def dictator(seed: int, strength: float, number: int = 0):
    """A network whose first head looks at x2, with random weights besides."""
    return looking_at(T, (2,), seed, strength, **kind(number))


def values_by_definition(a: Any, w: Any, dtype: Any = torch.float64, T: int = T) -> np.ndarray[Any, Any]:
    """The output on every input, by the plain module."""
    x = torch.from_numpy(all_inputs(T))
    tokens = torch.cat([torch.full((len(x), 1), 2), x], 1)
    weights = {name: torch.from_numpy(value).to(dtype) for name, value in w.items()}
    return plain(a, weights, tokens)[:, 0].double().numpy()


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_tables_give_the_network(number: int):
    for seed in range(3):
        a, w = dictator(seed, 1.0, number)
        tables, truth = tables_of(a, w), values_by_definition(a, w)
        assert np.abs(tables.floats.forward(all_inputs(T)) - truth).max() < 1e-11 * (1 + np.abs(truth).max())


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
        a, w = dictator(seed, 6.0, number)
        found = explain(tables_of(a, w), seconds=5)
        if found.proved is None:
            continue
        proved += 1
        truth, answers = values_by_definition(a, w), found.rule.answers(all_inputs(T))
        assert ((truth > 0) == answers)[answers >= 0].all()
        assert np.abs(truth[answers >= 0]).min() >= found.proved.margin
        if found.proved.everywhere:
            assert (answers >= 0).all()
    assert proved >= 2


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
    rule, proof, tree = found.rule, found.proof, found.proof.tree
    t, low, high = rule.tree
    assert not refused(tables, rule, proof)
    assert refused(tables, replace(rule, tree=(t, high, low)), proof)
    assert refused(tables, replace(rule, tree=((t + 1) % T, low, high)), proof)
    assert refused(tables, Rule(T + 1, rule.tree), proof)
    for ones in ((1, T), (0, T - 1)):  # a window one off
        assert refused(tables, replace(rule, window=None), Proof(*ones, tree))
    for parts in ((tree.parts[0], None), (None, tree.parts[1])):
        assert refused(tables, rule, Proof(0, T, replace(tree, parts=parts)))
    assert refused(tables, rule, Proof(0, T, tree.parts[0]))
    assert refused(tables, rule, Proof(0, T, None))
    assert refused(tables, rule, Proof(0, T, replace(tree, index=T)))
    leaf = tree.parts[1]
    wrong = [replace(leaf, slopes=(bad, *leaf.slopes[1:])) for bad in (math.nan, math.inf, 1e300)]
    wrong += [replace(leaf, slopes=leaf.slopes[1:]), replace(leaf, heads=(7,))]
    for other in wrong:
        assert refused(tables, rule, Proof(0, T, replace(tree, parts=(tree.parts[0], other))))
        assert refused(tables, rule, Proof(0, T, replace(tree, parts=(other, tree.parts[1]))))
    # a further cut shows nothing that its two parts do not show
    further = (t + 1) % T
    assert not refused(tables, rule, Proof(0, T, Bit(further, (tree, tree))))
    assert refused(tables, rule, Proof(0, T, Bit(further, (tree, None))))
    assert refused(tables, rule, Proof(0, T, Bit(further, (None, tree))))


@pytest.mark.parametrize(
    "change",
    [
        {"low": 0.5},
        {"more": 0},
        {"tree": {"kind": "word", "index": 0, "parts": [None, None]}},
        {"tree": {"kind": "bit", "index": 0, "parts": [None]}},
        {"tree": {"kind": "leaf", "heads": [], "scale": 1.0, "slopes": [math.nan]}},
        {"tree": {"kind": "leaf", "heads": [], "slopes": []}},
    ],
)
def test_what_is_no_proof_is_not_read(good: Any, change: dict[str, Any]):
    proof = good[3].proof
    assert Proof.from_json(proof.to_json()) == proof
    with pytest.raises(CertificateError):
        Proof.from_json({**proof.to_json(), **change})


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
    """Weights changed at random: either the proof fails or its claim is true."""
    a, w, _, found = good
    random = np.random.default_rng(3)
    refusals = 0
    for _ in range(25):
        altered = {k: v + (0.3 * random.standard_normal(v.shape)).astype(np.float32) for k, v in w.items()}
        right = ((values_by_definition(a, altered) > 0) == found.rule.answers(all_inputs(T))).all()
        said_no = refused(tables_of(a, altered), found.rule, found.proof)
        assert said_no or right
        refusals += said_no
    assert refusals > 0


def test_ties_extreme_weights_and_a_single_bit():
    """Outputs of 0 and -0 are no answers, numbers beyond floats prove nothing, and one bit is enough for a rule."""
    a, w = looking_at(1, (0,), 1, 20.0)
    tables = tables_of(a, w)
    found = explain(tables)
    assert found.proved is not None
    assert found.proof is not None
    assert (found.rule.tree, found.proved.everywhere) == ((0, 0, 1), True)
    assert refused(tables, replace(found.rule, tree=(0, 1, 0)), found.proof)
    for index in (-1, 1):
        assert refused(tables, found.rule, Proof(0, 1, Bit(index, (found.proof.tree, found.proof.tree))))
    for zero in (0.0, -0.0):
        tied = tables_of(a, {**w, "readout": zero * w["readout"], "b_readout": np.array([zero], dtype=np.float32)})
        for answer in (0, 1):
            ((leaf, _),) = leaves_of(tied.floats, [(Inputs(1, {}, 0, 1), 2 * answer - 1)])
            assert refused(tied, Rule(1, answer), Proof(0, 1, leaf))
    for name in ("W_K[0]", "W_V[0]", "positions", "readout", "W_1[0]"):
        far = tables_of(a, {**w, name: 1e200 * w[name].astype(np.float64)})
        with np.errstate(all="ignore"):
            truth = values_by_definition(a, {**w, name: 1e200 * w[name].astype(np.float64)}, T=1)
            if not refused(far, found.rule, found.proof):
                assert ((truth > 0) == found.rule.answers(all_inputs(1))).all()


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
    w = drawn(a, 0, size)
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
