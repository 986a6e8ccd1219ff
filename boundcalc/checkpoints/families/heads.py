"""The maps of heads, out of tensors that hold them side by side (queries, keys, values), or group by group."""

from __future__ import annotations

import numpy as np

from boundcalc.checkpoints.decode import stored
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.derived import Place
from boundcalc.checkpoints.families.table import Model
from boundcalc.norms.matrix import Floats, Native, check_finite


def fused_groups(model: Model, block: int | None) -> int:
    """How many keys there are in a fused tensor: its outputs are so many heads, and as many keys and values."""
    width = model.head_width(model.shape("W_O", block)[0])
    outputs = model.shape("W_QKV", block)[1]
    groups = (outputs // width - model.heads) // 2
    if groups < 1 or (model.heads + 2 * groups) * width != outputs or model.heads % groups:
        name = model.place("W_QKV", block).tensor.name
        raise CheckpointError(
            f"{name}: {outputs} outputs do not make {model.heads} heads of width {width}, keys and values; of "
            "maps stored the other way round, as torch.nn.Linear does or does not, the module (--compare "
            "module.py:make) or a mapping says so"
        )
    return groups


def heads_of(model: Model, kind: str, block: int | None, count: int, only: slice = slice(None)) -> Floats:
    """Maps W_Q, W_K or W_V of some heads of a block: (heads, width, d), the transposes of x -> x W."""
    first, last, _ = only.indices(count)
    if model.has(f"W_{kind}", block):
        place = model.place(f"W_{kind}", block)
        return _cut(place, place.tensor.shape[0 if place.transposed else 1], 0, count, first, last)
    place = model.place("W_QKV", block)
    rows = place.tensor.shape[0 if place.transposed else 1]
    groups = fused_groups(model, block)
    if not model.family.by_group:
        width = rows // (model.heads + 2 * groups)
        start = {"Q": 0, "K": model.heads, "V": model.heads + groups}[kind]
        return _cut(place, count * width, start * width, count, first, last)
    per_group = model.heads // groups
    each = per_group if kind == "Q" else 1  # in every group; groups have one key and one value head
    start, stop = first // each, -(-last // each)
    found = _cut(place, rows, 0, groups, start, stop)
    parts = found.reshape(stop - start, per_group + 2, -1, found.shape[2])
    mine = parts[:, :per_group] if kind == "Q" else parts[:, per_group + "KV".index(kind)][:, None]
    return np.ascontiguousarray(mine.reshape(-1, *mine.shape[2:])[first - start * each : last - start * each])


def head_offsets(model: Model, kind: str, block: int | None, count: int) -> Floats | None:
    """Biases b_Q, b_K or b_V of a block: (heads, width)."""
    if model.has(f"b_{kind}", block):
        values = model.vector(f"b_{kind}", block)
    elif model.has("b_QKV", block) and model.family.by_group:
        groups = fused_groups(model, block)
        parts = model.vector("b_QKV", block).reshape(groups, model.heads // groups + 2, -1)
        values = parts[:, :-2] if kind == "Q" else parts[:, -2 if kind == "K" else -1]
    elif model.has("b_QKV", block):
        groups = fused_groups(model, block)
        parts = np.split(
            model.vector("b_QKV", block).reshape(model.heads + 2 * groups, -1), [model.heads, model.heads + groups]
        )
        values = parts["QKV".index(kind)]
    else:
        return None
    return np.asarray(values, np.float64).reshape(count, -1)


def trained_query(model: Model, block: int, heads: int) -> Floats:
    """The query q of each head of attention by a trained row p, (heads, d, 1): <q, x_t> = <W_Q p + b_Q, W_K x_t>.

    Offsets of keys are the same for all rows, so that softmax forgets them. Entries are moved away from zero by all
    that rounding may have changed (a sum of k products is off by at most k u times the sum of their sizes; here twice
    that), so that no norm is below that of the exact q.
    """
    if any(model.factor(role, block) != 1 for role in ("probe", "W_QKV", "b_QKV")):
        raise CheckpointError(
            f"{model.checkpoint.where}: a tensor of its trained query has a scale: scale it in the file"
        )
    row = np.asarray(model.vector("probe", block), np.float64)
    queries, keys = (heads_of(model, kind, block, heads) for kind in "QK")
    offsets = head_offsets(model, "Q", block, heads)
    offsets = np.zeros(queries.shape[:2]) if offsets is None else offsets
    off = (len(row) + queries.shape[1] + 4) * np.finfo(np.float64).eps
    sizes = np.einsum("hw,hwd->hd", np.abs(queries) @ np.abs(row) + np.abs(offsets), np.abs(keys))
    exact = np.einsum("hw,hwd->hd", queries @ row + offsets, keys)
    return (exact + np.copysign(off * sizes, exact))[:, :, None]


def _cut(place: Place, rows: int, offset: int, count: int, first: int, last: int) -> Floats:
    """Of `rows` outputs from `offset` on, which are those of `count` heads, the heads from `first` to `last`."""
    if rows % count:
        raise CheckpointError(f"{place.tensor.name}: {rows} outputs do not make {count} heads")
    width = rows // count
    part = slice(offset + first * width, offset + last * width)
    matrix = stored(place.tensor)
    cut = matrix.block(part, slice(None)) if place.transposed else matrix.block(slice(None), part).T
    return _in_heads(cut, place.tensor.name, last - first)


def _in_heads(cut: Native, name: str, count: int) -> Floats:
    """(heads, width, d), checked once it lies in one piece, where that is quick."""
    values = np.ascontiguousarray(cut, np.float64)
    check_finite(values, name)
    return values.reshape(count, -1, values.shape[1])
