"""The shortest chain of scales, against all chains there are."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from boundcalc.engine.chain import best_chain


def value(start: float, scales: list[float], counts: list[float], weight: float, chain: tuple[int, ...]) -> float:
    total, coarse = 0.0, start
    for j in chain:
        total += coarse * weight * math.sqrt(counts[j])
        coarse = scales[j]
    return total + coarse


@pytest.mark.parametrize("seed", range(150))
def test_no_chain_is_shorter(seed: int) -> None:
    rng = random.Random(seed)
    size, start, weight = rng.randint(0, 8), rng.uniform(0.01, 0.5), rng.uniform(0.5, 2)
    scales = sorted((start * rng.random() ** rng.uniform(0.2, 4) for _ in range(size)), reverse=True)
    counts = sorted(10 ** rng.uniform(-6, 2) for _ in range(size))
    if size > 3:  # scales or counts that repeat, and counts out of range
        scales[2], counts[1] = scales[1], counts[0]
        counts[-1] = rng.choice([counts[-1], math.inf])
    every = (chain for k in range(size + 1) for chain in itertools.combinations(range(size), k))
    least = min(value(start, scales, counts, weight, chain) for chain in every)
    found, chain = best_chain(start, scales, counts, weight)
    assert found == pytest.approx(least, rel=1e-12)
    assert found == pytest.approx(value(start, scales, counts, weight, tuple(chain)), rel=1e-12)
