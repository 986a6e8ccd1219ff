"""G in 50 digits: the value of a certificate."""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ._certificate import Certificate
from ._comparison import expected_gap
from ._covers import UNIFORM
from ._layers import Layer, flat
from ._meeting import joined
from ._noises import LAWS
from ._noises import depth as noise_depth
from ._numbers import MP, Real, demand, num
from ._posthoc import price
from ._premise import largest_margin
from ._rules import walk_through
from ._setting import Setting, weights_of

_CLOSED_GHOSTS = 16
_ALMOST = 1 + num("1e-30")


Found = namedtuple("Found", "value counts nats")
"""What the steps of a certificate give: the value, the log count of every level, what P1 adds to log(1/delta)."""


def follow(certificate: Certificate) -> Found:
    """What the steps give, without rounding; refuses where a side condition fails."""
    setting, strategy = certificate.setting, certificate.strategy
    walked = joined(setting) if certificate.meeting else setting
    sample, noisy = setting.sample, strategy == "noise-margin"
    log_inverse, nats = -MP.log(num(sample.delta)), price(certificate)
    if certificate.has("coverless"):
        stored = numbers(setting) * num(setting.bits) * MP.log(2) if certificate.has("stored") else None
        count = expected_gap(setting, setting.about, certificate.tuning) if stored is None else stored
        return Found(_value(certificate, (), (count,), log_inverse + nats), (), nats)
    ramp = (MP.sqrt(2) if setting.classes > 1 else num(1)) / num(sample.margin)  # G0
    steep = ramp if sample.lipschitz is None else num(sample.lipschitz)
    samples = sample.n_train * (1 + _CLOSED_GHOSTS if strategy == "closed" else 1)
    chain = [min(num(1) / 2, steep * walk_through(walked).radius)]
    counts: list[Real] = []
    before: Mapping[str, Any] | None = None
    demand(not noisy or all(_carries_noise(layer) for layer in flat(walked.stages)), "G11 is for other layers")
    for level in certificate.levels:
        if certificate.has("uniform"):
            lemmas = {choice.lemma for cover in level.covers.values() for choice in cover.choices}
            laws = LAWS if noisy else ()
            demand(lemmas <= {*UNIFORM, "zero", *laws}, "a uniform strategy needs uniform covers")
        seen = walk_through(walked, level.covers, depth=num(2)).events if noisy else 0
        depth = noise_depth(seen, certificate.eta) if noisy else None
        how = {"published": strategy == "published", "depth": depth, "before": before}
        walk = walk_through(walked, level.covers, samples, every_scale=certificate.has("closed"), **how)
        before = level.covers if certificate.has("levels") else None
        chain.append(MP.exp(num(level.log_scale)))
        demand(steep * walk.error <= chain[-1], "a level's covers leave more error than its scale")
        counts.append(walk.count)
    return Found(_value(certificate, chain, counts, log_inverse + nats), tuple(counts), nats)


def numbers(setting: Setting) -> int:
    """G13: how many numbers a network stores; offsets of keys too, though a softmax forgets them."""
    weights = weights_of(setting.stages, setting.seq_len)
    total = sum(part.size for weight in weights for part in weight.factors or (weight,))
    for layer in flat(setting.stages):
        if layer.label == "attention" and layer.qk == "joint" and layer.qk_bias and layer.keys_alone:
            total += layer.groups * (layer.d_head or layer.d)
    return total


def _carries_noise(layer: Layer) -> bool:
    """Whether G11 was proved for a layer: not with options that came later."""
    options = vars(layer)
    later = (
        options.get("cap"),
        options.get("qk_eps"),
        options.get("around_one"),
        options.get("offsets", "none") != "none",
    )
    return layer.label != "softcap" and not any(later) and not (layer.label == "gated" and layer.bias)


def _value(certificate: Certificate, chain: Sequence[Real], counts: Sequence[Real], log_inverse: Real) -> Real:
    """The bound; `chain` begins with how far the loss is from its centre at most."""
    setting, strategy = certificate.setting, certificate.strategy
    m, q = setting.sample.n_train, num(setting.sample.train_error)
    deviation = MP.sqrt(log_inverse / (2 * num(m)))
    falling = all(fine < coarse for coarse, fine in pairwise(chain))
    demand(falling or not certificate.has("levels"), "the scales of a chain must fall")
    if certificate.has("levels"):
        return 2 * chain[-1] + _links(chain, counts, m) + deviation
    (count,) = counts
    if strategy in ("comparison", "comparison-closed"):
        return count + deviation
    if strategy == "stored-gap":
        return MP.sqrt((count + log_inverse) / (2 * num(m)))
    scale = num(0) if certificate.has("coverless") else chain[1]  # every network is its own centre
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
    far = q == 1 or largest_margin(setting) > num(setting.sample.margin) * _ALMOST
    demand(far, "no network of the class has a margin above gamma on both labels (G0e)")
    mu = None if certificate.mu is None else num(certificate.mu)
    if strategy == "noise-margin":
        eta, looked = num(certificate.eta), "train_error" in certificate.looked.sample
        demand(not looked or certificate.eta == 0.25 / m, "chosen after the training error, eta is 1/(4m)")
        spent = count + log_inverse + MP.log(2 + MP.sqrt(MP.pi * m / 2))
        return _kl_inverse(q + eta, spent / m, mu) / (1 - eta)
    return _kl_inverse(q, (count + log_inverse) / m, mu)


def _kl_inverse(q: Real, c: Real, mu: Real | None) -> Real:
    """Above sup{p : kl(q|p) <= c}."""
    if mu is None:
        demand(q == 0, "the limit of the kl inverse is for training error 0")
        return 1 - MP.exp(-c)
    return (1 - MP.exp(-mu * q - c)) / -MP.expm1(-mu)


def _links(scales: Sequence[Real], counts: Sequence[Real], m: int) -> Real:
    """Sum of e_(j-1) sqrt(2 c_j/m), c_j what a level adds, where c_j/e_(j-1)^2 does not fall."""
    links, steep = num(0), num(0)
    for scale, count in zip(scales, counts, strict=False):
        demand(steep * scale**2 <= count * _ALMOST, "what levels add shrinks faster than their links")
        steep = count / scale**2
        links += scale * MP.sqrt(2 * count / m)
    return links
