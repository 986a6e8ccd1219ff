"""Which answers are right: the one place where scores of predictors are compared with a margin."""

from __future__ import annotations

from typing import Any

from boundcalc.base.errors import InvalidSetting


def wrong(scores: Any, gamma: float = 0.0) -> Any:
    """Which answers do not score above gamma, elementwise (NumPy or torch). NaN is above nothing."""
    return ~(scores > gamma)


def count_wrong(scores: Any, n: int, gamma: float = 0.0) -> int:
    """How many of n answers do not score above gamma; refuses scores that are not one number per example."""
    if tuple(scores.shape) != (n,):
        raise InvalidSetting(f"scores must be one number per example: need {(n,)}, got {tuple(scores.shape)}")
    return int(wrong(scores, gamma).sum())
