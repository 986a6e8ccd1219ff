"""The measurements an audit consists of: one task per matrix, or per group of heads, each in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.checkpoints.account import FOLDED, KEY_BIAS
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import TOKENS, Key, Model
from boundcalc.checkpoints.maps import (
    Found,
    HeadMaps,
    Task,
    Want,
    difference,
    head_maps,
    key_of,
)
from boundcalc.checkpoints.tensors import read
from boundcalc.layers.base import flat
from boundcalc.norms.matrix import Floats, Stored, as_stored, measure, vector
from boundcalc.setting import Architecture, Attention, Layer, Weight

_ROLES = ("matrix", "vector", "gain", "table", "rows")
"""What a weight is that one tensor holds."""


class Plan:
    """The tasks of one model (and its reference), and which places they read.

    Attributes:
        tasks: the measurements.
        read: how many entries of each place are read, and why not the others.
        shared: parameters that are counted twice.
        missing: kinds that the architecture has and the checkpoint has not (a read-out yet to be trained).
    """

    def __init__(self, model: Model, architecture: Architecture, want: Want, reference: Model | None = None) -> None:
        self.model, self.want, self.reference, self.seq_len = model, want, reference, architecture.seq_len
        self.read: dict[Key, tuple[int, str]] = {}
        self.shared = 0
        self.missing: list[str] = []
        layers = list(flat(architecture.stages))
        for layer in layers:
            for weight, _ in layer.fixed(self.seq_len):
                if model.has(weight.kind):
                    self.read[weight.kind, None] = 0, "fixed before the data, as the architecture says its norm"
        self.tasks = tuple(task for layer in layers for task in self._of(layer))

    def use(
        self, role: str, block: int | None, *shapes: tuple[int, ...], entries: int | None = None, why: str = ""
    ) -> int:
        """Notes that a tensor of one of these shapes (of x -> x W) is read: so many entries, and why not all."""
        tensor = self.model.place(role, block).tensor
        shape = self.model.shape(role, block) if len(shapes[0]) == 2 and len(tensor.shape) != 3 else tensor.shape
        shape = (tensor.size,) if len(shapes[0]) == 1 else shape
        if shape not in shapes:
            turned = len(shape) == 2 and shape[::-1] in shapes
            why = "; it is stored the other way round: give its module (--compare module.py:make), or a mapping"
            raise CheckpointError(f"{tensor.name}: {role} should be {shapes[0]}, the file has {shape}{why * turned}")
        self.read[role, block] = tensor.size if entries is None else entries, why
        return tensor.size

    def _task(
        self,
        name: str,
        entries: int,
        get: Callable[[Model], Any],
        norms: Callable[[Any, np.random.Generator], Found],
        factors: Mapping[str, float],
    ) -> Task:
        """Norms of what is read of the model, and of its distance from the reference, times what the model says."""

        def run(rng: np.random.Generator) -> Found:
            own = get(self.model)
            results = norms(own, rng)
            if self.reference is not None:
                other = get(self.reference)
                apart = own.minus(other) if isinstance(own, HeadMaps) else difference(own, other)
                results |= {key + "'": norm.widened for key, norm in norms(apart, rng).items()}
            by = {key: factors[key.partition("[")[0].removesuffix("'")] for key in results}
            return {key: norm if by[key] == 1 else norm.times(by[key]) for key, norm in results.items()}

        return Task(name, entries, run)

    def _of(self, layer: Layer) -> Iterator[Task]:
        """The measurements of every weight of a layer: in one tensor, in several, or in one for three maps."""
        weights = layer.weights(self.seq_len)
        if isinstance(layer, Attention):
            if not self.model.has(layer.scores.kind, layer.block):
                yield from self._heads(layer)
                weights = tuple(layer.beside_heads())
            elif any(layer.beside_heads()):
                raise CheckpointError(
                    "weights that heads share besides their maps are read where queries and keys are apart"
                )
        yield from map(self._weight, filter(self._stored, weights))

    def _stored(self, weight: Weight) -> bool:
        """Whether there is a tensor for it; a read-out may be the embedding table, or missing."""
        if weight.kind != "readout" or self.model.has("readout"):
            return True
        self.shared += weight.parameters
        d, classes = weight.shape
        tied = classes > 1 and self.model.has("embedding") and self.model.shape("embedding") == (classes, d)
        self.missing += [] if tied else ["readout"]
        return tied

    def _weight(self, weight: Weight) -> Task:
        """The measurement of what one tensor holds, of the block or of all; heads in its first dimension."""
        kind, shape, model = weight.kind, weight.shape, self.model
        headed = isinstance(weight.heads, int) and (weight.heads > 0 or weight.copies > 1)
        if weight.role not in (*_ROLES, *(("factor", "factor vector") if headed else ())):
            what = f"{kind} of role {weight.role!r}"
            raise Unsupported(Refusal("measuring norms", what, f"single weights: {', '.join(_ROLES)}"))
        if kind == "positions":
            return self._positions(*shape)
        block = weight.block if model.has(kind, weight.block) or not model.has(kind) else None
        if block is None and (kind, None) in self.read:
            self.shared += weight.parameters  # one tensor for all blocks
        key, one = partial(key_of, kind, weight.block), weight.role in ("vector", "gain", "factor vector")
        spectrum = not one and self.want.spectrum(shape)
        if headed or one:
            whole = (weight.copies, *shape)
            flat_shape = whole if len(whole) > 2 and headed else (math.prod(whole),)
            entries = self.use(kind, block, flat_shape)

            def arrays(model: Model) -> Any:
                return read(model.place(kind, block).tensor).reshape(whole)

            def norms(values: Any, rng: np.random.Generator) -> Found:
                measured = (
                    vector(w) if one else measure(as_stored(w), rng, spectrum=spectrum, exact=True) for w in values
                )
                return {key(h if headed else None): norm for h, norm in enumerate(measured)}

            return self._task(key(), entries, arrays, norms, {kind: model.factor(kind, block)})

        def norms_of_matrix(matrix: Stored, rng: np.random.Generator) -> Found:
            if matrix.shape != shape:
                raise CheckpointError(f"{matrix.name}: {kind} should be {shape}, the file has {matrix.shape}")
            if weight.role != "matrix":
                return {key(): measure(matrix, rng, op=False).widened}
            return {key(): measure(matrix, rng, spectrum=spectrum, exact=self.want.exact)}

        tied = kind == "readout" and not model.has(kind)
        entries = weight.parameters if tied else self.use(kind, block, shape)
        return self._task(
            key(), entries, lambda model: model.matrix(kind, block), norms_of_matrix, {kind: model.factor(kind, block)}
        )

    def _positions(self, seq_len: int, d: int) -> Task:
        model = self.model
        rows, width = model.table_shape("positions")
        if width != d or rows < seq_len:
            raise CheckpointError(f"the table positions should be {(seq_len, d)}, the file has {(rows, width)}")
        first = min(model.first_position, rows - seq_len)
        why = "positions that no row of the input has" if rows > seq_len else ""
        self.read["positions", None] = seq_len * d, why
        for row, token in enumerate(token for token in TOKENS if model.has(token)):
            folded = ("positions", token, *(("b_patch",) if model.has("b_patch") else ()))
            if scaled := next((role for role in folded if model.factor(role) != 1), None):
                raise CheckpointError(
                    f"{model.checkpoint.where}: {scaled} has a scale, which is not read where a token is folded into "
                    f"the positions ({token}): leave the scale out, and scale the tensor in the file"
                )
            self.use(token, None, (d,), entries=0, why=f"{FOLDED} position {row} (families/blocks.py)")

        def norms(table: Floats, rng: np.random.Generator) -> Found:
            if len(table) != seq_len:
                raise CheckpointError(f"the table positions should have {seq_len} rows, the file has {len(table)}")
            return {"positions": measure(as_stored(table), rng, op=False).widened}

        factors = {"positions": model.factor("positions")}
        return self._task("positions", seq_len * d, lambda model: positions(model, first, seq_len), norms, factors)

    # -- attention

    def _heads(self, layer: Attention) -> Iterator[Task]:
        """The measurements of heads whose maps lie side by side."""
        if layer.d_head is None:
            raise CheckpointError("scores of full rank need one tensor W_QK per block")
        b, d, model, entries = layer.block, layer.d, self.model, 0
        outputs = {"Q": (layer.heads, layer.d_head), "K": (layer.groups, layer.d_head), "V": (layer.groups, layer.out)}
        needed = {"Q": layer.qk_bias, "K": layer.qk_bias, "V": layer.v_bias}
        for kind, (count, out) in outputs.items():
            entries += self.use(f"W_{kind}", b, (d, count * out), (count, d, out))
            if needed[kind] and model.has(f"b_{kind}", b):
                forgotten = kind == "K" and layer.qk != "split" and _forgets_keys(layer)
                self.use(f"b_{kind}", b, (count * out,), entries=0 if forgotten else None, why=KEY_BIAS)
        per_group = layer.heads // layer.groups
        step = max(1, _HEADS_BYTES // (8 * d * max(layer.d_head, 1) * per_group))
        factors = _norm_factors(model, layer)

        def maps(groups: slice, model: Model) -> HeadMaps:
            return head_maps(model, layer, slice(groups.start * per_group, groups.stop * per_group), groups)

        def norms(groups: slice, own: HeadMaps, _: np.random.Generator) -> Found:
            return own.norms(groups.start * per_group, groups.start)

        for first in range(0, layer.groups, step):
            part = slice(first, min(first + step, layer.groups))
            share = entries * (part.stop - part.start) // layer.groups
            yield self._task(f"heads[{b}]{first}", share, partial(maps, part), partial(norms, part), factors)


def positions(model: Model, first: int, seq_len: int) -> Floats:
    """The rows that are added to the input, tokens before it and the patch offset folded in.

    Entries of the first rows are then rounded once, which `Measured.widened` allows for.
    """
    table = read(model.place("positions").tensor)
    rows = np.array(table.reshape(table.shape[-2], table.shape[-1])[first : first + seq_len], np.float64)
    for row, token in enumerate([token for token in TOKENS if model.has(token)][:seq_len]):
        parts = [rows[row], np.asarray(model.vector(token), np.float64)]
        if model.has("b_patch"):
            parts.append(-np.asarray(model.vector("b_patch"), np.float64))
        rows[row] = [math.fsum(entries) for entries in zip(*parts, strict=True)]
    return rows


_HEADS_BYTES = 32 << 20
"""Maps of a group of heads take at most so much as float64."""


def _forgets_keys(layer: Attention) -> bool:
    """Whether the keys' offsets change nothing: what they add to all scores of a query alike, softmax takes away."""
    return layer.normaliser.name == "softmax" and layer.cap is None


def _norm_factors(model: Model, layer: Attention) -> dict[str, float]:
    """The factor of each kind of norm: the constants of its maps. A joint score is one matrix, so has one."""
    kinds = ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V")
    factors = {kind: model.factor(kind, layer.block) for kind in kinds}
    for kind in "" if layer.qk == "split" else "Q" if _forgets_keys(layer) else "QK":
        if model.has(f"b_{kind}", layer.block) and factors[f"b_{kind}"] != factors[f"W_{kind}"]:
            scales = f"W_{kind} has scale {factors[f'W_{kind}']:g} and b_{kind} {factors[f'b_{kind}']:g}"
            raise CheckpointError(
                f"{model.checkpoint.where}: {scales}, but joint scores hold both in one matrix: give both one scale, "
                "or scale the tensors in the file"
            )
    product = factors["W_Q"] * factors["W_K"]
    return factors | {"W_QK": product if 1 in (factors["W_Q"], factors["W_K"]) else math.nextafter(product, math.inf)}
