"""G8: the reference points of examples/edelman2022/samples.py, by learners on a thousand draws of samples."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.examples.scripts import load

samples = load("edelman2022", "samples")


def answers(T: int, s: int, m: int, runs: int, seed: int, parity: bool = False) -> np.ndarray:
    """What every conjunction (or parity) of s of T bits answers to m draws of fair coins: (runs, m, functions)."""
    bits = np.random.default_rng(seed).integers(0, 2, (runs, m, T))
    some = bits[:, :, list(itertools.combinations(range(T), s))]
    return np.asarray(some.sum(-1) % 2 if parity else some.all(-1).astype(np.int64))


def test_a_bad_function_of_a_finite_class_survives_rarely_and_with_samples_that_forget_the_class_often() -> None:
    """Another conjunction of 2 of the 3 bits errs with probability 1/8, which is just too much to be good."""
    T, s, risk, delta = 12, 3, 0.1249, 0.05

    def survived(m: int) -> int:
        said = answers(T, s, m, 1000, 0)
        return int((said[:, :, 1:] == said[:, :, :1]).all(1).any(1).sum())

    enough, of_one_function = (math.ceil(samples.consistent(size, T, risk, delta)) for size in (s, 0))
    assert survived(enough) <= delta * 1000
    assert survived(of_one_function) > 3 * delta * 1000


@pytest.mark.parametrize("parity", [True, False])
def test_no_learner_finds_the_bits_below_the_floor_and_one_does_a_little_above_it(parity: bool) -> None:
    """The best learner is right as often as labels tell: patterns that occur, over functions."""
    T, s = 16, 3

    def chance(m: int) -> float:
        said = answers(T, s, m, 1000, 1, parity)
        codes = (said << np.arange(m)[None, :, None]).sum(1)
        return float(np.mean([len(set(row)) for row in codes.tolist()])) / math.comb(T, s)

    floor = math.ceil(samples.support_floor(s, T))
    assert chance(floor - 1) <= 2 ** (floor - 1) / math.comb(T, s) < 0.5
    if parity:  # its labels are nearly as many bits: a floor three labels higher would be false
        assert chance(floor + 2) > 0.5
