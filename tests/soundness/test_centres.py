"""T13 and T14 against what they claim: the noise sampled, centres drawn around the worst matrices.

Each check takes the cost as a function, so that a constant put below the truth can be shown to fail it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.numbers import FLOAT
from boundcalc.layers.facts import MatrixNorms, Points, Target
from boundcalc.proof.second import _centres as centres_mp
from boundcalc.proof.second._numbers import MP, num
from boundcalc.statements.covers import LEMMAS, laws
from boundcalc.statements.covers.laws import BEND, LINE, Centres, Noise, noise
from tests.soundness.network import spectral

NAMES = ("T13", "T14")
SHAPES = ((2, 2), (3, 2), (2, 3), (3, 3), (3, 1), (1, 3))


def exact_entropy(d: int, k: int, a: float) -> Any:
    """The entropy itself: log Z - a (log Z)', by digamma functions."""
    low, high = min(d, k), max(d, k)
    slope = num(0)
    for i in range(low):
        z = num(a) + num(low + 1 - i) / 2
        slope += MP.digamma(z) - MP.digamma(z + num(high) / 2)
    return centres_mp.log_mass(d, k, a) - num(a) * slope


def lemma(name: str) -> Centres:
    found = LEMMAS[name]
    assert isinstance(found, Centres)
    return found


def unit(d: int, k: int, kind: str = "map") -> Target:
    return Target(kind, d, k, 1.0, MatrixNorms(*6 * (1.0,), min(d, k)), Points(1))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ the noise


def inverse_root(gram: np.ndarray) -> np.ndarray:
    """A^(-1/2) of positive matrices."""
    values, vectors = np.linalg.eigh(gram)
    return vectors @ (vectors / np.sqrt(values)[:, None, :]).transpose(0, 2, 1)


def sample_noise(rng: np.random.Generator, d: int, k: int, a: float, number: int) -> np.ndarray:
    """u'u of the noise has a matrix beta law: u = g (g'g + h'h)^(-1/2) for Gaussian g and h, h with k + 1 + 2a rows."""
    if d < k:
        return sample_noise(rng, k, d, a, number).transpose(0, 2, 1)
    g = rng.standard_normal((number, d, k))
    h = rng.standard_normal((number, round(k + 1 + 2 * a), k))
    return g @ inverse_root(g.transpose(0, 2, 1) @ g + h.transpose(0, 2, 1) @ h)


Facts = Callable[[int, int, float], Noise]


def noise_failures(facts: Facts) -> list[str]:
    """Mean energy within five standard errors; entropy at most the sampled one, and near it."""
    rng = np.random.default_rng(3)
    found: list[str] = []
    for (d, k), a in itertools.product(SHAPES, (0.0, 0.5, 3.0, 20.0)):
        u = sample_noise(rng, d, k, a, 20_000)
        claimed, energy = facts(d, k, a), (u**2).sum(axis=(1, 2)) / min(d, k)
        if abs(energy.mean() - claimed.energy) > 5 * energy.std() / math.sqrt(len(u)):
            found.append(f"energy {d}x{k} a={a}")
        least = u.transpose(0, 2, 1) @ u if d >= k else u @ u.transpose(0, 2, 1)
        logs = float(centres_mp.log_mass(d, k, a)) - a * np.linalg.slogdet(np.eye(min(d, k)) - least)[1]
        off = logs.mean() - claimed.entropy + 5 * logs.std() / math.sqrt(len(u))
        if not -0.02 * d * k < off < 0.2 * d * k or claimed.entropy > float(exact_entropy(d, k, a)) + 1e-9:
            found.append(f"entropy {d}x{k} a={a}")
    return found


def honest(d: int, k: int, a: float) -> Noise:
    return noise(FLOAT, d, k, a)


def backward_slope(d: int, k: int, a: float) -> Noise:
    """(log Z)' taken at its lower end: the convex function's step before a, not the steps after it."""
    if a < 0.5:
        return honest(d, k, a)
    at, before = (float(centres_mp.log_mass(min(d, k), max(d, k), x)) for x in (a, a - 0.5))
    return Noise(at - 2 * a * (at - before), honest(d, k, a).energy)


def test_the_noise_is_what_it_is_said_to_be_and_wrong_facts_about_it_are_noticed() -> None:
    assert noise_failures(honest) == []
    assert noise_failures(lambda *of: honest(*of)._replace(entropy=0.0))
    assert noise_failures(lambda d, k, a: honest(d, k, a)._replace(energy=max(d, k) / (d + k + 2 + 4 * a)))
    assert noise_failures(backward_slope)


def test_the_entropy_is_bounded_closely() -> None:
    for a in (0.0, 0.3, 2.0, 50.0):
        for d, k in (*SHAPES, (200, 16)):
            exact, enclosed = float(exact_entropy(d, k, a)), upper_float(noise(INTERVAL, d, k, a).entropy)
            assert exact - 0.02 * d * k <= enclosed <= exact + 1e-9 * (1 + abs(exact))


def test_constants_of_the_concave_majorant() -> None:
    bend = MP.findroot(lambda y: 2 * y**2 / (1 + y**2) - MP.log(1 + y**2), 2)
    slope = MP.log(1 + bend**2) / bend
    assert bend < MP.mpf(BEND) < bend + MP.mpf("1e-4")
    assert slope < MP.mpf(LINE) < slope + MP.mpf("1e-5")
    for y in np.linspace(0.001, 8, 4001):
        exact = float(slope * y) if y <= bend else math.log1p(y * y)
        assert exact <= laws.levels(FLOAT, float(y)) + 1e-12 <= exact + 1e-4


# ------------------------------------------------------------------------------------------------ centres


def draw(name: str, rng: np.random.Generator, d: int, k: int, eps: float, params: Mapping[str, float], number: int):
    """Centres of the law of the proof for a budget of 1."""
    a = params["a"]
    c2 = eps**2 * d / (d + k + 1 + 2 * a)
    s = params["s"]
    if name == "T13":
        scale = rng.gamma(s, 1.0, (number, 1, k))
        return rng.standard_normal((number, d, k)) * np.sqrt(params["r"] * c2 / (2 * scale))
    if d < k:
        return draw(name, rng, k, d, eps, params, number).transpose(0, 2, 1)
    beta = (d + k - 1) / 2 + s
    degrees = round(2 * beta - d)  # V = G A^(-1/2), A Wishart with so many degrees of freedom
    assert abs(degrees - (2 * beta - d)) < 1e-9
    h = rng.standard_normal((number, degrees, k))
    return math.sqrt(params["r"] * c2) * rng.standard_normal((number, d, k)) @ inverse_root(h.transpose(0, 2, 1) @ h)


def extreme(name: str, rng: np.random.Generator, d: int, k: int) -> list[np.ndarray]:
    """Matrices on the boundary of the body: one column, equal columns, equal singular values, random ones."""
    one = np.zeros((d, k))
    one[0, 0] = 1.0
    eye = np.eye(d, k)
    same = np.zeros((d, k))
    same[0] = 1.0
    found = [0 * one, one, eye, same, *rng.standard_normal((8, d, k))]
    return [w / max(size(name, w), 1e-300) if w.any() else w for w in found]


def size(name: str, w: np.ndarray) -> float:
    return float(np.linalg.norm(w, "nuc") if name == "T14" else np.linalg.norm(w, axis=0).sum())


def hits(centres: np.ndarray, w: np.ndarray, eps: float) -> float:
    """The share of centres within eps in spectral norm."""
    return float((spectral(centres - w) <= eps).mean())


Missed = Callable[[str, float, int, int, Mapping[str, float]], float]


def too_rare(missed: Missed, name: str) -> list[str]:
    """Matrices, found at random and by climbing towards fewer hits, that centres reach less often than e^-I."""
    rng = np.random.default_rng(7)
    found: list[str] = []
    for (d, k), eps, a in itertools.product(SHAPES[:3], (0.2, 0.6), (None, 0.0, 20.0)):
        params = dict(lemma(name).params(-math.log(eps), unit(d, k), 1))
        params["s"] = max(1, round(2 * params.get("s", 1.5))) / 2  # whole degrees of freedom, to draw from
        params["a"] = params["a"] if a is None else a
        centres = draw(name, rng, d, k, eps, params, 40_000)
        worst = min(extreme(name, rng, d, k), key=lambda w, c=centres[:8_000], e=eps: hits(c, w, e))
        for _ in range(6):
            other = worst + 0.3 * rng.standard_normal((d, k))
            other /= max(1.0, size(name, other))
            if hits(centres[:8_000], other, eps) < hits(centres[:8_000], worst, eps):
                worst = other
        rate, chance = hits(centres, worst, eps), math.exp(-missed(name, 1 / eps, d, k, params))
        if rate + 5 * math.sqrt(rate / len(centres)) + 3 / len(centres) < chance:
            found.append(f"{name} {d}x{k} eps={eps} a={a}: {rate} < {chance}")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_centres_reach_the_worst_matrix_often_enough_and_a_nat_less_is_noticed(name: str) -> None:
    """(The entropy and the energy by themselves are held against the noise, above.)"""

    def claimed(name: str, y: float, d: int, k: int, params: Mapping[str, float]) -> float:
        return lemma(name).missed(FLOAT, y, d, k, params)

    assert too_rare(claimed, name) == []
    assert too_rare(lambda *case: claimed(*case) - 1, name)


def covers(name: str, scale: float, d: int, k: int, eps: float) -> bool:
    """Whether e^claim times a factor random centres serve every point of a fine grid of the body."""
    rng = np.random.default_rng(11)
    target, rule = unit(d, k), lemma(name)
    params = rule.params(-math.log(eps), target, 1)
    number = int(math.exp(rule.sharp(FLOAT, 1 / eps, target, 1, params)) * scale)
    centres = draw(name, rng, d, k, (1 - params["t"]) * eps, params, number)
    steps = np.arange(-1, 1.0001, eps / 8)
    grid = np.stack(np.meshgrid(*[steps] * (d * k)), axis=-1).reshape(-1, d, k)
    grid = grid[[size(name, w) <= 1 for w in grid]]
    return all(np.linalg.norm(centres - w, axis=(1, 2)).min() <= eps for w in grid)


@pytest.mark.parametrize(("name", "d", "k"), [("T13", 2, 1), ("T13", 1, 2)])
def test_as_many_centres_as_claimed_cover_and_few_do_not(name: str, d: int, k: int) -> None:
    """log L is what the net costs: without it, and a little less, points are missed."""
    assert covers(name, 1.0, d, k, 0.3)
    target, rule = unit(d, k), lemma(name)
    params = rule.params(-math.log(0.3), target, 1)
    net = math.log(d * k * math.log1p(2 / (0.3 * params["t"])))
    assert not covers(name, math.exp(-net) / 2, d, k, 0.3)
