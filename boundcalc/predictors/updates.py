"""Few whole numbers that change weights: sparse and rank-one updates of tensors, and their code.

A message is the seed of the reference weights and, for some tensors, an update 2^e N: N sparse, or u v' with sparse u and v.
A tensor of more than two dimensions counts as a matrix of its last one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.coding import Coder, Flags, Reader, Writer, bits_of, choose, positive, signed, subset
from boundcalc.predictors.data import Array

_Entries = Mapping[int, int]
"""Whole numbers other than 0 by their places."""
_Shapes = Mapping[str, tuple[int, ...]]

_UNIT = (1, 3)
"""Odds that some numbers of an update are larger than 1, or none."""
_FARTHEST = 1000
"""Largest exponent of two."""


@dataclass(frozen=True)
class Update:
    """2^exponent times a sparse tensor `rows` (places in the flat one), or times the product of `rows` and `columns`."""

    exponent: int
    rows: _Entries
    columns: _Entries | None = None

    def dense(self, shape: tuple[int, ...]) -> Array:
        """As an array of this shape, exact: powers of two times whole numbers."""
        flat = np.zeros(math.prod(shape))
        width = matrix(shape)[1]
        for row, value in self.rows.items():
            if self.columns is None:
                flat[row] = math.ldexp(value, self.exponent)
            else:
                for column, factor in self.columns.items():
                    flat[row * width + column] = math.ldexp(value * factor, self.exponent)
        return flat.reshape(shape)


@dataclass(frozen=True)
class Message:
    """What a code word says."""

    seed: int
    updates: Mapping[str, Update] = field(default_factory=dict[str, Update])


def matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a tensor."""
    if len(shape) < 2:
        return math.prod(shape), 1
    return math.prod(shape[:-1]), shape[-1]


def describe(coder: Coder, shapes: _Shapes, exponent: int, message: Message | None = None) -> Message:
    """The code: the same lines write a message and read one.

    Args:
        coder: writes, reads or lists.
        shapes: of the tensors that may change.
        exponent: of two, that updates have most often.
        message: what is to be written.
    """
    seed = positive(coder, None if message is None else message.seed + 1) - 1
    names = tuple(shapes)
    # none, or a few: one more is half as likely
    odds = [1 << max(0, len(names) - 1 - i) for i in range(len(names))]
    odds = [max(1, odds[0] // 8), *odds]
    count = choose(coder, odds, None if message is None else len(message.updates))
    changed = None if message is None else sorted(names.index(name) for name in message.updates)
    found: dict[str, Update] = {}
    for place in subset(coder, len(names), count, changed):
        name = names[place]
        found[name] = _update(coder, shapes[name], exponent, None if message is None else message.updates[name])
    return Message(seed, found)


def _update(coder: Coder, shape: tuple[int, ...], exponent: int, update: Update | None) -> Update:
    rows, columns = matrix(shape)
    product = False
    if min(rows, columns) > 1:
        product = bool(choose(coder, (1, 1), None if update is None else int(update.columns is not None)))
    elif update is not None and update.columns is not None:
        raise CertificateError("a tensor of one row or column has sparse updates alone")
    power = exponent + signed(coder, None if update is None else update.exponent - exponent)
    if abs(power) > _FARTHEST:
        raise CertificateError(f"an update in steps of 2^{power}: at most 2^{_FARTHEST} is read")
    small = (
        None if update is None else all(abs(v) == 1 for v in (*update.rows.values(), *(update.columns or {}).values()))
    )
    units = bool(choose(coder, _UNIT, None if small is None else int(small)))
    if not product:
        return Update(power, _entries(coder, rows * columns, units, None if update is None else update.rows))
    down = _entries(coder, rows, units, None if update is None else update.rows)
    across = _entries(coder, columns, units, None if update is None else update.columns, first_positive=True)
    return Update(power, down, across)


def _entries(
    coder: Coder, size: int, units: bool, given: _Entries | None, *, first_positive: bool = False
) -> dict[int, int]:
    """Whole numbers other than 0 at some of `size` places."""
    count = positive(coder, None if given is None else len(given))
    if count > size:
        raise CertificateError(f"the code holds {count} numbers for {size} places")
    places = subset(coder, size, count, None if given is None else sorted(given))
    signs, ones = Flags(), Flags()
    found: dict[int, int] = {}
    for i, place in enumerate(places):
        value = None if given is None else given[place]
        if first_positive and i == 0:
            if value is not None and value < 0:
                raise CertificateError("the first factor of a column must be positive: its sign belongs to the rows")
            up = True
        else:
            up = signs.take(coder, None if value is None else value > 0)
        size_ = 1
        if not units and not ones.take(coder, None if value is None else abs(value) == 1):
            size_ = 1 + positive(coder, None if value is None else abs(value) - 1)
        found[place] = size_ if up else -size_
    return found


def write(message: Message, shapes: _Shapes, exponent: int) -> tuple[str, float]:
    """The file of a message, and its bits: -log2 of its probability, rounded up. The file has ceil(bits) bits."""
    writer = Writer()
    describe(writer, shapes, exponent, message)
    return writer.file(), bits_of(writer.probability)


def read(file: str, shapes: _Shapes, exponent: int) -> tuple[Message, float]:
    """The message of a file, and its bits; a file that is not the one `write` gives is refused."""
    message = describe(Reader(file), shapes, exponent)
    again, bits = write(message, shapes, exponent)
    if again != file:
        raise CertificateError("the code is not the shortest of its message: it was changed")
    return message, bits
