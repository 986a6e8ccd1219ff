"""Positions make tokens exchangeable: pairs of token and place are a set, tokens alone are not.

The law of a sequence that is not exchangeable (a Markov chain) becomes exchangeable when every token carries its place and
the pairs come in a random order; and a network that adds positions to its tokens is a function of that set.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from boundcalc.lab.train.model import Transformer
from boundcalc.setting import Architecture

STAY = 0.9
LENGTH = 3


def chain(word: tuple[int, ...]) -> float:
    """P(word) of a chain of bits that starts at 0 and stays where it is with probability 0.9."""
    steps = zip((0, *word), word, strict=False)
    return math.prod(STAY if before == after else 1 - STAY for before, after in steps)


def paired() -> dict[tuple[Any, ...], float]:
    """The law of (token, place) pairs in a uniformly random order."""
    law: dict[tuple[Any, ...], float] = {}
    for word in itertools.product((0, 1), repeat=LENGTH):
        for order in itertools.permutations(range(LENGTH)):
            seen = tuple((word[place], place) for place in order)
            law[seen] = law.get(seen, 0.0) + chain(word) / math.factorial(LENGTH)
    return law


def test_a_chain_is_not_exchangeable_but_its_pairs_with_places_are() -> None:
    words: dict[tuple[int, ...], float] = {word: chain(word) for word in itertools.product((0, 1), repeat=LENGTH)}
    assert sum(words.values()) == pytest.approx(1)
    orders = list(itertools.permutations(range(LENGTH)))
    moved = [abs(words[w] - words[tuple(w[i] for i in order)]) for w in words for order in orders]
    assert max(moved) > 0.05  # the control: tokens without places are not
    pairs = paired()
    assert sum(pairs.values()) == pytest.approx(1)
    for seen, chance in pairs.items():
        for order in itertools.permutations(range(LENGTH)):
            assert pairs[tuple(seen[i] for i in order)] == pytest.approx(chance, abs=1e-15)


def network(positions: str) -> Transformer:
    torch.manual_seed(0)
    architecture = Architecture(
        style="pre", residual=True, normalisation="layernorm", seq_len=9, d=16, heads=2, d_head=8, depth=2, vocabulary=6
    )
    return Transformer(replace(architecture, positions=positions), None, torch.Generator().manual_seed(1)).double()


@torch.no_grad()
def test_a_network_with_positions_is_a_function_of_the_set_of_pairs() -> None:
    """Row 0 is read; the others are shuffled with their positions, or alone."""
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 6, (4, 9)))
    order = torch.tensor([0, 3, 1, 8, 2, 7, 5, 4, 6])
    model = network("learned")
    before = model(tokens)
    alone = model(tokens[:, order])
    assert (before - alone).abs().max() > 1e-3
    table = model.weights["positions"]
    table.copy_(table[order].clone())
    together = model(tokens[:, order])
    assert (before - together).abs().max() < 1e-12
    bare = network("none")
    assert (bare(tokens) - bare(tokens[:, order])).abs().max() < 1e-12
