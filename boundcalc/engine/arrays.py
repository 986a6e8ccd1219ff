"""The closed form over arrays of settings: the same lowering and formulas, in a number system of NumPy arrays.

Its values are not checked by intervals. Instead they carry a relative guard that is far above the rounding of floats
and above what `evaluate(setting, "closed")` adds for its own rounding, so they are never below the checked value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.engine.fused import ArraySystem, Graph
from boundcalc.formulas.theorems import POLICIES
from boundcalc.setting import Setting
from boundcalc.setting.validate import known_keys
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.statements.network import Network, Piece
from boundcalc.statements.targets import Target

FIELDS = ("n_train", "seq_len", "C", "margin", "delta")
"""What may vary: m, T, the knob C, gamma and delta."""

_GUARD = 4e-9
"""Relative, plus a fiftieth per piece; see the module's first lines."""


_ARRAY = ArraySystem()


def closed_gap(setting: Setting, **values: Any) -> np.ndarray:
    """The closed-form gap bound (policy "closed", uncapped) for arrays of values, broadcast against each other.

    Args:
        setting: what is the same at every point.
        values: arrays by name: n_train, seq_len, C, margin, delta. A grid is cheapest with axes of its own: n_train of
            shape (1000, 1), seq_len of shape (1, 1000).

    Returns:
        The bounds, in floats and not checked; infinite where a bound leaves their range.
    """
    named = known_keys("an array", values, FIELDS)
    arrays = {name: _validated(setting, name, np.asarray(value)) for name, value in named.items()}
    if setting.norms.measured:
        raise InvalidSetting("measured norms are paid for point by point: use sweep(..., bounds=['closed'])")
    if "C" in arrays and setting.norms.budgets:
        raise InvalidSetting(
            "C cannot vary where the norms file gives other budgets: use sweep(..., bounds=['closed'])"
        )
    if "seq_len" in arrays and setting.architecture.residual:
        raise InvalidSetting("with residuals T is no array here: call once per T, or use sweep(..., bounds=['closed'])")
    shape = np.broadcast_shapes((1,), *(array.shape for array in arrays.values()))
    graph = Graph(shape)
    varied = {
        name: graph.array(array.reshape((1,) * (len(shape) - array.ndim) + array.shape))
        for name, array in arrays.items()
    }
    value = _value(setting.but(**varied))  # type: ignore[arg-type]
    out = np.empty(shape)
    for index, (block,) in graph.blocks(value):
        out[index] = block
    out[np.isnan(out)] = math.inf
    return out.reshape(np.broadcast_shapes(*(array.shape for array in arrays.values())))


def _validated(setting: Setting, name: str, array: np.ndarray) -> np.ndarray:
    """Floats, after the extremes passed as settings of their own."""
    if array.size == 0 or array.dtype.kind not in "iuf":
        raise InvalidSetting(f"{name} must be an array of numbers that is not empty, got {array!r}")
    if array.dtype.kind == "f" and name in ("n_train", "seq_len") and not (np.floor(array) == array).all():
        raise InvalidSetting(f"{name} must hold whole numbers only")
    for extreme in (array.min(), array.max()):  # NaN is its own extreme
        setting.but(**{name: extreme.item()})  # type: ignore[arg-type]
    return array.astype(float, copy=False)


def _value(setting: Setting) -> Any:
    """The bound as a formula of what varies, with its guard."""
    lowered = Network(setting, _ARRAY)  # type: ignore[arg-type]
    m, delta = setting.sample.n_train, setting.sample.delta
    samples = (1 + gap.CLOSED_GHOSTS) * m
    lemmas = [lemma for lemma in LEMMAS.values() if POLICIES["closed"].allows(lemma)]
    sums: dict[Any, Any] = {}
    for piece in lowered.pieces:
        coefficient, factor = _cube_root(piece, samples, lemmas)
        sums[coefficient] = sums.get(coefficient, 0.0) + factor  # of equal coefficients the factors are added
    total = sum(coefficient * factor for coefficient, factor in sums.items())
    value = gap.gap_closed(_ARRAY, total**3, -_ARRAY.log(delta), m)  # type: ignore[arg-type]
    return value * (1 + _GUARD * (1 + len(lowered.pieces) / 50))


def _cube_root(piece: Piece, samples: Any, lemmas: Sequence[CoverLemma]) -> tuple[Any, Any]:
    """(gain^2 * sum over members of coefficient * reach^2)^(1/3), in two factors (A1)."""
    if len(piece.members) == 1:
        member = piece.members[0]
        coefficient, factor = _least(piece, member.targets, samples, lemmas)
        return coefficient, factor * member.multiplicity ** (1 / 3)
    total: Any = 0.0
    for member in piece.members:
        coefficient, factor = _least(piece, member.targets, samples, lemmas)
        total = total + member.multiplicity * (coefficient * factor) ** 3
    return _ARRAY.cube_root(total), 1.0


def _least(piece: Piece, targets: Sequence[Target], samples: Any, lemmas: Sequence[CoverLemma]) -> tuple[Any, Any]:
    """Coefficient^(1/3) and (gain * reach)^(2/3) of the cheapest option; options of the same reach share both."""
    by_reach: dict[Any, list[Any]] = {}
    for target in targets:
        for lemma in lemmas:
            if target.kind in lemma.kinds and lemma.applies(target) is None:
                points = target.points.per_sample * samples
                if target.points.cap is not None:
                    points = _ARRAY.minimum(points, target.points.cap)
                by_reach.setdefault(lemma.reach(target), []).append(lemma.closed(_ARRAY, 1.0, target, points))
    if not by_reach:
        raise InvalidSetting(f"the closed form has no cover of {piece.key}")
    found = [
        (_ARRAY.cube_root(_ARRAY.minimum(*options)), _ARRAY.cube_root((piece.gain * reach) ** 2))
        for reach, options in by_reach.items()
    ]
    if len(found) == 1:
        return found[0]
    return _ARRAY.minimum(*(coefficient * factor for coefficient, factor in found)), 1.0
