"""The code of updates: the probabilities of all messages sum to at most 1, and every message is read as it was
written."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from flint import arb

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.schema import write
from boundcalc.predictors import occam
from boundcalc.predictors._statements import read_as
from boundcalc.predictors.occam import Code, Message, Update, matrix
from boundcalc.predictors.reference import Law, Reference

SHAPES = {"a": (3, 4), "b": (5,), "c": (2, 3, 4), "d": (1, 6)}


def code(shapes: Mapping[str, tuple[int, ...]] = SHAPES, exponent: int = 0) -> Code:
    return Code(Reference({name: Law(shape, "constant", 0.0) for name, shape in shapes.items()}), exponent)


def probability(message: Message, shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> float:
    return 2 ** -code(shapes).bits(message)


def random_message(rng: random.Random) -> Message:
    updates: dict[str, Update] = {}
    for name in rng.sample(sorted(SHAPES), rng.randrange(len(SHAPES) + 1)):
        rows, columns = matrix(SHAPES[name])
        most = 1 if rng.random() < 0.5 else 40
        column = rng.randrange(columns) if min(rows, columns) > 1 and rng.random() < 0.5 else None
        size = rows * columns if column is None else rows
        places = rng.sample(range(size), rng.randrange(1, size + 1))
        numbers = {place: rng.choice((-1, 1)) * rng.randrange(1, most + 1) for place in places}
        updates[name] = Update(rng.randrange(-20, 20), numbers, column)
    return Message(rng.choice((0, 1, 5, 1000)), updates)


def test_messages_are_read_as_they_are_written_and_do_what_they_say() -> None:
    rng = random.Random(3)
    for _ in range(100):
        message = random_message(rng)
        assert read_as(Message, "a message", json.loads(json.dumps(write(message, complete=True)))) == message
        assert code(exponent=rng.randrange(-10, 10)).bits(message) > 0
        for name, update in message.updates.items():
            expected = np.zeros(matrix(SHAPES[name]))
            for place, number in update.numbers.items():
                row, column = divmod(place, expected.shape[1]) if update.column is None else (place, update.column)
                expected[row, column] = number * 2.0**update.exponent
            assert (update.dense(SHAPES[name]) == expected.reshape(SHAPES[name])).all()


def small_messages() -> list[Message]:
    """All messages of two seeds over two small tensors, with entries 1 and -1 and two exponents."""

    def sparse(size: int) -> list[dict[int, int]]:
        vectors = [dict(enumerate(values)) for values in itertools.product((0, 1, -1), repeat=size)]
        return [{place: v for place, v in vector.items() if v} for vector in vectors if any(vector.values())]

    options: dict[str, list[Update | None]] = {name: [None] for name in ("a", "b")}
    for exponent in (0, 1):
        options["a"] += [Update(exponent, numbers) for numbers in sparse(4)]
        options["a"] += [Update(exponent, numbers, column) for numbers in sparse(2) for column in (0, 1)]
        options["b"] += [Update(exponent, numbers) for numbers in sparse(2)]
    return [
        Message(seed, {name: update for name, update in (("a", a), ("b", b)) if update is not None})
        for seed in (0, 1)
        for a in options["a"]
        for b in options["b"]
    ]


def test_all_messages_of_a_small_space_come_to_at_most_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control leaves out how many numbers follow: no reader can cut such words, and their sum says so."""
    shapes = {"a": (2, 2), "b": (2,)}
    assert 1 / 4 < sum(probability(message, shapes) for message in small_messages()) <= 1
    monkeypatch.setattr(occam, "_positive", lambda value: arb(0))
    assert sum(probability(message, shapes) for message in small_messages()) > 1


def test_every_part_of_the_code_has_its_law() -> None:
    def nats(ball: arb) -> float:
        return float(ball.mid())

    assert sum(math.exp(-nats(occam._positive(value))) for value in range(1, 2**12)) == pytest.approx(1 - 2**-12)
    for total in range(1, 8):  # flags: all sequences
        chances = [math.comb(total, k) * math.exp(-nats(occam._flags(k, total))) for k in range(total + 1)]
        assert sum(chances) == pytest.approx(1)
    assert math.exp(-nats(occam._flags(2, 3))) == pytest.approx(1 / 2 * 3 / 4 * 1 / 6)
    assert math.exp(-nats(occam._choose(129, 3))) == pytest.approx(1 / math.comb(129, 3))
    one, two = ({"b": Update(0, {0: size})} for size in (1, 6))
    ratio = probability(Message(0, one)) / probability(Message(0, two))
    assert ratio == pytest.approx(3 * 2 * 2**5)  # not all units, one of one is large, and 5 among the numbers from 1


@pytest.mark.parametrize(
    ("name", "update"),
    [
        ("a", Update(0, {12: 1})),
        ("a", Update(0, {})),
        ("a", Update(2000, {0: 1})),
        ("a", Update(0, {0: 1}, 4)),
        ("a", Update(0, {3: 1}, 0)),
        ("b", Update(0, {0: 1}, 0)),
        ("other", Update(0, {0: 1})),
    ],
)
def test_what_the_code_cannot_say_is_refused(name: str, update: Update) -> None:
    with pytest.raises(CertificateError):
        code().bits(Message(0, {name: update}))


@pytest.mark.parametrize("numbers", [{"0": 0}, {"-1": 1}, {"01": 1}, {"0": 1.0}, {"x": 1}, {"0": None}, [1]], ids=str)
def test_what_is_no_message_is_not_read(numbers: Any) -> None:
    def message(**update: Any) -> dict[str, Any]:
        return {"seed": 0, "updates": {"a": {"exponent": 0, "numbers": {"0": 1}, "column": None, **update}}}

    assert read_as(Message, "a message", message()).updates["a"].numbers == {0: 1}
    for raw in (message(numbers=numbers), message(column=-1), message(exponent=True), {**message(), "seed": -1}, {}):
        with pytest.raises(CertificateError):
            read_as(Message, "a message", raw)
    with pytest.raises(InvalidSetting):
        Update(0, {-1: 1})
