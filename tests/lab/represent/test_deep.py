"""Functions in more than two levels: right on all inputs, and every range that is carried from block to block holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.engine.solve import solve
from boundcalc.lab.represent.deep import Deep, _passed, deep
from boundcalc.lab.represent.exhaust import all_inputs
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.features import projected
from boundcalc.lab.represent.network import _block

LEVELS = {
    "tree": (["x0 & x1", "x2 | x3", "x4 & x5", "x6 | x7"], ["x0 | x1", "x2 & x3"], ["x0 & x1"]),
    "four": (
        ["x0 & x1", "x2 | x3", "x4 ^ x5"],
        ["x0 | x1", "x1 ^ x2", "MAJ(0,1,2)"],
        ["x0 & x1", "x1 | x2"],
        ["x0 ^ x1"],
    ),
    "parity": (["x0 ^ x1", "x2 ^ x3", "x4 ^ x5", "x6 ^ x7"], ["x0 ^ x1", "x2 ^ x3"], ["x0 ^ x1"]),
}
T = 10


def built(name: str, seq_len: int = T) -> Deep:
    return deep([[parse(text) for text in level] for level in LEVELS[name]], seq_len)


@pytest.fixture(scope="module", params=LEVELS)
def made(request: pytest.FixtureRequest) -> Deep:
    return built(request.param)


def test_deep_functions_are_right_on_all_inputs(made: Deep) -> None:
    certified = made.certify(1.0)
    bits = all_inputs(T, 0, 1 << T)
    signed = made.network.scores(bits) * (2 * made.values(bits) - 1)
    assert signed.min() >= certified.margin - 1e-9
    assert len(made.network.blocks) == len(made.levels) >= 3


def test_values_are_the_levels_one_after_another() -> None:
    b = all_inputs(T, 0, 1 << T).astype(bool)
    expected = (b[:, 0] & b[:, 1] | b[:, 2] | b[:, 3]) & (b[:, 4] & b[:, 5] & (b[:, 6] | b[:, 7]))
    assert (built("tree").values(b.astype(int)) == expected).all()
    assert (built("parity").values(b.astype(int)) == b[:, :8].sum(1) % 2).all()


def test_what_is_carried_from_block_to_block_holds(made: Deep) -> None:
    """Falsifier: features, the marker at [CLS] and the marker elsewhere, of every input, against what was proved of them."""
    bits = all_inputs(T, 0, 1 << T)
    rows = _block(made.network.blocks[0], made.network.encoding.rows(bits))
    state, truth = made.inner.certify(made.network.blocks[0]), bits
    for index, level in enumerate(made.levels[:-1]):
        truth = np.stack([function.values(truth) for function in level], axis=-1)
        k = len(level)
        for i, (low, high) in enumerate(state.features):
            signed = rows[:, 0, i] * (2 * truth[:, i] - 1)
            assert low - 1e-9 <= signed.min()
            assert signed.max() <= high + 1e-9
        assert abs(rows[:, 0, k] - float(state.mark.mid())).max() <= float(state.mark.rad()) + 1e-9
        assert rows[:, 1:, k].max() <= state.elsewhere + 1e-12
        assert rows[:, 1:, k].max() >= 0.3 * state.elsewhere  # and the bound is no loose one
        assert np.linalg.norm(rows, axis=-1).max() <= 1 + 1e-12
        if index + 2 < len(made.levels):
            block = made.network.blocks[index + 1]
            state = projected(_passed(state, block, made.levels[index + 1], T))
            rows = _block(block, rows)


def test_broken_weights_are_refused(made: Deep) -> None:
    first, *rest = made.network.blocks

    def broken(index: int, **changes: np.ndarray) -> Deep:
        blocks = [first, *rest]
        blocks[index] = replace(blocks[index], **changes)
        return replace(made, network=replace(made.network, blocks=tuple(blocks)))

    leaking = rest[0].w_1.copy()
    leaking[0, -1] = 0.1  # a feature counts for the marker
    sighted = rest[0].w_v.copy()
    sighted[0, 0, -1] = 0.1  # the marker sees a feature
    weak = np.sqrt(0.3)
    cases = [
        broken(1, w_v=-rest[0].w_v),
        broken(len(rest), w_1=-rest[-1].w_1),
        broken(1, w_1=leaking),
        broken(1, w_v=sighted),
        broken(1, w_k=-rest[0].w_k),
        broken(1, w_q=weak * rest[0].w_q, w_k=weak * rest[0].w_k),
        replace(made, network=replace(made.network, blocks=(first, *rest[:-1]))),
    ]
    for one in cases:
        with pytest.raises(CertificateError):
            one.certify(1.0)


def test_long_sequences_and_many_levels() -> None:
    wide = [parse(f"x{5 * i} ^ x{5 * i + 300}") for i in range(4)]
    chain = [[parse("x0 & x1"), parse("x2 | x3")], *[[parse("x0 | x1"), parse("x0 & x1")]] * 5, [parse("x0 ^ x1")]]
    found = deep([wide, *chain], 512)
    assert found.certify(1.0).margin >= 1
    assert len(found.network.blocks) == 8
    bits = np.random.default_rng(0).integers(0, 2, (12, 512))
    assert (found.network.scores(bits) * (2 * found.values(bits) - 1)).min() >= 1 - 1e-9


def test_the_calculus_bounds_the_class_of_a_deep_function() -> None:
    setting = built("tree").network.setting(delta=0.01)
    assert setting.architecture.depth == 3
    assert solve(setting, "m", 0.05, quantity="risk").bound.risk <= 0.05


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ([["x0"]], "two levels or more"),
        ([["x0", "x1"], ["x0", "x1"]], "the last of one function"),
        ([["x0", "x1"], ["x0 & x2"]], "of the 2 before"),
        ([[f"x{i}" for i in range(9)], ["x0 & x1"]], "may have 8 functions"),
    ],
)
def test_what_is_no_tower_of_functions_is_refused(levels: list[list[str]], says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        deep([[parse(text) for text in level] for level in levels], T)
