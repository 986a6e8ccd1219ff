"""Is a law exchangeable, and could its sequences be the beginning of longer ones?

De Finetti's theorem needs infinitely many exchangeable tokens. Finitely many need not be conditionally independent
given anything: draws without replacement are exchangeable, and cannot be continued beyond the urn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hankel
from scipy.optimize import linprog
from scipy.special import comb, ndtri

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.latent.models import LatentModel
from boundcalc.setting import validate

_Array = NDArray[Any]
_TOLERANCE = 1e-9
FARTHEST = 512
"""So many bits are looked at at most, unless told."""
_SOLVED = 1e-10
"""The least a linear programme's constraints may be off by, below what counts as a distance."""


def order_gap(log_density: Callable[[Any], float], tokens: Any, rng: np.random.Generator, rounds: int = 50) -> float:
    """The most a log density moves when a sequence is reordered at random: 0, but for rounding, if it is exchangeable."""
    found = np.asarray(tokens)
    at = log_density(found)
    return max(abs(log_density(rng.permutation(found)) - at) for _ in range(validate.size("rounds", rounds)))


@dataclass(frozen=True)
class ModelCheck:
    """What de Finetti's theorem and X1 ask of a model, looked for in sequences that it draws.

    Attributes:
        length: tokens in each of them.
        chain: most that the log joint density differs from the sum of the predictive ones, in the order drawn.
        order: most that sum moves as tokens are reordered.
        statistics: the names of the model's sufficient statistics.
        posterior: most that posterior means from different statistics differ.
    """

    length: int
    chain: float
    order: float
    statistics: tuple[str, ...]
    posterior: float

    @property
    def worst(self) -> float:
        """0, but for rounding, if the model is what it says."""
        return max(self.chain, self.order, self.posterior)


def check_model(model: LatentModel, length: int = 12, sequences: int = 5, seed: int = 0) -> ModelCheck:
    """Whether a model's densities are exchangeable, and its statistics sufficient, on sequences that it draws."""
    rng = np.random.default_rng(seed)
    _, drawn = model.draw(rng, length, sequences)
    chain = max(abs(model.log_by_chain(tokens) - model.log_joint(tokens)) for tokens in drawn)
    order = max(order_gap(model.log_by_chain, tokens, rng, rounds=10) for tokens in drawn)
    posterior = 0.0
    for tokens in drawn:
        means = [np.asarray(model.posterior_of(name, of(tokens)).mean) for name, of in model.statistics.items()]
        posterior = max(posterior, *(float(np.abs(mean - means[0]).max()) for mean in means))
    return ModelCheck(length, chain, order, tuple(model.statistics), posterior)


# -- bits: a finite exchangeable law is the law of the number of ones


def _law(law: Sequence[float] | _Array) -> _Array:
    p = np.asarray(law, dtype=float)
    if p.ndim != 1 or len(p) < 2 or not (p >= 0).all() or not abs(p.sum() - 1) <= 1e-9:
        said = ", ".join(f"{x:g}" for x in p.ravel()[:8])
        raise InvalidSetting(
            f"a law of the number of ones must be at least two probabilities that sum to 1, got {said}"
        )
    return p / p.sum()


def extension_distance(law: Sequence[float] | _Array, length: int) -> tuple[float, float]:
    """Between which numbers the total variation from a law of so many ones in n bits to the nearest that extends lies.

    0 (to rounding) exactly when the n bits may be the first of so many exchangeable ones. A linear programme: what
    extends is a mixture of urns.
    """
    p = _law(law)
    n = len(p) - 1
    if validate.size("length", length) < n:
        raise InvalidSetting(f"length must be at least n = {n}, got {length}")
    from scipy.stats import hypergeom  # slow to load, and seldom needed

    return _distance(p, hypergeom.pmf(np.arange(n + 1)[:, None], length, np.arange(length + 1), n))


def mixture_distance(law: Sequence[float] | _Array, points: int = 401) -> float:
    """Total variation to the nearest mixture of i.i.d. bits whose probabilities lie on a grid (an upper bound)."""
    p = _law(law)
    n = len(p) - 1
    from scipy.stats import binom  # slow to load, and seldom needed

    z = (1 - np.cos(np.linspace(0, math.pi, points))) / 2
    return _distance(p, binom.pmf(np.arange(n + 1)[:, None], n, z))[1]


def _distance(p: _Array, laws: _Array) -> tuple[float, float]:
    """Between which numbers the total variation from p to the nearest mixture of laws (columns) lies.

    What the solver found is not taken on its word: its mixture is measured, and so is how far its function tells p from
    all laws.
    """
    n, count = laws.shape
    cost = np.concatenate([np.zeros(count), np.full(2 * n, 0.5)])
    equal = np.block([[laws, np.eye(n), -np.eye(n)], [np.ones((1, count)), np.zeros((1, 2 * n))]])
    exact = {"primal_feasibility_tolerance": _SOLVED, "dual_feasibility_tolerance": _SOLVED}
    found = linprog(cost, A_eq=equal, b_eq=np.append(p, 1.0), method="highs", options=exact)
    if not found.success:
        raise InvalidSetting(f"the linear programme failed: {found.message}")
    mixture, tells = np.maximum(found.x[:count], 0.0), np.clip(found.eqlin.marginals[:n], -0.5, 0.5)
    low = max(0.0, float(tells @ p - (tells @ laws).max()))
    high = 0.5 * float(np.abs(p - laws @ (mixture / mixture.sum())).sum())
    if high > low * 1.01 + 1e-6:
        raise InvalidSetting(f"the distance is only known to lie in [{low:.3g}, {high:.3g}]: give a law of fewer bits")
    return low, high


def moment_defect(law: Sequence[float] | _Array) -> float:
    """Least eigenvalue of the two Hankel matrices of the moments P(first j bits are 1); negative: no mixture of i.i.d.

    Hausdorff's condition for moments on [0, 1], which is also sufficient.
    """
    p = _law(law)
    n = len(p) - 1
    k = np.arange(n + 1)
    c = p @ (comb(k[:, None], k) / comb(n, k))

    def least(x: _Array) -> float:
        size = (len(x) + 1) // 2
        return float(np.linalg.eigvalsh(hankel(x[:size], x[size - 1 : 2 * size - 1]))[0])

    if n % 2:
        return min(least(c[1:]), least(c[:-1] - c[1:]))
    return min(least(c), least(c[1:-1] - c[2:])) if n > 1 else 0.0


def largest_extension(law: Sequence[float] | _Array, most: int = FARTHEST) -> int | None:
    """The most exchangeable bits the law extends to; `most` where it extends further, but not for ever (Hausdorff's test).

    None where it extends to any number.
    """
    p = _law(law)
    n, most = len(p) - 1, max(len(p) - 1, most)

    def extends(length: int) -> bool:
        return extension_distance(p, length)[0] <= _TOLERANCE

    if extends(most):
        return None if moment_defect(p) >= -_TOLERANCE else most
    low, high = n, most
    while high - low > 1:
        middle = (low + high) // 2
        if extends(middle):
            low = middle
        else:
            high = middle
    return low


# -- data: the correlation of two tokens


@dataclass(frozen=True)
class Extendibility:
    """What sequences say about being part of longer exchangeable ones.

    Attributes:
        correlation: of two tokens of one sequence, over sequences.
        low: lower end of its interval.
        high: upper end.
        length: tokens per sequence.
    """

    correlation: float
    low: float
    high: float
    length: int

    @property
    def most(self) -> float:
        """Tokens they can extend to, by the upper end: an exchangeable sequence of N has correlation >= -1/(N-1)."""
        return math.inf if self.high >= 0 else max(float(self.length), 1 - 1 / self.high)

    @property
    def warning(self) -> str:
        """A line for those who would use de Finetti's theorem here ("" where nothing speaks against it)."""
        if self.high >= 0:
            return ""
        return (
            f"tokens are negatively correlated ({self.correlation:.3g}, interval [{self.low:.3g}, {self.high:.3g}]): "
            f"they extend to at most {math.floor(self.most)} exchangeable tokens, so they are not i.i.d. given a "
            "latent variable; the posterior of one is an approximation (X1 bounds its error)"
        )


def extendibility(sequences: Any, confidence: float = 0.99) -> Extendibility:
    """Estimates the correlation of two tokens from many sequences (n, length) or (n, length, width)."""
    x = np.asarray(sequences, dtype=float)
    if x.ndim == 2:
        x = x[..., None]
    if x.ndim != 3 or x.shape[1] < 2 or len(x) < 10:
        raise InvalidSetting(f"sequences must be at least 10, of at least 2 tokens each; got shape {x.shape}")
    validate.fraction("confidence", confidence, ends=False)
    if not np.isfinite(x).all():
        raise InvalidSetting(f"sequences must be finite, but {int((~np.isfinite(x)).sum())} of their numbers are not")
    length = x.shape[1]
    x = x - x.mean(axis=(0, 1))
    squares = np.square(x).sum(axis=(1, 2))
    pairs = (np.square(x.sum(axis=1)).sum(-1) - squares) / (length * (length - 1))
    variance = float(squares.mean() / length)
    if variance == 0:
        raise InvalidSetting("sequences must vary: every token is the same")
    ratio = float(pairs.mean()) / variance
    residual = pairs - ratio * squares / length
    spread = float(residual.std(ddof=1)) / math.sqrt(len(x)) / variance
    half = float(ndtri((1 + confidence) / 2)) * spread
    return Extendibility(ratio, ratio - half, ratio + half, length)
