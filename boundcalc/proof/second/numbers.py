"""Fifty digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath

from boundcalc.base.errors import CertificateError

Real = Any
MP = mpmath.MPContext()
MP.dps = 50


def num(x: Real) -> Real:
    """A number, exactly as given."""
    return MP.mpf(x)


def grown(x: Real) -> float:
    """The least float that is not below."""
    y = float(x)
    return y if num(y) >= x else math.nextafter(y, math.inf)


def demand(holds: Any, what: str) -> None:
    """A side condition; its failure is said."""
    if not bool(holds):
        raise CertificateError(f"second checker: {what}")


def unknown(what: str, name: object) -> CertificateError:
    """What the second checker does not know it refuses by name."""
    return CertificateError(
        f"second checker: it does not know the {what} {name!r:.80}; only the first checker covers it"
    )
