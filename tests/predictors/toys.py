"""A learner whose risk is known exactly: thresholds on [0, 1], with and without noise in the labels."""

from __future__ import annotations

from tests.cases.predictors import Threshold as Threshold
from tests.cases.predictors import thresholds as draw

__all__ = ["Threshold", "draw", "risk"]


def risk(threshold: float, noise: float = 0.0) -> float:
    """Exact, on examples whose labels have this noise."""
    off = abs(threshold - 0.5)
    return off * (1 - noise) + (1 - off) * noise
