"""Position vectors: exactly orthonormal, or nearly so in a much smaller dimension, with measured coherence.

Compact positions are the words of a dual BCH code: entries +-1 before scaling, so that inner products are whole numbers and
their coherence is known exactly. Their word for the polynomial f = a_1 x + a_3 x^3 + ... of odd degrees below 2r, over the
field of q = 2^n elements, is (-1)^Tr(f(x)), x running through the field: q^r words, and by Weil's bound no two have a
normalised inner product above (2r - 2)/sqrt(q).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from flint import arb, arb_mat, fmpz_mat

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.intervals import certainly_le

_PRIMITIVE = dict(enumerate((7, 11, 19, 37, 67, 137, 285, 529, 1033, 2053, 4179, 8219, 17475), start=2))
"""A primitive polynomial of each degree over the field of two elements, as bits."""
SAFETY = 0.9
"""Compact positions keep (2s - 1) coherence below this, so that scores on the support stay apart from all others."""


@dataclass(frozen=True)
class Positions:
    """T position vectors of norm at most 1.

    Attributes:
        count: T.
        signs: (T, n) entries +-1, to be scaled; None for the standard basis of R^T.
        coherence: at least the largest inner product of two different ones.
    """

    count: int
    signs: np.ndarray | None = None
    coherence: float = 0.0

    def __post_init__(self) -> None:
        if self.signs is None:
            return
        if self.signs.ndim != 2 or len(self.signs) != self.count or not (np.abs(self.signs) == 1).all():
            raise InvalidSetting(f"compact positions are {self.count} rows of signs +-1, got shape {self.signs.shape}")

    @property
    def exact(self) -> bool:
        """Whether they are the standard basis."""
        return self.signs is None

    @property
    def width(self) -> int:
        """N."""
        return self.count if self.signs is None else self.signs.shape[1]

    @cached_property
    def scale(self) -> float:
        """What the entries +-1 are multiplied by: 1/sqrt(n) rounded down, so that norms are at most 1."""
        if self.exact:
            return 1.0
        scale = 1 / math.sqrt(self.width)
        while not certainly_le(arb(scale) ** 2 * self.width, arb(1)):
            scale = math.nextafter(scale, 0.0)
        return scale

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """Some of the vectors, as floats."""
        if self.signs is None:
            out = np.zeros((len(chosen), self.count))
            out[np.arange(len(chosen)), chosen] = 1.0
            return out
        return self.signs[chosen] * self.scale

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Inner products with every position, in floats; (n,) or (n, k)."""
        return vector if self.signs is None else (self.signs @ vector) * self.scale

    def enclosed_products(self, vector: np.ndarray) -> list[arb]:
        """Inner products with every position, enclosed."""
        if self.signs is None:
            return [arb(float(v)) for v in vector]
        column = arb_mat(self.width, 1, [arb(float(v)) for v in vector])
        return [entry * self.scale for entry in (self._matrix * column).entries()]

    def enclosed_mixture(self, masses: list[arb]) -> list[arb]:
        """The sum of mass_t p_t, enclosed."""
        if self.signs is None:
            return masses
        row = arb_mat(1, self.count, masses)
        return [entry * self.scale for entry in (row * self._matrix).entries()]

    @cached_property
    def _matrix(self) -> arb_mat:
        assert self.signs is not None  # noqa: S101 - only asked of compact positions
        return arb_mat(fmpz_mat(self.count, self.width, [int(v) for v in self.signs.ravel()]))


def orthonormal(count: int) -> Positions:
    """The standard basis."""
    return Positions(count)


@lru_cache(maxsize=8)
def compact(count: int, s: int) -> Positions:
    """The narrowest dual BCH positions that tell any s of `count` from the rest: (2s - 1) coherence < 0.9."""
    if s > count:
        raise InvalidSetting(f"s = {s} bits cannot hide among T = {count}: choose s <= T")
    for n in sorted(_PRIMITIVE):
        r = max(1, math.ceil(math.log2(max(2, count)) / n))
        if (1 << n) >= count:
            break
        if 2 * r - 1 >= 1 << n:
            continue
        if (2 * s - 1) * _coherence(_generator_for(count, n, r)) < SAFETY:
            return dual_bch(count, n, r)
    raise InvalidSetting(
        f"no compact positions for s = {s} among T = {count}: a coherence below {SAFETY / (2 * s - 1):.3g} needs about "
        f"as many dimensions as T; use orthonormal positions (leave out --compact)"
    )


def dual_bch(count: int, n: int, r: int) -> Positions:
    """The first `count` words of the dual BCH code of length 2^n with r odd degrees, and their exact coherence.

    The words whose numbers share their leading bits form a linear code, so inner products of the first 2^k words are
    the sums over entries of words other than the first: all are computed.
    """
    generator = _generator_for(count, n, r)
    words = np.zeros((1, 1 << n), dtype=np.int8)
    for row in generator.astype(np.int8):  # the words with the next bit of their number set follow those without
        words = np.concatenate((words, words[: count - len(words)] ^ row))
    return Positions(count, 1 - 2 * words, _coherence(generator))


def _generator_for(count: int, n: int, r: int) -> np.ndarray:
    """As many rows of the code as its first `count` words need."""
    bits = max(1, math.ceil(math.log2(count)))
    if bits > n * r:
        raise InvalidSetting(f"the dual BCH code with n = {n}, r = {r} has {(1 << n) ** r} words, got T = {count}")
    return _generator(n, r)[:bits]


def _coherence(generator: np.ndarray) -> float:
    """The largest inner product of two words: the sums of their signs are the Walsh transform of the code's columns."""
    bits, q = generator.shape
    columns = (generator << np.arange(bits)[:, None]).sum(0)
    sums = np.bincount(columns, minlength=1 << bits)
    for i in range(bits):
        low, high = np.moveaxis(sums.reshape(-1, 2, 1 << i), 1, 0)
        sums = np.stack((low + high, low - high), axis=1).ravel()
    return int(np.abs(sums[1:]).max(initial=0)) / q


def _generator(n: int, r: int) -> np.ndarray:
    """Rows Tr(alpha^i x^(2j+1)) over all x, for j = 0, ..., r-1 and i = 0, ..., n-1."""
    q, order = 1 << n, (1 << n) - 1
    powers = np.zeros(order, dtype=np.int64)
    value = 1
    for k in range(order):
        powers[k] = value
        value <<= 1
        if value & q:
            value ^= _PRIMITIVE[n]
    if len(set(powers.tolist())) != order:
        raise ArithmeticError(f"the polynomial of degree {n} is not primitive")
    trace = np.zeros(order, dtype=np.int64)
    for i in range(n):  # Tr(y) = y + y^2 + y^4 + ...; in powers of alpha, exponents double
        trace ^= powers[(np.arange(order) << i) % order]
    rows: list[np.ndarray] = []
    for j in range(r):
        exponents = (np.arange(order) * (2 * j + 1)) % order
        rows += [np.concatenate(([0], trace[(exponents + i) % order])) for i in range(n)]
    return np.stack(rows)
