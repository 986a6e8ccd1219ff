"""Several functions in one block, and functions of functions in two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.engine.solve import solve
from boundcalc.lab.represent.deep import Deep, deep
from boundcalc.lab.represent.exhaust import all_inputs
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.features import Features, features
from boundcalc.lab.represent.network import _block
from boundcalc.proof.checker import verify

INNER = tuple(parse(text) for text in ("AND(0, 1, 2)", "x3 ^ x4", "x5 & x6 | ~x5 & x7"))
T = 10


@pytest.fixture(scope="module")
def three() -> Features:
    return features(INNER, T)


@pytest.fixture(scope="module", params=["MAJ(0, 1, 2)", "PARITY(0..2)", "x0 & x1 | ~x0 & x2", "x0 & ~x2"])
def composed(request: pytest.FixtureRequest) -> Deep:
    return deep([INNER, [parse(request.param)]], T)


def everything() -> np.ndarray:
    return all_inputs(T, 0, 1 << T)


def test_features_are_right_on_all_inputs(three: Features) -> None:
    bits, (block,) = everything(), three.network.blocks
    written = _block(block, three.network.encoding.rows(bits))[:, 0]
    for index, ((low, high), function) in enumerate(zip(three.certify(block).features, three.functions, strict=True)):
        signed = written[:, index] * (2 * function.values(bits) - 1)
        assert low - 1e-9 <= signed.min()
        assert signed.max() <= high + 1e-9
        assert low > 0.9 / np.sqrt(len(INNER) + 1)  # the marker has a share
    assert np.linalg.norm(written, axis=1).max() <= 1 + 1e-12


def test_each_feature_can_be_read_with_margin_one(three: Features) -> None:
    bits = everything()
    ranges = three.certify(three.network.blocks[0]).features
    for index, (low, _) in enumerate(ranges):
        readout = np.zeros(len(INNER) + 1)
        readout[index] = (1 + 2.0**-40) / low
        network = replace(three.network, readout=readout)
        signs = 2 * three.functions[index].values(bits) - 1
        assert (network.forward(network.encoding.rows(bits)) * signs).min() >= 1 - 1e-9


def test_compositions_are_right_on_all_inputs(composed: Deep) -> None:
    certified = composed.certify(1.0)
    bits = everything()
    signed = composed.network.scores(bits) * (2 * composed.values(bits) - 1)
    assert signed.min() >= certified.margin - 1e-9
    assert len(composed.network.blocks) == 2


def test_compositions_mean_what_they_say() -> None:
    bits = everything().astype(int)
    made = deep([INNER, [parse("x0 & ~x2")]], T)
    expected = bits[:, :3].all(1) & ~np.where(bits[:, 5], bits[:, 6], bits[:, 7]).astype(bool)
    assert (made.values(bits) == expected).all()
    assert len(made.inner.functions) == 2  # the feature that is not read is left out


def test_a_weaker_second_attention_is_refused(composed: Deep) -> None:
    with pytest.raises(CertificateError):
        replace(composed, network=composed.network.with_keys(0.8)).certify(1.0)


def test_broken_compositions_are_refused(composed: Deep) -> None:
    first, second = composed.network.blocks

    def broken(**changes: np.ndarray) -> Deep:
        blocks = (replace(first, **{k: v for k, v in changes.items() if k != "w_v2"}), second)
        if "w_v2" in changes:
            blocks = (first, replace(second, w_v=changes["w_v2"]))
        inner = replace(composed.inner, network=replace(composed.inner.network, blocks=blocks[:1]))
        return replace(composed, inner=inner, network=replace(composed.network, blocks=blocks))

    swapped = first.w_1.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    seeing = first.w_v.copy()
    seeing[0, composed.network.encoding.bit_block.start, -1] = 0.3  # the marker sees a bit
    wrong = -second.w_v
    for made in (broken(w_1=swapped), broken(w_v=seeing), broken(w_v2=wrong)):
        with pytest.raises(CertificateError):
            made.certify(1.0)


def test_long_sequences_are_certified_and_tried() -> None:
    functions = [parse(text) for text in ("AND(0, 100, 400)", "x3 ^ x204", "x5 & x6 | ~x5 & x500")]
    made = deep([functions, [parse("MAJ(0, 1, 2)")]], 512)
    assert made.certify(1.0).margin >= 1
    bits = np.random.default_rng(0).integers(0, 2, (30, 512))
    bits[:8, [0, 100, 400]] = all_inputs(3, 0, 8)
    bits[10], bits[11] = 0, 1
    assert (made.network.scores(bits) * (2 * made.values(bits) - 1)).min() >= 1 - 1e-9


def test_the_calculus_bounds_the_class_of_a_composition(composed: Deep) -> None:
    setting = composed.network.setting(delta=0.01)
    needed = solve(setting, "m", 0.05, quantity="risk")
    proof = needed.bound.by_risk
    assert proof is not None
    assert verify(proof.certificate).value <= 0.05 * (1 + 1e-9)
    assert setting.architecture.depth == 2


@pytest.mark.parametrize(
    ("outer", "inner", "T", "says"),
    [
        ("x0 & x5", INNER, 10, "reads 1 to 6 of the 3 before"),
        ("x0 & x1", (parse("x0"), parse("x12")), 10, "out of range"),
        ("x0 ^ x0", INNER, 10, "constant"),
        ("PARITY(0..7)", (parse("x0"),) * 8, 10, "reads 1 to 6 of the 8 before"),
    ],
)
def test_errors_of_compositions(outer: str, inner, T: int, says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        deep([inner, [parse(outer)]], T)
