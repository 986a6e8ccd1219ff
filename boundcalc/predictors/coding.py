"""Arithmetic coding with whole numbers: a description is written once and run by whoever writes, reads or lists it.

A description asks a coder for one choice after another; what it asks may depend on the choices so far and on nothing else.
So the choices are the branches of a tree, their probabilities at each branch sum to at most 1 by construction, and the
probabilities of all messages sum to at most 1: Kraft's inequality, without a code word having been looked at. The interval
of a message of probability w holds a multiple of 2^-L, L = ceil(log2(1/w)): its L bits are the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

from flint import arb, fmpz

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import upper_float


class Coder(Protocol):
    """Takes one choice out of `total` places: the part from `start`, of `size` places, that belongs to it."""

    def part(self, total: int, sizes: Callable[[int], tuple[int, int, int]], chosen: int | None) -> int:
        """The choice; `sizes` gives (choice, start, size) of the part that a place lies in."""
        ...


def choose(coder: Coder, weights: Sequence[int], chosen: int | None = None) -> int:
    """One of a few choices, with probabilities in proportion to whole weights."""
    starts = [sum(weights[:i]) for i in range(len(weights))]

    def holding(place: int) -> tuple[int, int, int]:
        found = max(i for i, start in enumerate(starts) if start <= place and weights[i])
        return found, starts[found], weights[found]

    return coder.part(sum(weights), holding, None if chosen is None else starts[chosen])


def uniform(coder: Coder, count: int, chosen: int | None = None) -> int:
    """One of `count` equally likely choices."""
    return coder.part(count, lambda place: (place, place, 1), chosen)


def positive(coder: Coder, value: int | None = None) -> int:
    """A whole number from 1: its number of binary digits (each more has half the probability), then these digits."""
    digits = 1
    while choose(coder, (1, 1), None if value is None else int(value.bit_length() > digits)):
        digits += 1
        if digits > _DIGITS:
            raise CertificateError(f"the code holds a number of more than {_DIGITS} digits")
    low = 1 << (digits - 1)
    return low + uniform(coder, low, None if value is None else value - low)


_DIGITS = 64


def signed(coder: Coder, value: int | None = None) -> int:
    """Any whole number, those near 0 shorter: 0, 1, -1, 2, .. as 1, 2, 3, 4, .."""
    found = positive(coder, None if value is None else 2 * value if value > 0 else 1 - 2 * value)
    return found // 2 if found % 2 == 0 else -(found // 2)


class Flags:
    """Truth values of an unknown share: each has the odds of those before it, half a place added to either side."""

    def __init__(self) -> None:
        self.counts = [0, 0]

    def take(self, coder: Coder, value: bool | None = None) -> bool:
        """The next one."""
        weights = [2 * count + 1 for count in self.counts]
        found = choose(coder, weights, None if value is None else int(value))
        self.counts[found] += 1
        return bool(found)


def subset(coder: Coder, size: int, count: int, chosen: Sequence[int] | None = None) -> tuple[int, ...]:
    """Which `count` of `size` places, in rising order, all equally likely."""
    if count * count > size:  # many: every place is passed once, and the binomials follow from one another
        rank = None if chosen is None else _walk(size, count, chosen, 0)[1]
        return _walk(size, count, None, uniform(coder, math.comb(size, count), rank))[0]
    rank = None
    if chosen is not None:
        rank = sum(math.comb(place, i + 1) for i, place in enumerate(chosen))
    rank = uniform(coder, math.comb(size, count), rank)
    found: list[int] = []
    top = size
    for i in range(count, 0, -1):
        low, high = i - 1, top  # the largest place with comb(place, i) <= rank
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if math.comb(middle, i) <= rank else (low, middle)
        rank -= math.comb(low, i)
        found.append(low)
        top = low
    return tuple(reversed(found))


def _walk(size: int, count: int, chosen: Sequence[int] | None, rank: int) -> tuple[tuple[int, ...], int]:
    """The places of a rank, or the rank of places: sum over the i-th place p of comb(p, i)."""
    wanted = set(chosen or ())
    found: list[int] = []
    left, total = count, 0
    place, binomial = size - 1, math.comb(size - 1, count)  # comb(place, left)
    while left:
        if place in wanted if chosen is not None else binomial <= rank:
            found.append(place)
            total, rank = total + binomial, rank - binomial
            binomial = binomial * left // place if place else 0  # comb(place - 1, left - 1)
            left -= 1
        else:
            binomial = binomial * (place - left) // place  # comb(place - 1, left)
        place -= 1
    return tuple(reversed(found)), total


class Writer:
    """Narrows [0, 1) to the interval of a message."""

    def __init__(self) -> None:
        self.low, self.width, self.whole = 0, 1, 1

    def part(self, total: int, sizes: Callable[[int], tuple[int, int, int]], chosen: int | None) -> int:
        """Take the part that was chosen."""
        if chosen is None or not 0 <= chosen < total:
            raise CertificateError(f"a choice of {chosen} among {total} places cannot be written")
        found, start, size = sizes(chosen)
        self.low = self.low * total + self.width * start
        self.width *= size
        self.whole *= total
        return found

    @property
    def probability(self) -> Fraction:
        """Of the message, exactly."""
        return Fraction(self.width, self.whole)

    def file(self) -> str:
        """The shortest bits that lie in the interval, the first of their length: "L:hexadecimal digits"."""
        length = (-(-self.whole // self.width) - 1).bit_length()
        point = -((-self.low << length) // self.whole)
        return f"{length}:{point:x}"


class Reader:
    """Makes the choices that a file of bits says."""

    def __init__(self, file: str) -> None:
        length, colon, digits = file.partition(":")
        if not (colon and length.isascii() and length.isdigit() and digits and set(digits) <= set("0123456789abcdef")):
            raise CertificateError("a code is written as its number of bits, a colon and hexadecimal digits")
        if len(length) > 9 or len(digits) > int(length) // 4 + 1:
            raise CertificateError(f"a code of {length[:12]} bits has not {len(digits)} hexadecimal digits")
        self.place, self.whole = int(digits, 16), 1 << int(length)
        if self.place >= self.whole:
            raise CertificateError(f"a code of {length} bits holds no number of {self.place.bit_length()}")

    def part(self, total: int, sizes: Callable[[int], tuple[int, int, int]], chosen: int | None) -> int:
        """The part that the number lies in, and from there on its place within."""
        found, start, size = sizes(self.place * total // self.whole)
        self.place = self.place * total - start * self.whole
        self.whole *= size
        return found


def bits_of(probability: Fraction) -> float:
    """-log2 of a probability, rounded up."""
    top, bottom = arb(fmpz(probability.denominator)), arb(fmpz(probability.numerator))
    return max(0.0, upper_float((top.log() - bottom.log()) / arb.const_log2()))
