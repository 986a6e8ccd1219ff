"""Positive definite systems by Cholesky; a refusal names the quantity that makes a system singular."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh, get_lapack_funcs
from scipy.sparse.linalg import eigsh

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.lab.latent.kernels import Array

MOST_CONDITION = 1e12
"""Beyond this condition number fewer than about four digits of a solution can be trusted."""
_POTRF, _POTRS, _TRTRS, _LANGE, _POCON = get_lapack_funcs(("potrf", "potrs", "trtrs", "lange", "pocon"), dtype="d")
_DENSE = 1500
"""Up to this size all eigenvalues are computed to explain a failure; beyond, only the extreme ones."""


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of a matrix, upper triangular."""

    upper: Array

    def solve(self, b: Array) -> Array:
        """The matrix's inverse times b."""
        x, _ = _POTRS(self.upper, b)
        return x

    def whiten(self, b: Array) -> Array:
        """U^(-T) b: the columns' squared norms are b^T A^(-1) b."""
        x, _ = _TRTRS(self.upper, b, trans=1)
        return x


def factor_gram(make: Callable[[], Array], lam: float, most: float, *, what: str, check: bool = False) -> Factor:
    """Factor gram + lam I in place; refuse a condition number above `most`.

    `check` tests that a user's kernel is symmetric and positive. To explain a failure `make` is called again.
    """
    gram = make()
    norm = float(_LANGE("1", gram.T))
    if not math.isfinite(norm):
        raise _refused(f"{what} with entries that are not finite", "finite entries")
    if check:
        _check(gram, what)
    a = gram.T if gram.flags.c_contiguous and gram.flags.writeable else np.array(gram.T, order="F")
    diagonal = np.einsum("ii->i", a)
    diagonal += lam
    upper, info = _POTRF(a, overwrite_a=1, clean=0)  # gram is symmetric: its transpose is itself in Fortran's order
    reciprocal = 0.0 if info else float(_POCON(upper, norm + lam)[0])
    if info or (lam == 0 and reciprocal < 10 * np.finfo(float).eps):
        raise _singular(make(), lam, what)
    if reciprocal * most < 1:
        condition = 1 / reciprocal if reciprocal > 0 else math.inf
        raise _refused(
            f"{what} + lam I with condition number about {condition:.3g} (lam = {lam:g})",
            f"a condition number of at most {most:.3g}",
            f"Raise lam (--ridge) to {norm / most:.2g} or more, or max_condition if fewer digits will do.",
        )
    return Factor(upper)


def _refused(got: str, needs: str, fix: str = "") -> Unsupported:
    return Unsupported(Refusal("CME attention", got, needs, fix))


def _check(gram: Array, what: str) -> None:
    """Refuse a matrix that is not symmetric, or not positive beyond rounding."""
    scale = float(np.abs(gram).max()) or 1.0
    skew = float(np.abs(gram - gram.T).max())
    if skew > 1e-8 * scale:
        raise _refused(f"{what} with |K_ij - K_ji| up to {skew:.3g}", "a symmetric kernel, k(x, y) = k(y, x)")
    jittered = np.array(gram.T, order="F")
    jittered[np.diag_indices_from(jittered)] += 1e-10 * scale * len(gram)
    if _POTRF(jittered, overwrite_a=1, clean=0)[1]:
        needs, fix = (
            "a positive semi-definite kernel",
            "Use a kernel such as RBF or exp(<x, y>), or add its feature map.",
        )
        raise _refused(f"{what} with least eigenvalue {_eigenvalues(gram)[0]:.3g}", needs, fix)


def _eigenvalues(gram: Array) -> Array:
    """All eigenvalues in rising order; of a large matrix the least and the greatest."""
    if len(gram) <= _DENSE:
        return eigvalsh(gram)
    return np.sort(eigsh(gram, k=2, which="BE", return_eigenvectors=False, tol=1e-3))  # type: ignore[arg-type]


def _singular(gram: Array, lam: float, what: str) -> Unsupported:
    scale, values = float(np.trace(gram)) / len(gram), _eigenvalues(gram)
    least, tiny = float(values[0]), len(gram) * np.finfo(float).eps * float(values[-1])
    if least < -1e3 * tiny:
        got = f"{what} with least eigenvalue {least:.3g} and lam = {lam:g}"
        return _refused(got, "a positive semi-definite kernel, or lam above the negative part")
    rank = f", of rank {int((values > tiny).sum())} among {len(gram)}," if len(values) == len(gram) else ""
    return _refused(
        f"{what}{rank} with least eigenvalue {max(least, 0.0):.3g} and lam = {lam:g}",
        "lam above 0 where the matrix is singular",
        f"Give lam, for instance {max(1e-6 * scale, 1e-300):.1g}.",
    )
