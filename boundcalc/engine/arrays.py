"""The closed form over arrays of settings: the same lowering and formulas, in a number system of NumPy arrays.

Its values are not checked by intervals. Instead they carry a relative guard that is far above the rounding of floats
and above what `evaluate(setting, "closed")` adds for its own rounding, so they are never below the checked value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.formulas.theorems import POLICIES
from boundcalc.setting import Setting
from boundcalc.setting.validate import known_keys
from boundcalc.statements import gap
from boundcalc.statements.compose import Piece, lower
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.targets import Target

FIELDS = ("n_train", "seq_len", "C", "margin", "delta")
"""What may vary: m, T, the knob C, gamma and delta."""

_CHUNK = 1 << 16
_SMALL_CHUNK = 1 << 14
"""Points at once: so few that intermediate arrays stay in the cache. Fewer where budgets or margins are arrays of that
length too, because then all of the lowering works on arrays."""
_GUARD = 4e-9
"""Relative, plus a fiftieth per piece; see the module's first lines."""


class _Values(np.ndarray):
    """An array that a setting takes in place of a number; its extremes were validated before."""

    free_symbols = ("array",)
    is_positive = is_nonnegative = is_integer = True

    def __bool__(self) -> bool:
        """What holds of every element: a validated number is not 0; a comparison must come out alike everywhere."""
        if self.dtype.kind != "b":
            return True
        found = np.asarray(self)
        if found.any() and not found.all():
            raise InvalidSetting("this setting cannot be swept in arrays: use sweep(..., bounds=['closed'])")
        return bool(found.any())


class ArraySystem:
    """NumPy arrays, element by element."""

    name = "array"
    pi = math.pi
    log, log1p, exp, expm1, sqrt = np.log, np.log1p, np.exp, np.expm1, np.sqrt

    @staticmethod
    def number(x: Any) -> Any:
        return np.asarray(x) if isinstance(x, _Values) else x

    @staticmethod
    def ceil(x: Any) -> Any:
        return np.ceil(x * (1 + 1e-12))

    @staticmethod
    def lgamma(x: Any) -> Any:
        return np.vectorize(math.lgamma)(x)

    @staticmethod
    def lgamma_sum(x: Any, count: int) -> Any:
        return sum(ArraySystem.lgamma(x + i) for i in range(count))

    @staticmethod
    def minimum(*xs: Any) -> Any:
        return reduce(np.minimum, xs)

    @staticmethod
    def maximum(*xs: Any) -> Any:
        return reduce(np.maximum, xs)


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
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    out = np.empty(shape)
    padded = {name: array.reshape((1,) * (len(shape) - array.ndim) + array.shape) for name, array in arrays.items()}
    _fill(setting, padded, out)
    return out


def _validated(setting: Setting, name: str, array: np.ndarray) -> np.ndarray:
    """Floats, after the extremes passed as settings of their own."""
    if array.size == 0 or array.dtype.kind not in "iuf":
        raise InvalidSetting(f"{name} must be an array of numbers that is not empty, got {array!r}")
    if array.dtype.kind == "f" and name in ("n_train", "seq_len") and not (np.floor(array) == array).all():
        raise InvalidSetting(f"{name} must hold whole numbers only")
    for extreme in (array.min(), array.max()):  # NaN is its own extreme
        setting.but(**{name: extreme.item()})  # type: ignore[arg-type]
    return array.astype(float)


def _fill(setting: Setting, arrays: Mapping[str, np.ndarray], out: np.ndarray) -> None:
    """Computes block by block, splitting the first axis that is longer than one."""
    axis = next((i for i, length in enumerate(out.shape) if length > 1), None)
    lowering = max((arrays[name].size for name in ("C", "margin") if name in arrays), default=1)
    chunk = _CHUNK if lowering < _SMALL_CHUNK else _SMALL_CHUNK
    if out.size <= chunk or axis is None:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            block = _block(setting, arrays)
        out[...] = np.where(np.isnan(block), math.inf, block)
        return
    length = out.shape[axis]
    step = max(1, length * chunk // out.size)
    index: list[Any] = [slice(None)] * out.ndim
    for start in range(0, length, step):
        index[axis] = slice(start, start + step)
        here = {name: array[tuple(index)] if array.shape[axis] > 1 else array for name, array in arrays.items()}
        _fill(setting, here, out[tuple(index)])


def _block(setting: Setting, arrays: Mapping[str, np.ndarray]) -> Any:
    varied = setting.but(**{name: array.view(_Values) for name, array in arrays.items()})  # type: ignore[arg-type]
    lowered = lower(varied, _ARRAY)  # type: ignore[arg-type]
    m, delta = np.asarray(varied.sample.n_train), np.asarray(varied.sample.delta)
    costs = _Coefficients((1 + gap.CLOSED_GHOSTS) * m)
    for piece in lowered.pieces:
        costs.add(piece)
    value = gap.gap_closed(_ARRAY, costs.total() ** 3, -np.log(delta), m)  # type: ignore[arg-type]
    return value * (1 + _GUARD * (1 + len(lowered.pieces) / 50))


class _Coefficients:
    """Cube roots of log-count coefficients (A1), each computed once."""

    def __init__(self, samples: Any) -> None:
        self.samples = samples
        self.lemmas = [lemma for lemma in LEMMAS.values() if POLICIES["closed"].allows(lemma)]
        self._points: dict[tuple[int, Any], Any] = {}
        self._found: dict[tuple[Any, ...], Any] = {}
        self._sums: dict[int, tuple[Any, Any]] = {}

    def add(self, piece: Piece) -> None:
        """Adds (gain^2 * sum over members of coefficient * reach^2)^(1/3)."""
        if len(piece.members) == 1:
            member = piece.members[0]
            coefficient, factor = self._least(piece, member.targets)
            self._gather(coefficient, factor * member.multiplicity ** (1 / 3))
            return
        total: Any = 0.0
        for member in piece.members:
            coefficient, factor = self._least(piece, member.targets)
            total = total + member.multiplicity * (coefficient * factor) ** 3
        self._gather(np.cbrt(total), 1.0)

    def _gather(self, coefficient: Any, factor: Any) -> None:
        """Pieces with the same coefficient are added by their factors, which are mere numbers unless C varies."""
        _, before = self._sums.get(id(coefficient), (coefficient, 0.0))
        self._sums[id(coefficient)] = coefficient, before + factor

    def total(self) -> Any:
        """The sum of all that was added."""
        return sum(coefficient * factor for coefficient, factor in self._sums.values())

    def _least(self, piece: Piece, targets: Sequence[Target]) -> tuple[Any, Any]:
        """Coefficient^(1/3) and (gain * reach)^(2/3) of the cheapest option; options of the same reach share both."""
        by_reach: list[tuple[Any, list[Any]]] = []
        for target in targets:
            for lemma in self.lemmas:
                if target.kind in lemma.kinds and lemma.applies(target) is None:
                    reach = lemma.reach(target)
                    same = next((options for known, options in by_reach if _equal(known, reach)), None)
                    if same is None:
                        by_reach.append((reach, same := []))
                    same.append(self._coefficient(lemma, target))
        if not by_reach:
            raise InvalidSetting(f"the closed form has no cover of {piece.key}")
        found = [(self._minimum(options), np.cbrt((piece.gain * reach) ** 2)) for reach, options in by_reach]
        if len(found) == 1:
            return found[0]
        return reduce(np.minimum, [coefficient * factor for coefficient, factor in found]), 1.0

    def _minimum(self, options: Sequence[Any]) -> Any:
        distinct = {id(option): option for option in options}
        key = ("least", *sorted(distinct))
        if key not in self._found:
            self._found[key] = reduce(np.minimum, distinct.values())
        return self._found[key]

    def _coefficient(self, lemma: Any, target: Target) -> Any:
        where = (id(target.points.per_sample), _name(target.points.cap))
        key = (lemma.name, _name(target.d), _name(target.k), where)  # closed forms depend on nothing else of a target
        if key not in self._found:
            if where not in self._points:
                shown = np.asarray(target.points.per_sample) * self.samples
                self._points[where] = shown if target.points.cap is None else np.minimum(shown, target.points.cap)
            self._found[key] = np.cbrt(lemma.closed(_ARRAY, 1.0, target, self._points[where]))
        return self._found[key]


def _equal(a: Any, b: Any) -> bool:
    return a is b or (np.shape(a) == np.shape(b) and bool(np.all(a == b)))


def _name(size: Any) -> Any:
    """What tells a size from others; arrays by identity."""
    return id(size) if isinstance(size, np.ndarray) else size
