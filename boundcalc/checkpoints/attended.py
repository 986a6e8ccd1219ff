"""Where heads look: whether attention is concentrated on few positions or spread over nearly all of them.

Of weights a module returns. For every head, averaged over sequences and the rows that ask: how many positions it looks at (the
exponential of the entropy of its weights), how much lies on its largest weights, how much on positions that are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.examples import Sequences
from boundcalc.checkpoints.modules import as_arrays, of_double, ready
from boundcalc.setting import validate

_Array = NDArray[Any]
_SEQUENCES = 64
"""How many sequences are looked at, unless said."""
_TOP = 3
FEW, NEARLY_ALL = 0.1, 0.9
"""A head is sparse where it looks at no more than this share of the positions it may see, even where at no less."""


@dataclass(frozen=True)
class Head:
    """One head, averaged over sequences and asking rows that may see two positions or more.

    Attributes:
        layer: its layer.
        head: its number there.
        looks_at: exp of the entropy of its weights: from 1 to the positions it may see.
        spread: that as a share of the positions each row may see.
        top: share of the weight on the largest weights of a row.
        on_given: share on the positions that were named; None where none were.
    """

    layer: int
    head: int
    looks_at: float
    spread: float
    top: float
    on_given: float | None = None

    @property
    def kind(self) -> str:
        """Sparse, even, or between."""
        return "sparse" if self.spread <= FEW else "even" if self.spread >= NEARLY_ALL else "between"


@dataclass(frozen=True)
class Attended:
    """What every head of a model looks at.

    Attributes:
        heads: in order of layers.
        largest: how many of the largest weights `top` counts.
        given: the positions `on_given` counts.
        sequences: how many were looked at.
        rows: positions of the longest of them.
    """

    heads: tuple[Head, ...]
    largest: int
    given: tuple[int, ...]
    sequences: int
    rows: int

    @property
    def lines(self) -> tuple[str, ...]:
        """One line per layer."""
        return tuple(self._line(layer) for layer in dict.fromkeys(head.layer for head in self.heads))

    def _line(self, layer: int) -> str:
        heads = [head for head in self.heads if head.layer == layer]
        looks = sorted(head.looks_at for head in heads)
        kinds = [head.kind for head in heads]
        said = [
            f"attention, layer {layer}: {_heads(len(heads))} at {_range(looks, '.1f')} of {self.rows} positions "
            f"(median {median(looks):.1f}; {self.sequences} sequences)",
            f"{kinds.count('sparse')} sparse (at most {FEW:.0%} of the positions), {kinds.count('even')} nearly even (at least "
            f"{NEARLY_ALL:.0%})",
            f"the {self.largest} largest weights of a row hold {_range([head.top for head in heads], '.0%')}",
        ]
        given = [head.on_given for head in heads if head.on_given is not None]
        if given:
            places = ", ".join(str(place) for place in self.given)
            said.append(f"position{'s' * (len(self.given) > 1)} {places} {_range(given, '.0%')}")
        return "; ".join(said)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "sequences": self.sequences,
            "positions": self.rows,
            "largest": self.largest,
            "given": list(self.given),
            "heads": [{**asdict(head), "kind": head.kind} for head in self.heads],
        }


def _heads(count: int) -> str:
    return "1 head looks" if count == 1 else f"{count} heads look"


def _range(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def attended(
    module: Any,
    data: Sequences,
    *,
    given: Sequence[int] = (),
    largest: int | None = None,
    sequences: int = _SEQUENCES,
    call: Callable[[Any, Any], Any] | None = None,
) -> Attended:
    """Runs a module that returns its attentions, in double precision, and says where its heads look.

    Args:
        module: answers with attentions: (n, heads, rows, rows) per layer, under the name `attentions` (of a dictionary or an
            object) or last in a tuple. Models of the transformers library are told to return them.
        data: what it reads.
        given: positions (rows of the sequence, from 0; negative from its end) that matter.
        largest: how many of the largest weights to count; unset, as many as are given, else 3.
        sequences: how many of the data to look at, at most.
        call: how the module is called, where module(x) is not it.
    """
    copy = of_double(module)
    config = getattr(copy, "config", None)
    if config is not None and hasattr(config, "output_attentions"):
        config.output_attentions = True
    count = validate.size("sequences", sequences)
    few = replace(data, x=data.x[:count], y=data.y[:count])
    found: list[list[_Array]] = []
    for _, x in few.batches():
        with ready():
            x = as_arrays(x)
            found.append(_weights_in(copy(x) if call is None else call(copy, x)))
    if len({len(layers) for layers in found}) != 1:
        raise InvalidSetting("the module returns attentions of more layers for some sequences than for others")
    by_layer = [[batch[layer] for batch in found] for layer in range(len(found[0]))]
    return summary(by_layer, given=given, largest=largest)


def summary(layers: Sequence[Sequence[_Array]], *, given: Sequence[int] = (), largest: int | None = None) -> Attended:
    """The same of weights: per layer, batches (n, heads, asking rows, positions). Signs of weights do not count."""
    rows = max(batch.shape[-1] for batches in layers for batch in batches)
    places = tuple(int(place) for place in given)
    for place in places:
        if not -rows <= place < rows:
            raise InvalidSetting(f"position {place} is not one of {rows}: positions count from 0, or back from -1")
    count = validate.size("largest", largest if largest is not None else len(set(places)) or _TOP)
    heads: list[Head] = []
    for layer, batches in enumerate(layers):
        parts = [_of_rows(batch, places, count) for batch in batches]
        total = sum(weight for _, weight in parts)
        if not total:
            raise InvalidSetting(f"no row of layer {layer} sees two positions, so there is nothing to choose from")
        means = sum((sums for sums, _ in parts), np.zeros(1)) / total
        for head, row in enumerate(means):
            looks, spread, top, on_given = map(float, row)
            heads.append(Head(layer, head, looks, spread, top, on_given if places else None))
    return Attended(tuple(heads), count, places, sum(len(batch) for batch in layers[0]), rows)


def _of_rows(batch: _Array, places: tuple[int, ...], count: int) -> tuple[_Array, int]:
    """Sums over sequences and rows of (positions looked at, their share, top, given) per head, and over how many."""
    weights = np.abs(np.asarray(batch, dtype=np.float64))
    n, _, asking, rows = weights.shape
    causal = asking == rows > 1 and not np.triu(weights, 1).any()
    may_see = np.arange(1, rows + 1) if causal else np.full(asking, rows)
    weights, may_see = weights[:, :, may_see > 1], may_see[may_see > 1]
    if not len(may_see):
        return np.zeros((batch.shape[1], 4)), 0
    shares = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum(-1)
    looks = np.exp(entropy)
    ordered = np.sort(shares, axis=-1)
    top = ordered[..., -count:].sum(-1)
    inside = sorted({place % rows for place in places if -rows <= place < rows})
    on_given = shares[..., inside].sum(-1)
    each = np.stack([looks, looks / may_see, top, on_given], axis=-1)
    return each.sum((0, 2)), n * len(may_see)


def _weights_in(out: Any) -> list[_Array]:
    """The attentions in what a module returned."""
    import torch

    found = out.get("attentions") if isinstance(out, Mapping) else getattr(out, "attentions", None)
    if found is None and isinstance(out, tuple | list) and len(out) > 1:
        found = out[-1]
    layers = [found] if isinstance(found, torch.Tensor) else list(found or ())
    if layers and all(isinstance(one, torch.Tensor) and one.ndim == 4 for one in layers):
        return [one.detach().double().cpu().numpy() for one in layers]
    shapes = [tuple(one.shape) if isinstance(one, torch.Tensor) else type(one).__name__ for one in layers]
    got = f"it returns {shapes[0]}" if shapes else "it returns none"
    raise InvalidSetting(
        f"the module must return its attentions, a tensor (n, heads, rows, rows) per layer, as (logits, attentions) or under "
        f"the name attentions, and {got}: change its forward, say call=lambda module, x: ..., or leave attention out"
    )
