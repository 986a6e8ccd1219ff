"""X6: the condition number |w M^+| of a pretext and a downstream task, and the bound of the downstream error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq, fmpq_mat
from numpy.typing import ArrayLike, NDArray

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.intervals import upper_float
from boundcalc.base.value import Value

_Array = NDArray[Any]
_ROW_SPACE_TOLERANCE = 1e-8
"""A larger part of w outside the row space is not rounding."""
_MOST_RATIONAL = 10**4


class _Condition(NamedTuple):
    """How a downstream task relates to a pretext task.

    Attributes:
        kappa: |w M^+|, the factor of pretext errors.
        head: w M^+, the head on the pretext outputs.
        rank: numerical rank of M.
    """

    kappa: float
    head: _Array
    rank: int


def _task_matrices(pretext: ArrayLike, downstream: ArrayLike) -> tuple[_Array, _Array]:
    """M (tasks, latent) and w (latent,) as arrays; refused where they do not fit."""
    m, w = np.asarray(pretext, dtype=float), np.asarray(downstream, dtype=float).reshape(-1)
    if m.ndim != 2 or 0 in m.shape:
        raise InvalidSetting(f"the pretext matrix M must have two axes (tasks, latent), got shape {m.shape}")
    if m.shape[1] != len(w):
        raise InvalidSetting(
            f"w has {len(w)} entries, but M has {m.shape[1]} columns: one per latent coordinate in both"
        )
    if not (np.isfinite(m).all() and np.isfinite(w).all()):
        raise InvalidSetting("M and w must be finite")
    return m, w


def condition(pretext: ArrayLike, downstream: ArrayLike) -> _Condition:
    """The condition number; refused, with the reason, where it is infinite."""
    m, w = _task_matrices(pretext, downstream)
    u, sigma, vt = np.linalg.svd(m, full_matrices=False)
    rank = int((sigma > max(m.shape) * np.finfo(float).eps * sigma[0]).sum()) if sigma[0] > 0 else 0
    inside = vt[:rank] @ w
    size = float(np.linalg.norm(w))
    missed = float(np.linalg.norm(w - vt[:rank].T @ inside)) / size if size > 0 else 0.0
    if missed > _ROW_SPACE_TOLERANCE:
        raise Unsupported(
            Refusal(
                "X6",
                f"w with {missed:.3g} of its length outside the row space of M (rank {rank} of {m.shape[1]}), so kappa "
                "= |w M^+| is infinite",
                "a downstream direction that the pretext tasks see",
                "Add pretext tasks.",
            )
        )
    head = (inside / sigma[:rank]) @ u[:, :rank].T if rank else np.zeros(len(m))
    return _Condition(float(np.linalg.norm(head)), head, rank)


def _exact_square(m: _Array, w: _Array) -> arb | None:
    """|w M^+|^2 where w lies in the row space of M exactly, in rational numbers; else None.

    With R the reduced rows of M, C its pivot columns and t the entries of w there, M = C R, and w = t R is what has to
    hold; then |w M^+|^2 = t (C^T C)^(-1) t^T.
    """
    if m.size > _MOST_RATIONAL:
        return None
    exact, target = (fmpq_mat([[_rational(x) for x in row] for row in rows]) for rows in (m, w[None]))
    reduced, rank = exact.rref()
    if not rank:
        return None if w.any() else arb(0)
    rows = reduced.tolist()[:rank]
    pivots = [next(j for j, entry in enumerate(row) if entry) for row in rows]
    t = fmpq_mat([[target[0, j] for j in pivots]])
    if t * fmpq_mat(rows) != target:
        return None
    c = fmpq_mat([[row[j] for j in pivots] for row in exact.tolist()])
    return arb((t * (c.transpose() * c).solve(t.transpose()))[0, 0])


def _rational(x: float) -> fmpq:
    return fmpq(*float(x).as_integer_ratio())


def transfer_bound(pretext: ArrayLike, downstream: ArrayLike, pretext_error: float, *, measured: bool = False) -> Value:
    """The downstream error of the head w M^+: kappa^2 e_pre. With `measured` e_pre is an estimate, and so is the value.

    Where w lies in the row space of M only up to rounding the value is an estimate.
    """
    m, w = _task_matrices(pretext, downstream)
    validate.positive("pretext error", pretext_error, zero=True)
    conditioning = condition(m, w)
    square = _exact_square(m, w)
    kind = "estimate" if measured or square is None else "bound"
    chosen = {"kappa": conditioning.kappa, "rank": float(conditioning.rank)}
    inputs = {"pretext_error": pretext_error, "tasks": len(m), "latent": m.shape[1]}
    square = arb(conditioning.kappa) ** 2 if square is None else square
    value = upper_float(square * arb(float(pretext_error)))
    return Value.of("X6", "E|w M^+ yhat - w h|^2", kind, value, "w M^+", inputs, chosen)
