"""The figures by name. To add one, write a module with `collect`, `draw` and `caption`, and a line here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from boundcalc.lab.plot.data import FigureData
    from boundcalc.lab.plot.spec import Spec


class Entry(NamedTuple):
    """Where a figure is made, its line of help, and what changes it. Anything else given is refused.

    Attributes:
        module: of this package by its name, of another by its whole path.
        about: a line.
        trials: whether it "takes" them, "needs" them or has no use for any ("none").
        reads: what else of a specification it reads, beside how it looks.
        axis: what `--sweep` gives the values of.
        chooses: fields of a setting that it chooses or runs over itself; "-name": all but this one.
        single: what of a specification it shows one of at a time.
    """

    module: str
    about: str
    trials: str = "takes"
    reads: str = ""
    axis: str = ""
    chooses: str = ""
    single: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """The fields of a specification that change this figure, beside how it looks."""
        return frozenset(self.reads.split()) | (frozenset() if self.trials == "none" else {"store", "runs"})

    @property
    def along(self) -> bool:
        """Whether it draws bounds along one field of a setting: measurements and theorems of one's own too."""
        return "points" in self.fields

    @property
    def of_one_m(self) -> bool:
        """Whether its trials are of one m, which its bounds then take."""
        return self.along and self.axis != "m"


def _along(axis: str, field: str, over: str) -> Entry:
    reads = "setting values bounds quantities norms uncapped points columns"
    return Entry("gap", f"The gap against {over}.", reads=reads, axis=axis, chooses=field)


FIGURES: dict[str, Entry] = {
    "gap-vs-m": _along("m", "n_train", "the number of samples: bounds, and what was measured"),
    "gap-vs-T": _along("T", "seq_len", "the length of sequences"),
    "gap-vs-depth": _along("depth", "depth", "depth"),
    "gap-vs-C": _along("C", "C", "the norms allowed"),
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
        axis="T",
        chooses="seq_len n_train delta train_error",
    ),
    "sample-laws": Entry(
        "laws",
        "Samples needed for each law and number of bits that matter, and over the width.",
        "needs",
        "setting bounds target share",
    ),
    "tightness": Entry(
        "tightness",
        "How many times each bound exceeds what was measured.",
        "needs",
        "setting bounds quantities norms",
        chooses="n_train",
        single="quantities",
    ),
    "parity": Entry("curves", "Loss and error over training: the phase transition.", "needs"),
    "parity-growth": Entry("transition", "Steps until parity is learned, against T and s.", "needs"),
    "attention": Entry("attention", "Attention on the coordinates that matter.", "needs", "target"),
    "attention-mass": Entry(
        "mass",
        "Attention by the size of its weights, over tasks of which few or all positions matter.",
        "none",
        "values",
        axis="steps",
    ),
    "norms": Entry("norms", "Norms of trained weights.", "needs"),
    "gap-slopes": Entry(
        "slopes",
        "How the gap of a class grows with m, T and C: proved, and met by members fitted to coin tosses.",
        "none",
        "values bounds repetitions uncapped",
        axis="m",
    ),
    "breakdown": Entry(
        "breakdown",
        "Where a bound's entropy goes: by kind of matrix, over depth and blocks.",
        "none",
        "setting values bounds",
        axis="depth",
        chooses="depth train_error",
        single="bounds",
    ),
    "norms-vs-s": Entry(
        "growth",
        "Norms that represent sparse functions, against the bits that matter.",
        "none",
        "setting values",
        axis="s",
        chooses="-seq_len",
    ),
    "posterior-contraction": Entry(
        "contraction",
        "The posterior of a latent variable over growing inputs.",
        "none",
        "values repetitions",
        axis="L",
    ),
    "attention-error": Entry(
        "inference",
        "Attention against the conditional mean over growing inputs, with bounds.",
        "none",
        "values repetitions",
        axis="L",
    ),
    "attention-smooth": Entry(
        "smooth",
        "Attention against a conditional mean that is not linear: sampling error and bias.",
        "none",
        "values repetitions",
        axis="L",
    ),
    "minimality": Entry(
        "minimality",
        "What a trained representation keeps and drops, beside the posterior.",
        "none",
        "values",
        axis="steps",
    ),
    "desired": Entry(
        "desired",
        "How near training comes to the desired parameter and to the Bayes risk, beside X5.",
        "none",
        "values",
        axis="m",
    ),
    "pretext": Entry(
        "pretext",
        "One attention model from masked pretext to downstream task, beside X6.",
        "none",
        "values repetitions",
        axis="steps",
    ),
    "gap-vs-L": Entry("lengths", "Gaps of trained attention against the input size, with bounds.", "needs"),
    "kappa": Entry(
        "diversity", "Downstream error against the diversity of pretext tasks, with X6.", "none", "repetitions"
    ),
    "constants": Entry(
        "constants",
        "From published constants to the best bound, one ingredient at a time.",
        "none",
        "setting",
        chooses="train_error",
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
    """The module of a figure."""
    module = FIGURES[name].module
    return cast("Family", importlib.import_module(module if "." in module else f"boundcalc.lab.plot.{module}"))
