"""The certificate: true on every input, close to the worst one, and refused when it should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.lab.represent import units
from boundcalc.lab.represent.certify import Hint
from boundcalc.lab.represent.construct import Construction, construct, possible_kinds
from boundcalc.lab.represent.exhaust import attack, exhaust
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.positions import compact, orthonormal
from tests.lab.represent.conftest import all_functions, random_table

ROUNDING = 1e-9


def _right_everywhere(built: Construction) -> None:
    certified = built.certify(1.0)
    worst = exhaust(built.network, built.function)
    assert worst.score >= certified.margin - ROUNDING
    assert worst.tried == 1 << built.network.seq_len


def test_all_functions_of_up_to_three_bits_at_length_8() -> None:
    for function in all_functions(3, (1, 4, 6)):
        _right_everywhere(construct(function, orthonormal(8), possible_kinds(function)[0]))


@pytest.mark.slow
@pytest.mark.parametrize("T", [12, 16])
def test_all_functions_of_up_to_three_bits_at_longer_lengths(T: int) -> None:
    for function in all_functions(3, (0, 5, T - 1)):
        _right_everywhere(construct(function, orthonormal(T), possible_kinds(function)[-1]))


@pytest.mark.parametrize(("s", "T", "count"), [(4, 8, 40), (5, 12, 12)])
def test_random_functions(s: int, T: int, count: int) -> None:
    rng = np.random.default_rng(s)
    for _ in range(count):
        function = random_table(s, rng, T)
        _right_everywhere(construct(function, orthonormal(T), possible_kinds(function)[0]))


@pytest.mark.slow
@pytest.mark.parametrize(("s", "T"), [(4, 8), (4, 12), (4, 16), (5, 8), (5, 12), (5, 16)])
def test_two_thousand_random_functions(s: int, T: int) -> None:
    """A sixth of 2000 for each s and T; one in eight by fitted units, the rest by one unit per corner."""
    rng = np.random.default_rng(100 * s + T)
    for index in range(334):
        function = random_table(s, rng, T)
        kind = possible_kinds(function)[-1]
        with pytest.MonkeyPatch.context() as patch:
            if index % 8:
                patch.setattr(units, "MOST_FITTED", 0)
            made = construct(function, orthonormal(T), kind)
        _right_everywhere(made)


def test_every_kind_and_its_worst_input(built: dict[tuple[str, str, int], Construction]) -> None:
    """Without slack to hide in, the certificate of a weakened attention is attained by an adversarial input."""
    for (kind, text, T), made in built.items():
        made.certify(1.0)
        weak = made.with_beta(0.8)
        claimed = weak.certify()
        if T == 10:
            _right_everywhere(made)
            met = exhaust(weak.network, weak.function).score
        else:
            met = attack(weak.network, weak.function, 4000, seed=1).score
        assert met >= claimed.margin - ROUNDING, (kind, text, T)
        assert met <= claimed.margin + 0.01, (kind, text, T)


def test_a_beta_lowered_by_a_fifth_is_refused(built: dict[tuple[str, str, int], Construction]) -> None:
    refused = 0
    for (_, _, T), made in built.items():
        if made.beta == 0:
            assert T < 20  # even attention is best only when most bits matter
            continue
        with pytest.raises(CertificateError, match="larger beta"):
            made.with_beta(0.8).certify(1.0)
        refused += 1
    assert refused >= 10


def test_compact_positions_are_certified() -> None:
    rng = np.random.default_rng(5)
    for s, T in ((2, 300), (3, 600)):
        for _ in range(4):
            function = random_table(s, rng, T)
            for kind in possible_kinds(function):
                made = construct(function, compact(T, s), kind)
                certified = made.certify(1.0)
                worst = attack(made.network, made.function, 3000, seed=2)
                assert worst.score >= certified.margin - ROUNDING
                with pytest.raises(CertificateError):
                    made.with_beta(0.8).certify(1.0)


def _changed(made: Construction, **arrays: np.ndarray) -> Construction:
    block = replace(made.network.blocks[0], **arrays)
    return replace(made, network=replace(made.network, blocks=(block,)))


class TestDeliberatelyBroken:
    """Each of these must be refused; all of them leave the norms about as they were."""

    def test_a_lying_hint(self, built: dict[tuple[str, str, int], Construction]) -> None:
        made = built["mean", "AND(1, 4, 6)", 300]
        assert made.hint is not None
        lie = replace(made, hint=Hint(made.hint.slope * 0.5, made.hint.reader))
        with pytest.raises(CertificateError):
            lie.certify(1.0)

    def test_a_value_matrix_that_reads_another_bit(self, built: dict[tuple[str, str, int], Construction]) -> None:
        for key in (("signed mean", "PARITY(0, 3, 5)", 300), ("corners", "x0 & x3 | ~x0 & x5", 300)):
            made = built[key]
            w_v = made.network.blocks[0].w_v.copy()
            block = made.network.encoding.bit_block
            w_v[0, [block.start + 3, block.start + 7]] = w_v[0, [block.start + 7, block.start + 3]]
            broken = _changed(made, w_v=w_v)
            with pytest.raises(CertificateError):
                broken.certify(1.0)
            assert attack(broken.network, broken.function, 2000, seed=0).score < 1.0

    def test_attention_on_another_bit(self, built: dict[tuple[str, str, int], Construction]) -> None:
        made = built["threshold", "AND(1, 4, 6)", 300]
        w_k = made.network.blocks[0].w_k.copy()
        w_k[0, [4, 5]] = w_k[0, [5, 4]]
        broken = _changed(made, w_k=w_k)
        with pytest.raises(CertificateError, match="sign may be wrong"):
            broken.certify(1.0)
        assert attack(broken.network, broken.function, 2000, seed=0).score < 0

    def test_scores_that_see_bits(self, built: dict[tuple[str, str, int], Construction]) -> None:
        made = built["corners", "x0 & x3 | ~x0 & x5", 10]
        w_k = made.network.blocks[0].w_k.copy()
        w_k[0, made.network.encoding.bit_block.start] = 0.1
        with pytest.raises(CertificateError, match="depend on the bits"):
            _changed(made, w_k=w_k).certify(1.0)

    def test_what_the_certificate_does_not_look_at(self, built: dict[tuple[str, str, int], Construction]) -> None:
        """A second head, a second output, a second block and NaN: with each the sign can be wrong."""
        made = built["corners", "x0 & x3 | ~x0 & x5", 10]
        block = made.network.blocks[0]
        heads = {name: np.repeat(getattr(block, name), 2, axis=0) for name in ("w_q", "w_k")}
        other = _changed(made, **heads, w_v=np.concatenate([block.w_v, -3 * block.w_v]))
        assert exhaust(other.network, other.function).score < 0
        with pytest.raises(CertificateError, match="covers blocks of"):
            other.certify(1.0)
        wide = _changed(made, w_1=np.concatenate([block.w_1, 50 * block.w_1], axis=1))
        wide = replace(wide, network=replace(wide.network, readout=np.array([1.0, -1.0])))
        assert exhaust(wide.network, wide.function).score < 0
        with pytest.raises(CertificateError, match="must have one output"):
            wide.certify(1.0)
        with pytest.raises(CertificateError, match="covers blocks of"):
            replace(made, network=replace(made.network, blocks=(block, block))).certify(1.0)
        with pytest.raises(CertificateError, match="read-out must have shape"):
            replace(made, network=replace(made.network, readout=np.ones(2))).certify(1.0)
        with pytest.raises(CertificateError, match="do not fit rows of width"):
            _changed(made, w_k=block.w_k[:, :-1]).certify(1.0)
        for name in ("w_k", "w_v", "w_1"):
            array = getattr(block, name).copy()
            array.flat[-1] = np.nan
            with pytest.raises(CertificateError, match="must be finite"):
                _changed(made, **{name: array}).certify(1.0)

    def test_flipped_output(self, built: dict[tuple[str, str, int], Construction]) -> None:
        for made in built.values():
            with pytest.raises(CertificateError, match="sign may be wrong"):
                _changed(made, w_1=-made.network.blocks[0].w_1).certify(1.0)

    def test_a_negative_read_out(self) -> None:
        """Lower ends of sums become upper ends: W_1 and read-out negated and stretched once passed with a false sign."""
        parity = SparseFunction((0, 3), (0, 1, 1, 0))
        flat = construct(parity, orthonormal(12), "mean").with_beta(0.0)
        block = flat.network.blocks[0]
        network = replace(flat.network, blocks=(replace(block, w_1=-8 * block.w_1),), readout=-flat.network.readout)
        assert exhaust(network, parity).score < 0
        with pytest.raises(CertificateError, match="read-outs of at least 0"):
            replace(flat, network=network).certify()

    def test_the_wrong_function(self, built: dict[tuple[str, str, int], Construction]) -> None:
        made = built["corners", "x0 & x3 | ~x0 & x5", 10]
        table = list(made.function.table)
        table[3] ^= 1
        with pytest.raises(CertificateError, match="sign may be wrong"):
            replace(made, function=replace(made.function, table=tuple(table))).certify(1.0)


def test_large_symmetric_functions() -> None:
    from boundcalc.lab.represent.expressions import parse

    for text, s, T in (
        ("PARITY(0..39)", 40, 128),
        ("MAJ(0..39)", 40, 128),
        ("AND(0..39)", 40, 128),
        ("MAJ(0..599)", 600, 999),
    ):
        function = parse(text)
        for kind in possible_kinds(function)[:2]:
            made = construct(function, orthonormal(T), kind)
            assert made.certify(1.0).cases == s + 1
            assert attack(made.network, function, 1500, seed=0).score >= 1 - ROUNDING
            with pytest.raises(CertificateError):
                _changed(made, w_1=0.9 * made.network.blocks[0].w_1).certify(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("T", "where"), [(512, "orthonormal"), (4096, "orthonormal"), (4096, "compact")])
@pytest.mark.parametrize("text", ["MAJ(3, 100, 400)", "x3 & x100 | ~x3 & x400"])
def test_a_million_inputs(text: str, T: int, where: str) -> None:
    from boundcalc.lab.represent.expressions import parse

    function = parse(text).minimised()
    positions = orthonormal(T) if where == "orthonormal" else compact(T, 3)
    made = construct(function, positions, possible_kinds(function)[0])
    assert made.certify(1.0).margin >= 1.0
    worst = attack(made.network, function, 1_000_000, seed=7)
    assert worst.tried == 1_000_000
    assert worst.score >= 1 - ROUNDING
