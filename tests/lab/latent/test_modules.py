"""Torch modules: equal to the NumPy estimators, differentiable, and honest about L2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from boundcalc.base.errors import Unsupported  # noqa: E402 - torch first
from boundcalc.lab.latent import attention  # noqa: E402
from boundcalc.lab.latent.kernels import RBF, Exponential, Linear  # noqa: E402
from boundcalc.lab.latent.modules import CMEAttention, LinearAttention, SoftmaxAttention  # noqa: E402


def some(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[Any]:
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("length", [2, 30])
def test_modules_equal_the_estimators(length: int) -> None:
    q, k, v = some(np.random.default_rng(0), (2, 5, 3), (2, length, 3), (2, length, 4))
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    pairs = [
        (SoftmaxAttention(0.7), attention.softmax_attention(q, k, v, tau=0.7)),
        (LinearAttention(), attention.linear_attention(q, k, v)),
        (CMEAttention(0.3), attention.cme_attention(q, k, v, lam=0.3, kernel=Linear())),
        (CMEAttention(0.3, "rbf", 1.5), attention.cme_attention(q, k, v, lam=0.3, kernel=RBF(1.5))),
        (
            CMEAttention(0.3, "exponential", 2.0, per_key=True),
            attention.cme_attention(q, k, v, lam=0.3 * length, kernel=Exponential(2.0)),
        ),
    ]
    for module, expected in pairs:
        assert np.abs(module(*tensors).numpy() - expected).max() < 1e-10


@pytest.mark.parametrize("length", [2, 5])
def test_gradients(length: int) -> None:
    arrays = some(np.random.default_rng(1), (2, 3), (length, 3), (length, 2))
    tensors = [torch.from_numpy(x).requires_grad_() for x in arrays]
    for module in (CMEAttention(0.5), CMEAttention(0.5, "rbf"), SoftmaxAttention(), LinearAttention()):
        assert torch.autograd.gradcheck(module, tensors)


def test_where_l2_allows_the_transformer_computes_the_same() -> None:
    """One head with W_QK and W_V the identity: the module on the rows is the layer on the rows."""
    from boundcalc.lab.train.layers import attention as layer_attention
    from boundcalc.setting import Attention

    x = torch.from_numpy(np.random.default_rng(2).standard_normal((2, 6, 3)))
    eye = torch.eye(3, dtype=torch.float64).unsqueeze(0)
    for module in (SoftmaxAttention(0.6), LinearAttention()):
        layer = Attention(d=3, heads=1, normaliser=module.normaliser, block=0)
        out = layer_attention(layer, {"W_QK[0]": eye, "W_V[0]": eye}, x)
        assert torch.allclose(out, module(x, x, x), atol=1e-12)


def test_a_transformer_with_the_modules_normaliser() -> None:
    """The whole model, from its architecture: Pi_1(relu(Pi_1(attention)) W_1) and the row that is read."""
    from boundcalc.lab.train.model import Transformer
    from boundcalc.setting import Architecture

    x = torch.from_numpy(np.random.default_rng(3).standard_normal((4, 7, 3)))
    eye = torch.eye(3, dtype=torch.float64)

    def project(rows: Any) -> Any:
        return rows / rows.norm(dim=-1, keepdim=True).clamp(min=1.0)

    for module in (SoftmaxAttention(0.6), LinearAttention()):
        architecture = Architecture(depth=1, seq_len=7, d=3, d_patch=3, positions="none", normaliser=module.normaliser)
        model = Transformer(architecture).double()
        with torch.no_grad():
            for name, weight in model.weights.items():
                weight.copy_(eye.expand_as(weight) if name != "readout" else torch.ones_like(weight))
        expected = project(project(module(x, x, x)).relu())[:, 0].sum(-1)
        assert torch.allclose(model(x).squeeze(-1), expected, atol=1e-12)


def test_cme_attention_has_no_constants_of_l2() -> None:
    from boundcalc.setting import Normaliser

    with pytest.raises(Unsupported, match=r"L2 needs .*mass bounded independently of T"):
        _ = CMEAttention(1.0).normaliser
    with pytest.raises(Unsupported, match=r"'cme' needs a constant independent of T"):
        Normaliser("cme")


def test_the_mass_of_cme_weights_grows_with_the_input() -> None:
    """Why it is refused: L equal keys of squared norm lam/L give a unit query weights of mass sqrt(L/lam)/2."""
    masses = []
    for length in (10, 1000):
        k = np.full((length, 1), 1 / np.sqrt(length))  # k(K, K) has the eigenvalue 1 = lam
        alpha = attention.cme_weights([[1.0]], k, lam=1.0)
        masses.append(np.abs(alpha).sum())
    assert masses == pytest.approx([np.sqrt(10) / 2, np.sqrt(1000) / 2])


def test_singular_matrices_are_refused() -> None:
    k = torch.ones(40, 2, dtype=torch.float32)
    with pytest.raises(Unsupported, match="least eigenvalue"):
        CMEAttention(1e-12, "rbf")(k, k, k)
