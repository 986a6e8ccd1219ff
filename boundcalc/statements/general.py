"""E: covers of general attention, for score and feature classes supplied by the user.

y = phi_out( sum_t Norm(Score(x_t, z))_t phi_in(x_t) ): phi_out is one fixed map; Score and phi_in range over classes
whose log-counts are given as functions of a tolerance, written in any number system. `choose_share` looks for the best
division of the error in floats; `log_count` evaluates the statement at any division, so in intervals it is a proof.
`gap_bound` chains it (G1, G2), at scales that `choose_scales` looked for in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.golden import golden
from boundcalc.base.numbers import FLOAT, LOG, LogFloat, Number, NumberSystem
from boundcalc.layers.facts import Context
from boundcalc.layers.normaliser import normaliser_constants
from boundcalc.setting import Normaliser, Norms
from boundcalc.statements import gap
from boundcalc.statements.covers import CoverLemma
from boundcalc.statements.targets import Target
from boundcalc.statements.weights import Weights

Cost = Callable[[NumberSystem, Number], Number]
"""Log-count of a class at a tolerance, in any number system."""

_GRID = 64
_REFINE = 40
_LEVELS = 40


def fixed(ns: NumberSystem, eps: Number) -> Number:
    """The cost of a class with one element: nothing, at any tolerance."""
    del eps
    return ns.number(0)


def lemma_cost(
    lemma: CoverLemma, target: Callable[[NumberSystem], Target], samples: int, *, sharp: bool = False
) -> Cost:
    """A covering lemma of T as a class cost: 0 once the tolerance reaches radius * norm.

    `target` makes the target in a number system, so that its radius and norms are numbers of it. `sharp` takes the
    least count the lemma proves, at parameters chosen in floats.
    """
    refusal = lemma.applies(target(LOG))
    if refusal is not None:
        raise Unsupported(refusal)

    def cost(ns: NumberSystem, eps: Number) -> Number:
        here = target(ns)
        y = lemma.reach(here) / eps
        if y <= 1:
            return ns.number(0)
        points = here.points.count(samples)
        if not sharp:
            return lemma.closed(ns, y, here, ns.number(points))
        params = lemma.params(float(ns.log(y)), here, points)
        return lemma.sharp(ns, y, here, ns.number(points), params)

    return cost


@dataclass(frozen=True, slots=True)
class GeneralAttention:
    """The hypotheses of E. What is not known stays None; a value that needs it is refused.

    Attributes:
        score: log-count of the score class, in the sup metric over all (x_t, z) of the sample (or over all inputs).
        feature: log-count of the class of phi_in, in the largest l2 distance of a row; on the rows x_t, or, for linear
            phi_in, on the pooled rows.
        lipschitz_out: Lipschitz constant of phi_out.
        bound_in: sup |phi_in|.
        c: l_inf -> l_1 constant of the normaliser.
        mu: largest l_1 mass of a row of weights, approximate scores included.
        uniform: whether both covers serve every sample (empirical counts are those on the m samples).
    """

    score: Cost | None
    feature: Cost | None
    lipschitz_out: float | None
    bound_in: float | None
    c: float | None
    mu: float | None
    uniform: bool = False

    @classmethod
    def of(
        cls,
        normaliser: Normaliser,
        *,
        score: Cost,
        feature: Cost,
        lipschitz_out: float | None = None,
        bound_in: float | None = None,
        score_radius: float | None = None,
        uniform: bool = False,
    ) -> GeneralAttention:
        """With the constants of a normaliser (L2); "linear" needs the largest |score| as `score_radius`."""
        if normaliser.name == "linear" and score_radius is None:
            raise Unsupported(
                Refusal("E with s/T", "no bound of the scores", "score_radius, to which they are clipped")
            )
        tau = 1.0 if normaliser.temperature is None else normaliser.temperature
        at = Context(Weights(FLOAT, Norms()), 1.0, 1, 1)
        c, mu = normaliser_constants(normaliser, tau, score_radius or 0.0, at)
        return cls(score, feature, lipschitz_out, bound_in, c, mu, uniform)


_HYPOTHESES = {
    "score": "a log-count of the score class (`fixed`, if there is one score function)",
    "feature": "a log-count of the class of phi_in (`fixed`, if there is one)",
    "lipschitz_out": "a Lipschitz constant of phi_out",
    "bound_in": "a bound of |phi_in|",
    "c": "an l_inf -> l_1 Lipschitz constant of the normaliser, independent of T",
    "mu": "a bound of the l_1 mass of a row of weights",
}


def applies(attention: GeneralAttention) -> Refusal | None:
    """Which hypothesis of E is missing, or None."""
    for name, need in _HYPOTHESES.items():
        value = getattr(attention, name)
        if value is None:
            return Refusal("E", f"no {name}", need)
        if name not in ("score", "feature") and not 0 < value < math.inf:
            return Refusal("E", f"{name} = {value!r}", f"{need}, above 0 and finite")
    return None


def log_count(ns: NumberSystem, attention: GeneralAttention, eps: Number, share: float) -> Number:
    """E: log N_score(t eps/(c L_out B_in)) + log N_in((1-t) eps/(mu L_out)), at t = `share`.

    t = 1 leaves nothing to phi_in and t = 0 nothing to the scores: allowed where that class is `fixed`.
    """
    refusal = applies(attention)
    if refusal is not None:
        raise Unsupported(refusal)
    if not (0 <= share <= 1):
        raise ValueError(f"a share of the error lies in [0, 1], got {share!r}")
    out, bound, c, mu = (
        ns.number(value)
        for value in (attention.lipschitz_out, attention.bound_in, attention.c, attention.mu)
        if value is not None
    )
    t = ns.number(share)
    return _part(ns, attention.score, t * eps / (c * out * bound), share > 0) + _part(
        ns, attention.feature, (1 - t) * eps / (mu * out), share < 1
    )


def _part(ns: NumberSystem, cost: Cost | None, eps: Number, allowed: bool) -> Number:
    if cost is None or cost is fixed:
        return ns.number(0)
    if not allowed:
        raise ValueError("a class that must be covered gets none of the error: choose 0 < share < 1")
    return cost(ns, eps)


def choose_share(attention: GeneralAttention, eps: float) -> float:
    """A near-optimal t, in logs: the best of a grid, refined around it. Any t is valid."""
    if attention.score is fixed:
        return 0.0
    if attention.feature is fixed:
        return 1.0

    def cost(logit: float) -> LogFloat:
        return log_count(LOG, attention, LogFloat.of(eps), _share(logit))

    span = 30.0
    grid = [span * (2 * i / _GRID - 1) for i in range(_GRID + 1)]
    costs = [cost(x) for x in grid]
    best = min(range(len(grid)), key=costs.__getitem__)
    low, high = grid[max(0, best - 1)], grid[min(_GRID, best + 1)]
    refined = golden(cost, low, high, _REFINE)
    return _share(refined if cost(refined) < costs[best] else grid[best])


def _share(logit: float) -> float:
    """A number strictly between 0 and 1."""
    return 1 / (1 + math.exp(-logit))


def gap_bound(
    ns: NumberSystem,
    attention: GeneralAttention,
    scales: Sequence[float],
    loss_lipschitz: float,
    log_inverse_delta: Number,
    m: int,
) -> Number:
    """G1 and G2 on E: the gap of every [0, 1] loss of this Lipschitz constant, chained from e_0 = 1/2.

    Scales are on the loss. Links count once for uniform covers, twice for empirical ones.
    """
    if any(not 0 < fine < coarse for coarse, fine in zip([1 / 2, *scales], scales, strict=False)):
        raise ValueError(f"scales must fall from below 1/2 and stay above 0, got {list(scales)}")
    counts = [_count_at(ns, attention, e, loss_lipschitz) for e in scales]
    return _chained(ns, attention, scales, counts, log_inverse_delta, m)


def _count_at(ns: NumberSystem, attention: GeneralAttention, scale: float, loss_lipschitz: float) -> Number:
    """The log count of a cover at a scale on the loss."""
    share = choose_share(attention, scale / loss_lipschitz)
    return log_count(ns, attention, ns.number(scale) / ns.number(loss_lipschitz), share)


def _chained(
    ns: NumberSystem,
    attention: GeneralAttention,
    scales: Sequence[float],
    counts: Sequence[Number],
    log_inverse_delta: Number,
    m: int,
) -> Number:
    ends = [ns.number(e) for e in (1 / 2, *scales)]
    links = gap.chain_sum(ns, ends, counts, ns.number(m))
    factor = gap.chain_factor(ns, None, uniform=attention.uniform)
    return gap.gap_chain(ns, ends[-1], links, factor, log_inverse_delta, ns.number(m))


def choose_scales(attention: GeneralAttention, loss_lipschitz: float, m: int, ratio: float = 2.0) -> list[float]:
    """How far down a geometric grid to chain, judged in logs; any falling scales are valid."""
    best: list[float] = []
    least: LogFloat | None = None
    scales: list[float] = []
    counts: list[LogFloat] = []
    for level in range(1, _LEVELS + 1):
        scales.append(0.5 * ratio**-level)
        counts.append(_count_at(LOG, attention, scales[-1], loss_lipschitz))
        value = _chained(LOG, attention, scales, counts, LOG.number(1.0), m)
        if least is None or value < least:
            least, best = value, list(scales)
    return best
