"""Norms of arrays that were computed: what rounding can have done to them is measured next to them."""

from __future__ import annotations

import math

import numpy as np

from boundcalc.norms.matrix import Floats
from boundcalc.norms.rounding import gamma, root, total, up

ROUNDINGS = 16
"""Roundings besides those of a sum, at the most."""


def frobenius(array: Floats) -> float:
    """At least the l2 norm of all entries."""
    return root(up(total(np.square(array)), 1))


def nuclear(array: Floats, room: float) -> float:
    """At least the sum of the singular values of a matrix that is `room` away in the norm of all entries.

    That sum is the largest <array, Q> over Q of spectral norm 1; the QR factors of U V' from the factorisation give one
    way to bound it from above: |A|_* <= |A - U S V'|_* + |U|_op |S|_1 |V|_op.
    """
    u, s, vt = np.linalg.svd(array, full_matrices=False)
    side = math.sqrt(min(array.shape))
    left = side * (frobenius(array - (u * s) @ vt) + rounded(len(s), u, np.diag(s), vt) + room)
    near = [1 + frobenius(q - np.eye(len(s))) + rounded(max(array.shape), u, u, vt) for q in (u.T @ u, vt @ vt.T)]
    return up(left + math.sqrt(near[0] * near[1]) * total(s), 8)


def rounded(terms: int, *factors: Floats) -> float:
    """At least what rounding did to a product with sums of so many terms, in the norm of all entries."""
    size = 1.0
    for factor in factors:
        size *= frobenius(factor)
    return up(gamma(terms + ROUNDINGS) * size, 4)
