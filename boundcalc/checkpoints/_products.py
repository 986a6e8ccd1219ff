"""Norms of the products of weights that the function depends on alone, as measured budgets.

Which products are measured follows from the architecture; each is formed in 64 bits, and what rounding can have done to
it is added to its norms. For models of this library, whose tensors are called as in norms files.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from boundcalc.layers.merged import FIRST_ROW, Beginning, beginning, ending
from boundcalc.norms.matrix import Floats
from boundcalc.norms.rounding import gamma, root, total, up
from boundcalc.setting import Architecture, Budget
from boundcalc.setting.norms import place_named


def measured_products(architecture: Architecture, read: Callable[[str, int | None], Floats]) -> dict[str, Budget]:
    """Budgets of all products that the architecture has, by the keys of norms files; `read` fetches an array."""
    budgets: dict[str, Budget] = {}
    first, last = beginning(architecture.stages), ending(architecture.stages)
    if first is not None:
        budgets |= _tables(first, read)
    if last is not None:
        a, r = (read(layer.kind, layer.block) for layer in (last.last, last.readout))
        budgets[place_named(last.kind, last.last.block)] = Budget(op=_frobenius(a @ r) + _rounded(a.shape[1], a, r))
    return budgets


def _tables(first: Beginning, read: Callable[[str, int | None], Floats]) -> dict[str, Budget]:
    layer = first.attention

    def of(kind: str) -> Floats:
        return read(kind, layer.block)

    tables = {"token": read("embedding", None), "position": read("positions", None)}
    row = tables["token"][first.embedding.own_row] + tables["position"][0]
    tau = layer.normaliser.temperature or 1.0
    values = of("W_V")
    if layer.d_head is None:
        scores = of("W_QK")
        query = np.append(row, 1.0) if layer.qk_bias else row
        queries = np.einsum("r,hrd->hd", query, scores) / tau
        size = _frobenius(query) * _frobenius(scores) / tau
        terms = len(query)
    else:
        query = np.einsum("d,hde->he", row, of("W_Q"))
        size = _frobenius(row) * _frobenius(of("W_Q"))
        if layer.qk_bias:
            query, size = query + of("b_Q"), size + _frobenius(of("b_Q"))
        queries = np.einsum("he,hde->hd", query, of("W_K")) / tau
        size = size * _frobenius(of("W_K")) / tau
        terms = len(row) + layer.d_head
    budgets: dict[str, Budget] = {}
    for name, table in tables.items():
        looked = table @ queries.T
        room = up(gamma(terms + layer.d + _ROUNDINGS) * _frobenius(table) * size, 4)
        sizes = {"fro": _frobenius(looked) + room, "nuclear": _nuclear(looked, room)}
        budgets[f"{name}_scores"] = Budget(sup=float(np.abs(looked).max()) + room, **sizes)  # type: ignore[arg-type]
        parts = np.einsum("td,hde->the", table, values)
        room = _rounded(layer.d, table, values)
        longest = root(total(np.square(parts).sum(-1).max(0))) * (1 + gamma(layer.out + _ROUNDINGS))
        sizes = {"fro": _frobenius(parts) + room, "nuclear": _nuclear(parts.reshape(len(parts), -1), room)}
        budgets[f"{name}_values"] = Budget(heads=longest + room, **sizes)  # type: ignore[arg-type]
    output = read(first.output.kind, first.output.block)
    added, room = row, up(gamma(_ROUNDINGS) * _frobenius(row), 2)
    if layer.v_bias:
        added, room = added + of("b_V").reshape(-1) @ output, room + _rounded(output.shape[0], of("b_V"), output)
    if first.output.bias is not None:
        offset = read(first.output.bias, first.output.block)
        added, room = added + offset, room + up(gamma(_ROUNDINGS) * _frobenius(offset), 2)
    budgets[place_named(FIRST_ROW, first.output.block)] = Budget(op=_frobenius(added) + room)
    return budgets


_ROUNDINGS = 16
"""Roundings besides those of a sum, at the most."""


def _frobenius(array: Floats) -> float:
    """At least the l2 norm of all entries."""
    return root(up(total(np.square(array)), 1))


def _nuclear(array: Floats, room: float) -> float:
    """At least the sum of the singular values of a matrix that is `room` away in the norm of all entries.

    That sum is the largest <array, Q> over Q of spectral norm 1; the QR factors of U V' from the factorisation give one
    way to bound it from above: |A|_* <= |A - U S V'|_* + |U|_op |S|_1 |V|_op.
    """
    u, s, vt = np.linalg.svd(array, full_matrices=False)
    side = math.sqrt(min(array.shape))
    left = side * (_frobenius(array - (u * s) @ vt) + _rounded(len(s), u, np.diag(s), vt) + room)
    near = [1 + _frobenius(q - np.eye(len(s))) + _rounded(max(array.shape), u, u, vt) for q in (u.T @ u, vt @ vt.T)]
    return up(left + math.sqrt(near[0] * near[1]) * total(s), 8)


def _rounded(terms: int, *factors: Floats) -> float:
    """At least what rounding did to a product with sums of so many terms, in the norm of all entries."""
    size = 1.0
    for factor in factors:
        size *= _frobenius(factor)
    return up(gamma(terms + _ROUNDINGS) * size, 4)
