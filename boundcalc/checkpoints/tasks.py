"""The measurements an audit consists of: one task per matrix, or per group of heads, each in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.checkpoints.account import FOLDED, KEY_BIAS
from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import TOKENS, Model
from boundcalc.checkpoints.maps import (
    Found,
    HeadMaps,
    Task,
    Want,
    difference,
    head_maps,
    heads_of,
    key_of,
    offsets_of,
    trained_query,
)
from boundcalc.layers.base import Role, flat
from boundcalc.norms.heads import Heads
from boundcalc.norms.matrix import Floats, Native, Stored, as_stored, measure, vector
from boundcalc.setting import Architecture, Attention, Layer, Weight


class Plan:
    """The tasks of one model (and its reference), and which places they read."""

    def __init__(self, model: Model, architecture: Architecture, want: Want, reference: Model | None = None) -> None:
        self.model = model
        self.architecture = architecture
        self.want = want
        self.reference = reference
        self.read: dict[tuple[str, int | None], tuple[int, str]] = {}
        self.shared = 0
        for layer in flat(architecture.stages):
            for weight, _ in layer.fixed(architecture.seq_len):
                if model.has(weight.kind):
                    self.read[weight.kind, None] = 0, "fixed before the data, as the architecture says its norm"
        self.missing: list[str] = []
        """Kinds that the architecture has and the checkpoint has not (a read-out yet to be trained)."""
        self.tasks = tuple(self._of(architecture.stages))

    def expect(self, role: str, block: int | None, *shapes: tuple[int, ...]) -> None:
        """Refuse a tensor whose shape (that of x -> x W) is none of these."""
        tensor = self.model.place(role, block).tensor
        shape = self.model.shape(role, block) if len(shapes[0]) == 2 and len(tensor.shape) != 3 else tensor.shape
        if len(shapes[0]) == 1:
            shape = (tensor.size,)
        if shape not in shapes:
            raise CheckpointError(
                f"{tensor.name}: {role} should be {shapes[0]}, the file has {tensor.shape}"
                + _transposed_hint(shape, shapes[0])
            )

    def use(self, role: str, block: int | None = None, entries: int | None = None, why: str = "") -> int:
        """Note that a tensor is read (so many entries of it, and why not all); its size."""
        size = self.model.place(role, block).tensor.size
        self.read[role, block] = size if entries is None else entries, why
        return size

    def task(
        self,
        name: str,
        entries: int,
        get: Callable[[Model], Any],
        norms: Callable[[Any, np.random.Generator], Found],
        factors: Mapping[str, float],
        layer: Attention | None = None,
    ) -> Task:
        """Norms of what is read of the model, and of its distance from the reference, times what the model says."""

        def run(rng: np.random.Generator) -> Found:
            own = get(self.model)
            results = norms(own, rng)
            if self.reference is not None:
                other = get(self.reference)
                apart = difference(own, other) if layer is None else own.minus(other, layer)
                results |= {key + "'": norm.widened for key, norm in norms(apart, rng).items()}
            by = {key: factors[key.partition("[")[0].removesuffix("'")] for key in results}
            return {key: norm if by[key] == 1 else norm.times(by[key]) for key, norm in results.items()}

        return Task(name, entries, run)

    def _of(self, layers: Sequence[Layer]) -> Iterator[Task]:
        """The measurements of every weight that some layer has."""
        for layer in flat(layers):
            if isinstance(layer, Attention):  # in one tensor, in several, or in one for queries, keys and values
                yield from _attention(self, layer)
                continue
            for weight in layer.weights(self.architecture.seq_len):
                measured = _MEASURES.get(weight.role)
                if measured is None or weight.copies > 1 or weight.heads:
                    what = f"{weight.kind} of layer {layer.label!r}: {weight.copies} of the role {weight.role!r}"
                    raise Unsupported(Refusal("measuring norms", what, f"single weights: {', '.join(_MEASURES)}"))
                yield from measured(self, weight)

    # -- matrices and vectors

    def _map(self, weight: Weight) -> Iterator[Task]:
        (d_in, d_out), tied = weight.shape, weight.kind == "readout" and not self.model.has("readout")
        if not tied:
            yield self._matrix(weight.kind, weight.block, (d_in, d_out))
            return
        self.shared += d_in * d_out
        if d_out > 1 and self.model.has("embedding") and self.model.shape("embedding") == (d_out, d_in):
            yield self._matrix("readout", None, (d_in, d_out), source="embedding")
        else:
            self.missing.append("readout")

    def _matrix(self, kind: str, block: int | None, shape: tuple[int, int], source: str | None = None) -> Task:
        role = source or kind
        place = self.model.place(role, block)
        entries = place.tensor.size if source else self.use(kind, block)
        stored = self.model.shape(role, block)
        stored = stored[::-1] if source else stored
        if stored != shape:
            raise CheckpointError(
                f"{place.tensor.name}: {kind} should be {shape}, the file has {stored}"
                + _transposed_hint(stored, shape)
            )

        def norms(matrix: Stored, rng: np.random.Generator) -> Found:
            spectrum = self.want.spectrum(matrix.shape)
            measured = measure(matrix, rng, spectrum=spectrum, exact=self.want.exact)
            return {key_of(kind, block): measured.transpose if place.transposed != bool(source) else measured}

        factors = {kind: self.model.factor(kind, block)}
        return self.task(key_of(kind, block), entries, lambda model: model.matrix(role, block)[0], norms, factors)

    def vector(self, kind: str, block: int | None, size: int) -> Task:
        """The measurement of a vector, of one block or of all."""
        place = block if block is None or self.model.has(kind, block) or not self.model.has(kind) else None
        self.expect(kind, place, (size,))
        if block is not None and place is None and (kind, None) in self.read:
            self.shared += size  # one tensor for all blocks

        def norms(values: Native, _: np.random.Generator) -> Found:
            return {key_of(kind, block): vector(values)}

        factors = {kind: self.model.factor(kind, block)}
        return self.task(
            key_of(kind, block), self.use(kind, place), lambda model: model.vector(kind, place), norms, factors
        )

    # -- tables

    def _rows(self, weight: Weight) -> Iterator[Task]:
        kind, (rows, width) = weight.kind, weight.shape
        if kind == "positions":
            yield self._positions(rows, width)
            return
        self.expect(kind, None, (rows, width))
        yield self._table(kind, rows, self.use(kind), lambda model: model.matrix(kind)[0])

    def _positions(self, seq_len: int, d: int) -> Task:
        rows, width = self.model.table_shape("positions")
        if width != d or rows < seq_len:
            raise CheckpointError(f"the table positions should be {(seq_len, d)}, the file has {(rows, width)}")
        first = min(self.model.first_position, rows - seq_len)
        why = "positions that no row of the input has" if rows > seq_len else ""
        self.use("positions", None, seq_len * d, why)
        for row, token in enumerate(TOKENS):
            if self.model.has(token):
                self.expect(token, None, (d,))
                folded = ("positions", token, *(("b_patch",) if self.model.has("b_patch") else ()))
                if scaled := next((role for role in folded if self.model.factor(role) != 1), None):
                    raise CheckpointError(
                        f"{self.model.checkpoint.where}: {scaled} has a scale, which is not read where a token is "
                        f"folded into the positions ({token}): leave the scale out, and scale the tensor in the file"
                    )
                self.read[token, None] = (0, f"{FOLDED} position {row} (families/images.py)")
        return self._table("positions", seq_len, seq_len * d, lambda model: as_stored(positions(model, first, seq_len)))

    def _table(self, kind: str, rows: int, entries: int, get: Callable[[Model], Stored]) -> Task:
        def norms(table: Stored, rng: np.random.Generator) -> Found:
            if table.shape[0] != rows:
                raise CheckpointError(f"the table {kind} should have {rows} rows, the file has {table.shape[0]}")
            return {kind: measure(table, rng, op=False).widened}

        return self.task(kind, entries, get, norms, {kind: self.model.factor(kind)})


def _flat(plan: Plan, weight: Weight) -> Iterator[Task]:
    yield plan.vector(weight.kind, weight.block, math.prod(weight.shape))


_MEASURES: dict[Role, Callable[[Plan, Weight], Iterator[Task]]] = {
    "matrix": Plan._map,
    "vector": _flat,
    "gain": _flat,
    "table": Plan._rows,
    "rows": Plan._rows,
}
"""The measurements of a weight that is one tensor, by what it is."""


def _transposed_hint(shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """A word on maps that are stored the other way round."""
    if len(shape) != 2 or shape[::-1] != wanted:
        return ""
    return (
        ": stored the other way round, as torch.nn.Linear does or does not, so the model is laid out otherwise; "
        "give its module (--compare module.py:make), or a mapping"
    )


def positions(model: Model, first: int, seq_len: int) -> Floats:
    """The rows that are added to the input, tokens before it and the patch offset folded in (families/images.py).

    Entries of the first rows are then rounded once, which `Measured.widened` allows for.
    """
    table = read(model.place("positions").tensor)
    rows = np.array(table.reshape(table.shape[-2], table.shape[-1])[first : first + seq_len], np.float64)
    tokens = [token for token in TOKENS if model.has(token)]
    for row, token in enumerate(tokens[:seq_len]):
        parts = [rows[row], np.asarray(model.vector(token), np.float64)]
        if model.has("b_patch"):
            parts.append(-np.asarray(model.vector("b_patch"), np.float64))
        rows[row] = [math.fsum(entries) for entries in zip(*parts, strict=True)]
    return rows


# -- attention

_HEADS_BYTES = 32 << 20
"""Maps of a group of heads take at most so much as float64."""


def _attention(plan: Plan, layer: Attention) -> Iterator[Task]:
    """The measurements of one layer."""
    b = layer.block
    if layer.qk == "fixed" and plan.model.has("probe", b):
        yield _pooling(plan, layer)
        return
    if plan.model.has(layer.scores.kind, b):
        if any(layer.beside_heads()):
            raise CheckpointError(
                "weights that heads share besides their maps are read where queries and keys are apart"
            )
        yield from (_headed(plan, weight) for weight in layer.weights(plan.architecture.seq_len))
        return
    if layer.d_head is None:
        raise CheckpointError("scores of full rank need one tensor W_QK per block")
    _expect_heads(plan, layer)
    entries = sum(plan.use(role, b) for role in ("W_Q", "W_K", "W_V"))
    for role, needed in (("b_Q", layer.qk_bias), ("b_K", layer.qk_bias), ("b_V", layer.v_bias)):
        if needed and plan.model.has(role, b):
            forgotten = role == "b_K" and layer.qk != "split" and _forgets_keys(layer)
            plan.use(role, b, 0 if forgotten else None, KEY_BIAS)
    per_group = layer.heads // layer.groups
    step = max(1, _HEADS_BYTES // (8 * layer.d * max(layer.d_head, 1) * per_group))
    factors = _norm_factors(plan.model, layer)

    def maps(groups: slice, model: Model) -> HeadMaps:
        return head_maps(model, layer, slice(groups.start * per_group, groups.stop * per_group), groups)

    def norms(groups: slice, own: HeadMaps, _: np.random.Generator) -> Found:
        return own.norms(layer, groups.start * per_group, groups.start)

    for first in range(0, layer.groups, step):
        part = slice(first, min(first + step, layer.groups))
        share = entries * (part.stop - part.start) // layer.groups
        yield plan.task(f"heads[{b}]{first}", share, partial(maps, part), partial(norms, part), factors, layer)
    for weight in layer.beside_heads():
        yield plan.vector(weight.kind, b, math.prod(weight.shape))


def _expect_heads(plan: Plan, layer: Attention) -> None:
    """Refuse maps of heads, and their offsets, that are not of the size the architecture says."""
    b, d, width = layer.block, layer.d, layer.d_head or 0
    outputs = {"Q": (layer.heads, width), "K": (layer.groups, width), "V": (layer.groups, layer.out)}
    for kind, (count, out) in outputs.items():
        plan.expect(f"W_{kind}", b, (d, count * out), (count, d, out))
        if plan.model.has(f"b_{kind}", b):
            plan.expect(f"b_{kind}", b, (count * out,))


def _forgets_keys(layer: Attention) -> bool:
    """Whether the keys' offsets change nothing: what they add to all scores of a query alike, softmax takes away."""
    return layer.normaliser.name == "softmax" and layer.cap is None


def _norm_factors(model: Model, layer: Attention) -> dict[str, float]:
    """The factor of each kind of norm: the constants of its maps. A joint score is one matrix, so has one."""
    kinds = ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V")
    factors = {kind: model.factor(kind, layer.block) for kind in kinds}
    if layer.qk != "split":
        for kind in "Q" if _forgets_keys(layer) else "QK":
            if model.has(f"b_{kind}", layer.block) and factors[f"b_{kind}"] != factors[f"W_{kind}"]:
                scales = f"W_{kind} has scale {factors[f'W_{kind}']:g} and b_{kind} {factors[f'b_{kind}']:g}"
                raise CheckpointError(
                    f"{model.checkpoint.where}: {scales}, but joint scores hold both in one matrix: give both one "
                    "scale, or scale the tensors in the file"
                )
    product = factors["W_Q"] * factors["W_K"]
    return factors | {"W_QK": product if 1 in (factors["W_Q"], factors["W_K"]) else math.nextafter(product, math.inf)}


def _pooling(plan: Plan, layer: Attention) -> Task:
    """Those of attention by a trained query, whose maps of queries and keys are folded into it."""
    b, d, heads = layer.block or 0, layer.d, layer.heads
    if plan.reference is not None:
        raise CheckpointError("a distance from a reference is not measured of attention by a trained query")
    plan.expect("probe", b, (d,))
    for kind in "QKV":
        plan.expect(f"W_{kind}", b, (d, d))
        if layer.v_bias:
            plan.expect(f"b_{kind}", b, (d,))
    entries = plan.use("probe", b) + plan.use("W_V", b)
    for role in ("W_Q", "W_K", *(("b_Q", "b_K") if layer.v_bias else ())):
        plan.use(role, b, 0, f"{FOLDED} the trained query, but for the maps of values")
    if layer.v_bias:
        plan.use("b_V", b)
    plan.shared += (heads - 1) * d

    def run(_: np.random.Generator) -> Found:
        queries, values = trained_query(plan.model, b, heads), heads_of(plan.model, "W_V", b, heads)
        offsets = offsets_of(plan.model, "b_V", b, heads)
        norms = {key_of("q", b, h): norm for h, norm in enumerate(Heads.of(queries.swapaxes(1, 2)).measured())}
        norms |= {key_of("W_V", b, h): norm for h, norm in enumerate(Heads.of(values).measured())}
        return norms | {key_of("b_V", b, h): vector(w) for h, w in enumerate(() if offsets is None else offsets)}

    return Task(f"heads[{b}]", entries, run)


def _headed(plan: Plan, weight: Weight) -> Task:
    """Those of one tensor with a dimension for heads."""
    kind, b, shape = weight.kind, weight.block, (weight.copies, *weight.shape)
    plan.expect(kind, b, shape if len(shape) > 2 else (math.prod(shape),))

    def array(model: Model) -> Native:
        return read(model.place(kind, b).tensor).reshape(shape)

    def norms(heads: Native, rng: np.random.Generator) -> Found:
        spectrum = plan.want.spectrum(weight.shape) if len(shape) > 2 else False
        return {
            key_of(kind, b, h): vector(head)
            if head.ndim == 1
            else measure(as_stored(head), rng, spectrum=spectrum, exact=True)
            for h, head in enumerate(heads)
        }

    return plan.task(key_of(kind, b), plan.use(kind, b), array, norms, {kind: plan.model.factor(kind, b)})
