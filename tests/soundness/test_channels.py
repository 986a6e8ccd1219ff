"""G14: what noise says of a map, drawn and compared with what is claimed; and certificates that may not use it.

The divergence of the outputs from their own law is drawn with its densities written out, for matrices that touch their budget;
the information in them about a map is drawn for maps of a finite set. Every check takes the claim as a function, so that a
constant put below the truth can be shown to fail it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

from boundcalc.base.numbers import FLOAT
from boundcalc.engine.evaluate import evaluate
from boundcalc.proof.certificate import Certificate, Choice, Level
from boundcalc.proof.checker import check
from boundcalc.proof.second import centres as centres_mp
from boundcalc.setting import Setting
from boundcalc.statements import channels
from boundcalc.statements.noises import NOISES
from boundcalc.statements.targets import Kind, MatrixNorms, Points, Target
from tests.proof import alone
from tests.proof.both import refusals, with_choices
from tests.soundness.test_centres import exact_entropy, sample_noise
from tests.soundness.test_noise import student

Noises = Sequence[tuple[float, float]]
"""(a, log eps) of every level."""
Claim = Callable[[str, Target, Noises, Mapping[str, float]], float]

DRAWS = 10_000
SHAPES = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 2), (2, 3), (3, 3))
LEVELS: tuple[Noises, ...] = (
    ((0.5, math.log(0.4)),),
    ((2.0, math.log(0.5)), (0.0, math.log(0.3))),
    ((0.0, math.log(0.6)), (1.0, math.log(0.5)), (3.0, math.log(0.1))),
)


def told(law: str, target: Target, noises: Noises, params: Mapping[str, float]) -> float:
    """What the library claims."""
    return channels.information(FLOAT, NOISES[law], target, noises, params)


def unit(d: int, k: int, kind: Kind = "map", radius: float = 1.0) -> Target:
    """Every norm is at most 1."""
    return Target(kind, d, k, radius, MatrixNorms(*6 * (1.0,), min(d, k)), Points(1))  # type: ignore[arg-type]


def log_noise(v: Any, a: float, eps: float, radius: float = 1.0) -> Any:
    """Log density of eps/radius times the noise, written out: -inf off its ball."""
    d, k = v.shape[-2:]
    u = v * radius / eps
    small = np.swapaxes(u, -1, -2) @ u if d >= k else u @ np.swapaxes(u, -1, -2)
    values = np.linalg.eigvalsh(small)
    with np.errstate(divide="ignore"):
        logs = a * np.log(np.clip(1 - values, 0, None)).sum(-1) if a else np.zeros(values.shape[:-1])
    mass = float(centres_mp.log_mass(d, k, a)) + d * k * math.log(eps / radius)
    return np.where(values.max(-1) < 1, logs - mass, -np.inf)


def gauss(v: Any, variance: float) -> Any:
    n = v.shape[-1] * v.shape[-2]
    return -(v**2).sum((-1, -2)) / (2 * variance) - n / 2 * math.log(2 * math.pi * variance)


def log_law(law: str, v: Any, sigma: float, params: Mapping[str, float]) -> Any:
    """Log density of the law that outputs are compared with, for a budget of 1."""
    d, k = v.shape[-2:]
    if law == "V1":
        return gauss(v, sigma**2 + 1 / (d * k))
    if law == "V2t":
        return log_law("V2", np.swapaxes(v, -1, -2), sigma, params)
    columns = np.swapaxes(v, -1, -2)
    if law == "V2":
        return student(columns, params["s"], params["r"] * d * sigma**2).sum(-1)
    n = d * k
    rate = n / (math.sqrt(1 + d * sigma**2) + (k - 1) * math.sqrt(d) * sigma)
    ball = d / 2 * math.log(math.pi) - gammaln(d / 2 + 1) + gammaln(d + 1)
    return -rate * np.sqrt((columns**2).sum(-1)).sum(-1) + n * math.log(rate) - k * ball


def drawn(law: str, w: Any, noises: Noises, params: Mapping[str, float], radius: float) -> tuple[float, float]:
    """Mean and standard error of the log of the density of the outputs over that of their own law, at W."""
    rng = np.random.default_rng(11)
    d, k = w.shape
    outputs, logs = [], np.zeros(DRAWS)
    variances = [math.exp(2 * log_eps) / (radius**2 * (d + k + 1 + 2 * a)) for a, log_eps in noises]
    for a, log_eps in noises:
        eta = math.exp(log_eps) / radius * sample_noise(rng, d, k, a, DRAWS)
        logs += log_noise(eta, a, math.exp(log_eps), radius)
        outputs.append(w + eta)
    sigma2 = 1 / sum(1 / variance for variance in variances)
    mean = sigma2 * sum(v / variance for v, variance in zip(outputs, variances, strict=True))
    kappa = sum(gauss(v, variance) for v, variance in zip(outputs, variances, strict=True)) - gauss(mean, sigma2)
    logs -= kappa + log_law(law, mean, math.sqrt(sigma2), params)
    return float(logs.mean()), float(logs.std() / math.sqrt(DRAWS))


def corners(law: str, d: int, k: int) -> list[Any]:
    """Matrices whose norm of the law is 1: in one entry, and spread over columns (rows)."""
    spike, flat = np.zeros((d, k)), np.zeros((d, k))
    spike[0, 0] = 1.0
    flat[0, :] = 1 / (math.sqrt(k) if law == "V1" else k)
    return [spike, flat.T.reshape(d, k) if law == "V2t" and d == k else spike if law == "V2t" else flat]


def undershoots(claim: Claim, laws: Sequence[str] = ("V1", "V2", "V2t", "V5")) -> list[str]:
    """Where a claim is below what is drawn; where the Gaussian law is exact, also where it is far above."""
    found: list[str] = []
    for law in laws:
        for d, k in SHAPES:
            if law != "V1" and min(d, k) == 1:
                continue
            for noises in LEVELS:
                radius = 1.3
                params = {"s": 1.5, "r": 0.4} if NOISES[law].names else {}
                claimed = claim(law, unit(d, k, radius=radius), noises, params)
                slack = sum(float(exact_entropy(d, k, a) - centres_mp.entropy_used(d, k, a)) for a, _ in noises)
                for w in corners(law, d, k):
                    mean, error = drawn(law, w, noises, params, radius)
                    if claimed < mean - 4 * error:
                        found.append(f"{law} {d}x{k} {len(noises)} levels: {claimed} < {mean}")
                    elif law == "V1" and claimed > mean + 4 * error + slack + 1e-9:
                        found.append(f"{law} {d}x{k} {len(noises)} levels: {claimed} is not {mean}")
    return found


def test_divergences_are_what_is_claimed() -> None:
    """Of the Gaussian law exactly (but for the entropy of the noise, which is taken from below), of others at most."""
    assert undershoots(told) == []


def broken(name: str) -> Claim:
    """Claims with a constant below the truth."""

    def claim(law: str, target: Target, noises: Noises, params: Mapping[str, float]) -> float:
        sides = channels.shape(target)
        lacking = sum(channels.excess(FLOAT, sides, a) for a, _ in noises)
        full = told(law, target, noises, params)
        if name == "no excess":
            return full - lacking
        if name == "the last excess alone":
            return full - lacking + channels.excess(FLOAT, sides, noises[-1][0])
        if name == "the last level alone":
            return told(law, target, noises[-1:], params)
        if name == "energy of one side":  # 1/(d+1+2a) for 1/(d+k+1+2a): less precision is claimed than there is
            total = sum((sides.d + 1 + 2 * a) * math.exp(-2 * log_eps) for a, log_eps in noises)
            reach = NOISES[law].reach(target) * math.sqrt(total)
            return lacking + NOISES[law].missed(FLOAT, reach, *NOISES[law].sides(target), params)
        return full - 0.1  # a tenth of a nat

    return claim


@pytest.mark.parametrize(
    "name", ["no excess", "the last excess alone", "the last level alone", "energy of one side", "a tenth of a nat"]
)
def test_claims_below_the_truth_are_noticed(name: str) -> None:
    assert len(undershoots(broken(name), ("V1",))) >= 4


# ------------------------------------------------------------------------------------------------ information


def information(points: Any, noises: Noises, parts: int = 1) -> tuple[float, float]:
    """Mean and standard error of what the levels tell of a map drawn from a finite set, up to 3 errors down."""
    rng = np.random.default_rng(5)
    number, draws = len(points), 600
    at = rng.integers(0, number, draws)
    given, mixed = np.zeros(draws), np.zeros((draws, number))
    for a, log_eps in noises:
        d, k = points.shape[-2:]
        shape = (draws, d // parts, k)
        eta = np.concatenate(
            [math.exp(log_eps) * sample_noise(rng, d // parts, k, a, draws).reshape(shape) for _ in range(parts)],
            axis=1,
        )
        v = points[at] + eta
        for part in range(parts):
            rows = slice(part * (d // parts), (part + 1) * (d // parts))
            given += log_noise(eta[:, rows], a, math.exp(log_eps))
            mixed += log_noise(v[:, None, rows] - points[None, :, rows], a, math.exp(log_eps))
    top = mixed.max(1, keepdims=True)
    total = np.log(np.exp(mixed - top).mean(1)) + top[:, 0]
    told_each = given - total
    return float(told_each.mean()), float(told_each.std() / math.sqrt(draws))


def ball(d: int, k: int, number: int) -> Any:
    """Matrices of Frobenius norm 1 and less, mostly near 1."""
    rng = np.random.default_rng(d + 7 * k)
    points = rng.standard_normal((number, d, k))
    radii = rng.random((number, 1, 1)) ** (1 / (d * k))
    return points / np.sqrt((points**2).sum((-1, -2), keepdims=True)) * radii


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1)])
@pytest.mark.parametrize("noises", LEVELS[:2])
def test_no_more_is_told_than_claimed(d: int, k: int, noises: Noises) -> None:
    mean, error = information(ball(d, k, 800), noises)
    claimed = told("V1", unit(d, k), noises, {})
    assert mean - 3 * error <= claimed
    assert mean >= 0.3 * claimed  # so that the comparison means something


def test_levels_that_are_forgotten_are_noticed() -> None:
    """Ten levels at one scale tell more than one of them: a claim for the last alone is below what is drawn."""
    noises = [(0.5, math.log(0.4))] * 10
    mean, error = information(ball(1, 1, 1000), noises)
    assert told("V1", unit(1, 1), noises[-1:], {}) < mean - 3 * error
    assert mean - 3 * error <= told("V1", unit(1, 1), noises, {})


def test_rows_of_tables_have_noise_of_their_own() -> None:
    noises = LEVELS[1]
    rows = np.concatenate([ball(1, 2, 1500), ball(1, 2, 1500)[::-1]], axis=1)
    mean, error = information(rows, noises, parts=2)
    claimed = told("V1", unit(2, 2, "table"), noises, {})
    assert mean - 3 * error <= claimed
    assert claimed == pytest.approx(2 * told("V1", unit(1, 2, "vector"), noises, {}))
    gains = told("V1", unit(1, 2, "gain"), noises, {})
    assert gains == pytest.approx(2 * told("V1", unit(1, 1), noises, {}))


def test_noise_never_leaves_its_ball() -> None:
    rng = np.random.default_rng(1)
    for d, k in SHAPES:
        for a in (0.0, 1.5):
            u = sample_noise(rng, d, k, a, 1000)
            assert np.linalg.norm(u, 2, axis=(1, 2)).max() <= 1 + 1e-12


# ------------------------------------------------------------------------------------------------ certificates


@cache
def chain() -> Certificate:
    certificate = evaluate(Setting.of(depth=1, d=16, n_train=10**6, margin=1.0)).certificate
    assert certificate.strategy == "channel-chain"
    return replace(certificate, log_value=1e6, nats=1e6)


def changed(index: int, key: str, log_eps: float | None = None, **what: Any) -> Certificate:
    """With another choice of one piece at one level."""
    first, *others = chain().levels[index].covers[key].choices
    return with_choices(chain(), index, key, (replace(first, **what), *others), log_eps)


def test_both_checkers_agree_and_it_is_below_covers() -> None:
    found = check(chain())
    assert abs(float(alone.log_value(chain())) - found.log_value) < 1e-12
    plain = [evaluate(chain().setting, name).certificate.log_value for name in ("trauger", "log-T")]
    assert all(found.log_value < value for value in plain)


def test_what_is_no_channel_is_refused() -> None:
    key, readout = "W_V[0]", "readout"
    law = chain().levels[0].covers[key].choices[0]
    params = dict(law.params)
    broken = {
        "no noise": changed(0, key, params={k: v for k, v in params.items() if k != "a"}),
        "negative exponent": changed(0, key, params={**params, "a": -0.5}),
        "an exponent out of range": changed(0, key, params={**params, "a": 1e10}),
        "a parameter more": changed(0, key, params={**params, "t": 0.1}),
        "a map left out": changed(0, key, lemma="zero", params={}),
        "an empirical cover": changed(0, key, lemma="T2", params={"rho": 1.3}),
        "a channel that refines": changed(1, key, refines=True),
        "several columns": changed(0, readout, lemma="V2", params={"a": 0.0, "s": 1.0, "r": 1.0}),
        "no law": changed(0, key, lemma="V9"),
        "more noise than the level says": changed(0, key, chain().levels[0].covers[key].log_eps + 0.01),
    }
    for what, certificate in broken.items():
        for why in refusals(certificate):
            assert why, what


@pytest.mark.parametrize(
    ("strategy", "alpha"), [("chain", 1), ("ghost-chain", 4), ("uniform-chain", 1), ("refined-chain", 1)]
)
def test_other_chains_have_no_channels(strategy: str, alpha: int) -> None:
    """In an empirical chain the last centre need not be near the one before on examples that were not seen."""
    refusals(replace(chain(), strategy=strategy, alpha=alpha))


@pytest.mark.parametrize("kind", ["vector", "gain", "table"])
def test_parts_have_the_gaussian_law_alone(kind: Kind) -> None:
    """The sum of columns of a table says nothing of its rows' largest norm."""
    for name, law in NOISES.items():
        assert (channels.refuses(law, unit(4, 3, kind)) is None) == (name == "V1")


def test_a_map_is_seen_in_one_way() -> None:
    """A score as a map of queries and as one of keys are two metrics: noise in one is not small in the other."""
    key = "W_QK[0]"
    (first,) = chain().levels[0].covers[key].choices
    for why in refusals(changed(1, key, target=1 - first.target if first.target in (0, 1) else 0)):
        assert why


def test_a_level_that_is_no_finer_says_nothing_new() -> None:
    """It keeps what was heard: the count of the level falls, and that of later ones is as before."""
    key = "readout"
    kept = chain().levels[0].covers[key].log_eps
    index = 1
    level = chain().levels[index]
    wider = changed(index, key, kept)
    levels = list(wider.levels)
    levels[index] = Level(chain().levels[0].log_scale - 1e-6, wider.levels[index].covers)
    before, after = check(chain()), check(replace(wider, levels=tuple(levels)))
    assert after.log_counts[index] < before.log_counts[index]
    assert level.covers[key].log_eps < kept


def test_more_noise_tells_less() -> None:
    target = unit(4, 3)
    for law in ("V1", "V2", "V5"):
        params = {"s": 1.0, "r": 0.3} if law == "V2" else {}
        values = [told(law, target, [(1.0, math.log(eps))], params) for eps in (0.3, 0.1, 0.03)]
        assert values == sorted(values)


def test_a_covers_refinement_of_what_noise_left_is_accepted() -> None:
    """V is within eps of W surely, so W - V lies in a known ball."""
    key = "readout"
    refined = changed(1, key, lemma="T4r", params={"t": 1 / 16}, refines=True)
    assert abs(float(alone.log_value(refined)) - check(refined).log_value) < 1e-12
    assert check(refined).log_value > check(chain()).log_value


def test_choices_of_a_channel_survive_a_file(tmp_path: Any) -> None:
    certificate = check(chain()).claimed
    certificate.save(tmp_path / "c.json")
    again = Certificate.load(tmp_path / "c.json")
    assert again.levels == certificate.levels
    assert check(again).log_value == certificate.log_value
    assert isinstance(again.levels[0].covers["W_V[0]"].choices[0], Choice)
