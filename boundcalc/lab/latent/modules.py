"""Attention as torch modules, with gradients: CME, softmax and linear attention over queries, keys and values.

Each knows the normaliser of a `Setting` it corresponds to, if L2 has constants for it: an architecture with that
normaliser computes the same thing and can be bounded. CME attention has none, and says why.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.setting import Normaliser, validate


class LatentAttention(nn.Module):
    """Maps queries (..., n, d), keys (..., L, d) and values (..., L, w) to (..., n, w)."""

    @property
    @abstractmethod
    def normaliser(self) -> Normaliser:
        """The normaliser of an architecture that computes the same; raises `Unsupported` where L2 has no constants."""

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the queries attend to."""


class SoftmaxAttention(LatentAttention):
    """Values weighted by exp(<q, k>/tau), normalised."""

    def __init__(self, tau: float = 1.0) -> None:
        super().__init__()
        self.tau = validate.positive("temperature tau", tau)

    @property
    def normaliser(self) -> Normaliser:
        return Normaliser("softmax", self.tau)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q @ k.mT / self.tau).softmax(-1) @ v


class LinearAttention(LatentAttention):
    """Values weighted by <q, k>/L: no matrix of queries by keys is formed."""

    @property
    def normaliser(self) -> Normaliser:
        return Normaliser("linear")

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ (k.mT @ v) / k.shape[-2]


class CMEAttention(LatentAttention):
    """V^T (k(K,K) + lam I)^(-1) k(K,q) by Cholesky; in the features where the linear kernel has fewer than keys.

    Attributes:
        lam: the ridge; with `per_key`, times the number of keys (as bounds have it).
        kernel: linear, rbf (with `width`) or exponential (with temperature `width`).
    """

    def __init__(self, lam: float, kernel: str = "linear", width: float = 1.0, per_key: bool = False) -> None:
        super().__init__()
        self.lam = validate.positive("lam", lam)
        self.kernel = validate.choice("kernel", kernel, ("linear", "rbf", "exponential"))
        self.width = validate.positive("kernel width", width)
        self.per_key = validate.flag("per_key", per_key)

    @property
    def normaliser(self) -> Normaliser:
        raise Unsupported(
            Refusal(
                "L2",
                "CME attention, whose weights (k(K,K) + lam)^(-1) k(K,q) depend on the scores between keys and whose "
                "mass |a|_1 may reach sqrt(L) kappa/(2 sqrt(lam))",
                "weights that are a function of the query's own row of scores, of mass bounded independently of T",
                "Use SoftmaxAttention or LinearAttention in a Transformer that is to be bounded.",
            )
        )

    def gram(self, x: Tensor, y: Tensor) -> Tensor:
        """The kernel's matrix."""
        products = x @ y.mT
        if self.kernel == "linear":
            return products
        if self.kernel == "exponential":
            return (products / self.width).exp()
        squares = x.square().sum(-1).unsqueeze(-1) + y.square().sum(-1).unsqueeze(-2)
        return ((products - squares / 2).clamp_max(0.0) / self.width**2).exp()

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        length, width = k.shape[-2:]
        ridge = self.lam * (length if self.per_key else 1)
        if self.kernel == "linear" and width <= length:
            return q @ _solve(k.mT @ k, ridge, k.mT @ v)
        return self.gram(q, k) @ _solve(self.gram(k, k), ridge, v)


def _solve(a: Tensor, ridge: float, b: Tensor) -> Tensor:
    shifted = a + ridge * torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    lower, info = torch.linalg.cholesky_ex(shifted)
    if bool((info != 0).any()):
        least = float(torch.linalg.eigvalsh(shifted.detach()).min())
        raise Unsupported(
            Refusal(
                "CME attention",
                f"a kernel matrix whose least eigenvalue with lam = {ridge:g} added is {least:.3g} in {a.dtype}",
                "a positive definite matrix",
                "Raise lam, or compute in float64.",
            )
        )
    return torch.cholesky_solve(b, lower)
