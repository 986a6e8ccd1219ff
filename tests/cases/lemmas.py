"""Cases of the covering lemmas: random targets of every kind they are for, another kind, and less than they cost."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

from boundcalc.base.numbers import FLOAT
from boundcalc.layers.facts import Kind, Points, Target
from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.statements.covers.lemmas import MatrixPerceptron, Maurey, PublishedPerceptron
from boundcalc.statements.weights import matrix_norms
from boundcalc.testing._judge import Cases
from boundcalc.testing._lemmas import LemmaExample, examples_of, scaled

KINDS: tuple[Kind, ...] = ("map", "score", "query", "key", "vector", "gain", "table")
_TOO_SMALL: dict[type[CoverLemma], float] = {PublishedPerceptron: 0.02, MatrixPerceptron: 0.1, Maurey: 0.2}
"""The part of a lemma's cost that is noticed to be too little; half of it, elsewhere."""


def examples(lemma: CoverLemma, number: int = 300) -> Iterator[LemmaExample]:
    """Targets the lemma applies to."""
    rng = random.Random(lemma.name)
    count = 0
    while count < number:
        kind = rng.choice(KINDS)
        d, k = rng.choice((1, 2, 40, 60)), rng.choice((1, 2, 40, 60))
        budget = Budget(
            op=1.0,
            two_one=rng.choice((None, 1.0, 2.0)),
            nuclear=rng.choice((None, 1.2, 3.0)),
            rank=rng.choice((None, 1, 3)),
        )
        norms = matrix_norms(FLOAT, budget, 1 if kind in ("vector", "gain") else d, k)
        if norms is None:  # never: the budget is not empty
            continue
        target = Target(kind, norms.rank if kind == "vector" else d, k, 1.0, norms, Points(1))
        if lemma.applies(target) is None:
            count += 1
            yield LemmaExample(
                target, math.exp(rng.uniform(1e-6, rng.choice((1, 6)))), rng.choice((1, 10, 10**6, 10**12))
            )


def cases(name: str) -> Cases:
    """What the library's lemma of that name brings."""
    lemma = LEMMAS[name]
    random_ones = list(examples(lemma))
    instances = [*random_ones, *(example for case in random_ones[:8] for example in examples_of(case.target))]
    target = instances[0].target
    other = next(kind for kind in KINDS if kind not in lemma.kinds)
    wrong = {"too small": scaled(lemma, _TOO_SMALL.get(type(lemma), 0.5))}
    return Cases(instances, [(replace(target, kind=other), f"{name} needs a")], wrong)
