"""One measurement of an audit, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from boundcalc.checkpoints.maps import Found

SPECTRUM_SIDE = 1024
"""Matrices whose shorter side exceeds this get no spectrum unless it is asked for."""


@dataclass(frozen=True)
class Want:
    """What to measure.

    Attributes:
        spectra: singular values of every matrix: True, False, or None where they are cheap.
        exact: spectral norms by Gram matrices only, however large.
    """

    spectra: bool | None = None
    exact: bool = False

    def spectrum(self, shape: Sequence[int]) -> bool:
        """Whether to compute the singular values of a matrix."""
        return min(shape) <= SPECTRUM_SIDE if self.spectra is None else self.spectra


@dataclass(frozen=True)
class Task:
    """One measurement.

    Attributes:
        name: unique, for the progress bar.
        entries: numbers it reads, for the progress bar.
        run: makes it, with a generator of its own.
    """

    name: str
    entries: int
    run: Callable[[np.random.Generator], Found] = field(repr=False)
