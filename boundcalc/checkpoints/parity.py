"""The forward check: a batch of inputs through a module and through the architecture it was described as.

Both run in double precision, without fused attention, and are compared with each other layer by layer: errors that make
up for each other wash out at the outputs. A module is run only when it is at hand; files alone are never executed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from boundcalc.base.compared import ROUNDING, Compared
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.derived import DERIVED
from boundcalc.checkpoints.families.names import stripped
from boundcalc.checkpoints.families.table import Model
from boundcalc.checkpoints.forward import Network, Rows, fixed_beside
from boundcalc.checkpoints.modules import called
from boundcalc.checkpoints.traced import NARROW, Trace, example_inputs, record, rows_read, tokens_before
from boundcalc.layers.attention import is_causal
from boundcalc.layers.base import of_class
from boundcalc.layers.forward import Step
from boundcalc.setting import Architecture, Layer, LayerNorm, Pool

SINGLE = 4e-6
"""What may lie between two passes where the module takes steps in single precision, whatever its weights are."""


@dataclass(frozen=True)
class _Place:
    """Rows that were compared: what leaves a layer, or enters it, how far they were apart, and what ran before."""

    name: str
    apart: float
    since: str = ""
    """The layers of the description since the place before."""


@dataclass(frozen=True)
class Parity:
    """A module and its description agree.

    Attributes:
        outputs: the largest difference of outputs, of the largest output; None where the read-out is not described.
        places: inner rows that were compared, in the order they are computed.
        tolerance: what was allowed: rounding in double precision, or in single where the module takes steps in it.
        sequences: inputs, and their length.
        row: the row that is read out; None where all are averaged.
        module: what it is called.
    """

    outputs: float | None
    places: tuple[_Place, ...]
    tolerance: float
    sequences: tuple[int, int]
    row: int | None
    module: str

    @property
    def worst(self) -> float:
        """The largest difference anywhere."""
        return max([*(place.apart for place in self.places), *([] if self.outputs is None else [self.outputs])])

    @property
    def first_difference(self) -> int | None:
        """The first place that does not agree; the number of places where the outputs alone do not."""
        outputs = self.outputs if self.outputs is not None else 0.0 if self.places else math.inf
        apart = [*(place.apart for place in self.places), outputs]
        return next((index for index, far in enumerate(apart) if not far <= self.tolerance), None)

    def agreed(self) -> Parity:
        """Itself; refused with the place where the two part."""
        at, places = self.first_difference, self.places
        if at is None:
            return self
        where = f"agree up to {places[at - 1].name}" if at else "part at the start"
        if at < len(places):
            place = places[at]
            apart = f"{where}, and differ in {place.name}, by {place.apart:.1g} of the largest entry; between the two "
            apart += f"the description has {place.since}"
        else:
            where = where if places else "show no inner layer to compare"
            apart = f"{where} and differ at the outputs, by {self.outputs or math.inf:.1g} of the largest"
        raise CheckpointError(
            f"the module and the architecture as described {apart}: a bound of the description would not be about this "
            "module; correct the mapping or the options"
        )

    @property
    def compared(self) -> Compared:
        """What is kept of it."""
        n, length = self.sequences
        seen = self.outputs is not None
        return Compared(self.module, self.worst, self.tolerance, n, length, len(self.places), seen)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self) | {"compared": True, "places": [[place.name, place.apart] for place in self.places]}


def compare(module: Any, model: Model, inputs: Any = None) -> Parity:
    """Raises `CheckpointError` with the first layer after which the two part; `inputs` are drawn unless given."""
    architecture = model.architecture
    trace = record(module, [example_inputs(model) if inputs is None else inputs])
    in_rows = not any(layer.how for layer in of_class(architecture.stages, Pool))
    if in_rows and trace.outputs is not None and trace.outputs.shape[-1] != architecture.classes:
        trace.outputs = None  # a read-out of which nothing is described
    return pass_apart(trace, model).agreed()


def pass_apart(trace: Trace, model: Model) -> Parity:
    """How far a recorded pass and the architecture's are apart."""
    module, architecture = trace.module, model.architecture
    rows = rows_read(model, trace)
    network = Network(model, fixed_beside(module, model))
    every_row = any(layer.how == "cls" for layer in of_class(architecture.stages, Pool))
    steps, output, row = list[Step](), None, None
    ours = network(rows, every_row=every_row, steps=steps)
    if trace.outputs is not None:
        output, row = _at_outputs(ours, trace.outputs, every_row, architecture)
    places = tuple(_inside(model, steps, trace, row))
    turns = model.family.rotate is not None  # by cos and sin that a module often holds in single precision
    single = turns and any(str(value.dtype) in NARROW for _, value in module.named_buffers())
    tolerance, size = SINGLE if single or trace.single else ROUNDING, (len(rows), rows.shape[1])
    return Parity(output, places, tolerance, size, row, called(module))


def _apart(a: Rows, b: Rows) -> float:
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return math.inf
    size = max(float(np.abs(a).max(initial=0)), float(np.abs(b).max(initial=0)))
    return float(np.abs(a - b).max(initial=0)) / size if size > 0 else 0.0


def _at_outputs(ours: Rows, theirs: Rows, every_row: bool, architecture: Architecture) -> tuple[float, int | None]:
    """How far outputs are apart, and the row that the module reads out."""
    ours = ours[:, None] if every_row and ours.ndim == 2 else ours  # sequences of one row
    if ours.shape[-1] == 1 and (theirs.ndim == 1 or theirs.shape == ours.shape[:-1]):
        theirs = theirs[..., None]
    causal = is_causal(architecture.stages)
    if theirs.shape == ours.shape:
        return _apart(ours, theirs), (-1 if causal else 0) if every_row else None
    if theirs.ndim == 3 and theirs.shape[1] == 1:
        theirs = theirs[:, 0]
    if ours.ndim == 3 and theirs.shape == (ours.shape[0], ours.shape[2]):
        apart = {row: _apart(ours[:, row], theirs) for row in ((-1, 0) if causal else (0, -1))}
        row = min(apart, key=apart.__getitem__)
        return apart[row], row
    pool = "reads out one row" if every_row else "averages the rows"
    raise CheckpointError(
        f"the module answers with numbers of shape {theirs.shape[1:]} a sequence, the architecture as described {pool} "
        f"and answers with {ours.shape[-1]}: correct classes or readout"
    )


def _inside(model: Model, steps: Sequence[Step], trace: Trace, row: int | None) -> Iterator[_Place]:
    """What enters and leaves every map and normalisation whose parameter the module applies to rows."""
    calls: Counter[str] = Counter()
    start = 0
    for index, step in enumerate(steps):
        names = _names(model, step.layer)
        if names is None:
            continue
        label, parameters, factor = names
        theirs = trace.named(parameters, ("norm",) if isinstance(step.layer, LayerNorm) else ("map", "patches"))
        own = next(islice(theirs, calls[min(parameters)], None), None)
        calls[min(parameters)] += 1
        if own is None:
            continue
        label = f"{label} ({own.weight[-1].rpartition('.')[0] or own.weight[-1]})"
        both = [("enters", index, own.reads, step.reads)]
        both += [] if factor is None else [("leaves", index + 1, own.makes, step.makes / factor)]
        for verb, end, values, ours in both:
            apart = None if values is None else _rows_apart(ours, values.detach().numpy(), row, tokens_before(model))
            if apart is not None:
                since = dict.fromkeys(step.layer.brief() for step in steps[start:end])
                yield _Place(f"what {verb} {label}", apart, ", ".join(since) or "nothing")
                start = end


def _names(model: Model, layer: Layer) -> tuple[str, set[str], float | None] | None:
    """The name of a layer's weight, the parameters that it may be, and the model's factor; None where it has others."""
    own, weights = getattr(layer, "kind", None), layer.weights(1)
    if own is None or not weights:
        return None
    kind, place = weights[0].kind, layer.where()
    kind = "embedding" if kind == "readout" and not model.has(kind) else kind
    block = place if model.has(kind, place) else None
    if not model.has(kind, block) or model.place(kind, block).whole:
        return None
    tensor, tensors = model.place(kind, block), model.checkpoint.tensors
    names = {tensor.name, *(name for name in model.ignored if tensors[name].storage == tensor.storage)}
    names |= {stripped(list(tensors)).get(name, name) for name in names}
    factors = {model.factor(part.kind, block) for part in weights}
    factor = None if len(factors) > 1 or tensor.storage.endswith(DERIVED) else factors.pop()
    return own if place is None else f"{own}[{place}]", names, factor


def _rows_apart(ours: Rows, theirs: Rows, row: int | None, before: int) -> float | None:
    """None where the two are not the same rows at all."""
    if theirs.ndim == 4 and ours.ndim == 3:  # a convolution's patches
        theirs = theirs.reshape(*theirs.shape[:2], -1).swapaxes(1, 2)
        ours = ours[:, before:]
    if ours.shape == theirs.shape:
        return _apart(ours, theirs)
    theirs = theirs[:, 0] if theirs.ndim == 3 and theirs.shape[1] == 1 else theirs
    if ours.ndim == 3 and theirs.ndim == 2:
        if ours.shape[1] == 1 and ours[:, 0].shape == theirs.shape:
            return _apart(ours[:, 0], theirs)
        if row is not None and ours[:, row].shape == theirs.shape:
            return _apart(ours[:, row], theirs)
        if ours.reshape(-1, ours.shape[2]).shape == theirs.shape:
            return _apart(ours.reshape(theirs.shape), theirs)
    return None
