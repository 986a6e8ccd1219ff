"""Certified spectral norms: values that are never below the true one. Proofs: docs/weights.md.

Two methods. Where the smaller side is at most `EXACT_SIDE`, the Gram matrix G = W^T W is formed, and a Cholesky
factorisation of s I - G that runs to completion proves, with its backward error, that no eigenvalue exceeds s by more
than a margin. Beyond, Chebyshev polynomials of G are applied to random vectors: if an eigenvalue exceeded s (1 + eps),
the vectors would grow, unless all of them are nearly orthogonal to its eigenvector, which has probability at most
`FAILURE`. Power iteration or Lanczos alone would only give lower bounds; here they merely guess s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.norms.rounding import UNIT, gamma, up

_Floats = NDArray[np.float64]
_Chunks = Callable[[], Iterator[tuple[int, NDArray[np.floating[Any]]]]]
"""Slabs of a matrix along its longer side, as (position, slab with the shorter side last), afresh at every call; floats
of any width that holds them exactly."""

EXACT_SIDE = 1024
FAILURE = 1e-13
"""Chance, over the random vectors, that a value of the second method is too small."""
PROBES, DEGREE = 12, 20
_TRIES = 30


class Grams:
    """W^T W accumulated slab by slab in float64, with a bound of its error."""

    def __init__(self, side: int) -> None:
        self.matrix = np.zeros((side, side), order="F")
        self.slabs = 0
        self.longest = 0

    def add(self, slab: _Floats) -> None:
        """Add slab^T slab (lower triangle)."""
        from scipy.linalg.blas import dsyrk  # type: ignore[attr-defined]

        tall = slab.flags.f_contiguous  # whichever way it lies, it is not copied
        factor = slab if tall else slab.T
        self.matrix = dsyrk(1.0, factor, beta=1.0, c=self.matrix, trans=tall, overwrite_c=True, lower=True)
        self.slabs += 1
        self.longest = max(self.longest, slab.shape[0])

    @property
    def error(self) -> float:
        """Times |W|_F^2: bounds |G - W^T W|_op, as | |W|^T |W| |_op <= |W|_F^2."""
        return gamma(self.longest + self.slabs + 2)


def cholesky_upper(gram: _Floats, guess: float) -> float:
    """An upper bound of the largest eigenvalue of a symmetric matrix (lower triangle), near `guess` when that is right.

    If Cholesky of A = s I - G completes, then A + D is positive semidefinite for some D with |D|_op at most
    gamma_{n+1}/(1 - gamma_{n+1}) trace(A) (Demmel; Rump 2006), so every eigenvalue of G is at most s plus that and the
    rounding of A's diagonal.
    """
    from scipy.linalg.lapack import dpotrf  # type: ignore[attr-defined]

    n = gram.shape[0]
    diagonal = gram.diagonal().copy()
    shift = guess * (1 + 4 * n * UNIT) + np.finfo(float).tiny
    slack = guess * 4 * n * UNIT + np.finfo(float).tiny
    for _ in range(_TRIES * 4):
        work = np.negative(gram, order="F")
        np.fill_diagonal(work, shift - diagonal)
        _, info = dpotrf(work, lower=True, overwrite_a=True, clean=False)
        if info == 0:
            return _backward(shift, diagonal)
        slack *= 4
        shift = guess + slack
    raise ArithmeticError("the matrix has no finite spectral bound")


def _backward(shift: float, diagonal: _Floats) -> float:
    n = len(diagonal)
    trace = up(math.fsum((shift - diagonal).tolist()), 1)
    rate = gamma(n + 1)
    return up(shift + rate / (1 - rate) * trace + 2 * UNIT * (shift + float(np.abs(diagonal).max())), 4)


def chebyshev_upper(chunks: _Chunks, side: int, square: float, rng: np.random.Generator) -> float:
    """An upper bound of |W|_op, but for a chance of at most `FAILURE` over the random probes.

    `square` is an upper bound of |W|_F^2. Entries should be scaled to about 1.
    """
    if square == 0:
        return 0.0
    slabs = [slab.shape[0] for _, slab in chunks()]
    rounding = 2 * gamma(side + max(slabs) + len(slabs) + 4) * square  # of one product by G
    guess = _guess(chunks, side, rng) * 1.003
    for attempt in range(1, _TRIES):
        excess = _excess(side, 4 * rounding / guess + 8 * UNIT, FAILURE / (attempt * (attempt + 1)))
        if _stays_small(chunks, side, guess, rng):
            return up(math.sqrt(guess * (1 + excess)), 4)
        guess *= 1 + excess * 2 ** (attempt - 1)
    raise ArithmeticError("the matrix has no finite spectral bound")


def _times_gram(chunks: _Chunks, x: _Floats) -> _Floats:
    total = np.zeros_like(x)
    for _, slab in chunks():
        wide = slab.astype(np.float64)
        total += wide.T @ (wide @ x)
    return total


def _guess(chunks: _Chunks, side: int, rng: np.random.Generator) -> float:
    """About the largest eigenvalue of G, from below: Lanczos in the stored precision.

    The basis is subtracted twice: once leaves an error that every step multiplies by |G x|/|what is left|, and where
    singular values crowd together the basis is no longer orthogonal after a few, nor the guess a lower bound.
    """
    steps = min(_KRYLOV, side)
    basis = np.zeros((steps, side))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    vector = rng.standard_normal(side)
    for j in range(steps):
        for _ in range(2):
            vector -= basis[:j].T @ (basis[:j] @ vector)
        length = float(np.linalg.norm(vector))
        if length <= 1e-6 * diagonal.max(initial=0.0):
            steps = j
            break
        basis[j] = vector / length
        beside[j] = length
        vector = np.zeros(side)
        for _, slab in chunks():
            vector += slab.T @ (slab @ basis[j].astype(slab.dtype))
        diagonal[j] = float(vector @ basis[j])
    from scipy.linalg import eigvalsh_tridiagonal

    return float(eigvalsh_tridiagonal(diagonal[:steps], beside[1:steps])[-1])


_KRYLOV = 20
_GROWTH = 1.25


def _stays_small(chunks: _Chunks, side: int, s: float, rng: np.random.Generator) -> bool:
    """Whether T_j(2G/s - 1) x stays small for random unit x and all j <= DEGREE; certain if no eigenvalue exceeds s."""
    older = rng.standard_normal((side, PROBES))
    older /= np.linalg.norm(older, axis=0)
    newer = _times_gram(chunks, older) * (2 / s) - older
    for _ in range(DEGREE - 1):
        if np.linalg.norm(newer, axis=0).max() > _GROWTH:
            return False
        older, newer = newer, _times_gram(chunks, newer) * (4 / s) - 2 * newer - older
    return bool(np.linalg.norm(newer, axis=0).max() <= _GROWTH)


def _excess(side: int, rounding: float, failure: float) -> float:
    """The least eps such that, when an eigenvalue exceeds s (1 + eps), no probe grows with at most this probability.

    No growth means |v.x| <= tau(eps) for its eigenvector v and every probe x, and on the sphere P(|v.x| <= tau) is at
    most tau sqrt(2 n/pi). With cosh t = 1 + 2 eps: tau = growth/T_k(cosh t) + rounding growth/(sinh t (1 - e^-t)).
    """
    need = failure ** (1 / PROBES) / math.sqrt(2 * side / math.pi) / (1 + 1e-9)

    def tau(epsilon: float) -> float:
        t = math.acosh(1 + 2 * epsilon)
        carried = 2 * rounding * _GROWTH / (math.sinh(t) * -math.expm1(-t))
        return _GROWTH * math.exp(-math.log(math.cosh(min(DEGREE * t, 700.0)))) + carried

    low, high = 1e-9, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if tau(middle) <= need else (middle, high)
    return high
