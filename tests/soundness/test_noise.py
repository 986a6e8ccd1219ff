"""V and G11 against exact chances, divergences by other roads, whole noisy networks, and a class of coins."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, softmax
from scipy.stats import binom, chi2, multivariate_t

from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT
from boundcalc.engine._allocate import fill
from boundcalc.engine._items import build_items
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.one_level import HALF, _noise_items
from boundcalc.layers.facts import Context, Kind, Points, Slot, Target
from boundcalc.proof.certificate import Certificate, Choice, Level
from boundcalc.proof.checker import check
from boundcalc.setting import Budget, Lookup, Norms, Setting
from boundcalc.setting.norms import place_of
from boundcalc.statements import gap
from boundcalc.statements.network import Network
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.strategies import STRATEGIES, Known, noise_chance
from boundcalc.statements.weights import Weights, matrix_norms
from boundcalc.testing._drawing import Dice
from tests.proof import alone
from tests.proof.both import refusals, with_choices
from tests.soundness.test_networks import SETTINGS, Rival

Spread = Callable[[Target, float], float]
STRATEGY = STRATEGIES["noise-margin"]


def target(kind: Kind, d: int, k: int, budget: Budget | None = None, points: int = 1) -> Target:
    norms = matrix_norms(FLOAT, budget or Budget(op=1.0), d, k)
    assert norms is not None
    return Target(kind, d, k, 1.0, norms, Points(points))


# -- how far noise moves one example


def chance(of: Target, bound: float) -> float:
    """That unit noise moves some of the example's points, at right angles to each other, by more than the bound."""
    single = float(chi2.sf(bound**2, 1 if of.kind in ("score", "gain", "numbers") else of.k))
    many = (
        of.k if of.kind in ("gain", "numbers") else max(1, of.points.count(1))
    )  # of a gain: a row along each of its coordinates
    return -math.expm1(many * math.log1p(-min(single, 1 - 1e-16)))


def too_likely(rule: Spread, depth: Callable[[float, int], float]) -> list[str]:
    found: list[str] = []
    kinds: tuple[Kind, ...] = ("map", "score", "gain", "vector", "table", "numbers", "pooled")
    for kind, k, points in itertools.product(kinds, (1, 2, 3, 17, 300), (1, 40)):
        of = target(kind, 5, k, points=points)
        if kind in ("gain", "vector", "numbers"):
            of = replace(of, d=1, points=Points(0, 1))
        for eta in (0.5, 0.1, 1e-3, 1e-9):
            if chance(of, rule(of, depth(eta, events(of)))) > eta * (1 + 1e-12):
                found.append(f"{kind} k={k} points={points} eta={eta}")
    return found


def own_spread(of: Target, t: float) -> float:
    return spread(FLOAT, of, t)


def own_depth(eta: float, seen: int) -> float:
    return gap.noise_depth(FLOAT, eta, seen)


def test_noise_stays_within_its_spread_but_for_eta() -> None:
    """And not without the union, or the length of the row."""
    assert too_likely(own_spread, own_depth) == []
    assert too_likely(own_spread, lambda eta, seen: own_depth(eta, 1))
    assert too_likely(lambda of, t: t, own_depth)


def test_noise_on_tables_stays_within_its_spread() -> None:
    """The heads' outputs are one event; every score is one. With one event for all scores some move farther."""
    vocabulary, rows, heads, width = 3, 5, 2, 3
    layer = Lookup(vocabulary, heads, width)
    norms = Norms(budgets={weight.kind: Budget(fro=1.0) for weight in layer.weights(rows)})
    slots = {slot.kind: slot for slot in layer.facts(Context(Weights(FLOAT, norms), 0.0, 1, rows)).slots}
    scores, pooled = (slots[f"position_{what}"].members[0].targets[1] for what in ("scores", "values"))
    assert (events(scores), events(pooled)) == (rows * heads, 1)
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((20_000, rows, heads, width))
    weights = softmax(rng.standard_normal((20_000, heads, rows)) * 6, axis=-1)  # near one row each, the worst case
    lengths = np.linalg.norm(np.einsum("nht,nthe->nhe", weights, noise).reshape(20_000, -1), axis=1)
    largest = np.abs(rng.standard_normal((20_000, rows * heads))).max(1)
    for t in (1.0, 2.0):
        likely = math.exp(-(t**2) / 2)
        room = 4 * math.sqrt(likely / 20_000)
        assert np.mean(lengths > spread(FLOAT, pooled, t)) <= likely + room < np.mean(lengths > t)
        assert np.mean(largest > spread(FLOAT, scores, t)) <= events(scores) * likely + room
        assert np.mean(largest > spread(FLOAT, scores, t)) > likely + room  # without its union


# -- what noise costs


def student(v: Any, s: float, rho: float) -> Any:
    """Log density of columns in R^d by scipy: 2s degrees of freedom."""
    d = v.shape[-1]
    frozen: Any = multivariate_t
    return frozen(np.zeros(d), np.eye(d) * rho / (2 * s), df=2 * s).logpdf(v)


def matrix_student(v: Any, s: float, rho: float) -> Any:
    """Log density of d x 2 matrices, its normaliser by two Student columns: |I + V'V/rho| = (1+|v|^2/rho)(1 +
    w'Aw/rho)."""
    d = v.shape[-2]
    beta = (d + 1) / 2 + s
    first, second_ = v[..., 0], v[..., 1]
    square = (first**2).sum(-1) / rho
    rest = (second_**2).sum(-1) / rho - ((first * second_).sum(-1) / rho) ** 2 / (1 + square)
    # the second column given the first has the Student density with det(A) = 1/(1+square)
    second_mass = d / 2 * math.log(math.pi * rho) + gammaln(beta - d / 2) - gammaln(beta)
    power = beta - 0.5
    first_mass = d / 2 * math.log(math.pi * rho) + gammaln(power - d / 2) - gammaln(power)
    return -beta * (np.log1p(square) + np.log1p(rest)) - second_mass - first_mass


def divergence(law: str, w: Any, sigma: float, params: Mapping[str, float], rng: np.random.Generator) -> float:
    """Monte Carlo of the divergence, three standard errors down."""
    d, k = w.shape
    draws = w + sigma * rng.standard_normal((40_000, d, k))
    if law == "V3":
        logs = matrix_student(draws, params["s"], params["r"] * max(d, k) * sigma**2)
    else:
        logs = student(np.swapaxes(draws, 1, 2), params["s"], params["r"] * d * sigma**2).sum(-1)
    cost = -logs - d * k / 2 * math.log(2 * math.pi * math.e * sigma**2)
    return float(cost.mean() - 3 * cost.std() / math.sqrt(len(cost)))


def undershoots(factor: float) -> list[str]:
    """Where a claimed divergence (times a factor) is below what is drawn, over weights that touch their budget."""
    found: list[str] = []
    rng = np.random.default_rng(5)
    limits = {"V2": Budget(two_one=1.0), "V3": Budget(nuclear=1.0)}
    for law, limit in limits.items():
        for d, k in ((3, 2), (2, 2)) if law == "V3" else ((3, 2), (2, 5)):
            for sigma in (0.02, 0.3):
                of, noise = target("map", d, k, limit), NOISES[law]
                params = noise.params(-math.log(sigma), of, 1)
                claimed = noise.sharp(FLOAT, noise.norm(of) / sigma, of, 1, params)
                spike, flat = np.zeros((d, k)), np.zeros((d, k))
                spike[0, 0] = 1.0
                flat[range(min(d, k)), range(min(d, k))] = 1 / min(d, k)
                worst = max(divergence(law, w, sigma, params, rng) for w in (spike, flat, 0 * flat))
                if factor * claimed < worst:
                    found.append(f"{law} {d}x{k} sigma={sigma}: {claimed} < {worst}")
    return found


def test_divergences_are_at_most_what_is_claimed_and_a_lower_one_is_noticed() -> None:
    assert undershoots(1.0) == []
    assert len(undershoots(0.85)) >= 4


@pytest.mark.parametrize(("kind", "d", "k", "square"), [("map", 3, 4, 1.0), ("gain", 1, 4, 4.0), ("table", 5, 2, 5.0)])
def test_the_gaussian_law_exactly(kind: Kind, d: int, k: int, square: float) -> None:
    """The divergence of two Gaussians at the largest |W|_F^2 there is, and no other variance does better."""
    n, sigma = d * k, 0.3
    of = target(kind, d, k, Budget(fro=1.0))
    claimed = NOISES["V1"].sharp(FLOAT, 1 / sigma, of, 1, {})

    def exact(variance: float) -> float:
        return n / 2 * math.log(variance / sigma**2) + (n * sigma**2 + square) / (2 * variance) - n / 2

    assert claimed == pytest.approx(exact(sigma**2 + square / n), rel=1e-12)
    assert all(claimed <= exact((sigma**2 + square / n) * f) for f in (0.5, 0.9, 1.1, 2.0))


# -- whole networks


def noisy(setting: Setting, eta: float) -> Certificate:
    """A certificate with another eta than the search takes."""
    network = Network(setting, INTERVAL)
    slots = [member for piece in network.pieces for member in piece.members]
    seen = sum(member.multiplicity * max(map(events, member.targets)) for member in slots)
    items = _noise_items(network, build_items(network, 1, ()), NOISES, eta, seen)
    level = Level(HALF, fill(items, HALF).covers())
    return Certificate(setting, "best", STRATEGY.name, (level,), mu=1.0, eta=eta)


def depth_of(slots: Mapping[str, Slot], level: Level, eta: float) -> float:
    seen = sum(
        member.multiplicity * events(member.targets[choice.target])
        for name, slot in slots.items()
        for choice, member in zip(level.covers[name].choices, slot.members, strict=True)
        if choice.lemma != "zero"
    )
    return math.sqrt(2 * math.log(seen / eta))


def share_moved(setting: Setting, eta: float, louder: float = 1.0, draws: int = 150) -> float:
    """How often noise moves the loss by more than 1/2, over weights and inputs."""
    certificate = noisy(setting, eta)
    check(certificate)
    rival, rng = Rival(setting, certificate.levels[0]), np.random.default_rng(3)
    t = depth_of(rival.slots, rival.level, eta)
    moved = 0
    for step in range(draws):
        dice = Dice(rng, aligned=step % 2 == 0)
        p, x = rival.network.draw(dice, whole=True), rival.network.inputs(dice)
        near = dict(p)
        for name, cover in rival.level.covers.items():
            kind, block, _ = place_of(name)
            member, choice = rival.slots[name].members[0], cover.choices[0]
            of = member.targets[choice.target]
            size = louder * math.exp(cover.log_eps) / (float(of.radius) * spread(FLOAT, of, t))
            for key, w in p.items():
                if key[:2] == (kind, block):
                    near[key] = 0 * w if choice.lemma == "zero" else w + size * rng.standard_normal(w.shape)
        moved += rival.change(p, near, x) > 1 + 1e-9
    return moved / draws


@pytest.mark.parametrize(
    "name", ["edelman2022", "edelman2022 deep", "edelman2022 heads", "bert", "llama", "vit", "line"]
)
def test_a_noisy_network_moves_the_loss_seldom(name: str) -> None:
    eta = 0.3
    assert share_moved(SETTINGS[name], eta) <= eta + 3 * math.sqrt(eta / 150)


def test_louder_noise_is_noticed() -> None:
    assert share_moved(SETTINGS["line"], 0.3, louder=100.0) > 0.4
    assert share_moved(SETTINGS["edelman2022"], 0.3, louder=100.0) > 0.4


# -- the strategy


def test_averaging_is_above_the_exact_moment() -> None:
    """E exp(m kl(mean|p)) for binomial means, which no p exceeds."""
    for m in (1, 2, 3, 7, 50, 4000):
        j = np.arange(m + 1)
        logs = binom.logpmf(j, m, np.clip(j / m, 0, 1))
        moment = float(np.exp(logs).sum())
        assert math.log(moment) <= gap.averaging(FLOAT, m) <= math.log(moment) + 0.75


def coins(value: Callable[[Known], float]) -> float:
    """All labelings at once, noise that makes every answer a fair coin (eta = 1/2, I = 0): right on the sample, risk
    1."""
    known = Known(0.5, [0.5], [0.0], math.log(20), 10**6, 0.0, mu=4e-3, eta=0.5)
    return value(known)


def test_answers_that_are_coins_may_all_be_wrong() -> None:
    assert coins(lambda known: STRATEGY.value(FLOAT, known)) >= 1
    without_share = coins(lambda known: STRATEGY.value(FLOAT, known) / 2)
    without_eta = coins(lambda known: STRATEGY.value(FLOAT, replace(known, train_error=-0.5)))
    assert without_share < 0.6
    assert without_eta < 0.1


# -- certificates


SETTING = Setting.of(depth=1, d=48, seq_len=20, n_train=10**6, margin=0.35)
AFTER = SETTING.but(train_error=0.001, measured=("train_error",))


def found(setting: Setting = SETTING) -> Certificate:
    risks = Evaluator(setting).search("best").candidates("risk")
    return next(f.certificate for f in risks if f.certificate.strategy == STRATEGY.name)


FORGED: dict[str, tuple[Setting, Callable[[Certificate], Certificate], str]] = {
    "noise in a cover": (
        SETTING,
        lambda c: replace(c, strategy="uniform-margin", mu=None, eta=None),
        "lemma|needs uniform covers",
    ),
    "an empirical cover": (
        SETTING,
        lambda c: with_choices(c, 0, "W_V[0]", [Choice("T2", 0, {"rho": 2.0})]),
        "empirical|uniform",
    ),
    "another eta after a look": (AFTER, lambda c: replace(c, eta=1e-7), "after the training error"),
}


@pytest.mark.parametrize("what", FORGED)
def test_forgeries_are_refused_by_both(what: str) -> None:
    setting, forge, why = FORGED[what]
    honest = found(setting)
    assert check(honest).log_value == pytest.approx(float(alone.log_value(honest)), abs=1e-9)
    assert all(re.search(why, said) for said in refusals(forge(honest)))


def test_noise_and_uniform_covers_stand_beside_each_other() -> None:
    """A centre of a uniform cover is a point mass against the uniform law on all centres.

    No event is counted for it.
    """
    certificate = found()
    covered = with_choices(certificate, 0, "W_V[0]", [Choice("T4", 0, {"t": 0.1})])
    assert check(covered).value > check(certificate).value
    assert float(alone.log_value(covered)) == pytest.approx(check(covered).log_value, abs=1e-9)


def test_after_a_look_at_the_training_error_eta_is_fixed() -> None:
    assert found(AFTER).eta == noise_chance(10**6)
