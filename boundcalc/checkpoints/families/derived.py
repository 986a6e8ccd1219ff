"""Weights that are not one tensor as it is stored: some of its outputs, scaled ones, gains of 1 + w, queries, heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.tensors import Tensor, read

DERIVED = " derived"
"""How the storage of a tensor ends that is computed of others."""


def derived(tensor: Tensor, make: Callable[..., Any], *others: Tensor) -> Tensor:
    """A tensor computed of others in double precision, away from zero: no norm is below that of the exact one."""

    def fetch() -> Any:
        """The derived tensor, read when it is needed."""
        exact = make(*(np.asarray(read(part), np.float64) for part in (tensor, *others)))
        return np.nextafter(exact, np.copysign(np.inf, exact))

    return replace(tensor, dtype="float64", fetch=fetch, storage=tensor.storage + DERIVED)


def sliced(tensor: Tensor, whole: str, part: slice, slots: int, groups: int = 1) -> Tensor:
    """Some outputs of a tensor that holds several weights: of the equal slots of each of its groups those of `part`."""
    axis = 0 if tensor.turned else max(len(tensor.shape) - 1, 0)
    outputs = tensor.shape[axis] if tensor.shape else 0
    width, rest = divmod(outputs, groups * slots)
    if rest or not width:
        raise CheckpointError(f"{tensor.name}: {outputs} outputs do not make the parts of {whole}")
    count = groups * (part.stop - part.start) * width

    def fetch() -> Any:
        values = np.moveaxis(np.asarray(tensor.fetch()), axis, 0)
        chosen = values.reshape(groups, slots, width, *values.shape[1:])[:, part]
        return np.moveaxis(chosen.reshape(count, *values.shape[1:]), 0, axis)

    shape = (*tensor.shape[:axis], count, *tensor.shape[axis + 1 :])
    return replace(tensor, shape=shape, fetch=fetch, storage=f"{tensor.storage} {part}", whole=whole)


def heads_side_by_side(heads: list[Tensor]) -> Tensor:
    """The maps of heads that are tensors of their own, side by side in one; as they are stored."""
    first, storage = heads[0], " ".join(head.storage for head in heads)
    axis = 0 if first.turned or len(first.shape) == 1 else 1
    shape = tuple(size * (len(heads) if at == axis else 1) for at, size in enumerate(first.shape))

    def fetch() -> Any:
        return np.concatenate([np.asarray(head.fetch()) for head in heads], axis)

    name = f"{first.name} and the other heads'" if len(heads) > 1 else first.name
    return replace(first, name=name, shape=shape, fetch=fetch, storage=storage)


def times(tensor: Tensor, scale: Tensor) -> Tensor:
    """A map, or its offset, with its outputs scaled one by one."""
    rows = tensor.turned and len(tensor.shape) > 1
    return derived(tensor, lambda values, by: values * (by.reshape(-1, 1) if rows else by.ravel()), scale)


def trained_query(probe: Tensor, queries: Tensor, keys: Tensor, offset: Tensor, heads: int) -> Tensor:
    """The query q of each head of attention by a trained row p, (heads, d, 1): <q, x_t> = <W_Q p + b_Q, W_K x_t>.

    Offsets of keys are the same for all rows, so that softmax forgets them. Entries are moved away from zero by all
    that rounding may have changed (a sum of k products is off by at most k u times the sum of their sizes; here twice
    that), so that no norm is below that of the exact q.
    """
    d = probe.size
    if {queries.size, keys.size} != {d * d} or offset.size != d:
        raise CheckpointError(f"{probe.name}: {d} numbers do not fit its maps of queries and keys")

    def make(row: Any, *others: Any) -> Any:
        maps = zip(others[:2], (queries, keys), strict=True)
        w_q, w_k = ((w if tensor.turned else w.T).reshape(heads, -1, d) for w, tensor in maps)
        row, b_q = row.ravel(), others[2].reshape(heads, -1)
        off = (d + w_q.shape[1] + 4) * np.finfo(np.float64).eps
        sizes = np.einsum("hw,hwd->hd", np.abs(w_q) @ np.abs(row) + np.abs(b_q), np.abs(w_k))
        exact = np.einsum("hw,hwd->hd", w_q @ row + b_q, w_k)
        return (exact + np.copysign(off * sizes, exact))[:, :, None]

    query = derived(probe, make, queries, keys, offset)
    return replace(query, shape=(heads, d, 1), turned=False, whole="probe")
