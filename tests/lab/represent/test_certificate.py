"""The certificate: true on every input, close to the worst one, and refused when it should be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.lab.represent import units
from boundcalc.lab.represent._certify import Hint
from boundcalc.lab.represent.construct import Construction, construct, possible_kinds
from boundcalc.lab.represent.functions import parse
from boundcalc.lab.represent.network import _least_score, all_inputs, exhaust
from tests.lab.represent.conftest import all_functions, random_table

ROUNDING = 1e-9


def weakened(made: Construction, factor: float) -> Construction:
    """The same weights but for the attention's strength."""
    return replace(made, network=replace(made.network, w_k=made.network.w_k * factor), beta=made.beta * factor)


def attack(made: Construction, seed: int) -> float:
    """The least signed score of random inputs whose other bits are then set against the sign, unit by unit."""
    network, function = made.network, made.function
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (400, network.seq_len))
    bits[:, list(function.variables)] = rng.random((400, function.arity)) < rng.random((400, 1))
    base, change = network.linear
    least = _least_score(network, function, bits)
    for _ in range(3):
        signs = 2.0 * function.values(bits) - 1
        slopes = ((bits @ change + base > 0) * network.w_1[:, 0]) @ change.T * signs[:, None]
        hostile = (slopes < 0).astype(int)
        hostile[:, list(function.variables)] = bits[:, list(function.variables)]
        bits = hostile
        least = min(least, _least_score(network, function, bits))
    return least


def _right_everywhere(built: Construction) -> None:
    certified = built.certify(1.0)
    assert exhaust(built.network, built.function) >= certified.margin - ROUNDING


@pytest.mark.parametrize("T", [8, *(pytest.param(T, marks=pytest.mark.slow) for T in (12, 16))])
def test_all_functions_of_up_to_three_bits(T: int) -> None:
    for function in all_functions(3, (0, 5, T - 1)):
        _right_everywhere(construct(function, T, possible_kinds(function)[-1 if T > 8 else 0]))


MANY = [pytest.param(s, T, 334, marks=pytest.mark.slow) for s in (4, 5) for T in (8, 12, 16)]


@pytest.mark.parametrize(("s", "T", "count"), [(4, 8, 40), (5, 12, 12), *MANY])
def test_random_functions(s: int, T: int, count: int) -> None:
    """One in eight by fitted units, the rest by one unit per corner; 2000 where there is time."""
    rng = np.random.default_rng(100 * s + T)
    for index in range(count):
        function = random_table(s, rng, T)
        kind = possible_kinds(function)[-1]
        with pytest.MonkeyPatch.context() as patch:
            if index % 8:
                patch.setattr(units, "_MOST_FITTED", 0)
            made = construct(function, T, kind)
        _right_everywhere(made)


def test_every_kind_and_its_worst_input(built: dict[tuple[str, str, int], Construction]) -> None:
    """Without slack to hide in, the certificate of a weakened attention is attained by an adversarial input."""
    for (kind, text, T), made in built.items():
        made.certify(1.0)
        weak = weakened(made, 0.8)
        claimed = weak.certify()
        if T == 10:
            _right_everywhere(made)
            met = exhaust(weak.network, weak.function)
        else:
            met = attack(weak, seed=1)
        assert met >= claimed.margin - ROUNDING, (kind, text, T)
        assert met <= claimed.margin + 0.01, (kind, text, T)


def test_a_beta_lowered_by_a_fifth_is_refused(built: dict[tuple[str, str, int], Construction]) -> None:
    refused = 0
    for (_, _, T), made in built.items():
        if made.beta == 0:
            assert T < 20  # even attention is best only when most bits matter
            continue
        with pytest.raises(CertificateError, match="larger beta"):
            weakened(made, 0.8).certify(1.0)
        refused += 1
    assert refused >= 6


def _changed(made: Construction, **arrays: np.ndarray) -> Construction:
    return replace(made, network=replace(made.network, **arrays))


class TestDeliberatelyBroken:
    """Each of these must be refused; all of them leave the norms about as they were."""

    def test_a_lying_hint(self, built: dict[tuple[str, str, int], Construction]) -> None:
        made = built["mean", "AND(1, 4, 6)", 300]
        assert made.hint is not None
        lie = replace(made, hint=Hint(made.hint.slope * 0.5, made.hint.reader))
        with pytest.raises(CertificateError):
            lie.certify(1.0)

    def test_a_value_matrix_that_reads_another_bit(self, built: dict[tuple[str, str, int], Construction]) -> None:
        for key, bit in ((("mean", "~x1 & x4 & x6", 300), 4), (("corners", "x0 & x3 | ~x0 & x5", 300), 3)):
            made = built[key]
            w_v, start = made.network.w_v.copy(), made.network.encoding.bit_block.start
            w_v[[start + bit, start + 7]] = w_v[[start + 7, start + bit]]
            broken = _changed(made, w_v=w_v)
            with pytest.raises(CertificateError):
                broken.certify(1.0)
            assert attack(broken, seed=0) < 1.0

    def test_attention_on_another_bit(self, built: dict[tuple[str, str, int], Construction]) -> None:
        made = built["mean", "AND(1, 4, 6)", 300]
        w_k = made.network.w_k.copy()
        w_k[[4, 5]] = w_k[[5, 4]]
        broken = _changed(made, w_k=w_k)
        with pytest.raises(CertificateError, match="sign may be wrong"):
            broken.certify(1.0)
        assert attack(broken, seed=0) < 0

    def test_scores_that_see_bits(self, built: dict[tuple[str, str, int], Construction]) -> None:
        made = built["corners", "x0 & x3 | ~x0 & x5", 10]
        w_k = made.network.w_k.copy()
        w_k[made.network.encoding.bit_block.start] = 0.1
        with pytest.raises(CertificateError, match="depend on the bits"):
            _changed(made, w_k=w_k).certify(1.0)

    def test_what_the_certificate_does_not_look_at(self, built: dict[tuple[str, str, int], Construction]) -> None:
        """A second output, other shapes and NaN."""
        made = built["corners", "x0 & x3 | ~x0 & x5", 10]
        network = made.network
        for changed in (
            {"w_1": np.concatenate([network.w_1, 50 * network.w_1], axis=1)},
            {"w_k": network.w_k[:-1]},
            {"w_q": np.stack([network.w_q, network.w_q])},
        ):
            with pytest.raises(CertificateError, match="one head's, with one output"):
                _changed(made, **changed).certify(1.0)
        for name in ("w_k", "w_v", "w_1"):
            array = getattr(network, name).copy()
            array.flat[-1] = np.nan
            with pytest.raises(CertificateError, match="must be finite"):
                _changed(made, **{name: array}).certify(1.0)

    def test_flipped_output(self, built: dict[tuple[str, str, int], Construction]) -> None:
        for made in built.values():
            with pytest.raises(CertificateError, match="sign may be wrong"):
                _changed(made, w_1=-made.network.w_1).certify(1.0)

    def test_the_wrong_function(self, built: dict[tuple[str, str, int], Construction]) -> None:
        made = built["corners", "x0 & x3 | ~x0 & x5", 10]
        table = list(made.function.table)
        table[3] ^= 1
        with pytest.raises(CertificateError, match="sign may be wrong"):
            replace(made, function=replace(made.function, table=tuple(table))).certify(1.0)


def test_large_symmetric_functions() -> None:
    for text, s, T in (("PARITY(0..39)", 40, 128), ("MAJ(0..39)", 40, 128), ("MAJ(0..599)", 600, 999)):
        function = parse(text)
        for kind in possible_kinds(function)[:2]:
            made = construct(function, T, kind)
            assert made.certify(1.0).cases == s + 1
            assert attack(made, seed=0) >= 1 - ROUNDING
            with pytest.raises(CertificateError):
                _changed(made, w_1=0.9 * made.network.w_1).certify(1.0)


def test_norms_are_those_of_the_arrays(built: dict[tuple[str, str, int], Construction]) -> None:
    """Budgets hold for the weights, and declared ranks are true: value matrices are exact products."""
    for made in built.values():
        weights = made.network.weights()
        weights["W_QK[0]"] = weights.pop("W_Q[0]") @ weights.pop("W_K[0]").swapaxes(1, 2)
        for name, array in weights.items():
            matrix, budget = array.reshape(array.shape[-2:]), made.network.norms.budgets[name]
            singular = np.linalg.svd(matrix, compute_uv=False)
            assert np.linalg.norm(matrix) <= (budget.fro or 0)
            assert singular[0] <= (budget.op or 0) * (1 + 1e-12)
            assert (singular > 1e-12 * singular[0]).sum() <= (budget.rank or 0)


@pytest.mark.parametrize("text", ["AND(1, 4, 6)", "x0 & x3 | ~x0 & x5", "PARITY(0, 3, 5)"])
def test_a_file_of_weights_is_a_model_with_the_same_scores(text: str, tmp_path: Path) -> None:
    """Layer by layer on written-out rows, in torch, in single precision."""
    pytest.importorskip("safetensors")
    torch = pytest.importorskip("torch")
    from boundcalc.lab.train.model import plain
    from boundcalc.predictors.rules.certify import StoredNetwork

    function = parse(text).minimised()
    network = construct(function, 10, possible_kinds(function)[-1]).network
    network.save(tmp_path / "weights.safetensors", {"a": 1})
    bits = all_inputs(10, 0, 1 << 10)
    rows = network.encoding.rows(bits)
    assert np.linalg.norm(rows, axis=-1).max() <= 1 + 1e-15
    with torch.no_grad():
        stored = StoredNetwork.load(tmp_path / "weights.safetensors")
        weights = {name: torch.from_numpy(value).float() for name, value in stored.weights.items()}
        scores = plain(stored.architecture, weights, torch.from_numpy(rows).float()).squeeze(-1).numpy()
    assert np.allclose(scores, network.scores(bits), atol=1e-4)
