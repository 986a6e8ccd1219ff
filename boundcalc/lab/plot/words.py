"""Numbers in sentences and on axes."""

from __future__ import annotations

import math

from boundcalc.base import rounding


def short(x: float) -> str:
    """A number as people write it: 512, 10^6, 3.2 x 10^6, 0.05."""
    if x == 0 or 1e-3 <= abs(x) < 1e4:
        return f"{x:.4g}"
    power = math.floor(math.log10(abs(x)) + 1e-12)
    head = x / 10.0**power
    return f"10^{power}" if abs(head - 1) < 5e-3 else f"{head:.2g} x 10^{power}"


def at_most(x: float) -> str:
    """An upper bound as people write it: rounded up."""
    if x <= 0 or not math.isfinite(x):
        return short(x)
    return short(float(rounding.up(x, 4 if 1e-3 <= x < 1e4 else 2)))


def decades(ratio: float) -> str:
    """A ratio as orders of magnitude."""
    return f"{math.log10(ratio):.1f} orders of magnitude"


def power(log10: float) -> str:
    """10^8, 10^4.2."""
    return f"10^{log10:.1f}".removesuffix(".0")


def plain(label: str) -> str:
    """Without the marks of mathematics: W_QK."""
    return label.translate({ord(sign): None for sign in "${}"})


def many(count: int, word: str) -> str:
    """1 trial, 2 trials."""
    return f"{count} {word}{'s' * (count != 1)}"


def factor(log10: float) -> str:
    """A factor given by its logarithm, to three digits."""
    return f"×{float(f'{10**log10:.3g}'):g}" if log10 < 4 else f"×10^{log10:.1f}"
