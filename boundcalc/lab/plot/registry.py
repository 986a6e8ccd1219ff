"""The figures by name. To add one, write a module with `collect`, `draw` and `caption`, and a line here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from boundcalc.lab.plot.data import FigureData
    from boundcalc.lab.plot.spec import Spec


class Entry(NamedTuple):
    """Where a figure is made, and its line of help.

    `trials`: whether it "takes" them, "needs" them or has no use for any ("none"); `reads`: what else of a specification
    it reads. Anything else given is refused.
    """

    module: str
    about: str
    trials: str = "takes"
    reads: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """The fields of a specification that change this figure, beside how it looks."""
        return frozenset(self.reads.split()) | (frozenset() if self.trials == "none" else {"store", "runs"})


_CURVES = "setting values bounds quantities norms uncapped points columns"

FIGURES: dict[str, Entry] = {
    "gap-vs-m": Entry("gap", "The gap against the number of samples: bounds, and what was measured.", reads=_CURVES),
    "gap-vs-T": Entry("gap", "The gap against the length of sequences.", reads=_CURVES),
    "gap-vs-depth": Entry("gap", "The gap against depth.", reads=_CURVES),
    "gap-vs-C": Entry("gap", "The gap against the norms allowed.", reads=_CURVES),
    "overlay": Entry(
        "overlay",
        "Risk against the number of samples: measured, certified of one predictor, promised for a class.",
        "needs",
        "setting values bounds norms",
    ),
    "sample-complexity": Entry(
        "complexity",
        "Samples needed against T: measured, with floors, fits and theorems.",
        reads="setting values bounds norms target share",
    ),
    "sample-laws": Entry(
        "laws",
        "Samples needed for each law and number of bits that matter, and over the width.",
        "needs",
        "setting bounds target share",
    ),
    "tightness": Entry(
        "tightness", "How many times each bound exceeds what was measured.", "needs", "setting bounds quantities norms"
    ),
    "parity": Entry("curves", "Loss and error over training: the phase transition.", "needs"),
    "parity-growth": Entry("transition", "Steps until parity is learned, against T and s.", "needs"),
    "attention": Entry("attention", "Attention on the coordinates that matter.", "needs", "target"),
    "attention-mass": Entry(
        "mass",
        "Attention by the size of its weights, over tasks of which few or all positions matter.",
        "none",
        "values",
    ),
    "norms": Entry("norms", "Norms of trained weights.", "needs"),
    "gap-slopes": Entry(
        "slopes",
        "How the gap of a class grows with m, T and C: proved, and met by members fitted to coin tosses.",
        "none",
        "values bounds repetitions uncapped",
    ),
    "breakdown": Entry(
        "breakdown",
        "Where a bound's entropy goes: by kind of matrix, over depth and blocks.",
        "none",
        "setting values bounds",
    ),
    "norms-vs-s": Entry(
        "growth", "Norms that represent sparse functions, against the bits that matter.", "none", "setting values"
    ),
    "posterior-contraction": Entry(
        "contraction", "The posterior of a latent variable over growing inputs.", "none", "values repetitions"
    ),
    "attention-error": Entry(
        "inference",
        "Attention against the conditional mean over growing inputs, with bounds.",
        "none",
        "values repetitions",
    ),
    "attention-smooth": Entry(
        "smooth",
        "Attention against a conditional mean that is not linear: sampling error and bias.",
        "none",
        "values repetitions",
    ),
    "minimality": Entry(
        "minimality",
        "What a trained representation keeps and drops, beside the posterior.",
        "none",
        "values",
    ),
    "desired": Entry(
        "desired",
        "How near training comes to the desired parameter and to the Bayes risk, beside X5.",
        "none",
        "values",
    ),
    "pretext": Entry(
        "pretext",
        "One attention model from masked pretext to downstream task, beside X6.",
        "none",
        "values repetitions",
    ),
    "gap-vs-L": Entry("lengths", "Gaps of trained attention against the input size, with bounds.", "needs"),
    "kappa": Entry(
        "diversity", "Downstream error against the diversity of pretext tasks, with X6.", "none", "repetitions"
    ),
    "constants": Entry(
        "constants", "From published constants to the best bound, one ingredient at a time.", "none", "setting"
    ),
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
    """The module of a figure: of this package by its name, of another by its whole path."""
    module = FIGURES[name].module
    return cast("Family", importlib.import_module(module if "." in module else f"boundcalc.lab.plot.{module}"))
