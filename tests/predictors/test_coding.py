"""Codes: what is written is read, and the probabilities of all messages sum to at most 1, whoever counts them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.coding import Coder, Flags, Reader, Writer, bits_of, choose, positive, signed, subset
from boundcalc.predictors.tails import limit
from boundcalc.predictors.updates import Message, Update, describe, matrix, read, write

SHAPES = {"a": (3, 4), "b": (5,), "c": (2, 3, 4), "d": (1, 6)}


class _Fork(Exception):
    """A description met a choice that a script does not make: all of them, with their probabilities."""

    def __init__(self, choices: list[tuple[int, Fraction]]) -> None:
        super().__init__()
        self.choices = choices


class _Script:
    def __init__(self, made: Sequence[int]) -> None:
        self.made = list(made)

    def part(self, total: int, sizes: Callable[[int], tuple[int, int, int]], chosen: int | None) -> int:
        if self.made:
            found, _, _ = sizes(self.made.pop(0))
            return found
        choices: list[tuple[int, Fraction]] = []
        place = 0
        while place < total:
            _, start, size = sizes(place)
            choices.append((start, Fraction(size, total)))
            place = start + size
        raise _Fork(choices)


def messages(describe: Callable[[Coder], Any], least: Fraction) -> Iterator[tuple[Any, Fraction]]:
    """Every message of at least this probability, with it."""
    open_: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while open_:
        made, share = open_.pop()
        try:
            found = describe(_Script(made))
        except CertificateError:
            continue  # a word that no reader takes
        except _Fork as fork:
            open_ += [((*made, place), share * odds) for place, odds in fork.choices if share * odds >= least]
        else:
            yield found, share


def probability(message: Message, shapes: Mapping[str, tuple[int, ...]], exponent: int) -> Fraction:
    """What the code gives a message, exactly."""
    writer = Writer()
    describe(writer, shapes, exponent, message)
    return writer.probability


def random_message(rng: random.Random) -> Message:
    updates: dict[str, Update] = {}
    for name in rng.sample(sorted(SHAPES), rng.randrange(len(SHAPES) + 1)):
        rows, columns = matrix(SHAPES[name])
        size = 1 if rng.random() < 0.5 else 40

        def some(places: int, most: int = size) -> dict[int, int]:
            chosen = rng.sample(range(places), rng.randrange(1, places + 1))
            return {place: rng.choice((-1, 1)) * rng.randrange(1, most + 1) for place in chosen}

        if min(rows, columns) > 1 and rng.random() < 0.5:
            across = some(columns)
            across[min(across)] = abs(across[min(across)])
            updates[name] = Update(rng.randrange(-20, 20), some(rows), across)
        else:
            updates[name] = Update(rng.randrange(-20, 20), some(rows * columns))
    return Message(rng.choice((0, 1, 5, 1000)), updates)


def test_what_is_written_is_read_and_has_the_length_that_is_paid() -> None:
    rng = random.Random(3)
    for _ in range(400):
        message, exponent = random_message(rng), rng.randrange(-5, 6)
        file, bits = write(message, SHAPES, exponent)
        assert read(file, SHAPES, exponent) == (message, bits)
        assert int(file.partition(":")[0]) == math.ceil(bits - 1e-9)


def test_every_flipped_bit_is_refused_or_says_something_else() -> None:
    rng = random.Random(4)
    for _ in range(40):
        message = random_message(rng)
        file, _ = write(message, SHAPES, 0)
        length, _, digits = file.partition(":")
        for place in range(int(length)):
            forged = f"{length}:{int(digits, 16) ^ 1 << place:x}"
            try:
                assert read(forged, SHAPES, 0)[0] != message
            except CertificateError:
                continue
        for forged in (f"{int(length) + 1}:{digits}", f"{length}:0{digits}", f"0{file}", "", "3:", ":1", "3:zz", "2:7"):
            with pytest.raises(CertificateError):
                read(forged, SHAPES, 0)


def small_messages() -> list[Message]:
    """All messages of two seeds over three small tensors, with entries 1 and -1 and two exponents."""
    shapes = {"a": (2, 2), "b": (2,)}

    def sparse(size: int) -> list[dict[int, int]]:
        found = [dict(enumerate(values)) for values in itertools.product((0, 1, -1), repeat=size)]
        return [{place: v for place, v in one.items() if v} for one in found if any(one.values())]

    options: dict[str, list[Update | None]] = {name: [None] for name in shapes}
    for exponent in (0, 1):
        options["a"] += [Update(exponent, rows) for rows in sparse(4)]
        options["a"] += [
            Update(exponent, rows, columns) for rows in sparse(2) for columns in sparse(2) if columns[min(columns)] > 0
        ]
        options["b"] += [Update(exponent, rows) for rows in sparse(2)]
    return [
        Message(seed, {name: update for name, update in (("a", a), ("b", b)) if update is not None})
        for seed in (0, 1)
        for a in options["a"]
        for b in options["b"]
    ]


def kraft(share: Callable[[Message], Fraction]) -> Fraction:
    return sum((share(message) for message in small_messages()), Fraction(0))


def test_the_messages_of_a_small_space_come_to_at_most_one_and_a_code_without_lengths_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control leaves out how many numbers follow: no reader can cut such words, and their sum says so."""
    shapes = {"a": (2, 2), "b": (2,)}
    honest = kraft(lambda message: probability(message, shapes, 0))
    assert Fraction(1, 4) < honest <= 1
    monkeypatch.setattr("boundcalc.predictors.updates.positive", lambda coder, value=None: value)
    monkeypatch.setattr("boundcalc.predictors.updates.choose", lambda coder, weights, chosen=None: chosen)
    assert kraft(lambda message: probability(message, shapes, 0)) > 1


def test_the_readers_own_tree_comes_to_at_most_one() -> None:
    shapes = {"a": (2, 2), "b": (1,)}
    total, count = Fraction(0), 0
    for message, share in messages(lambda coder: describe(coder, shapes, 0), Fraction(1, 2**13)):
        assert share <= probability(message, shapes, 0)  # some say in two ways what is written in one
        total, count = total + share, count + 1
    assert count > 300
    assert Fraction(1, 3) < total <= 1


def test_numbers_and_subsets_have_their_laws() -> None:
    for value in (1, 2, 3, 7, 8, 1000):
        writer = Writer()
        positive(writer, value)
        assert writer.probability == Fraction(1, 2 ** (2 * value.bit_length() - 1))
    assert {_said(lambda coder, v=v: signed(coder, v), signed) for v in range(-50, 50)} == set(range(-50, 50))
    flags, writer = Flags(), Writer()
    for value in (True, True, False):
        flags.take(writer, value)
    assert writer.probability == Fraction(1, 2) * Fraction(3, 4) * Fraction(1, 6)
    writer = Writer()
    subset(writer, 129, 3, (4, 50, 128))
    assert writer.probability == Fraction(1, math.comb(129, 3))


def _said(write_: Callable[[Writer], object], read_: Callable[[Reader], int]) -> int:
    writer = Writer()
    write_(writer)
    return read_(Reader(writer.file()))


def test_a_choice_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(CertificateError, match="cannot be written"):
        choose(Writer(), (1, 1), None)
    with pytest.raises(CertificateError):
        positive(Reader("70:" + "f" * 17 + "c"))


def test_bits_are_rounded_up_and_thousands_of_them_still_count() -> None:
    for share in (Fraction(1, 3), Fraction(5, 7), Fraction(1, 8), Fraction(1), Fraction(1, 10**1000)):
        exact = bits_of(share)
        assert Fraction(2) ** -math.ceil(exact) <= share
        assert exact == pytest.approx(math.log2(share.denominator) - math.log2(share.numerator), abs=1e-9)
    assert 3 <= bits_of(Fraction(1, 8)) < 3 + 1e-14
    # Where the logarithm of a cumulative float has long been -inf: at 3000 bits, one error more still costs.
    from flint import arb

    at = [limit(errors, 2000, arb(0.05).log() - 3000 * arb.const_log2()) for errors in (0, 1, 50)]
    assert at[0] == pytest.approx(-math.expm1((math.log(0.05) - 3000 * math.log(2)) / 2000), rel=1e-9)
    assert at[0] < at[1] < at[2] < 1
