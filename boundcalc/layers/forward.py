"""Running layers: one forward pass for checks of checkpoints, for training and for the laws, over NumPy or torch.

A layer's `forward` calls its array library by the names that both know; `checkpoints.forward.NUMPY` and
`lab.train.model.TORCH` say what each has under them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from boundcalc.layers.base import Layer

Arrays = Callable[[str], Any]
"""The array of one kind of a layer's weights, as in x -> x W; of several heads, one after the other in front."""


class Source(Protocol):
    """Where the arrays of layers come from."""

    def __call__(self, layer: Layer, kind: str) -> Any:
        """The array of one kind."""
        ...

    def has(self, layer: Layer, kind: str) -> bool:
        """Whether there is such an array: heads have their joint scores, or queries and keys."""
        ...


@dataclass(frozen=True)
class Fixed:
    """What a forward pass needs besides the weights: fixed before the data, so that no bound reads it.

    Attributes:
        rotate: turns (..., heads, T, width) queries or keys of a block, as rotary positions do.
        added: the numbers (heads, T, T) that positions add to the scores of T rows.
        window: which keys each of T queries of a block may see, besides the causal mask.
        bucket: the number of each pair of T positions in a table of learned ones.
        segment: the type of every token, or of each.
        row: the row that a [CLS] read-out takes.
    """

    rotate: Callable[[Any, int | None], Any] | None = None
    added: Callable[[int], Any] | None = None
    window: Callable[[int | None, int], Any] | None = None
    bucket: Callable[[int], Any] | None = None
    segment: Any = 0
    row: int = 0


class Step(NamedTuple):
    """A layer that has run: what it read, and what it made of it."""

    layer: Layer
    reads: Any
    makes: Any


@dataclass
class Forward:
    """Runs layers on rows (n, T, d), or on tokens (n, T).

    Attributes:
        xp: the array library.
        source: where arrays come from.
        fixed: what is fixed besides them.
        every_row: whether no row is picked before the read-out.
        query: the one row that attention asks for, where it is not all.
        steps: where every layer is noted, in the order they run.
        trains: whether offsets that change nothing run as well, so that they have gradients.
    """

    xp: Any
    source: Source
    fixed: Fixed = Fixed()
    every_row: bool = False
    query: int | None = None
    steps: list[Step] | None = None
    trains: bool = False

    def __call__(self, layers: Sequence[Layer], x: Any) -> Any:
        """Layers one after the other; branches add up."""
        for layer in layers:
            if layer.branches:
                first, *others = (self(branch, x) for branch in layer.branches)
                y = sum(others, start=first)
            else:
                y = layer.forward(x, partial(self.source, layer), self)
            if self.steps is not None:
                self.steps.append(Step(layer, x, y))
            x = y
        return x
