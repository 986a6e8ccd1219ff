"""G in 50 digits: the value of a certificate."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .certificate import Certificate
from .covers import UNIFORM
from .layers import Layer, flat
from .meeting import joined
from .network import walk_through
from .noises import LAWS
from .noises import depth as noise_depth
from .numbers import MP, Real, demand, num
from .posthoc import price
from .stored import log_networks

_CLOSED_GHOSTS = 16


class Found(NamedTuple):
    """What the steps of a certificate give: the value, the log count of every level, what P1 adds to log(1/delta)."""

    value: Real
    counts: tuple[Real, ...]
    nats: Real


def follow(certificate: Certificate) -> Found:
    """What the steps give, without rounding; refuses where a side condition fails."""
    setting, strategy, alpha, kind = certificate.setting, certificate.strategy, certificate.alpha, certificate.kind
    walked = joined(setting) if certificate.meeting else setting
    sample, noisy = setting.sample, strategy == "noise-margin"
    if kind.stored:
        nats = price(certificate)
        return Found(_value(certificate, (), (log_networks(setting),), -MP.log(num(sample.delta)) + nats), (), nats)
    steep = (MP.sqrt(2) if setting.classes > 1 else num(1)) / num(sample.margin)  # G0
    if sample.lipschitz is not None:
        steep = num(sample.lipschitz)
    samples = sample.n_train * (1 + (_CLOSED_GHOSTS if strategy == "closed" else alpha if "alpha" in kind.says else 0))
    scales: list[Real] = []
    counts: list[Real] = []
    before: Mapping[str, Any] | None = None
    heard: dict[Any, Any] | None = {} if strategy == "channel-chain" else None
    demand(not noisy or all(_carries_noise(layer) for layer in flat(walked.stages)), "G11 is for other layers")
    for level in certificate.levels:
        if kind.uniform:
            lemmas = {choice.lemma for cover in level.covers.values() for choice in cover.choices}
            laws = () if heard is None and not noisy else LAWS
            demand(lemmas <= {*UNIFORM, "zero", *laws}, "a uniform strategy needs uniform covers")
        depth = None
        if certificate.eta is not None:
            depth = noise_depth(walk_through(walked, level.covers, depth=num(2)).events, certificate.eta)
        how = {"every_scale": kind.every_scale, "published": strategy == "published", "depth": depth, "before": before}
        walk = walk_through(walked, level.covers, samples, heard=heard, **how)
        before = level.covers if strategy in ("refined-chain", "channel-chain") else None
        scales.append(MP.exp(num(level.log_scale)))
        demand(steep * walk.error <= scales[-1], "a level's covers leave more error than its scale")
        counts.append(walk.count)
    nats = price(certificate)
    start = min(num(1) / 2, steep * walk_through(walked).radius)
    value = _value(certificate, [start, *scales], counts, -MP.log(num(sample.delta)) + nats)
    return Found(value, tuple(counts), nats)


def _carries_noise(layer: Layer) -> bool:
    """Whether G11 was proved for a layer: not with options that came later."""
    match layer.label:
        case "softcap" | "experts":
            return False
        case "attention":
            return layer.offsets == "none" and layer.cap is None and layer.qk_norm == "none"
        case "gated":
            return not layer.bias
        case "layernorm":
            return not layer.around_one
    return True


def _value(certificate: Certificate, chain: Sequence[Real], counts: Sequence[Real], log_inverse: Real) -> Real:
    """The bound; `chain` begins with how far the loss is from its centre at most."""
    setting, strategy, alpha = certificate.setting, certificate.strategy, certificate.alpha
    m, q = setting.sample.n_train, num(setting.sample.train_error)
    deviation = MP.sqrt(log_inverse / (2 * num(m)))
    if certificate.weights is not None:
        return _weighted(chain, counts, [num(weight) for weight in certificate.weights], m) + deviation
    if strategy in ("chain", "ghost-chain", "uniform-chain", "refined-chain", "channel-chain"):
        if strategy in ("refined-chain", "channel-chain"):
            return _refined(chain, counts, m) + deviation
        factor = {"chain": num(2), "ghost-chain": 1 + 1 / num(alpha), "uniform-chain": num(1)}[strategy]
        return _chained(chain, counts, factor, m) + deviation
    (count,) = counts
    if strategy == "stored-gap":
        return MP.sqrt((count + log_inverse) / (2 * num(m)))
    scale = num(0) if certificate.kind.stored else chain[1]  # every network is its own centre
    if strategy == "uniform-single":
        return 2 * scale + MP.sqrt((count + log_inverse) / (2 * num(m)))
    if strategy == "closed":
        k = (1 + num(1) / _CLOSED_GHOSTS) / 2 * MP.e * MP.sqrt(2 * count * scale**2 / m)
        return 2 * k * (num("1.0853") + max(num(0), MP.log(1 / (2 * k)))) + deviation
    if strategy == "published":
        k = MP.sqrt(count * scale**2 / m)
        demand(scale <= 3 * k, "the published cover is counted above where Dudley's integral starts")
        integral = 12 * k * (1 + max(num(0), MP.log(1 / (6 * k))))
        return 2 * integral + 3 * MP.sqrt((log_inverse + MP.log(2)) / (2 * num(m)))
    demand(setting.sample.lipschitz is None, "margins are for the ramp loss")
    demand(scale <= num(1) / 2, "margin bounds need a cover at half the margin")
    classes, longest = setting.classes, walk_through(setting).radius
    margin = longest if classes == 1 else longest * MP.sqrt(num(classes) / (classes - 1))
    demand(q == 1 or margin > num(setting.sample.margin), "no network of the class has a margin above gamma (G0e)")
    mu = None if certificate.mu is None else num(certificate.mu)
    if strategy == "noise-margin":
        eta = num(certificate.eta)
        if "train_error" in certificate.looked.sample:
            demand(certificate.eta == 0.25 / m, "after a look at the training error eta is 1/(4m)")
        spent = count + log_inverse + MP.log(2 + MP.sqrt(MP.pi * m / 2))
        demand(mu is not None, "the kl inverse needs mu")
        return _kl_inverse(q + eta, spent / m, mu) / (1 - eta)
    return _risk(strategy, q, count, log_inverse, m, alpha, mu)


def _chained(scales: Sequence[Real], counts: Sequence[Real], factor: Real, m: int) -> Real:
    """2 e_J + factor sum e_(j-1) sqrt(2 log N_j/m), counts made monotone."""
    links = num(0)
    for j, coarse in enumerate(scales[:-1]):
        demand(scales[j + 1] <= coarse * (1 + num("1e-30")), "the scales of a chain must fall")
        links += coarse * MP.sqrt(2 * min(counts[j:]) / m)
    return 2 * scales[-1] + factor * links


def _refined(scales: Sequence[Real], counts: Sequence[Real], m: int) -> Real:
    """2 e_J + sum e_(j-1) sqrt(2 c_j/m), c_j what a level adds; by parts, where c_j/e_(j-1)^2 does not fall."""
    links = num(0)
    steep = num(0)
    for coarse, fine, count in zip(scales, scales[1:], counts, strict=False):
        demand(fine <= coarse * (1 + num("1e-30")), "the scales of a chain must fall")
        demand(steep * coarse**2 <= count * (1 + num("1e-30")), "what levels add shrinks faster than their links")
        steep = count / coarse**2
        links += coarse * MP.sqrt(2 * count / m)
    return 2 * scales[-1] + links


def _weighted(scales: Sequence[Real], counts: Sequence[Real], weights: Sequence[Real], m: int) -> Real:
    """2 e_J + sum e_(j-1)^2/(4 w_j) + 2 sum (w_j - w_(j+1)) H_j/m, H_j what all levels so far have added."""
    demand(len(weights) == len(counts), "every level has a weight")
    links, told = num(0), num(0)
    for j, (coarse, weight) in enumerate(zip(scales, weights, strict=False)):
        demand(scales[j + 1] <= coarse * (1 + num("1e-30")), "the scales of a chain must fall")
        after = weights[j + 1] if j + 1 < len(weights) else num(0)
        demand(0 <= after <= weight and weight > 0, "weights are above 0 and do not rise")
        told += counts[j]
        links += coarse**2 / (4 * weight) + 2 * (weight - after) * told / m
    return 2 * scales[-1] + links


def _kl_inverse(q: Real, c: Real, mu: Real | None) -> Real:
    """Above sup{p : kl(q|p) <= c}."""
    if mu is None:
        demand(q == 0, "the limit of the kl inverse is for training error 0")
        return 1 - MP.exp(-c)
    demand(mu > 0, "mu must be above 0")
    return (1 - MP.exp(-mu * q - c)) / (1 - MP.exp(-mu))


def _binomial_limit(q: Real, nats: Real, m: Real, mu: Real | None) -> Real:
    """Above the p at which qm errors of m have the chance e^-nats: kl, less what Chernoff's bound of tails gives away."""
    plain = _kl_inverse(q, nats / m, mu)
    if mu is None or q == 0:
        return plain
    errors, right = q * m, m - q * m

    def spared(p: Real) -> Real:
        steep = right - 1 - errors * (1 - p) / p
        if steep <= 0 or right < 1:
            return num(0)
        mass = MP.sqrt(2 * MP.pi * errors * right / m) * MP.exp(1 / (12 * errors + 2))
        return max(num(0), MP.log(mass * steep / right))

    first = _kl_inverse(q, max(num(0), nats - spared(plain)) / m, mu)
    second = _kl_inverse(q, max(num(0), nats - spared(first)) / m, mu)
    return min(plain, max(first, second))


def _risk(strategy: str, q: Real, count: Real, log_inverse: Real, m: int, alpha: int, mu: Real | None) -> Real:
    """G3, G13, G4, G5."""
    if strategy in ("uniform-margin", "stored-margin"):
        return _binomial_limit(q, count + log_inverse, num(m), mu)
    c = (count + MP.log(2) + log_inverse) / m
    if strategy == "ghost-realizable":
        demand(q == 0, "G4 is for training error 0")
        ghosts = num(alpha) * m
        errors = min(MP.ceil(c * m / MP.log(1 + 1 / num(alpha))), MP.ceil((1 + alpha) * m * (1 - MP.exp(-c))))

        def middle(k: Real) -> Real:
            left = ghosts - max(min(k, ghosts) - 1, num(0)) / 2
            return c * m / MP.log((left + m) / left)

        least = min(middle(errors), ghosts)
        return min(errors, MP.ceil(max(least, middle(least)))) / ghosts

    def objective(x: Real) -> Real:
        return ((1 + alpha) * _kl_inverse(x, c, mu) - x + 1 / num(m)) / alpha

    best = num(0)
    if mu is not None:  # where the concave objective is stationary
        best = (MP.log((1 + alpha) * mu / (1 - MP.exp(-mu))) - c) / mu
    return objective(max(num(0), min(q, best)))
