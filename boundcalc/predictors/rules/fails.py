"""Inputs on which a network is not the rule: found by descent over flips, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.code import Fixed, Rule
from boundcalc.predictors.rules.tables import FloatTables


@dataclass(frozen=True)
class Counterexample:
    """An input on which the network answers something else than the rule: its bits, and what the network gives."""

    x: tuple[int, ...]
    output: float
    answer: int

    def __str__(self) -> str:
        rare = int(2 * sum(self.x) <= len(self.x))
        places = ", ".join(str(t) for t, bit in enumerate(self.x) if bit == rare)
        shown = f"{('zeros', 'ones')[rare]} at {places}" if places else ("ones", "zeros")[rare]
        return f"the input with {shown} alone: the output is {self.output:.4g}, the rule says {self.answer}"


def counterexample(
    floats: FloatTables, rule: Rule, random: np.random.Generator, leaves: Sequence[Fixed], starts: int = 5
) -> Counterexample | None:
    """An input in these leaves on which the rule answers and the network answers otherwise."""
    low, high = rule.ones
    counts = sorted(np.linspace(low, high, starts).round().astype(int).tolist(), key=lambda k: -abs(2 * k - low - high))
    for fixed in leaves:
        for answer in rule.answers_on(fixed) - {-1}:
            for count in counts:
                x, value = descend(floats, rule, fixed, answer, count, random, 40, until=0.0)
                if value < 0:
                    return Counterexample(tuple(map(int, x)), value if answer else -value, answer)
    return None


def descend(
    f: FloatTables,
    rule: Rule,
    fixed: Fixed,
    answer: int,
    count: int,
    random: np.random.Generator,
    steps: int = 60,
    until: float = -math.inf,
    start: Array | None = None,
) -> tuple[Array, float]:
    """From an input with these bits and about `count` ones, flip and swap others while the output worsens.

    The rule answers on all the way; the value is the output, or its negative where the answer is 0.
    """
    sign = 1 if answer else -1
    others = np.setdiff1d(np.arange(rule.T), list(fixed))
    if start is None:
        start = np.zeros(rule.T, dtype=np.int64)
        start[random.permutation(others)[: max(0, count - sum(fixed.values()))]] = 1
        start[list(fixed)] = list(fixed.values())
    x, value = start, sign * float(f.forward(start[None])[0])
    if int(rule.answers(x[None])[0]) != answer:
        return x, math.inf
    for _ in range(steps):
        if value < until:
            break
        order = others[np.argsort(sign * f.flips(x)[others], kind="stable")]
        near = np.repeat(x[None], len(others).bit_length() + 1, 0)
        for power, row in enumerate(near[1:]):  # the best flip, the best two, four, eight, ..
            row[order[: 2**power]] ^= 1
        for bit in (0, 1):  # the best flip of a 0 and the best of a 1: as many ones as before
            near[0, order[x[order] == bit][:1]] ^= 1
        near = near[rule.answers(near) == answer]
        values = sign * f.forward(near)
        if not len(near) or not values.min() < value - 1e-9:
            break
        x, value = near[int(values.argmin())], float(values.min())
    return x, value
