"""The measurements an audit consists of: one task per matrix, or per group of heads, each in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.checkpoints.account import FOLDED
from boundcalc.checkpoints.attention_tasks import attention
from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.maps import Found, Task, Want, difference, key_of
from boundcalc.layers.base import Role, flat
from boundcalc.norms.matrix import Floats, Measured, Stored, as_stored, measure, vector
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
        found = self.model.shape(role, block) if len(shapes[0]) == 2 and len(tensor.shape) != 3 else tensor.shape
        if len(shapes[0]) == 1:
            found = (tensor.size if self.model.role_of(role, block)[1] is None else tensor.size // 2,)
        if found not in shapes:
            raise CheckpointError(
                f"{tensor.name}: {role} should be {shapes[0]}, the file has {tensor.shape}{_turned(found, shapes[0])}"
            )

    def use(self, role: str, block: int | None = None, entries: int | None = None, why: str = "") -> int:
        """Note that a tensor is read (so many entries of it, and why not all); its size."""
        size = self.model.place(role, block).tensor.size
        role, half = self.model.role_of(role, block)
        key = (role, block)
        if half is not None:
            size //= 2
            self.read[key] = (self.read.get(key, (0, ""))[0] + size, "")
        else:
            self.read[key] = (size if entries is None else entries, why)
        return size

    def _of(self, layers: Sequence[Layer]) -> Iterator[Task]:
        """The measurements of every weight that some layer has."""
        for layer in flat(layers):
            if isinstance(layer, Attention):  # in one tensor, in several, or in one for queries, keys and values
                yield from attention(self, layer)
                continue
            for weight in layer.weights(self.architecture.seq_len):
                measured = _MEASURES.get(weight.role)
                if measured is None or weight.copies > 1 or weight.heads:
                    what = f"{weight.kind} of layer {layer.label!r}: {weight.copies} of the role {weight.role!r}"
                    raise Unsupported(Refusal("measuring norms", what, f"single weights: {', '.join(_MEASURES)}"))
                yield from measured(self, weight)

    def scaled(self, kind: str, block: int | None, task: Task) -> Task:
        """The norms of a weight that the model multiplies by a constant."""
        factor = self.model.factor(kind, block)
        if factor == 1:
            return task

        def run(rng: np.random.Generator) -> Found:
            return {key: found.times(factor) for key, found in task.run(rng).items()}

        return Task(task.name, task.entries, run)

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
        entries = self.model.place(role, block).tensor.size if source else self.use(kind, block)
        found = self.model.shape(role, block)
        found = found[::-1] if source else found
        if found != shape:
            raise CheckpointError(
                f"{self.model.place(role, block).tensor.name}: {kind} should be {shape}, the file has {found}"
                + _turned(found, shape)
            )

        def run(rng: np.random.Generator) -> Found:
            matrix, transposed = self.model.matrix(role, block)
            transposed = not transposed if source else transposed
            out: Found = {key_of(kind, block): self._measure(matrix, transposed, rng)}
            if self.reference is not None:
                other, flipped = self.reference.matrix(role, block)
                flipped = not flipped if source else flipped
                out[key_of(kind, block) + "'"] = self._measure(
                    _difference(matrix, other, transposed != flipped), transposed, rng
                ).widened
            return out

        return self.scaled(kind, block, Task(key_of(kind, block), entries, run))

    def _measure(self, matrix: Stored, transposed: bool, rng: np.random.Generator) -> Measured:
        found = measure(matrix, rng, spectrum=self.want.spectrum(matrix.shape), exact=self.want.exact)
        return found.transpose if transposed else found

    def vector(self, kind: str, block: int | None, size: int) -> Task:
        """The measurement of a vector, of one block or of all."""
        place = block if block is None or self.model.has(kind, block) or not self.model.has(kind) else None
        self.expect(kind, place, (size,))
        if block is not None and place is None and (kind, None) in self.read:
            self.shared += size  # one tensor for all blocks
        entries = self.use(kind, place)

        def run(_: np.random.Generator) -> Found:
            values = self.model.vector(kind, place)
            out = {key_of(kind, block): vector(values)}
            if self.reference is not None:
                out[key_of(kind, block) + "'"] = vector(difference(values, self.reference.vector(kind, place))).widened
            return out

        return self.scaled(kind, block, Task(key_of(kind, block), entries, run))

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
        for row, token in enumerate(self.model.family.tokens):
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
        def run(rng: np.random.Generator) -> Found:
            table = get(self.model)
            if table.shape[0] != rows:
                raise CheckpointError(f"the table {kind} should have {rows} rows, the file has {table.shape[0]}")
            out = {kind: measure(table, rng, op=False).widened}
            if self.reference is not None:
                out[kind + "'"] = measure(_difference(table, get(self.reference), False), rng, op=False).widened
            return out

        return self.scaled(kind, None, Task(kind, entries, run))


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


def _turned(found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """A word on maps that are stored the other way round."""
    if len(found) != 2 or found[::-1] != wanted:
        return ""
    return (
        ": stored the other way round, as torch.nn.Linear does or does not, so the model is laid out otherwise; "
        "give its module (--compare module.py:make), or a mapping"
    )


def _difference(a: Stored, b: Stored, flipped: bool) -> Stored:
    def block(rows: slice, columns: slice) -> Floats:
        other = b.finite(columns, rows).T if flipped else b.finite(rows, columns)
        return difference(a.finite(rows, columns), other)

    if a.shape != (b.shape[::-1] if flipped else b.shape):
        raise CheckpointError(f"the reference has a matrix of shape {b.shape} where the model has {a.shape}")
    return Stored(a.shape, block)


def positions(model: Model, first: int, seq_len: int) -> Floats:
    """The rows that are added to the input, tokens before it and the patch offset folded in (families/images.py).

    Entries of the first rows are then rounded once, which `Measured.widened` allows for.
    """
    table = read(model.place("positions").tensor)
    rows = np.array(table.reshape(table.shape[-2], table.shape[-1])[first : first + seq_len], np.float64)
    tokens = [token for token in model.family.tokens if model.has(token)]
    for row, token in enumerate(tokens[:seq_len]):
        parts = [rows[row], np.asarray(model.vector(token), np.float64)]
        if model.has("b_patch"):
            parts.append(-np.asarray(model.vector("b_patch"), np.float64))
        rows[row] = [math.fsum(entries) for entries in zip(*parts, strict=True)]
    return rows
