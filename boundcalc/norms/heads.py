"""Norms of the heads of one block, and of their products W_Q W_K^T and W_V W_O, which are never formed at d x d.

With G_A = A^T A and any R_A, R_B such that |R_A^T R_A - G_A|_op <= phi_A (likewise B), every v satisfies
|A v|^2 <= |R_A v|^2 + phi_A |v|^2. Hence for W = A B^T, A and B of d_head columns:
    |W|_op^2 <= |M|_op^2 + phi_A |B|_op^2 + phi_B |R_A|_op^2,   M = R_A R_B^T   (d_head x d_head),
the same with Frobenius norms of B and R_A for |W|_F^2, and for the columns |W e_j|^2 <= |R_A b_j|^2 + phi_A |b_j|^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from boundcalc.norms import _spectral as spectral
from boundcalc.norms.matrix import Measured, as_stored, measure
from boundcalc.norms.rounding import UNIT, gamma, roots, scale_for, total, ups

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Heads:
    """Matrices W_h (d x width), one per head, as an array (heads, width, d) of their transposes."""

    transposed: _Floats
    scale: float = 1.0
    """A power of two that entries were multiplied by."""

    @classmethod
    def of(cls, transposed: _Floats) -> Heads:
        """Scaled so that squares neither overflow nor vanish."""
        top = max(float(transposed.max(initial=0.0)), -float(transposed.min(initial=0.0)))
        scale = 1.0 if top == 0 or 2.0**-32 <= top <= 2.0**32 else scale_for(top)
        return cls(np.ascontiguousarray(transposed * scale if scale != 1 else transposed, np.float64), scale)

    def measured(self) -> list[Measured]:
        """The norms of every head."""
        norms = (measure(as_stored(w), np.random.default_rng(0), exact=True) for w in self.transposed)
        return [norm.transpose.unscaled(self.scale) for norm in norms]

    @cached_property
    def gram(self) -> _Floats:
        """W^T W of every head."""
        return self.transposed @ self.transposed.transpose(0, 2, 1)

    @cached_property
    def row_squares(self) -> _Floats:
        """Squares of row norms, (heads, d), rounded up."""
        return ups(np.einsum("hwd,hwd->hd", self.transposed, self.transposed), self.transposed.shape[1] + 1)

    @cached_property
    def square(self) -> _Floats:
        """Squares of Frobenius norms, rounded up."""
        return np.array([total(rows) for rows in self.row_squares])

    @cached_property
    def about_op(self) -> _Floats:
        """Upper bounds of the spectral norms at once: sigma_1^2 <= |W^T W|_F, at most d_head^(1/4) too large."""
        size = ups(np.sqrt(np.einsum("hij,hij->h", self.gram, self.gram)), self.gram.shape[1] ** 2 + 2)
        return roots(size + ups(self.square * gamma(self.transposed.shape[2] + 2), 2))

    @cached_property
    def root(self) -> _Root:
        """The Cholesky factor R of W^T W, its residual computed."""
        try:
            r = np.ascontiguousarray(np.linalg.cholesky(self.gram).transpose(0, 2, 1), np.float64)
        except np.linalg.LinAlgError:  # a rank below d_head
            values, vectors = np.linalg.eigh(self.gram)
            r = np.asarray(np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1), np.float64)
        n = r.shape[1]
        residual = np.linalg.norm(r.transpose(0, 2, 1) @ r - self.gram, axis=(1, 2))
        size = np.einsum("hij,hij->h", r, r)
        margin = ups(self.square * gamma(self.transposed.shape[2] + 2), 2)
        phi = ups(residual + gamma(n + 2) * size * (1 + 1e-9) + margin + 2 * UNIT * size, n * n + 4)
        fro = roots(ups(size, n * n))
        return _Root(r, phi, np.minimum(fro, roots(_square(self.about_op) + phi)), fro)


@dataclass(frozen=True, slots=True)
class _Root:
    """R with |A v|^2 <= |R v|^2 + phi |v|^2, one per head, and upper bounds of |R|_op and |R|_F."""

    r: _Floats
    phi: _Floats
    op: _Floats
    fro: _Floats

    def columns_of(self, other: Heads) -> _Floats:
        """|A o_j| for the rows o_j of the other factor, the columns of A O^T: |A o|^2 <= |R o|^2 + phi |o|^2."""
        image = self.r @ other.transposed
        lengths = ups(np.sqrt(np.einsum("hwd,hwd->hd", image, image)), image.shape[1] + 2)
        rounding = (gamma(other.transposed.shape[1] + 2) * self.fro)[:, None] * roots(other.row_squares)
        return ups(roots(_square(lengths + rounding) + self.phi[:, None] * other.row_squares), 4)


def products(a: Heads, b: Heads) -> list[Measured]:
    """The norms of W_h = A_h B_h^T (d_a x d_b) for every head."""
    m = a.root.r @ b.root.r.transpose(0, 2, 1)
    _, rows, columns = m.shape
    blur = ups(gamma(a.root.r.shape[2] + 2) * a.root.fro * b.root.fro, 4)  # the rounding of M
    size = ups(np.einsum("hij,hij->h", m, m), rows * columns + 2)
    guesses = np.linalg.svd(m, compute_uv=False)[:, 0]
    tops = [spectral.cholesky_upper(w @ w.T, float(s) ** 2) for w, s in zip(m, guesses, strict=True)]
    fro = ups(roots(_square(roots(size) + blur) + _margin(a, b, a.root.fro, roots(b.square))), 12)
    near = _margin(a, b, a.root.op, b.about_op)
    op = ups(roots(_square(roots(np.array(tops) + gamma(columns + 2) * size) + blur) + near), 12)
    across, along = a.root.columns_of(b), b.root.columns_of(a)
    return [
        Measured(
            (a.transposed.shape[2], b.transposed.shape[2]),
            op=float(min(op[h], fro[h])),
            fro=float(fro[h]),
            two_one=total(across[h]),
            two_one_t=total(along[h]),
            row=float(along[h].max()),
            column=float(across[h].max()),
            rank=min(a.transposed.shape[1:] + b.transposed.shape[1:]),
        ).unscaled(a.scale, b.scale)
        for h in range(len(m))
    ]


def _margin(a: Heads, b: Heads, size_r: _Floats, size_b: _Floats) -> _Floats:
    """phi_B |R_A|^2 + phi_A |B|^2, by which |A B^T|^2 may exceed |M|^2."""
    return b.root.phi * size_r**2 + a.root.phi * size_b**2


def _square(x: _Floats) -> _Floats:
    return ups(x * x, 2)
