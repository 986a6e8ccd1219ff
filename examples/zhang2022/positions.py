"""Positions make tokens exchangeable: pairs of token and place are a set, tokens alone are not.

Tokens that are independent given a latent variable are exchangeable: their densities, as products of predictive ones,
are the same in every order. The law of a Markov chain is not; that of its pairs (token, place) in a random order is,
exactly. And a network that adds positions to its tokens is a function of the set of pairs: it answers the same when
both are shuffled together. Computed: 0 for all. Measured: how far log densities, probabilities and answers move.

    python examples/zhang2022/positions.py
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from common import Values, run

from boundcalc.lab.latent.models import MODELS, LatentModel
from boundcalc.lab.train.model import draw_weights, plain
from boundcalc.setting import Architecture

QUICK: dict[str, Any] = {}
STAY = 0.9
"""Probability that the chain of bits, which starts at 0, does not move."""
_ORDER = [0, 3, 1, 8, 2, 7, 5, 4, 6]
"""Row 0 is read, and stays where it is."""


def chain(word: Sequence[int]) -> float:
    """The probability of a word of the chain."""
    return math.prod(STAY if a == b else 1 - STAY for a, b in zip((0, *word), word, strict=False))


def paired(length: int) -> dict[tuple[Any, ...], float]:
    """The law of (token, place) pairs in a uniformly random order."""
    law: dict[tuple[Any, ...], float] = {}
    for word in itertools.product((0, 1), repeat=length):
        for order in itertools.permutations(range(length)):
            seen = tuple((word[place], place) for place in order)
            law[seen] = law.get(seen, 0.0) + chain(word) / math.factorial(length)
    return law


def moved(law: Mapping[tuple[Any, ...], float]) -> float:
    """The most that a probability changes as its tokens are reordered."""
    orders = list(itertools.permutations(range(len(next(iter(law))))))
    return max(abs(law[tuple(seen[i] for i in order)] - chance) for seen, chance in law.items() for order in orders)


@torch.no_grad()
def answers_moved(positions: str, *, together: bool, seed: int = 0) -> float:
    """How far a network's answers move as its tokens are shuffled, alone or together with their positions."""
    architecture = Architecture(
        style="pre",
        residual=True,
        normalisation="layernorm",
        seq_len=9,
        d=16,
        heads=2,
        d_head=8,
        depth=2,
        vocabulary=6,
        positions=positions,  # type: ignore[arg-type]
    )
    generator = torch.Generator().manual_seed(seed)
    weights = {name: value.double() for name, value in draw_weights(architecture, None, generator).items()}
    tokens = torch.randint(0, 6, (4, 9), generator=generator)
    before = plain(architecture, weights, tokens)
    if together:
        weights["positions"] = weights["positions"][_ORDER]
    return float((before - plain(architecture, weights, tokens[:, _ORDER])).abs().max())


def density_moved(model: LatentModel, length: int = 9) -> float:
    """The most that the log density of a model's tokens differs between its formula and the chain in random orders."""
    rng = np.random.default_rng(0)
    tokens = model.draw(rng, length)
    at = model.log_joint(tokens)
    return max(abs(model.log_by_chain(rng.permutation(tokens)) - at) for _ in range(10))


def main(length: int = 3) -> tuple[Values, Values]:
    """What should not move, and how far it moves."""
    measured = {
        **{f"log density, {name}": density_moved(model()) for name, model in MODELS.items()},
        "law of pairs (token, place)": moved(paired(length)),
        "answers, tokens and positions shuffled": answers_moved("learned", together=True),
    }
    words = {word: chain(word) for word in itertools.product((0, 1), repeat=length)}
    print(f"without places probabilities move by {moved(words):.3g}, ", end="")
    print(f"answers, tokens shuffled alone, by {answers_moved('learned', together=False):.3g}")
    return dict.fromkeys(measured, 0.0), measured


if __name__ == "__main__":
    run(main)
