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

_Floats = NDArray[np.float64]

_TIGHT = 1e-10
"""A product's margin may be this much of its square before QR is tried."""


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
        if top == 0 or 2.0**-32 <= top <= 2.0**32:
            return cls(np.ascontiguousarray(transposed, np.float64))
        scale = scale_for(top)
        return cls(np.ascontiguousarray(transposed * scale), scale)

    @cached_property
    def gram(self) -> _Floats:
        """W^T W of every head."""
        return self.transposed @ self.transposed.transpose(0, 2, 1)

    @cached_property
    def column_squares(self) -> _Floats:
        """Squares of column norms, (heads, width), rounded up."""
        return ups(np.einsum("hwd,hwd->hw", self.transposed, self.transposed), self.transposed.shape[2] + 1)

    @cached_property
    def row_squares(self) -> _Floats:
        """Squares of row norms, (heads, d), rounded up."""
        return ups(np.einsum("hwd,hwd->hd", self.transposed, self.transposed), self.transposed.shape[1] + 1)

    @cached_property
    def square(self) -> _Floats:
        """Squares of Frobenius norms, rounded up."""
        return np.array([total(c) for c in self.column_squares])

    @cached_property
    def gram_margin(self) -> _Floats:
        """Bounds |computed Gram - W^T W|_op."""
        return ups(self.square * gamma(self.transposed.shape[2] + 2), 2)

    @cached_property
    def eigenvalues(self) -> _Floats:
        """Approximate eigenvalues of the Gram matrices, rising."""
        return np.asarray(np.linalg.eigvalsh(self.gram), np.float64)

    @cached_property
    def op(self) -> _Floats:
        """Upper bounds of the spectral norms (of the scaled matrices)."""
        top = np.maximum(self.eigenvalues[:, -1], 0.0)
        return roots(spectral.cholesky_upper_batch(self.gram, top) + self.gram_margin)

    @cached_property
    def about_op(self) -> _Floats:
        """Upper bounds of the spectral norms at once: sigma_1^2 <= |W^T W|_F, at most d_head^(1/4) too large."""
        size = ups(np.sqrt(np.einsum("hij,hij->h", self.gram, self.gram)), self.gram.shape[1] ** 2 + 2)
        return roots(size + self.gram_margin)

    def measured(self) -> list[Measured]:
        """The norms of every head."""
        d, width = self.transposed.shape[2], self.transposed.shape[1]
        error = spectral.eigenvalue_error(width)
        absolute = ups(np.abs(self.transposed).sum(axis=2), d)
        out: list[Measured] = []
        for h in range(len(self.transposed)):
            eigen = self.eigenvalues[h][::-1]
            margin = self.gram_margin[h] + error * max(float(eigen[0]), 0.0)
            columns, rows = roots(self.column_squares[h]), roots(self.row_squares[h])
            fro = root(float(self.square[h]))
            out.append(
                Measured(
                    (d, width),
                    op=min(float(self.op[h]), fro),
                    fro=fro,
                    two_one=total(columns),
                    two_one_t=total(rows),
                    one_one=total(absolute[h]),
                    row=float(rows.max()),
                    column=float(columns.max()),
                    sup=float(np.abs(self.transposed[h]).max()),
                    rank=min(d, width) if fro > 0 else 0,
                    spectrum=tuple(roots(np.maximum(eigen, 0.0) + margin).tolist())[: min(d, width)],
                ).unscaled(self.scale)
            )
        return out


@dataclass(frozen=True, slots=True)
class _Root:
    """R with |A v| <= stretch |R v| + shift |v|, or with |A v|^2 <= |R v|^2 + phi |v|^2 where shift is 0.

    Attributes:
        r: one R per head.
        phi: see above.
        stretch: see above.
        shift: see above.
        op: upper bounds of |R|_op.
        fro: upper bounds of |R|_F.
    """

    r: _Floats
    phi: _Floats
    stretch: _Floats
    shift: _Floats
    op: _Floats
    fro: _Floats


def _by_gram(heads: Heads) -> _Root:
    """The Cholesky factor R of A^T A, its residual computed."""
    try:
        r = np.ascontiguousarray(np.linalg.cholesky(heads.gram).transpose(0, 2, 1), np.float64)
    except np.linalg.LinAlgError:  # a rank below d_head
        values, vectors = np.linalg.eigh(heads.gram)
        r = np.asarray(np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1), np.float64)
    n = r.shape[1]
    residual = np.linalg.norm(r.transpose(0, 2, 1) @ r - heads.gram, axis=(1, 2))
    size = np.einsum("hij,hij->h", r, r)
    phi = ups(residual + gamma(n + 2) * size * (1 + 1e-9) + heads.gram_margin + 2 * UNIT * size, n * n + 4)
    fro = roots(ups(size, n * n))
    op = np.minimum(fro, roots(_square(heads.about_op) + phi))
    return _Root(r, phi, np.ones(len(r)), np.zeros(len(r)), op, fro)


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
    fro = ups(fro_r, n * n)
    return _Root(r, np.zeros(len(r)), stretch, ups(left, d * n + 8), fro, fro)


def products(a: Heads, b: Heads) -> list[Measured]:
    """The norms of W_h = A_h B_h^T (d_a x d_b) for every head."""
    norms, loose = _products(a, b, _by_gram(a), _by_gram(b))
    if np.all(loose <= _TIGHT):
        return norms
    sharper, _ = _products(a, b, _by_qr(a), _by_qr(b))
    return [min(x, y, key=lambda m: m.op or 0.0) for x, y in zip(norms, sharper, strict=True)]


@dataclass(frozen=True, slots=True)
class _Core:
    """M = R_A R_B^T of every head.

    Attributes:
        singular: its computed singular values.
        blur: bounds the rounding of M.
        op: upper bounds of |M|_op.
        fro: upper bounds of |M|_F.
    """

    singular: _Floats
    blur: _Floats
    op: _Floats
    fro: _Floats


def _core(a: _Root, b: _Root) -> _Core:
    m = a.r @ b.r.transpose(0, 2, 1)
    _, rows, columns = m.shape
    blur = ups(gamma(a.r.shape[2] + 2) * a.fro * b.fro, 4)
    size = ups(np.einsum("hij,hij->h", m, m), rows * columns + 2)
    singular = np.asarray(np.linalg.svd(m, compute_uv=False), np.float64)
    top = spectral.cholesky_upper_batch(m @ m.transpose(0, 2, 1), np.square(singular[:, 0]))
    return _Core(singular, blur, roots(top + gamma(columns + 2) * size) + blur, roots(size) + blur)


def _products(a: Heads, b: Heads, root_a: _Root, root_b: _Root) -> tuple[list[Measured], _Floats]:
    """The norms of every product, and how much of |M|_op^2 the margin phi is."""
    core = _core(root_a, root_b)
    fro = _through(core.fro, root_a, root_b, root_a.fro, roots(b.square))
    op = np.minimum(fro, _through(core.op, root_a, root_b, root_a.op, b.about_op))
    columns, rows = _seen(root_a, b), _seen(root_b, a)
    spectra = _spectra(core, root_a, root_b, b)
    rank = min(a.transposed.shape[1:] + b.transposed.shape[1:])
    norms = [
        Measured(
            (a.transposed.shape[2], b.transposed.shape[2]),
            op=float(op[h]),
            fro=float(fro[h]),
            two_one=total(columns[h]),
            two_one_t=total(rows[h]),
            row=float(rows[h].max()),
            column=float(columns[h].max()),
            rank=rank,
            spectrum=tuple(spectra[h].tolist()),
        ).unscaled(a.scale, b.scale)
        for h in range(len(op))
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        loose = np.where(core.op > 0, _margin(root_a, root_b, root_a.op, b.about_op) / core.op**2, np.inf)
    return norms, loose


def _margin(a: _Root, b: _Root, size_r: _Floats, size_b: _Floats) -> _Floats:
    """phi_B |R_A|^2 + phi_A |B|^2, by which |A B^T|^2 may exceed |M|^2."""
    return b.phi * size_r**2 + a.phi * size_b**2


def _through(core: _Floats, a: _Root, b: _Root, size_r: _Floats, size_b: _Floats) -> _Floats:
    """|A B^T| from |M|, |R_A| and |B|, all spectral or all Frobenius norms.

    Squares add up with phi: |A B^T|^2 <= |M|^2 + phi_B |R_A|^2 + phi_A |B|^2. Lengths do with stretch and shift:
    |B R_A^T| <= stretch_B |M| + shift_B |R_A|, and |A B^T| <= stretch_A |R_A B^T| + shift_A |B|.
    """
    squares = _square(b.stretch * core + b.shift * size_r) + _margin(a, b, size_r, size_b)
    return ups(a.stretch * roots(squares) + a.shift * size_b, 12)


def _spectra(core: _Core, a: _Root, b: _Root, other: Heads) -> _Floats:
    """Singular values one by one: sigma_i(A B^T) from sigma_i(M), as in `_through` (Weyl)."""
    apart = a.shift * other.about_op + a.stretch * a.op * b.shift + core.blur
    own = spectral.eigenvalue_error(a.r.shape[1]) * core.singular[:, 0] + apart
    stretched = (core.singular + own[:, None]) * (a.stretch * b.stretch)[:, None]
    return roots(_square(stretched) + _margin(a, b, a.op, other.about_op)[:, None])


def _seen(r: _Root, other: Heads) -> _Floats:
    """|A o_j| for the rows o_j of the other factor, that is the columns of A O^T: |A o|^2 <= |R o|^2 + phi |o|^2."""
    image = r.r @ other.transposed
    lengths = ups(np.sqrt(np.einsum("hwd,hwd->hd", image, image)), image.shape[1] + 2)
    own = roots(other.row_squares)
    rounding = gamma(other.transposed.shape[1] + 2) * r.fro
    lengths = lengths + rounding[:, None] * own
    squares = _square(r.stretch[:, None] * lengths) + r.phi[:, None] * other.row_squares
    return ups(roots(squares) + r.shift[:, None] * own, 4)


def _square(x: _Floats) -> _Floats:
    return ups(x * x, 2)
