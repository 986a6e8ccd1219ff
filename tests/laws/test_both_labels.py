"""Every risk bound speaks of samples with both labels: the network is built, and no network reaches beyond the largest margin.

One block of one head attains the largest margin on inputs of both labels (G0e), so a risk is printed exactly where the network
exists. Deeper networks get the same number, although those built here lose a factor in every block: there a printed risk has a
network in all but a counted share, as no better upper limit is proved.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from boundcalc import Setting, compare
from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import upper_float
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems import POLICIES
from boundcalc.proof.checker import check
from boundcalc.setting import Budget, Norms
from boundcalc.statements.premise import margin_of_class, margin_on_both_labels, no_member
from boundcalc.testing.drawing import Array, Dice, Parameters, within
from tests.proof import alone
from tests.soundness.network import Network

ROUNDING = 1e-9


def scores(setting: Setting, parameters: Parameters, *inputs: Array) -> list[float]:
    """The scalar outputs of a network of the class."""
    a = setting.architecture
    network = Network(a.stages, setting.norms, a.seq_len, a.input_radius)
    return [float(network.run(parameters, x)[0, 0]) for x in inputs]


def built(setting: Setting) -> float:
    """The margin that a network of relu blocks has on two inputs of different labels.

    The first block tells two axes apart and writes +-s to the first; every later one carries the sign on.
    """
    a, rows = setting.architecture, setting.architecture.seq_len
    one, both = np.eye(a.d)[0], np.eye(a.d)[0] - np.eye(a.d)[1]
    parameters: Parameters = {}

    def put(kind: str, block: int | None, w: Array, head: int | None = None) -> None:
        budget = setting.norms.find(kind, block, head)
        parameters[kind, block, head] = within(w, budget)

    for block in range(a.depth):
        for head in range(a.heads):
            parameters["W_QK", block, head] = np.zeros((a.d, a.d))
            put("W_V", block, np.diag([1.0, 1.0, *[0.0] * (a.d - 2)]) if block == 0 else np.outer(one, both), head)
        put("W_1", block, np.outer(both, one))
    put("readout", None, one[:, None])
    pair = [a.input_radius * np.ones((rows, 1)) * axis for axis in np.eye(a.d)[:2]]
    first, second = scores(setting, parameters, *pair)
    return min(first, -second)


def relu_settings(seed: str, number: int, depths: tuple[int, ...], heads: tuple[int, ...] = (1,)) -> Iterator[Setting]:
    """Settings of the first paper's architecture, some with norms of their own."""
    rng = random.Random(seed)
    for _ in range(number):
        size = rng.uniform(0.4, 2.5)
        budgets = {
            kind: Budget(op=op, fro=op * rng.uniform(1, 1.6), two_one=op * rng.uniform(1.6, 2.5))
            for kind in ("W_V", "W_1", "readout")
            if rng.random() < 0.5 and (op := rng.uniform(0.4, 2.5))
        }
        norms = Norms(C=size, budgets=budgets)
        yield Setting.of(
            depth=rng.choice(depths),
            heads=rng.choice(heads),
            d=rng.choice((2, 4)),
            seq_len=rng.randint(1, 4),
            norms=norms,
        )


def test_one_block_attains_the_largest_margin_on_both_labels() -> None:
    halved = 0
    for setting in relu_settings("one block", 150, (1,)):
        most = upper_float(margin_on_both_labels(setting))
        assert built(setting) == pytest.approx(most, rel=ROUNDING)
        halved += most < 0.999 * upper_float(margin_of_class(setting))
    assert halved > 60


def test_every_risk_printed_has_a_network_with_both_labels() -> None:
    out_of_reach = printed = 0
    rng = random.Random(3)
    for setting in relu_settings("printed", 200, (1, 2, 3), (1, 2)):
        most = upper_float(margin_on_both_labels(setting))
        asked = setting.but(margin=most * rng.choice((0.02, 0.1, 0.3, 0.7, 0.99, 1.01, 2.0)))
        if no_member(asked) is not None:
            assert asked.sample.margin > most
            continue
        found = built(asked) > asked.sample.margin
        single = asked.architecture.depth == asked.architecture.heads == 1
        assert found or not single
        printed += 1
        out_of_reach += not found
    assert printed > 100
    assert out_of_reach < 0.4 * printed


@pytest.mark.parametrize("depth", [1, 2])
def test_the_default_margin_is_one_that_a_network_has_on_both_labels(depth: int) -> None:
    """`boundcalc eval --depth 2 --T 512`."""
    setting = Setting.of(depth=depth, seq_len=512)
    assert built(setting) > setting.sample.margin
    assert all(value.risk_refusal is None for value in compare(setting))


def test_no_network_has_more_on_both_labels() -> None:
    """Random steps of weights and of two inputs come near the largest margin, and not beyond it."""
    rng, near = np.random.default_rng(0), 0
    for setting in relu_settings("steps", 12, (1, 2), (1, 2)):
        most = upper_float(margin_on_both_labels(setting))
        a = setting.architecture
        network = Network(a.stages, setting.norms, a.seq_len, a.input_radius)
        weights = network.draw(Dice(rng))
        pair = [rng.standard_normal((a.seq_len, a.d)) for _ in range(2)]
        best = -np.inf
        for step in range(300):
            size = 0.5 * 0.985**step
            other = {
                key: within(w + size * rng.standard_normal(w.shape), setting.norms.find(key[0], key[1]))
                for key, w in weights.items()
            }
            moved = [x + size * rng.standard_normal(x.shape) for x in pair]
            moved = [a.input_radius * x / np.linalg.norm(x, axis=1, keepdims=True) for x in moved]
            first, second = scores(setting, other, *moved)
            there = min(first, -second)
            assert there <= most * (1 + ROUNDING)
            if there > best:
                weights, pair, best = other, moved, there
        near += best > 0.5 * most
    assert near >= 3


def test_the_law_sees_a_margin_that_one_label_alone_has() -> None:
    """Between the two margins a network of one label is built in vain: both checkers refuse the risk."""
    setting = Setting.of(depth=1, d=4, seq_len=2, margin=0.5)
    assert built(setting) < setting.sample.margin < upper_float(margin_of_class(setting))
    met = setting.but(margin=0.3)
    certificate = check(next(iter(Search(met, POLICIES["best"]).risks())).certificate).claimed
    alone.log_value(certificate)
    for checker in (check, alone.log_value):
        with pytest.raises(CertificateError, match="label"):
            checker(replace(certificate, setting=setting))
