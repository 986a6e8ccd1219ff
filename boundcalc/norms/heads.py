"""Norms of the heads of one block, and of their products W_Q W_K^T and W_V W_O, which are never formed at d x d.

With G_A = A^T A and any R_A, R_B such that |R_A^T R_A - G_A|_op <= phi_A (likewise B), every v satisfies
|A v|^2 <= |R_A v|^2 + phi_A |v|^2. Hence for W = A B^T, A and B of d_head columns:
    |W|_op^2 <= |M|_op^2 + phi_A |B|_op^2 + phi_B |R_A|_op^2,   M = R_A R_B^T   (d_head x d_head),
the same with Frobenius norms of B and R_A for |W|_F^2, and for the columns |W e_j|^2 <= |R_A b_j|^2 + phi_A |b_j|^2.
Where A and B nearly cancel, so that phi dominates, R comes from a QR factorisation and its residual instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from boundcalc.norms import spectral
from boundcalc.norms.matrix import Measured
from boundcalc.norms.rounding import UNIT, gamma, root, roots, scale_for, total, ups

Floats = NDArray[np.float64]

_TIGHT = 1e-10
"""A product's margin may be this much of its square before QR is tried."""


@dataclass(frozen=True)
class Heads:
    """Matrices W_h (d x width), one per head, as an array (heads, width, d) of their transposes."""

    transposed: Floats
    scale: float = 1.0
    """A power of two that entries were multiplied by."""

    @classmethod
    def of(cls, transposed: Floats) -> Heads:
        """Scaled so that squares neither overflow nor vanish."""
        top = max(float(transposed.max(initial=0.0)), -float(transposed.min(initial=0.0)))
        if top == 0 or 2.0**-32 <= top <= 2.0**32:
            return cls(np.ascontiguousarray(transposed, np.float64))
        scale = scale_for(top)
        return cls(np.ascontiguousarray(transposed * scale), scale)

    @cached_property
    def gram(self) -> Floats:
        """W^T W of every head."""
        return self.transposed @ self.transposed.transpose(0, 2, 1)

    @cached_property
    def columns(self) -> Floats:
        """Squares of column norms, (heads, width), rounded up."""
        return ups(np.einsum("hwd,hwd->hw", self.transposed, self.transposed), self.transposed.shape[2] + 1)

    @cached_property
    def rows(self) -> Floats:
        """Squares of row norms, (heads, d), rounded up."""
        return ups(np.einsum("hwd,hwd->hd", self.transposed, self.transposed), self.transposed.shape[1] + 1)

    @cached_property
    def square(self) -> Floats:
        """Squares of Frobenius norms, rounded up."""
        return np.array([total(c) for c in self.columns])

    @cached_property
    def gram_margin(self) -> Floats:
        """Bounds |computed Gram - W^T W|_op."""
        return ups(self.square * gamma(self.transposed.shape[2] + 2), 2)

    @cached_property
    def eigenvalues(self) -> Floats:
        """Approximate eigenvalues of the Gram matrices, rising."""
        return np.asarray(np.linalg.eigvalsh(self.gram), np.float64)

    @cached_property
    def op(self) -> Floats:
        """Upper bounds of the spectral norms (of the scaled matrices)."""
        top = np.maximum(self.eigenvalues[:, -1], 0.0)
        return roots(spectral.cholesky_upper_batch(self.gram, top) + self.gram_margin)

    @cached_property
    def about_op(self) -> Floats:
        """Upper bounds of the spectral norms at once: sigma_1^2 <= |W^T W|_F, at most d_head^(1/4) too large."""
        size = ups(np.sqrt(np.einsum("hij,hij->h", self.gram, self.gram)), self.gram.shape[1] ** 2 + 2)
        return roots(size + self.gram_margin)

    def measured(self) -> list[Measured]:
        """The norms of every head."""
        back = 1 / self.scale
        d, width = self.transposed.shape[2], self.transposed.shape[1]
        error = spectral.eigenvalue_error(width)
        absolute = ups(np.abs(self.transposed).sum(axis=2), d)
        out: list[Measured] = []
        for h in range(len(self.transposed)):
            eigen = self.eigenvalues[h][::-1]
            margin = self.gram_margin[h] + error * max(float(eigen[0]), 0.0)
            columns, rows = roots(self.columns[h]), roots(self.rows[h])
            fro = root(float(self.square[h]))
            out.append(
                Measured(
                    (d, width),
                    op=min(float(self.op[h]), fro) * back,
                    fro=fro * back,
                    two_one=total(columns) * back,
                    two_one_t=total(rows) * back,
                    one_one=total(absolute[h]) * back,
                    row=float(rows.max()) * back,
                    column=float(columns.max()) * back,
                    sup=float(np.abs(self.transposed[h]).max()) * back,
                    rank=min(d, width) if fro > 0 else 0,
                    spectrum=tuple((roots(np.maximum(eigen, 0.0) + margin) * back).tolist())[: min(d, width)],
                )
            )
        return out


@dataclass(frozen=True, slots=True)
class _Root:
    """R with |A v| <= stretch |R v| + shift |v|, or with |A v|^2 <= |R v|^2 + phi |v|^2 where shift is 0."""

    r: Floats
    phi: Floats
    stretch: Floats
    shift: Floats


def _by_gram(heads: Heads) -> _Root:
    try:
        r = np.ascontiguousarray(np.linalg.cholesky(heads.gram).transpose(0, 2, 1), np.float64)
    except np.linalg.LinAlgError:  # a rank below d_head
        values, vectors = np.linalg.eigh(heads.gram)
        r = np.asarray(np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1), np.float64)
    n = r.shape[1]
    residual = np.linalg.norm(r.transpose(0, 2, 1) @ r - heads.gram, axis=(1, 2))
    size = np.einsum("hij,hij->h", r, r)
    phi = ups(residual + gamma(n + 2) * size * (1 + 1e-9) + heads.gram_margin + 2 * UNIT * size, n * n + 4)
    return _Root(r, phi, np.ones(len(r)), np.zeros(len(r)))


def _by_qr(heads: Heads) -> _Root:
    """A = Z R + E, residual and orthogonality measured and their rounding added."""
    a = heads.transposed.transpose(0, 2, 1)
    z, r = np.linalg.qr(a)
    d, n = z.shape[1:]
    fro_r, fro_z = np.linalg.norm(r, axis=(1, 2)), np.linalg.norm(z, axis=(1, 2))
    left = np.linalg.norm(a - z @ r, axis=(1, 2)) + gamma(n + 2) * fro_z * fro_r + UNIT * np.sqrt(heads.square)
    eye = np.eye(n)
    defect = np.linalg.norm(z.transpose(0, 2, 1) @ z - eye, axis=(1, 2)) + gamma(d + 2) * fro_z**2
    stretch = ups(np.sqrt(1 + defect * (1 + 1e-9)), 8)
    return _Root(r, np.zeros(len(r)), stretch, ups(left, d * n + 8))


def products(a: Heads, b: Heads) -> list[Measured]:
    """The norms of W_h = A_h B_h^T (d_a x d_b) for every head."""
    found = _products(a, b, _by_gram(a), _by_gram(b))
    if not np.all(found.loose <= _TIGHT):
        sharper = _products(a, b, _by_qr(a), _by_qr(b))
        return [min(x, y, key=lambda m: m.op or 0.0) for x, y in zip(found.norms, sharper.norms, strict=True)]
    return found.norms


@dataclass(frozen=True, slots=True)
class _Products:
    norms: list[Measured]
    loose: Floats


def _products(a: Heads, b: Heads, root_a: _Root, root_b: _Root) -> _Products:
    back = (1 / a.scale) * (1 / b.scale)
    n_a, n_b = root_a.r.shape[1], root_b.r.shape[1]
    m = root_a.r @ root_b.r.transpose(0, 2, 1)
    fro_a, fro_b = np.linalg.norm(root_a.r, axis=(1, 2)), np.linalg.norm(root_b.r, axis=(1, 2))
    blur = ups(gamma(a.transposed.shape[1] + 2) * fro_a * fro_b, n_a * n_b + 8)
    gram = m @ m.transpose(0, 2, 1)
    size = ups(np.einsum("hij,hij->h", m, m), n_a * n_b + 2)
    singular = np.linalg.svd(m, compute_uv=False)
    op_m = roots(spectral.cholesky_upper_batch(gram, np.square(singular[:, 0])) + gamma(n_b + 2) * size) + blur
    fro_m = roots(size) + blur
    op_ra = np.minimum(ups(fro_a, n_a * n_a), roots(a.about_op**2 + root_a.phi))
    if root_a.shift.any() or root_b.shift.any():
        op_ra = ups(fro_a, n_a * n_a)
    # |A B^T| from |R_A B^T| and that from |R_A R_B^T|: squares with phi, lengths with stretch and shift
    op = root_a.stretch * roots(
        _square(root_b.stretch * op_m + op_ra * root_b.shift) + root_b.phi * op_ra**2 + root_a.phi * b.about_op**2
    )
    op = ups(op + root_a.shift * b.about_op, 12)
    fro_b_up = roots(b.square)
    fro = root_a.stretch * roots(
        _square(root_b.stretch * fro_m + ups(fro_a, n_a * n_a) * root_b.shift)
        + root_b.phi * ups(fro_a, n_a * n_a) ** 2
        + root_a.phi * b.square
    )
    fro = ups(fro + root_a.shift * fro_b_up, 12)
    columns = _seen(root_a, b)
    rows = _seen(root_b, a)
    lift = root_b.phi * op_ra**2 + root_a.phi * b.about_op**2
    shift = root_a.shift * b.about_op + root_a.stretch * op_ra * root_b.shift + blur
    norms: list[Measured] = []
    for h in range(len(m)):
        margin = spectral.eigenvalue_error(n_a) * float(singular[h, 0]) + float(shift[h])
        spread = float(root_a.stretch[h] * root_b.stretch[h])
        values = roots(_square((singular[h] + margin) * spread) + float(lift[h]))
        top = min(float(op[h]), float(fro[h]))
        norms.append(
            Measured(
                (a.transposed.shape[2], b.transposed.shape[2]),
                op=top * back,
                fro=float(fro[h]) * back,
                two_one=total(columns[h]) * back,
                two_one_t=total(rows[h]) * back,
                row=float(rows[h].max()) * back,
                column=float(columns[h].max()) * back,
                rank=min(a.transposed.shape[1:] + b.transposed.shape[1:]),
                spectrum=tuple((values * back).tolist()),
            )
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        loose = np.where(op_m > 0, (root_a.phi * b.about_op**2 + root_b.phi * op_ra**2) / op_m**2, np.inf)
    return _Products(norms, loose)


def _square(x: Floats) -> Floats:
    return ups(x * x, 2)


def _seen(r: _Root, other: Heads) -> Floats:
    """Upper bounds of |A o_j| for the rows o_j of the other factor: the columns of A O^T."""
    image = r.r @ other.transposed
    lengths = ups(np.sqrt(np.einsum("hwd,hwd->hd", image, image)), image.shape[1] + 2)
    own = roots(other.rows)
    rounding = gamma(other.transposed.shape[1] + 2) * np.linalg.norm(r.r, axis=(1, 2)) * (1 + 1e-9)
    lengths = lengths + rounding[:, None] * own
    squares = _square(r.stretch[:, None] * lengths) + r.phi[:, None] * other.rows
    return ups(roots(squares) + r.shift[:, None] * own, 4)
