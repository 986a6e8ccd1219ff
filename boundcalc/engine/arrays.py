"""The closed form over arrays of settings: the same walk and formulas, in a number system of NumPy arrays.

Its values are not checked by intervals. Instead they carry a relative guard that is far above the rounding of floats
and above what `evaluate(setting, "closed")` adds for its own rounding, so they are never below the checked value.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.numbers import FLOAT
from boundcalc.base.validate import known_keys
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.statements.network import Network, Piece
from boundcalc.theorems import POLICIES

FIELDS = ("n_train", "seq_len", "C", "margin", "delta")
"""What may vary: m, T, the knob C, gamma and delta."""
BLOCK = 1 << 16
"""Points computed at once."""
_GUARD = 4e-9
"""Relative, plus a fiftieth per piece; see the module's first lines."""


class Varying:
    """An array where formulas have a number, and settings a symbol.

    A comparison holds, or fails, at all points alike.
    """

    free_symbols = frozenset(("values",))
    is_integer = is_positive = is_nonnegative = True
    __hash__ = object.__hash__

    def __init__(self, values: Any) -> None:
        self.values = values

    def __pow__(self, other: Any) -> Varying:
        return Varying(self.values**other)

    def __rpow__(self, other: Any) -> Varying:
        return Varying(np.power(float(other), self.values))

    def __neg__(self) -> Varying:
        return Varying(-self.values)


def _plain(x: Any) -> Any:
    return x.values if isinstance(x, Varying) else float(x)


def _arithmetic(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The operator of a function, and that for the other order."""

    def ahead(self: Varying, other: Any) -> Varying:
        return Varying(function(self.values, _plain(other)))

    def behind(self: Varying, other: Any) -> Varying:
        return Varying(function(_plain(other), self.values))

    return ahead, behind


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Varying, Any], bool]:
    def holds(self: Varying, other: Any) -> bool:
        if not isinstance(other, Varying | int | float):
            return False
        found = np.asarray(function(self.values, _plain(other)))
        if found.any() and not found.all():
            raise InvalidSetting("this setting cannot be swept in arrays: use sweep(..., bounds=['closed'])")
        return bool(found.all())

    return holds


for _name in ("add", "sub", "mul", "truediv"):
    _ahead, _behind = _arithmetic(getattr(operator, _name))
    setattr(Varying, f"__{_name}__", _ahead)
    setattr(Varying, f"__r{_name}__", _behind)
for _name in ("lt", "le", "gt", "ge", "eq"):
    setattr(Varying, f"__{_name}__", _comparison(getattr(operator, _name)))


class ArraySystem:
    """Numbers that may vary over arrays."""

    name = "array"
    pi = math.pi

    @staticmethod
    def number(x: Any) -> Any:
        return x

    @staticmethod
    def ceil(x: Any) -> Any:
        return Varying(np.ceil(x.values * (1 + 1e-12))) if isinstance(x, Varying) else FLOAT.ceil(x)

    @staticmethod
    def minimum(*xs: Any) -> Any:
        return _least(np.minimum, xs)

    @staticmethod
    def maximum(*xs: Any) -> Any:
        return _least(np.maximum, xs)

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        """log, log1p, exp, expm1, sqrt, cbrt: NumPy's."""
        function = getattr(np, name)
        return lambda x: Varying(function(x.values)) if isinstance(x, Varying) else float(function(x))


def _least(function: Callable[[Any, Any], Any], xs: Sequence[Any]) -> Any:
    found = reduce(function, map(_plain, xs))
    return Varying(found) if isinstance(found, np.ndarray) else found


_ARRAY: Any = ArraySystem()


def closed_gap(setting: Setting, **values: Any) -> np.ndarray:
    """The closed-form gap bound (policy "closed", uncapped) for arrays of values, broadcast against each other.

    Args:
        setting: what is the same at every point.
        values: arrays by name: n_train, seq_len, C, margin, delta.

    Returns:
        The bounds, in floats and not checked; infinite where a bound leaves their range.
    """
    named = known_keys("an array", values, FIELDS)
    arrays = {name: _validated(setting, name, np.asarray(value)) for name, value in named.items()}
    if setting.norms.measured:
        raise InvalidSetting("measured norms are corrected for point by point: use sweep(..., bounds=['closed'])")
    if "C" in arrays and setting.norms.budgets:
        raise InvalidSetting(
            "C cannot vary where the norms file gives other budgets: use sweep(..., bounds=['closed'])"
        )
    if "seq_len" in arrays and setting.architecture.residual:
        raise InvalidSetting("with residuals T is no array here: call once per T, or use sweep(..., bounds=['closed'])")
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    flat = {name: np.broadcast_to(array, shape).ravel() for name, array in arrays.items()}
    size = math.prod(shape)
    out = np.empty(size)
    with np.errstate(all="ignore"):
        for start in range(0, size, BLOCK):
            at = slice(start, start + BLOCK)
            moved: dict[str, Any] = {name: Varying(array[at]) for name, array in flat.items()}
            out[at] = _plain(_value(setting.but(**moved)))
    out[np.isnan(out)] = math.inf
    return out.reshape(shape)


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
    """The bound where its parameters vary, with its guard."""
    pieces = Network(setting, _ARRAY).pieces
    m, delta = setting.sample.n_train, setting.sample.delta
    lemmas = [lemma for lemma in LEMMAS.values() if POLICIES["closed"].allows(lemma)]
    total = sum(_cube_root(piece, (1 + gap.CLOSED_GHOSTS) * m, lemmas) for piece in pieces)
    value = gap.gap_closed(_ARRAY, total**3, -_ARRAY.log(delta), m)  # type: ignore[arg-type]
    return value * (1 + _GUARD * (1 + len(pieces) / 50))


def _cube_root(piece: Piece, samples: Any, lemmas: Sequence[CoverLemma]) -> Any:
    """(gain^2 * sum over members of coefficient * reach^2)^(1/3) (A1), in factors: squares may overflow."""
    total: Any = 0.0
    for member in piece.members:
        options: list[Any] = []
        for target in member.targets:
            points = target.points.per_sample * samples
            if target.points.cap is not None:
                points = _ARRAY.minimum(points, target.points.cap)
            options += [
                _ARRAY.cbrt(lemma.closed(_ARRAY, 1.0, target, points)) * _ARRAY.cbrt(lemma.reach(target)) ** 2
                for lemma in lemmas
                if target.kind in lemma.kinds and lemma.applies(target) is None
            ]
        if not options:
            raise InvalidSetting(f"the closed form has no cover of {piece.key}")
        total = total + member.multiplicity * _ARRAY.minimum(*options) ** 3
    return _ARRAY.cbrt(total) * _ARRAY.cbrt(piece.gain) ** 2
