"""G12: trees of coins, on which refinements pay what they add; and certificates that refine what cannot be refined."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.search import Search
from boundcalc.proof.certificate import Certificate, Choice, Cover, Level
from boundcalc.proof.checker import check
from boundcalc.proof.second._certificate import read_certificate
from boundcalc.proof.second._numbers import Refused, num
from boundcalc.proof.second._value import _value as second_value
from boundcalc.proof.second._value import follow
from boundcalc.setting import Setting
from boundcalc.statements.strategies import STRATEGIES, Known
from boundcalc.theorems import POLICIES
from tests.proof import alone
from tests.proof.both import refusals, with_choices

M = 400
DRAWS = 300
TREES = (((0.35, 20), (0.15, 50)), ((0.01, 2), (0.49, 1000)), ((0.2, 5), (0.2, 5), (0.1, 200)), ((0.5, 300),))
"""Per level: how far a child is from its parent at every point, and how many children every parent has."""


def supremum(tree: tuple[tuple[float, int], ...]) -> float:
    """E sup (P - P_m) g over g = 1/2 + sum of r_j times a coin of +-1 for every node on the way to a leaf."""
    rng = np.random.default_rng(7)
    largest: list[float] = []
    for _ in range(DRAWS):
        means = np.zeros(1)
        for size, children in tree:
            flips = 2 * rng.binomial(M, 0.5, (len(means), children)) / M - 1
            means = (means[:, None] - size * flips).ravel()
        largest.append(means.max())
    return float(np.mean(largest))


def bound(tree: tuple[tuple[float, int], ...], counts: list[float]) -> float:
    """The value of G12 without its deviation, down to a scale at which every leaf is its own centre."""
    sizes = [size for size, _ in tree]
    scales = [*(sum(sizes[j:]) for j in range(1, len(sizes))), 1e-12]
    known = Known(sum(sizes), scales, counts, 0.0, M, 0.0)
    strategy = STRATEGIES["chain"]
    assert all(less <= more for less, more, _ in strategy.conditions(FLOAT, known))
    return strategy.value(FLOAT, known)


def test_trees_of_coins_stay_below() -> None:
    for tree in TREES:
        assert supremum(tree) <= bound(tree, [math.log(children) for _, children in tree])
    assert supremum(TREES[1]) > bound(TREES[1], [math.log(2), math.log(2)])  # which pays for two of a thousand


# -- certificates


@cache
def refined() -> Certificate:
    search = Search(Setting.of(depth=1, d=16, n_train=10**6, margin=1.0), replace(POLICIES["best"], comparison=False))
    certificate = min(search.candidates("gap"), key=lambda each: each.log_value).certificate
    assert certificate.strategy == "chain"
    return replace(certificate, log_value=1e6, nats=1e6)


def where() -> tuple[int, str, Cover, Cover]:
    """A level and a piece that it refines, by which cover, and what the level before has."""
    levels = refined().levels
    return next(
        (i, key, cover, levels[i - 1].covers[key])
        for i, level in enumerate(levels)
        for key, cover in level.covers.items()
        if all(choice.refines for choice in cover.choices)
    )


def changed(index: int, key: str, choices: tuple[Choice, ...], log_eps: float | None = None) -> Certificate:
    return with_choices(refined(), index, key, choices, log_eps)


def test_a_refined_chain_is_below_the_plain_one_and_both_checkers_agree() -> None:
    checked = check(refined())
    assert abs(float(alone.log_value(refined())) - checked.log_value) < 1e-12
    names = [name for name in POLICIES if name not in ("best", "comparison")]
    plain = [value for value in (evaluate(refined().setting, name) for name in names) if not value.trivial]
    assert all(checked.value < math.exp(value.certificate.log_value) for value in plain)


def coarse() -> Certificate:
    """A chain of two levels: the second refines the read-out alone and keeps all else, so that it adds little."""
    fine = refined().levels[0]
    cover = fine.covers["readout"]
    wide = Level(fine.log_scale + 0.3, {**fine.covers, "readout": Cover(cover.log_eps + 0.6, cover.choices)})
    kept = {
        key: Cover(each.log_eps, tuple(replace(x, lemma="T4", params={"t": 0.01}, refines=True) for x in each.choices))
        for key, each in fine.covers.items()
    }
    check(replace(refined(), levels=(wide,)))
    return replace(refined(), levels=(wide, Level(fine.log_scale, kept)))


def test_what_cannot_be_refined_is_refused() -> None:
    i, key, cover, before = where()
    (choice,), (old,) = cover.choices, before.choices
    broken = {
        "no level before": changed(0, key, (choice,)),
        "another metric": changed(i, key, (replace(choice, target=1 - choice.target),)),
        "another body": changed(i, key, (replace(choice, lemma="T13", params=old.params),)),
        "a map left out": changed(i - 1, key, (Choice("zero", 0),), 20.0),
        "an empirical cover": changed(i - 1, key, (replace(old, lemma="T2", params={}, refines=False),)),
        "parameters": changed(i, key, (replace(choice, params={"t": 0.9}),)),
        "links one by one": coarse(),
    }
    for what, certificate in broken.items():
        for why in refusals(certificate):
            assert "links" in why if what == "links one by one" else why, what


def test_scales_fall_and_what_levels_add_grows_by_both_checkers() -> None:
    """The first by its conditions, the second by what it computes the value from.

    The order they take is the control.
    """
    strategy, sizes = STRATEGIES["chain"], [0.4, 0.2, 0.1]
    written = read_certificate(alone.written(refined()))
    orders = {
        "falling, growing": (sizes, [1.0, 2.0, 8.0], True),
        "equal per link": (sizes, [4.0, 1.7, 0.3], False),
        "shrinking": (sizes, [8.0, 1.0, 1.0], False),
        "a scale twice": ([0.4, 0.4, 0.1], [1.0, 2.0, 8.0], False),
        "a scale that rises": ([0.2, 0.4, 0.1], [1.0, 4.0, 8.0], False),
    }
    for what, (scales, counts, taken) in orders.items():
        known = Known(0.5, scales, counts, 0.0, M, 0.0)
        assert all(less < more for less, more, _ in strategy.conditions(FLOAT, known)) == taken, what
        chain = [num(scale) for scale in (0.5, *scales)]
        if taken:
            assert float(second_value(written, chain, [num(count) for count in counts], num(0))) > 2 * scales[-1]
        else:
            with pytest.raises(Refused):
                second_value(written, chain, [num(count) for count in counts], num(0))


def test_a_refinement_costs_at_least_what_volumes_ask() -> None:
    """So many balls of radius eps as cover the ball that is left: at least (eps'/eps)^n, by both checkers."""
    i, key, cover, before = where()
    for finer in (3.0, 6.0):
        at = changed(i, key, cover.choices, before.log_eps - finer)
        booked = check(at)._run.booked[i]
        (member,) = booked[key].slot.members
        entries = member.targets[cover.choices[0].target].size
        assert float(booked[key].cost) >= member.multiplicity * entries * finer
        total = sum(float(each.cost) for each in booked.values())
        assert float(follow(read_certificate(alone.written(at))).counts[i]) == pytest.approx(total, rel=1e-9)
