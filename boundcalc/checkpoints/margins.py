"""Margins of a trained model on its training sample: read from a file, counted on the grid of P1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.norms.matrix import Floats


@dataclass(frozen=True)
class Margins:
    """y f(x), or the logit of the label less the largest other one, for every training sequence."""

    values: Floats

    def error(self, margin: float) -> float:
        """Share of margins at most `margin`: not strict, as in G0; rounded up."""
        wrong = int(np.count_nonzero(self.values <= margin))
        return (
            wrong / len(self.values)
            if wrong in (0, len(self.values))
            else float(np.nextafter(wrong / len(self.values), 1))
        )

    def grid(self) -> list[int]:
        """The k of the grid 2^-k worth trying: from the largest margin down to about the smallest above 0."""
        positive = self.values[self.values > 0]
        if not len(positive):
            return []
        high = int(np.floor(np.log2(float(positive.max()))))
        low = int(np.floor(np.log2(float(np.quantile(positive, 0.001)))))
        return [-exponent for exponent in range(max(low, high - 40), high + 1)]


def read_margins(path: Path) -> Margins:
    """A .npy file, or text: numbers separated by spaces, commas or lines (a first line of words is skipped)."""
    try:
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            values = _from_text(path.read_text(encoding="utf-8"))
    except (OSError, TypeError, ValueError, EOFError) as error:
        raise CheckpointError(f"{path} holds no margins: {error}; need a .npy file, or numbers as text") from None
    values = np.asarray(values)
    if values.ndim > 1 and values.size > max(values.shape):
        raise CheckpointError(f"{path} holds no margins: got an array of shape {values.shape}, need one per sequence")
    flat = np.asarray(values, np.float64).ravel() if values.dtype.kind in "fiu" else None
    if flat is None or not len(flat) or not np.isfinite(flat).all():
        raise CheckpointError(f"{path} holds no margins: need finite numbers, one per training sequence")
    return Margins(flat)


def _from_text(text: str) -> Floats:
    stripped = text.strip()
    if stripped.startswith("["):
        import json

        return np.array(json.loads(stripped), np.float64)
    lines = stripped.splitlines()
    if lines and any(c.isalpha() and c not in "eE" for c in lines[0]):
        lines = lines[1:]
    return np.array([float(word) for line in lines for word in line.replace(",", " ").split()])
