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
from boundcalc.predictors.occam import Message, Update, _message_bits, matrix

SHAPES = {"a": (3, 4), "b": (5,), "c": (2, 3, 4), "d": (1, 6)}


def probability(message: Message, shapes: Mapping[str, tuple[int, ...]] = SHAPES, exponent: int = 0) -> float:
    return 2 ** -_message_bits(message, shapes, exponent)


def random_message(rng: random.Random) -> Message:
    found: dict[str, Update] = {}
    for name in rng.sample(sorted(SHAPES), rng.randrange(len(SHAPES) + 1)):
        rows, columns = matrix(SHAPES[name])
        size = 1 if rng.random() < 0.5 else 40

        def some(places: int, most: int = size) -> dict[int, int]:
            chosen = rng.sample(range(places), rng.randrange(1, places + 1))
            return {place: rng.choice((-1, 1)) * rng.randrange(1, most + 1) for place in chosen}

        if min(rows, columns) > 1 and rng.random() < 0.5:
            across = some(columns)
            across[min(across)] = abs(across[min(across)])
            found[name] = Update(rng.randrange(-20, 20), some(rows), across)
        else:
            found[name] = Update(rng.randrange(-20, 20), some(rows * columns))
    return Message(rng.choice((0, 1, 5, 1000)), found)


def test_messages_are_read_as_they_are_written_and_do_what_they_say() -> None:
    rng = random.Random(3)
    for _ in range(100):
        message = random_message(rng)
        assert read_as(Message, "a message", json.loads(json.dumps(write(message, complete=True)))) == message
        assert _message_bits(message, SHAPES, rng.randrange(-10, 10)) > 0
        for name, update in message.updates.items():
            rows, columns = matrix(SHAPES[name])
            if update.columns is not None:
                u, v = np.zeros(rows), np.zeros(columns)
                u[list(update.rows)], v[list(update.columns)] = (
                    list(update.rows.values()),
                    list(update.columns.values()),
                )
                expected = np.ldexp(np.outer(u, v), update.exponent).reshape(SHAPES[name])
                assert (update.dense(SHAPES[name]) == expected).all()


def small_messages() -> list[Message]:
    """All messages of two seeds over two small tensors, with entries 1 and -1 and two exponents."""

    def sparse(size: int) -> list[dict[int, int]]:
        found = [dict(enumerate(values)) for values in itertools.product((0, 1, -1), repeat=size)]
        return [{place: v for place, v in one.items() if v} for one in found if any(one.values())]

    options: dict[str, list[Update | None]] = {name: [None] for name in ("a", "b")}
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
    "update",
    [
        Update(0, {12: 1}),
        Update(0, {}),
        Update(2000, {0: 1}),
        Update(0, {0: 1}, {0: -1}),
        Update(0, {0: 1}, {}),
        Update(0, {0: 1}, {4: 1}),
    ],
)
def test_what_the_code_cannot_say_is_refused(update: Update) -> None:
    with pytest.raises(CertificateError):
        _message_bits(Message(0, {"a": update}), SHAPES, 0)
    with pytest.raises(CertificateError):
        _message_bits(Message(0, {"other": Update(0, {0: 1})}), SHAPES, 0)
    with pytest.raises(CertificateError):
        _message_bits(Message(0, {"b": Update(0, {0: 1}, {0: 1})}), SHAPES, 0)


@pytest.mark.parametrize("rows", [{"0": 0}, {"-1": 1}, {"01": 1}, {"0": 1.0}, {"x": 1}, {"0": None}, [1]], ids=str)
def test_what_is_no_message_is_not_read(rows: Any) -> None:
    def message(**update: Any) -> dict[str, Any]:
        return {"seed": 0, "updates": {"a": {"exponent": 0, "rows": {"0": 1}, "columns": None, **update}}}

    assert read_as(Message, "a message", message()).updates["a"].rows == {0: 1}
    for raw in (message(rows=rows), message(columns=rows), message(exponent=True), {**message(), "seed": -1}, {}):
        with pytest.raises(CertificateError):
            read_as(Message, "a message", raw)
    with pytest.raises(InvalidSetting):
        Update(0, {-1: 1})
