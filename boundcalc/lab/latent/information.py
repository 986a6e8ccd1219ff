"""How much a summary of the tokens leaves unsaid: I(y; X | summary), exactly or with an interval.

y is one more token. A sufficient summary leaves 0; the posterior is one (X1).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.models import BetaBernoulli, CategoricalMixture, DirichletCategorical, GaussianMean
from boundcalc.setting import validate

_Array = NDArray[Any]
_Finite = BetaBernoulli | DirichletCategorical | CategoricalMixture
"""Models of finitely many token values."""
_Summary = Callable[[NDArray[np.int64]], Any]
_MOST_SEQUENCES = 2**18


@dataclass(frozen=True)
class Information:
    """I(y; X | summary) in nats: a value between a lower and an upper end (all equal where it is exact)."""

    lower: float
    estimate: float
    upper: float
    kind: str


def summaries(model: _Finite, length: int) -> dict[str, _Summary]:
    """What may be told of so many tokens, by name: the first three are sufficient."""
    half = length // 2
    found: dict[str, _Summary] = {
        "posterior": lambda tokens: astuple(model.posterior(tokens)),
        "counts": lambda tokens: np.bincount(tokens, minlength=model.values),
        "sorted sequence": np.sort,
        f"counts of the first {half}": lambda tokens: np.bincount(tokens[:half], minlength=model.values),
        "largest token": np.max,
        "nothing": lambda tokens: 0,
    }
    return found


def linear_summaries(length: int) -> dict[str, _Array]:
    """The same of tokens on a line: matrices they are multiplied by; the first two are sufficient."""
    half = length // 2
    return {
        "mean": np.full((1, length), 1 / length),
        "whole sequence": np.eye(length),
        f"mean of the first {half}": np.eye(length)[:half].mean(0, keepdims=True),
        "first token": np.eye(length)[:1],
        "nothing": np.zeros((1, length)),
    }


def _key_of(value: Any) -> Hashable:
    """Summaries that differ only by rounding count as one."""
    return tuple(np.round(np.asarray(value, dtype=float), 9).ravel().tolist())


def exact_information(model: _Finite, summary: _Summary, length: int) -> Information:
    """By going through every sequence of this length."""
    if model.values ** validate.size("length", length) > _MOST_SEQUENCES:
        raise InvalidSetting(
            f"length {length} over {model.values} values has {model.values**length} sequences, more than 2^18: "
            "estimate it from some of them (--sequences 4000, sampled_information)"
        )
    groups: dict[Hashable, list[tuple[float, _Array]]] = defaultdict(list)
    for word in itertools.product(range(model.values), repeat=length):
        tokens = np.array(word)
        groups[_key_of(summary(tokens))].append((math.exp(model.log_joint(tokens)), model.predictive(tokens)))
    total = 0.0
    for members in groups.values():
        weights = np.array([weight for weight, _ in members])
        laws = np.stack([law for _, law in members])
        if weights.sum() > 0:
            total += float((weights * _divergence(laws, weights @ laws / weights.sum())).sum())
    value = max(0.0, total)
    return Information(value, value, value, "exact")


def _divergence(p: _Array, q: _Array) -> _Array:
    """KL divergence of rows of p from q."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / q), 0.0)
    return terms.sum(-1)


def sampled_information(
    model: _Finite, summary: _Summary, length: int, rng: np.random.Generator, n: int = 4000, confidence: float = 0.99
) -> Information:
    """From draws, for lengths that cannot be enumerated.

    Upper: E KL(P(y|X) | Q(y|summary)) is at least the information for every Q; Q is the mean of P(y|X) over one half of
    the draws with that summary (all draws, where it was not seen), evaluated on the other half. Lower: by Pinsker's
    inequality the information is at least E Var(P(y|X) | summary)/2 summed over y, seen in pairs of draws that share a
    summary. The ends are normal-theory confidence limits.
    """
    _, draws = model.draw(rng, length, validate.size("draws", n, least=20))
    laws = np.stack([model.predictive(tokens) for tokens in draws])
    keys = [_key_of(summary(tokens)) for tokens in draws]
    half = n // 2
    sums: dict[Hashable, _Array] = {}
    for key, law in zip(keys[:half], laws[:half], strict=True):
        sums[key] = sums.get(key, np.zeros(laws.shape[1])) + law
    overall = laws[:half].mean(0)
    guesses = np.stack([sums[key] / sums[key].sum() if key in sums else overall for key in keys[half:]])
    above = _divergence(laws[half:], guesses)
    waiting: dict[Hashable, int] = {}
    pairs = np.zeros(n)
    for i, key in enumerate(keys):
        if key in waiting:
            pairs[i] = np.square(laws[i] - laws[waiting.pop(key)]).sum() / 2
        else:
            waiting[key] = i
    spread = stdtrit(n - half - 1, confidence)
    upper = float(above.mean() + spread * above.std(ddof=1) / math.sqrt(len(above)))
    # a pair stands for its two draws; those left alone count as 0, which keeps the end low
    below = float(pairs.mean() - stdtrit(n - 1, confidence) * pairs.std(ddof=1) / math.sqrt(n))
    return Information(max(0.0, below), float(above.mean()), max(0.0, upper), "estimate")


def gaussian_information(model: GaussianMean, weights: _Array, length: int) -> Information:
    """Exact for linear summaries A X of a Gaussian-mean sequence: log(Var(y|AX)/Var(y|X))/2 per coordinate."""
    a = np.atleast_2d(np.asarray(weights, dtype=float))
    if a.shape[1] != length:
        raise InvalidSetting(f"weights must have one column per token: {length}, got {a.shape[1]}")
    s, t = model.noise_variance, model.prior_variance

    def variance(b: _Array) -> float:
        cov = b @ (s * np.eye(length) + t * np.ones((length, length))) @ b.T
        cross = t * b.sum(1)
        return s + t - float(cross @ np.linalg.pinv(cov, hermitian=True) @ cross)

    value = max(0.0, 0.5 * model.width * math.log(variance(a) / variance(np.eye(length))))
    return Information(value, value, value, "exact")
