"""Inputs on which a network is not the rule: found by descent over flips, confirmed in balls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.code import Rule
from boundcalc.predictors.rules.tables import FloatTables, Tables


@dataclass(frozen=True)
class Counterexample:
    """An input on which the network answers something else than the rule: its bits, and what the network gives."""

    x: tuple[int, ...]
    output: float
    answer: int

    def __str__(self) -> str:
        rare = int(2 * sum(self.x) <= len(self.x))
        places = ", ".join(str(t) for t, bit in enumerate(self.x) if bit == rare)
        shown = (
            f"the input with {('zeros', 'ones')[rare]} at {places}"
            if places
            else f"the input of {('ones', 'zeros')[rare]}"
        )
        return f"{shown} alone: the output is {self.output:.4g}, the rule says {self.answer}"


def counterexample(
    tables: Tables,
    rule: Rule,
    random: np.random.Generator,
    patterns: Sequence[tuple[int, ...]] | None = None,
    *,
    starts: int = 13,
    steps: int = 40,
) -> Counterexample | None:
    """An input on which the rule answers and the network, by its output in balls, answers otherwise; by descent over flips."""
    f = tables.floats
    low, high = rule.ones
    counts = sorted(np.linspace(low, high, starts).round().astype(int), key=lambda k: -abs(2 * k - low - high))
    for pattern in rule.patterns if patterns is None else patterns:
        answer = rule.table[rule.patterns.index(pattern)]
        sign = 1 if answer else -1
        for count in counts:
            x = start_at(rule, pattern, int(count), random)
            x, value = descend(f, rule, x, sign, steps, until=0.0)
            if value < 0:
                output = tables.value(x)
                if bool(sign * output <= 0) and int(rule.answers(x[None])[0]) == answer:
                    return Counterexample(tuple(map(int, x)), float(output.mid()), answer)
    return None


def start_at(rule: Rule, pattern: tuple[int, ...], count: int, random: np.random.Generator) -> Array:
    """An input with this pattern and as many ones among the other bits, at random places."""
    x = np.zeros(rule.T, dtype=np.int64)
    others = np.setdiff1d(np.arange(rule.T), rule.positions)
    x[random.permutation(others)[:count]] = 1
    x[list(rule.positions)] = pattern
    return x


def descend(
    f: FloatTables, rule: Rule, x: Array, sign: int, steps: int, until: float = -math.inf
) -> tuple[Array, float]:
    """Flip the bit that lowers sign f most, as long as one does, the rule still answers and the value is not below `until`."""
    others = np.setdiff1d(np.arange(rule.T), rule.positions)
    value = sign * float(f.forward(x[None])[0])
    for _ in range(steps):
        if value < until:
            break
        near = np.repeat(x[None], len(others), 0)
        near[np.arange(len(others)), others] ^= 1
        near = near[rule.answers(near) >= 0]
        if not len(near):
            break
        values = sign * f.forward(near)
        place = int(values.argmin())
        if not values[place] < value - 1e-9:
            break
        x, value = near[place], float(values[place])
    return x, value
