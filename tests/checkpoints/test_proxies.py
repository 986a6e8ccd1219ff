"""The proxies of E against a hand computation on two blocks of two heads."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from boundcalc.base.errors import Refusal
from boundcalc.checkpoints import audit
from boundcalc.checkpoints.proxies import (
    BlockNorms,
    Norm3,
    Proxy,
    block_norms,
    edelman_proxy,
    proxies,
    spectrum_proxy,
)
from tests.checkpoints import handmade


def m(op: float, two_one: float, spectrum: tuple[float, ...] = (), d: int = 4) -> Norm3:
    return Norm3(math.log(op), math.log(two_one), spectrum or (op,), d)


# (op, 21) of block 0: V (2, 3) and (1, 2), QK (1/4, 1) and (1/2, 2), M_in (2, 4), M_out (1, 3);
# of block 1: V (1, 2) twice, QK (1/4, 1) and (3/4, 1), M_in (1, 2), M_out (3, 5).
BLOCKS = [
    BlockNorms((m(2, 3), m(1, 2)), (m(0.25, 1), m(0.5, 2)), m(2, 4), m(1, 3), 1.5),
    BlockNorms((m(1, 2), m(1, 2)), (m(0.25, 1), m(0.75, 1)), m(1, 2), m(3, 5), 1.5),
]


def test_edelman_per_layer_by_hand() -> None:
    # alpha_1 = 1 (no later block); alpha_0 = 1.5 * 1 * 3 * (1 (1 + 4/4) + 1 (1 + 4 * 3/4)) = 4.5 * (2 + 4) = 27
    # xi_0: |Mout||Min| = 2;  head 0: (2*2*1)^(2/3) + (2*3)^(2/3);  head 1: (2*1*2)^(2/3) + (2*2)^(2/3);
    #       (|Mout||Min|_21)^(2/3) = 4^(2/3);  |Mout|_21^(2/3) = 3^(2/3)
    # xi_1: |Mout||Min| = 3;  each head: (3*1*1)^(2/3) + (3*2)^(2/3);  (3*2)^(2/3);  5^(2/3)
    c = 2 / 3
    xi_0 = 4**c + 6**c + 4**c + 4**c + 4**c + 3**c
    xi_1 = 2 * (3**c + 6**c) + 6**c + 5**c
    want = (1 + 27**c * xi_0 + 1 * xi_1) ** 1.5
    found = edelman_proxy(BLOCKS)
    assert math.exp(found.log_value) == pytest.approx(want, rel=1e-12)
    assert found.parts["block 0"] == pytest.approx(27**c * xi_0 / (1 + 27**c * xi_0 + xi_1))


def test_spectrum_adaptive_by_hand() -> None:
    # d = 4, D = 2: g = ceil(2 + log 4) = 4, p in {0, 1/4, ..., 2}. Singular values below; s = gamma alpha_l D.
    spectra = {"V": (2.0, 1.0), "QK": (1.0, 0.25), "in": (2.0, 0.5, 0.1), "out": (3.0, 3.0, 3.0)}
    norm = {name: m(s[0], 1.0, s) for name, s in spectra.items()}
    block = BlockNorms((norm["V"],) * 2, (norm["QK"],) * 2, norm["in"], norm["out"], 1.0)
    # alpha_1 = 1; alpha_0 = |in||out| sum_h |V_h|(1 + 4|QK_h|) = 6 * (2 * 2 * 5) = 120
    total = math.sqrt(2)
    for alpha in (120.0, 1.0):
        gamma = {"QK": 2 * 2 * 2 * 3, "V": 2 * 3, "in": 3, "out": 1}
        for name, count in (("QK", 2), ("V", 2), ("in", 1), ("out", 1)):
            s = gamma[name] * alpha * 2
            terms = []
            for i in range(9):
                p = i / 4
                power = sum(x**p for x in spectra[name])
                terms.append(power ** (1 / (p + 2)) * s ** (p / (p + 2)) * 4 ** ((p + 1) / (p + 2)))
            total += count * min(terms)
    found = spectrum_proxy([block, block])
    assert math.exp(found.log_value) == pytest.approx(total, rel=1e-12)
    assert sum(found.parts.values()) == pytest.approx(1 - math.sqrt(2) / total)


def test_norms_are_those_of_the_audited_model(tmp_path: Path) -> None:
    t, config = handmade.bert(np.random.default_rng(0))
    found = audit(handmade.save(tmp_path / "m", t, config, "float64"))
    blocks = block_norms(found)
    a = "bert.encoder.layer.1.attention."
    v = t[f"{a}self.value.weight"].T[:, 2:4] @ t[f"{a}output.dense.weight"].T[2:4]
    q, k = t[f"{a}self.query.weight"].T[:, 2:4], t[f"{a}self.key.weight"].T[:, 2:4]
    scores = np.vstack([q, t[f"{a}self.query.bias"][2:4]]) @ k.T / np.sqrt(2)  # of d_head
    assert math.exp(blocks[1].values[1].log_op) == pytest.approx(np.linalg.svd(v, compute_uv=False)[0])
    assert math.exp(blocks[1].scores[1].log_op) == pytest.approx(np.linalg.svd(scores, compute_uv=False)[0])
    assert math.exp(blocks[1].scores[1].log_21) == pytest.approx(np.linalg.norm(scores, axis=0).sum())
    assert blocks[0].lipschitz == pytest.approx(1.12891)
    assert all(isinstance(p, Proxy) for p in proxies(found))


def test_gated_models_are_refused_with_the_reason(tmp_path: Path) -> None:
    t, config = handmade.llama(np.random.default_rng(0))
    for refusal in proxies(audit(handmade.save(tmp_path / "m", t, config))):
        assert isinstance(refusal, Refusal)
        assert "ungated" in str(refusal)


def test_without_spectra_only_the_first_proxy_is_left(tmp_path: Path) -> None:
    from boundcalc.checkpoints import Want

    t, config = handmade.bert(np.random.default_rng(0))
    first, second = proxies(audit(handmade.save(tmp_path / "m", t, config), want=Want(spectra=False)))
    assert isinstance(first, Proxy)
    assert isinstance(second, Refusal)
    assert "--spectra" in str(second)


def test_deep_and_large_models_stay_finite() -> None:
    big = BlockNorms((m(1e3, 1e4),) * 2, (m(1e6, 1e7),) * 2, m(1e4, 1e5), m(1e4, 1e5), 1.2)
    assert 1e3 < edelman_proxy([big] * 200).log_value < 1e6
    assert 0 < spectrum_proxy([big] * 200).log_value < 1e6
