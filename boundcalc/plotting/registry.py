"""The figures by name. To add one, write a module with `collect`, `draw` and `caption`, and a line here."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from boundcalc.plotting.data import FigureData
    from boundcalc.plotting.spec import Spec


class Entry(NamedTuple):
    """Where a figure is made, its one line of help, and whether it cannot do without trials."""

    module: str
    about: str
    needs_store: bool = False


FIGURES: Mapping[str, Entry] = {
    "gap-vs-m": Entry("gap", "The gap against the number of samples: bounds, and what was measured."),
    "gap-vs-T": Entry("gap", "The gap against the length of sequences."),
    "gap-vs-depth": Entry("gap", "The gap against depth."),
    "gap-vs-C": Entry("gap", "The gap against the norms allowed."),
    "sample-complexity": Entry("complexity", "Samples needed against T: measured, with floors, fits and theorems."),
    "tightness": Entry("tightness", "How many times each bound exceeds what was measured.", True),
    "parity": Entry("curves", "Loss and error over training: the phase transition.", True),
    "attention": Entry("attention", "Attention on the coordinates that matter.", True),
    "norms": Entry("norms", "Norms of trained weights.", True),
    "breakdown": Entry("breakdown", "Where a bound's entropy goes: by kind of matrix, over depth and blocks."),
    "norms-vs-s": Entry("growth", "Norms that represent sparse functions, against the bits that matter."),
    "posterior-contraction": Entry("contraction", "The posterior of a latent variable over growing inputs."),
    "attention-error": Entry("inference", "Attention against the conditional mean over growing inputs, with bounds."),
    "gap-vs-L": Entry("lengths", "Gaps of trained attention against the input size, with bounds.", True),
    "kappa": Entry("diversity", "Downstream error against the diversity of pretext tasks, with X6."),
    "constants": Entry("constants", "From published constants to the best bound, one ingredient at a time."),
}


class Family(Protocol):
    """What a figure's module has."""

    def collect(self, spec: Spec) -> FigureData:
        """Compute and read everything the figure shows."""
        ...

    def draw(self, spec: Spec, data: FigureData) -> Any:
        """The figure, of the data alone."""
        ...

    def caption(self, spec: Spec, data: FigureData) -> str:
        """What the reader should conclude."""
        ...


def family(name: str) -> Family:
    """The module of a figure."""
    return cast("Family", importlib.import_module(f"boundcalc.plotting.{FIGURES[name].module}"))
