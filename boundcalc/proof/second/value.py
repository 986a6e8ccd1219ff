"""G and P1 in 50 digits: the value of a certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from boundcalc.proof.certificate import Certificate, Cover
from boundcalc.proof.second.covers import UNIFORM
from boundcalc.proof.second.meeting import joined
from boundcalc.proof.second.network import Heard, Walk
from boundcalc.proof.second.noises import PARAMETERS as LAWS
from boundcalc.proof.second.noises import depth as noise_depth
from boundcalc.proof.second.numbers import MP, Real, demand, num, unknown
from boundcalc.setting import Budget, Norms

_CLOSED_GHOSTS = 16
KNOWN = ("chain", "ghost-chain", "uniform-chain", "uniform-single", "closed", "published")
KNOWN += ("refined-chain", "channel-chain", "uniform-margin", "ghost-realizable", "ghost", "noise-margin")
_UNIFORM = ("uniform-chain", "refined-chain", "channel-chain", "uniform-single", "uniform-margin", "noise-margin")
_POWERS = 21
"""Schatten powers one may choose among, or that tied ones differ."""
_ROUNDED = num("1e-13")
"""A point of a grid is a float: this near its exact place."""


def log_value(certificate: Certificate) -> Real:
    """Log of the value of a certificate, without rounding; a `CertificateError` where a side condition fails."""
    if certificate.strategy not in KNOWN:
        raise unknown("strategy", certificate.strategy)
    value = _value(certificate)
    return MP.log(value) if value > 0 else -MP.inf


def _value(certificate: Certificate) -> Real:
    setting, strategy, alpha = certificate.setting, certificate.strategy, certificate.alpha
    walked = joined(setting) if certificate.meeting else setting
    sample = setting.sample
    m, q = sample.n_train, num(sample.train_error)
    log_inverse = -MP.log(num(sample.delta)) + _price(certificate)
    steep = (MP.sqrt(2) if setting.architecture.classes > 1 else num(1)) / num(sample.margin)  # G0
    if sample.lipschitz is not None:
        steep = num(sample.lipschitz)
    samples = m * (1 + _CLOSED_GHOSTS) if strategy == "closed" else m
    if strategy in ("ghost-chain", "ghost-realizable", "ghost"):
        samples = m * (1 + alpha)
    scales: list[Real] = []
    counts: list[Real] = []
    before: Mapping[str, Cover] | None = None
    heard: dict[tuple[str, int], Heard] | None = {} if strategy == "channel-chain" else None
    for level in certificate.levels:
        if strategy in _UNIFORM:
            lemmas = {choice.lemma for cover in level.covers.values() for choice in cover.choices}
            laws = LAWS if strategy in ("noise-margin", "channel-chain") else {}
            demand(lemmas <= UNIFORM | {"zero"} | set(laws), "a uniform strategy needs uniform covers")
        closed, published = strategy in ("closed", "published"), strategy == "published"
        depth = None
        if strategy == "noise-margin":
            demand(certificate.eta is not None and 0 < num(certificate.eta) <= num(1) / 2, "noise needs a chance eta")
            seen = Walk(walked, level.covers, 1, depth=num(2)).events
            depth = noise_depth(seen, certificate.eta)
        walk = Walk(walked, level.covers, samples, closed, published, depth, before, heard)
        before = level.covers if strategy in ("refined-chain", "channel-chain") else None
        scales.append(MP.exp(num(level.log_scale)))
        demand(steep * walk.error <= scales[-1], "a level's covers leave more error than its scale")
        counts.append(walk.count)
    deviation = MP.sqrt(log_inverse / (2 * num(m)))
    weights = certificate.weights
    demand(weights is None or strategy in ("refined-chain", "channel-chain"), f"{strategy} takes no weights")
    if strategy in ("chain", "ghost-chain", "uniform-chain", "refined-chain", "channel-chain"):
        first = min(num(1) / 2, steep * Walk(walked, None, m).radius)
        if weights is not None:
            return _weighted([first, *scales], counts, [num(w) for w in weights], m) + deviation
        if strategy in ("refined-chain", "channel-chain"):
            return _refined([first, *scales], counts, m) + deviation
        factor = {"chain": num(2), "ghost-chain": 1 + 1 / num(alpha), "uniform-chain": num(1)}[strategy]
        return _chained([first, *scales], counts, factor, m) + deviation
    demand(len(scales) == 1, "one level is needed")
    (scale,), (count,) = scales, counts
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
    demand(sample.lipschitz is None, "margins are for the ramp loss")
    demand(scale <= num(1) / 2, "margin bounds need a cover at half the margin")
    classes, longest = setting.architecture.classes, Walk(setting, None, m).radius
    margin = longest if classes == 1 else longest * MP.sqrt(num(classes) / (classes - 1))
    demand(q == 1 or margin > num(sample.margin), "no network of the class has a margin above gamma (G0e)")
    mu = None if certificate.mu is None else num(certificate.mu)
    if strategy == "noise-margin":
        eta = num(certificate.eta)
        if "train_error" in (certificate.measured or {}).get("sample", {}):
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


def _risk(strategy: str, q: Real, count: Real, log_inverse: Real, m: int, alpha: int, mu: Real | None) -> Real:
    """G3, G4, G5."""
    if strategy == "uniform-margin":
        return _kl_inverse(q, (count + log_inverse) / m, mu)
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


# -- P1


def _price(certificate: Certificate) -> Real:
    """What P1 adds to log(1/delta), and that every number is at least what was measured."""
    setting, record = certificate.setting, certificate.measured
    demand(not setting.norms.measured and not setting.sample.measured, "measured numbers without P1 are no bound")
    if record is None:
        return num(0)
    total = num(0)
    parts = dict(record)
    seen: Mapping[str, Any] = parts.pop("sample", {})
    failure = num(parts.get("failure", 0.0))
    if parts:
        total += _norms_price(setting.norms, Norms.from_json(parts))
    if "margin" in seen:
        k = -MP.log(num(setting.sample.margin), 2)
        demand(k == MP.nint(k) and setting.sample.margin <= seen["margin"], "the margin is not rounded down to 2^-k")
        total += MP.log((abs(k) + 1) * (abs(k) + 2)) + MP.log(num(3) / 2)
    if "train_error" in seen:
        demand(setting.sample.train_error >= seen["train_error"], "the training error is below the measured one")
        demand(seen["candidates"] >= 15, "the candidates a training error chose among are at least 15")
        total += MP.log(seen["candidates"])
    delta = num(setting.sample.delta)
    demand(failure < delta, "norms fail with more chance than delta")
    return total - MP.log(1 - failure / delta)


def _norms_price(given: Norms, measured: Norms) -> Real:
    limits = dict(_limits(given))
    seen = dict(_limits(measured))
    for key, value in seen.items():
        place, name = key
        kind = place.partition("[")[0]
        tried = ((place, name), (f"{kind}{place[len(kind) :].partition(',')[0]}]", name), (kind, name))
        found = next((limits[entry] for entry in tried if entry in limits), None)
        if found is None:  # a limit that not all that share a budget have is not set; the rest of the kind decides
            demand(any(other == kind or other.startswith(f"{kind}[") for other, _ in limits), f"{place} was left out")
            continue
        demand(found >= value, f"{place}.{name} is below what was measured")
    for place, name in limits:
        kind = place.partition("[")[0]
        same = any(n == name and p.partition("[")[0] == kind for p, n in seen)
        demand(same, f"{place}.{name} has a budget and no measurement")
    total = sum((_steps_price(name, value) for (_, name), value in limits.items()), start=num(0))
    for place in given.budgets:
        tied = [b for key, b in measured.budgets.items() if key == place or key.partition("[")[0] == place]
        total += _powers_that_differ(tied) * MP.log(_POWERS)
    return total


def _powers_that_differ(tied: Sequence[Budget]) -> int:
    """Schatten sums that tied budgets all have, of different powers: no budget stands for them, and yet they are paid."""
    powers = {None if budget.schatten is None else budget.schatten[0] for budget in tied}
    apart = [budget.distance for budget in tied if budget.distance is not None]
    inner = _powers_that_differ(apart) if apart and len(apart) == len(tied) else 0
    return inner + (None not in powers and len(powers) > 1)


def _limits(norms: Norms) -> Iterator[tuple[tuple[str, str], Real]]:
    """Every number of some norms, by place and name."""
    if norms.C is not None:
        yield ("", "C"), num(norms.C)
    for key, budget in norms.budgets.items():
        yield from (((key, name), value) for name, value in _numbers(budget))


def _numbers(budget: Budget, prefix: str = "") -> Iterator[tuple[str, Real]]:
    for name in ("op", "fro", "two_one", "two_one_t", "one_one", "sup", "row", "rank"):
        value = getattr(budget, name)
        if value is not None:
            yield prefix + name, num(value)
    if budget.schatten is not None:
        yield f"{prefix}schatten {budget.schatten[0]}", num(budget.schatten[1])
    if budget.distance is not None:
        yield from _numbers(budget.distance, f"{prefix}distance ")


def _steps_price(name: str, value: Real) -> Real:
    """log((k+1)(k+2)) for a number k steps up its grid; of Schatten sums the choice of a power too."""
    if name.endswith("rank"):
        k = value
    else:
        k = MP.nint(8 * MP.log(16 * value, 2))
        on_grid = abs(value * 16 / MP.mpf(2) ** (k / 8) - 1) < _ROUNDED
        demand(k >= 0 and on_grid, f"{name} = {MP.nstr(value)} is not on the grid")
    return MP.log((k + 1) * (k + 2)) + (MP.log(_POWERS) if "schatten" in name else 0)
