"""Positive definite systems by Cholesky; a refusal names the quantity that makes a system singular."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh, get_lapack_funcs

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.lab.latent.kernels import Array

_MOST_CONDITION = 1e12
"""Beyond this condition number fewer than about four digits of a solution can be trusted."""
_POTRF, _POTRS, _TRTRS, _LANGE, _POCON = get_lapack_funcs(("potrf", "potrs", "trtrs", "lange", "pocon"), dtype="d")


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of a matrix, upper triangular."""

    upper: Array

    def solve(self, b: Array) -> Array:
        """The matrix's inverse times b."""
        return _POTRS(self.upper, b)[0]

    def whiten(self, b: Array) -> Array:
        """U^(-T) b: the columns' squared norms are b^T A^(-1) b."""
        return _TRTRS(self.upper, b, trans=1)[0]


def factor_gram(make: Callable[[], Array], lam: float, *, what: str, check: bool = False) -> Factor:
    """Factor gram + lam I in place; refuse a condition number above 1e12.

    `check` tests that a user's kernel is symmetric and positive. To explain a failure `make` is called again.
    """
    gram = make()
    norm = float(_LANGE("1", gram.T))
    if not math.isfinite(norm):
        raise _refused(f"{what} with entries that are not finite", "finite entries")
    if check and np.abs(gram - gram.T).max() > 1e-8 * norm:
        raise _refused(f"{what} that is not symmetric", "k(x, y) = k(y, x)")
    if check and (least := float(eigvalsh(gram)[0])) < -1e-10 * norm:
        raise _refused(f"{what} with least eigenvalue {least:.3g}", "a positive semi-definite kernel")
    a = gram.T if gram.flags.c_contiguous and gram.flags.writeable else np.array(gram.T, order="F")
    diagonal = np.einsum("ii->i", a)
    diagonal += lam
    upper, info = _POTRF(a, overwrite_a=1, clean=0)  # gram is symmetric: its transpose is itself in Fortran's order
    reciprocal = 0.0 if info else float(_POCON(upper, norm + lam)[0])
    if lam == 0 and reciprocal < 10 * np.finfo(float).eps:
        least = max(0.0, float(eigvalsh(make())[0]))
        raise _refused(f"{what} with least eigenvalue {least:.3g} and lam = 0", "lam above 0 (--ridge)")
    if reciprocal * _MOST_CONDITION < 1:
        condition = 1 / reciprocal if reciprocal > 0 else math.inf
        got = f"{what} + lam I with condition number about {condition:.3g} (lam = {lam:g})"
        fix = f"Raise lam (--ridge) to {norm / _MOST_CONDITION:.2g} or more."
        raise _refused(got, f"a condition number of at most {_MOST_CONDITION:.3g}", fix)
    return Factor(upper)


def _refused(got: str, needs: str, fix: str = "") -> Unsupported:
    return Unsupported(Refusal("CME attention", got, needs, fix))
