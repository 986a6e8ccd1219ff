"""The measurements an audit consists of: one task per matrix, or per group of heads, each in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.checkpoints._account import FOLDED, KEY_BIAS
from boundcalc.checkpoints._arrays import VECTORS, difference, positions, values_of
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.derived import DERIVED
from boundcalc.checkpoints.families.table import TOKENS, Key, Model
from boundcalc.layers.base import flat
from boundcalc.norms.heads import Heads, products
from boundcalc.norms.matrix import Floats, Measured, as_stored, measure, vector
from boundcalc.setting import Attention, Layer, Weight
from boundcalc.setting.norms import place_named

Measurements = dict[str, Measured]
"""By key of norms files."""
_HEADS_BYTES = 32 << 20
"""Maps of a group of heads take at most so much as float64."""
_ROOM = 2.0**-49
"""Of an entry: eight times what rounding changes of a weight that is computed of others, or of a folded position."""


class _Task(NamedTuple):
    """Norms of some weights: how their values are read of a model, and how these are measured.

    `apart`: how values of the model and of the reference give their distance, where it is no difference.
    """

    keys: Sequence[str]
    get: Callable[[Model], Any]
    norms: Callable[[Any, np.random.Generator], Sequence[Measured]]
    factor: float = 1.0
    apart: Callable[[Any, Any], Any] | None = None

    @property
    def name(self) -> str:
        """The weight, or the first of a group of heads."""
        return self.keys[0].partition(",")[0]


class Plan:
    """The tasks of one model (and its reference), and which places they read.

    Attributes:
        tasks: the measurements.
        read: how many entries of each place are read, and why not the others.
        shared: parameters that are counted twice.
    """

    def __init__(self, model: Model, reference: Model | None = None) -> None:
        self.model, self.reference, self.seq_len = model, reference, model.architecture.seq_len
        self.read: dict[Key, tuple[int, str]] = {}
        self.shared = 0
        both = [model] if reference is None else [model, reference]
        if any(model.factor(*key) != own.factor(*key) for own in both for key in model.places):
            raise CheckpointError("the reference multiplies a weight by another constant than the model")
        places = [place for own in both for place in own.places.items()]
        rounded = any(tensor.storage.endswith(DERIVED) or key[0] in TOKENS for key, tensor in places)
        self.room = _ROOM if rounded or model.factor("positions") != 1 else 0.0
        layers = list(flat(model.architecture.stages))
        for layer in layers:
            for weight, _ in layer.fixed(self.seq_len):
                if model.has(weight.kind):
                    self.read[weight.kind, None] = 0, "fixed before the data, as the architecture says its norm"
        self.tasks = tuple(task for layer in layers for task in self._of(layer))
        for key, place in model.places.items() if model.family.described else ():
            if key not in self.read and place.size:
                raise InvalidSetting(
                    f"the mapping says that {place.name} is {place_named(*key)}, which the architecture it describes "
                    'has not: correct the architecture or the role, or list the tensor under "ignored" with the reason'
                )

    def measure(self, task: _Task, rng: np.random.Generator) -> tuple[Measurements, Measurements]:
        """Norms of the weights of a task, and of their distance from the reference."""

        def certified(values: Any) -> Measurements:
            norms = zip(task.keys, task.norms(values, rng), strict=True)
            return {key: norm if task.factor == 1 else norm.times(task.factor) for key, norm in norms}

        own = task.get(self.model)
        norms = certified(own)
        if self.reference is None:
            return norms, {}
        apart = (task.apart or partial(difference, room=self.room))(own, task.get(self.reference))
        return norms, {key: norm.widened for key, norm in certified(apart).items()}

    def _of(self, layer: Layer) -> Iterator[_Task]:
        """The measurements of every weight of a layer, and of what it stores besides a note that nothing reads it."""
        weights = layer.weights(self.seq_len)
        for weight in weights:
            if isinstance(layer, Attention) and weight.factors and not self.model.has(weight.kind, weight.block):
                yield from self._scores(layer, weight)
            elif weight.kind == "positions":
                yield self._positions(*weight.shape)
            else:
                yield from self._weight(weight)
        for weight in layer.stored(self.seq_len)[len(weights) :]:
            if self.model.has(weight.kind, weight.block):
                self._use(weight, 0, KEY_BIAS)
        if isinstance(layer, Attention) and layer.qk == "fixed" and layer.block == self.model.pooling:
            self._note_query(layer)

    def _use(self, weight: Weight, entries: int | None = None, why: str = "") -> Key:
        """Notes that the tensor of a weight is read: how many of its entries, and why not all; refuses other shapes."""
        key, model = self.model.key(weight), self.model
        tensor, shape = model.place(*key), (weight.copies, *weight.shape)
        if weight.role in VECTORS or key[0] in TOKENS:
            right, stored = [(math.prod(shape),)], (tensor.size,)
        else:
            d, width = weight.shape
            right, stored = [(d, weight.copies * width), *([shape] if weight.heads else [])], tensor.shape
            stored = stored if len(stored) == 3 else model.shape(*key)
        if stored not in right:
            turned = len(stored) == 2 and stored[::-1] in right
            hint = "; it is stored the other way round: give its module (--compare module.py:make), or a mapping"
            raise CheckpointError(f"{tensor.name}: {key[0]} should be {right[0]}, the file has {stored}{hint * turned}")
        if key[1] is None and weight.block is not None and key in self.read:
            self.shared += weight.parameters  # one tensor for all blocks
        self.read[key] = tensor.size if entries is None else entries, why
        return key

    def _note_query(self, layer: Attention) -> None:
        """Notes that a trained row and the maps of queries and keys make the query of every head."""
        if self.reference is not None:
            raise CheckpointError("a distance from a reference is not measured of attention by a trained query")
        for kind in ("q", "W_Q", "W_K", "b_Q", "b_K"):
            self._refuse_scale((kind, layer.block))
            self.read[kind, layer.block] = 0, f"{FOLDED} the trained query"
        self.read["q", layer.block] = layer.d, ""
        self.shared += (layer.heads - 1) * layer.d

    def _refuse_scale(self, key: Key) -> None:
        """Refuses a factor of a tensor that is read as one with others, as joint scores and folded tokens are."""
        if self.model.factor(*key) != 1:
            where = f"{self.model.checkpoint.where}: {place_named(*key)}"
            raise CheckpointError(f"{where} has a scale, but is measured as one with others: scale it in the file")

    def _weight(self, weight: Weight) -> Iterator[_Task]:
        """The measurements of one weight: of its vectors, of its matrix or table, or of the maps of some heads each."""
        kind, model = weight.kind, self.model
        if weight.role not in ("matrix", "table", "rows", *VECTORS) or (weight.copies > 1 and not weight.heads):
            what = f"{kind} of role {weight.role!r}"
            raise Unsupported(Refusal("measuring norms", what, "single weights: matrices, vectors, gains, tables"))
        if kind == "readout" and not model.has(kind) and model.shape("embedding")[::-1] == weight.shape:
            key = model.key(weight)  # the embedding table, turned
            self.shared += weight.parameters
        else:
            key = self._use(weight)

        def norms(values: Any, rng: np.random.Generator) -> list[Measured]:
            if weight.role in VECTORS:
                return list(map(vector, values))
            return Heads.of(values).measured() if weight.heads else [measure(values, rng, op=weight.role == "matrix")]

        keys = [place_named(kind, weight.block, head) for head in (range(weight.copies) if weight.heads else (None,))]
        for part in _slices(weight.copies, _heads_at_once(weight.shape)):
            yield _Task(keys[part], partial(values_of, weight=weight, only=part), norms, model.factor(*key))

    def _scores(self, layer: Attention, weight: Weight) -> Iterator[_Task]:
        """The measurements of joint scores W_Q W_K^T, with the offsets that they read as a further row or column."""
        if layer.d_head is None:
            raise CheckpointError("scores of full rank need one tensor W_QK per block")
        for part in weight.factors:
            self._refuse_scale(self._use(part))
        per_group = layer.heads // layer.groups
        factors = {part.kind: part for part in weight.factors}

        def side(model: Model, kind: str, only: slice) -> Floats:
            maps = values_of(model, factors[f"W_{kind}"], only)
            if f"b_{kind}" not in factors:
                return maps
            return np.concatenate([maps, values_of(model, factors[f"b_{kind}"], only)[:, :, None]], axis=2)

        def get(model: Model, only: slice) -> tuple[Floats, Floats]:
            keys = np.repeat(side(model, "K", only), per_group, axis=0)
            return side(model, "Q", slice(only.start * per_group, only.stop * per_group)), keys

        def apart(own: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
            """Q K^T - Q0 K0^T is [Q, -Q0] [K, K0]^T."""
            difference(own[0], other[0])  # refuses other shapes
            return np.concatenate([own[0], -other[0]], 1), np.concatenate([own[1], other[1]], 1)

        for only in _slices(layer.groups, _heads_at_once((layer.d, layer.d_head * per_group))):
            heads = range(only.start * per_group, only.stop * per_group)
            keys = [place_named(weight.kind, layer.block, head) for head in heads]
            yield _Task(keys, partial(get, only=only), lambda maps, _: products(*map(Heads.of, maps)), apart=apart)

    def _positions(self, seq_len: int, d: int) -> _Task:
        """The measurement of the rows of positions that are read, tokens before the input folded into them."""
        model = self.model
        why = "positions that no row of the input has" if model.table_shape("positions")[0] > seq_len else ""
        self.read["positions", None] = seq_len * d, why
        for row, token in enumerate(token for token in TOKENS if model.has(token)):
            self._refuse_scale(
                self._use(Weight(token, "vector", (d,)), 0, f"{FOLDED} position {row} (families/blocks.py)")
            )
            self._refuse_scale(("b_patch", None))
        return _Task(
            ["positions"],
            lambda model: positions(model, seq_len, d),
            lambda table, rng: [measure(as_stored(table), rng, op=False).widened.widened],
        )


def _heads_at_once(shape: Sequence[int]) -> int:
    """How many maps of heads are measured together."""
    return max(1, _HEADS_BYTES // (8 * math.prod(shape)))


def _slices(count: int, step: int) -> Iterator[slice]:
    """Numbers up to `count` in parts of `step`."""
    return (slice(first, min(first + step, count)) for first in range(0, count, step))
