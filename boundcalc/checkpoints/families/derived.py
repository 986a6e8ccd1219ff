"""Weights that are not one tensor as it is stored: some of its outputs, scaled ones, gains of 1 + w, heads apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.tensors import Tensor, read


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor in its role; `whole` is the role of the stored tensor where this is a part of it."""

    tensor: Tensor
    transposed: bool
    whole: str = ""


DERIVED = " derived"
"""How the storage of a tensor ends that is computed of others."""


def derived(place: Place, make: Callable[..., Any], *others: Tensor) -> Place:
    """A tensor computed of others in double precision, away from zero: no norm is below that of the exact one."""

    def fetch() -> Any:
        """The derived tensor, read when it is needed."""
        exact = make(*(np.asarray(read(tensor), np.float64) for tensor in (place.tensor, *others)))
        return np.nextafter(exact, np.copysign(np.inf, exact))

    tensor = replace(place.tensor, dtype="float64", fetch=fetch, storage=place.tensor.storage + DERIVED)
    return replace(place, tensor=tensor)


def sliced(place: Place, whole: str, part: slice, slots: int, groups: int = 1) -> Place:
    """Some outputs of a tensor that holds several weights: of the equal slots of each of its groups those of `part`."""
    tensor = place.tensor
    axis = 0 if place.transposed else max(len(tensor.shape) - 1, 0)
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
    return Place(replace(tensor, shape=shape, fetch=fetch, storage=f"{tensor.storage} {part}"), place.transposed, whole)


def heads_side_by_side(heads: list[Tensor], transposed: bool) -> Tensor:
    """The maps of heads that are tensors of their own, side by side in one; as they are stored."""
    first, axis = heads[0], 0 if transposed or len(heads[0].shape) == 1 else 1
    shape = tuple(size * (len(heads) if at == axis else 1) for at, size in enumerate(first.shape))

    def fetch() -> Any:
        return np.concatenate([np.asarray(head.fetch()) for head in heads], axis)

    name = f"{first.name} and the other heads'" if len(heads) > 1 else first.name
    return Tensor(name, shape, first.dtype, fetch, " ".join(head.storage for head in heads))


def times(place: Place, scale: Tensor) -> Place:
    """A map, or its offset, with its outputs scaled one by one."""
    rows = place.transposed and len(place.tensor.shape) > 1
    return derived(place, lambda values, by: values * (by.reshape(-1, 1) if rows else by.ravel()), scale)
