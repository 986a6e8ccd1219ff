"""What learns from picks: anything deterministic whose model depends on the list of picks alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.examples import Answers


class Learner(Answers, Protocol):
    """A deterministic learner.

    Its state is a function of its recipe, the seed and the examples it was given, in their order: no clock, no global
    generator, nothing of other examples. A replay refuses a learner that is not (as far as a replay can tell).
    """

    def start(self, seed: int) -> Any:
        """The state before any example."""
        ...

    def fit(self, state: Any, examples: Data, prefix: int) -> Any:
        """Go on from a state: `examples` are the prefix, if there is one, then all picks so far in their order."""
        ...

    def scores(self, state: Any, examples: Data) -> Array:
        """A score per example that looks at this example and the state alone: right where it is above 0."""
        ...

    def weights(self, state: Any) -> Mapping[str, Array]:
        """The tensors of the model, copied."""
        ...

    def dump(self, state: Any) -> bytes:
        """The state, to go on with after a kill."""
        ...

    def restore(self, data: bytes) -> Any:
        """The state from such bytes."""
        ...
