"""Norms of the products of weights that the function depends on alone, as budgets that are paid for.

Which products are measured follows from the architecture; each is formed in 64 bits, and what rounding can have done to
it is added to its norms. For models of this library, whose tensors are called as in norms files.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from boundcalc.checkpoints.maps import key_of
from boundcalc.norms.rounding import gamma, root, total, up
from boundcalc.setting import Architecture, Budget
from boundcalc.setting.products import FIRST_ROW, Beginning, beginning, ending

Floats = NDArray[np.float64]

_ROUNDINGS = 16


def measured_products(architecture: Architecture, read: Callable[[str, int | None], Floats]) -> dict[str, Budget]:
    """Budgets of all products that the architecture has, by the keys of norms files; `read` fetches an array."""
    found: dict[str, Budget] = {}
    first, last = beginning(architecture.stages), ending(architecture.stages)
    if first is not None:
        found |= _tables(first, read)
    if last is not None:
        a, r = (read(layer.kind, layer.block) for layer in (last.last, last.readout))
        found[key_of(last.kind, last.last.block)] = Budget(op=_whole(a @ r) + _off(a.shape[1], a, r))
    return found


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
        asked = np.append(row, 1.0) if layer.qk_bias else row
        queries = np.einsum("r,hrd->hd", asked, scores) / tau
        size = _whole(asked) * _whole(scores) / tau
        terms = len(asked)
    else:
        asked = np.einsum("d,hde->he", row, of("W_Q"))
        size = _whole(row) * _whole(of("W_Q"))
        if layer.qk_bias:
            asked, size = asked + of("b_Q"), size + _whole(of("b_Q"))
        queries = np.einsum("he,hde->hd", asked, of("W_K")) / tau
        size = size * _whole(of("W_K")) / tau
        terms = len(row) + layer.d_head
    found: dict[str, Budget] = {}
    for name, table in tables.items():
        looked = table @ queries.T
        room = up(gamma(terms + layer.d + _ROUNDINGS) * _whole(table) * size, 4)
        sizes = {"fro": _whole(looked) + room, "schatten": (1.0, _nuclear(looked, room))}
        found[f"{name}_scores"] = Budget(sup=float(np.abs(looked).max()) + room, **sizes)  # type: ignore[arg-type]
        parts = np.einsum("td,hde->the", table, values)
        room = _off(layer.d, table, values)
        longest = root(total(np.square(parts).sum(-1).max(0))) * (1 + gamma(layer.out + _ROUNDINGS))
        sizes = {"fro": _whole(parts) + room, "schatten": (1.0, _nuclear(parts.reshape(len(parts), -1), room))}
        found[f"{name}_values"] = Budget(row=longest + room, **sizes)  # type: ignore[arg-type]
    output = read(first.output.kind, first.output.block)
    added, room = row, up(gamma(_ROUNDINGS) * _whole(row), 2)
    if layer.v_bias:
        added, room = added + of("b_V").reshape(-1) @ output, room + _off(output.shape[0], of("b_V"), output)
    if first.output.bias is not None:
        offset = read(first.output.bias, first.output.block)
        added, room = added + offset, room + up(gamma(_ROUNDINGS) * _whole(offset), 2)
    found[key_of(FIRST_ROW, first.output.block)] = Budget(op=_whole(added) + room)
    return found


def _whole(array: Floats) -> float:
    """At least the l2 norm of all entries."""
    return root(up(total(np.square(array)), 1))


def _nuclear(array: Floats, room: float) -> float:
    """At least the sum of the singular values of a matrix that is `room` away in the norm of all entries.

    That sum is the largest <array, Q> over Q of spectral norm 1; the QR factors of U V' from the factorisation give one
    way to bound it from above: |A|_* <= |A - U S V'|_* + |U|_op |S|_1 |V|_op.
    """
    u, s, vt = np.linalg.svd(array, full_matrices=False)
    side = math.sqrt(min(array.shape))
    left = side * (_whole(array - (u * s) @ vt) + _off(len(s), u, np.diag(s), vt) + room)
    near = [1 + _whole(q - np.eye(len(s))) + _off(max(array.shape), u, u, vt) for q in (u.T @ u, vt @ vt.T)]
    return up(left + math.sqrt(near[0] * near[1]) * total(s), 8)


def _off(terms: int, *factors: Floats) -> float:
    """At least what rounding did to a product with sums of so many terms, in the norm of all entries."""
    size = 1.0
    for factor in factors:
        size *= _whole(factor)
    return up(gamma(terms + _ROUNDINGS) * size, 4)
