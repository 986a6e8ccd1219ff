"""The search for the least bound a policy allows: certificates, to be checked. Nothing here is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.golden import golden
from boundcalc.base.intervals import INTERVAL
from boundcalc.base.numbers import FLOAT, LOG, LogFloat, log_add, log_sum
from boundcalc.engine.allocate import (
    Item,
    Option,
    Point,
    TradeOff,
    allocate,
    build_items,
    closer,
    covers_of,
    lemmas_of,
    recount,
    slack,
    uncoverable,
)
from boundcalc.engine.chain import best_chain
from boundcalc.engine.exact import allocate_exactly
from boundcalc.engine.noise import noise_items
from boundcalc.engine.refine import best_refined, log_counts, refined_covers
from boundcalc.formulas.theorems.policies import Policy
from boundcalc.proof.certificate import Certificate, Choice, Cover, Level
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.compose import Lowered, lower
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.statements.meet import joined
from boundcalc.statements.premise import no_member
from boundcalc.statements.slots import PUBLISHED
from boundcalc.statements.strategies import (
    GHOSTS,
    STRATEGIES,
    ChainStrategy,
    Known,
    MarginStrategy,
    SingleStrategy,
    Strategy,
    noise_chance,
)

S = TypeVar("S", bound=Strategy)

HALF = math.log(0.5) - 1e-12
"""Half the margin, on the loss: a float just below log(1/2)."""
_FIXED_POINT_STEPS = 30
_LINKS = 3
"""First links that are counted on the samples they need; the others are ranked by what they cost on those there are."""
_FINER = 0.05
_FARTHER = 4.0
"""How far a first link looks: covers e^4 times as large as the first, which are several times as fine."""
_GLANCES = (-4.0, -8.0)
"""Logs of the scales that are tried where any cover will do."""
_BELOW_ONE = 0.998
_LARGEST_LOG = 690.0
_MU_STEPS = 40
_HOPELESS = 30.0
"""Nats per sample of a uniform cover beyond which noise is not tried."""
_MOST_COUNT = 600.0
"""Logs of log counts that floats can hold."""
_LOG_ROUNDING = 16 * 2.0**-53
"""Relative error of a log after the few roundings between a weight and the log of its eps."""


class Found:
    """The value the search thinks a certificate has (log), and the certificate, written out when it is asked for."""

    def __init__(self, log_value: float, write: Callable[[], Certificate]) -> None:
        self.log_value = log_value
        self._write = write

    @cached_property
    def certificate(self) -> Certificate:
        """The same object each time."""
        return self._write()


@dataclass(frozen=True, slots=True)
class Needed:
    """How far a statement is where the least proof covers nothing.

    Attributes:
        log10_count: base-10 logarithm of the log count (nats) of the cover that one link would need.
        n_train: samples with which that link brings the gap below 1; None where that is more than 10^300.
    """

    log10_count: float
    n_train: float | None

    def to_json(self) -> dict[str, float | None]:
        """As in the schema."""
        return {"log10_count": self.log10_count, "n_train": self.n_train}


@dataclass(frozen=True, slots=True)
class Link:
    """One link from the loss' own range to a cover: log of the m that makes it worth its price, and the cover."""

    log_m: float
    log_count: float
    items: Sequence[Item]
    point: Point
    alpha: int | None


@dataclass(frozen=True, slots=True)
class _Way:
    """A chain through some points, and the first of them."""

    found: Found
    strategy: ChainStrategy
    items: Sequence[Item]
    points: Sequence[Point]
    alpha: int
    first: int | None


Shared = dict[tuple[object, ...], Any]
"""What searches of one setting under different policies have in common, by what it depends on."""


class Search:
    """Searches one setting under one policy, for the gap and for the risk."""

    def __init__(
        self,
        setting: Setting,
        policy: Policy,
        *,
        log_union: float = 0.0,
        measured: Mapping[str, Any] | None = None,
        shared: Shared | None = None,
        beside: Search | None = None,
    ) -> None:
        """A search that adds `log_union` to log(1/delta) and shares its allocations with others of the same setting."""
        self.setting = setting
        self.policy = policy
        self.measured = measured
        self._shared: Shared = {} if shared is None else shared
        self.m = setting.sample.n_train
        self.log_union = log_union
        self.log_inverse_delta = log_union - math.log(setting.sample.delta)
        self._beside = beside
        self._claimed: Setting | None = None
        """The setting whose class lies in the one that is searched."""

    def with_samples(self, m: int) -> Search:
        """The same search for another number of samples, reusing the allocations found so far."""
        changed = replace(self.setting, sample=replace(self.setting.sample, n_train=m))
        beside = self._beside or self
        return Search(changed, self.policy, log_union=self.log_union, measured=self.measured, beside=beside)

    @cached_property
    def _met(self) -> Search | None:
        """The search of the class in which maps that meet are one (A6), where the policy may use it."""
        if not self.policy.meeting or self._claimed is not None:
            return None
        if self._beside is not None:
            beside = self._beside._met
            found = None if beside is None else beside.with_samples(self.m)
        else:
            larger = self._once(("met",), lambda: joined(self.setting))
            if isinstance(larger, Refusal):
                return None
            shared = self._once(("met", "shared"), dict)
            found = Search(larger, self.policy, log_union=self.log_union, measured=self.measured, shared=shared)
        if found is not None:
            found._claimed = self.setting
        return found

    @cached_property
    def lowered(self) -> Lowered:
        """The pieces, in logs."""
        if self._beside is not None:
            return self._beside.lowered
        published = PUBLISHED if self._closed is not None and self._closed.published else frozenset[str]()
        return self._once(("lowered", published), lambda: lower(self.setting, LOG, published=published))

    def _once(self, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Something other searches of this setting may have made already."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def items(self, samples: int, *, uniform: bool) -> list[Item]:
        """Options of every piece; raises `Unsupported` naming the piece that has none."""

        def allowed(lemma: CoverLemma) -> bool:
            return self.policy.allows(lemma) and (lemma.uniform or not uniform)

        refusal = self.policy.refuses(self.setting)
        if refusal is not None:
            raise Unsupported(refusal)
        items = build_items(self.lowered, samples, allowed)
        missing = uncoverable(items)
        if missing is not None:
            lemmas = ", ".join(sorted(self.policy.lemmas))
            raise Unsupported(
                Refusal(
                    f"policy {self.policy.name!r}",
                    f"a piece {missing} that none of {lemmas} covers",
                    "a cover of every piece",
                )
            )
        return items

    @cached_property
    def has_uniform(self) -> bool:
        """Whether every piece has a uniform cover under this policy, whatever the number of samples."""
        if self._beside is not None:
            return self._beside.has_uniform

        def allowed(lemma: CoverLemma) -> bool:
            return self.policy.allows(lemma) and lemma.uniform

        return uncoverable(build_items(self.lowered, self.m, allowed)) is None

    @cached_property
    def has_empirical(self) -> bool:
        """Whether some allowed lemma counts points (else every cover is uniform)."""
        return any(self.policy.allows(lemma) and not lemma.uniform for lemma in LEMMAS.values())

    @cached_property
    def _closed(self) -> Strategy | None:
        """The closed form the policy is about, if it is about one."""
        return None if self.policy.form == "search" else STRATEGIES[self.policy.form]

    def _strategies(self, kind: type[S]) -> Iterator[S]:
        """What the search may use of a kind: empirical ones only where some lemma counts points."""
        for strategy in STRATEGIES.values():
            if isinstance(strategy, kind) and not strategy.noisy and strategy.refuses(self.setting) is None:
                uniform = self._met is None and self.has_uniform  # else maps that meet have smaller uniform covers
                possible = uniform if strategy.uniform else self.has_empirical
                if possible:
                    yield strategy

    # -- gap

    def gaps(self) -> Iterator[Found]:
        """Candidate certificates for the gap."""
        if self._closed is not None:
            yield self._closed_form(self._closed)
            return
        if self._met is not None:
            yield from self._met.gaps()
        ways: list[_Way] = []
        for strategy in self._strategies(ChainStrategy):
            if strategy.refines and not self.policy.refining:
                continue
            items, points, counts = self._points(uniform=strategy.uniform)
            hopeful = counts[0] < math.log(2 * self.m)  # else even the first link costs more than it gains
            for alpha in (1,) if "alpha" not in strategy.parameters else GHOSTS[1:] if hopeful else ():
                way = self._way(strategy, items, points, alpha)
                if way is not None:
                    ways.append(way)
                    yield way.found
        best = min(ways, key=lambda way: way.found.log_value, default=None)
        if best is not None and best.first is not None and self.policy.polish and self._beside is None:
            points = closer(best.items, best.points, best.first)
            polished = self._way(best.strategy, best.items, points, best.alpha)
            if polished is not None:
                yield polished.found
        for strategy in self._strategies(SingleStrategy):
            items, points, counts = self._points(uniform=strategy.uniform)
            yield from self._single(strategy, items, points, counts)

    def glance(self) -> Found | None:
        """A gap certificate of one uniform cover at a few multipliers: not the least, but found in a few passes.

        Covers of n parameters cost about n log(1/share), so at the multiplier n/e shares sum to about e.
        """
        strategies = [each for each in self._strategies(SingleStrategy) if each.uniform]
        if self._closed is not None or not strategies:
            return None
        items = self.items(self.m, uniform=True)
        sizes = [
            item.total + min((o.log_a for o in options if not o.power), default=0.0)
            for item in items
            for _, options in item.members[:1]
        ]
        points = [allocate(items, log_sum(sizes) - log_scale) for log_scale in _GLANCES]
        points = [point for point in points if -math.inf < point.log_count and point.log_scale < self.log_start]
        counts = [point.log_count for point in points]
        found = [each for strategy in strategies for each in self._single(strategy, items, points, counts)]
        return min(found, key=lambda each: each.log_value, default=None)

    def _points(self, *, uniform: bool) -> tuple[Sequence[Item], list[Point], list[float]]:
        """Allocations to chain through and their log counts; uniform ones are the same for every number of samples."""
        origin = self._beside or self
        curve = origin._uniform if uniform else origin._empirical
        points = curve.until(math.log(self.m))
        if uniform or origin is self:
            return curve.items, points, [point.log_count for point in points]
        return curve.items, points, [recount(curve.items, point, self.m) for point in points]

    @cached_property
    def log_start(self) -> float:
        """Log e_0, the radius of the loss around its centre."""
        return min(math.log(0.5), self.lowered.radius.log)

    @cached_property
    def _empirical(self) -> TradeOff:
        return self._trade_off(uniform=False)

    @cached_property
    def _uniform(self) -> TradeOff:
        return self._trade_off(uniform=True)

    def _trade_off(self, *, uniform: bool) -> TradeOff:
        items = self.items(self.m, uniform=uniform)
        return self._once(("curve", uniform, lemmas_of(items)), lambda: TradeOff(items, self.log_start))

    def _known(self, log_scale: float, log_count: float, alpha: int = 1, mu: float | None = None) -> Known:
        """One level as a strategy is told of it, in floats."""
        q = self.setting.sample.train_error
        count = math.exp(min(log_count, _MOST_COUNT))
        start = math.exp(self.log_start)
        return Known(start, [math.exp(log_scale)], [count], self.log_inverse_delta, self.m, q, alpha, mu)

    def _way(self, strategy: ChainStrategy, items: Sequence[Item], points: Sequence[Point], alpha: int) -> _Way | None:
        """The best chain of a strategy through some points, if there is one of its kind."""
        if strategy.refines:
            return self._refined(strategy, items, points)
        samples = strategy.samples(self.m, alpha)
        known = strategy.uniform or (alpha == 1 and self._beside is None)
        counts = [point.log_count if known else recount(items, point, samples) for point in points]
        return self._chain(strategy, items, points, counts, alpha)

    def _chain(
        self,
        strategy: ChainStrategy,
        items: Sequence[Item],
        points: Sequence[Point],
        log_counts: Sequence[float],
        alpha: int,
    ) -> _Way:
        """G1+G2: 2 e_J + factor * (sum of links) + deviation."""
        room = slack(items)
        log_m = math.log(self.m)
        scales = [math.exp(min(point.log_scale + room, self.log_start)) for point in points]
        counts = [math.exp(count - log_m) if count - log_m < 200 else math.inf for count in log_counts]
        factor = strategy.factor(FLOAT, alpha)
        value, chain = best_chain(math.exp(self.log_start), scales, counts, factor / 2 * math.sqrt(2))
        total = 2 * value + gap.deviation(FLOAT, self.log_inverse_delta, self.m)

        def write() -> Certificate:
            levels = tuple(
                Level(min(points[i].log_scale + room, self.log_start), covers_of(items, points[i])) for i in chain
            )
            return replace(self._certificate(strategy, levels), alpha=alpha)

        return _Way(Found(math.log(total), write), strategy, items, points, alpha, chain[0] if chain else None)

    def _refined(self, strategy: ChainStrategy, items: Sequence[Item], points: Sequence[Point]) -> _Way | None:
        """G12, where some level refines another."""
        room = slack(items)
        start = math.exp(self.log_start)
        chain, refined = best_refined(start, items, points, self.m)
        if not any(refined):
            return None
        scales = [math.exp(min(points[i].log_scale + room, self.log_start)) for i in chain]
        counts = log_counts(items, points, chain, refined)
        q = self.setting.sample.train_error
        known = Known(start, scales, counts, self.log_inverse_delta, self.m, q)
        if any(less > more for less, more, _ in strategy.conditions(FLOAT, known)):
            return None
        value = strategy.value(FLOAT, known)

        def write() -> Certificate:
            levels: list[Level] = []
            for i, which in zip(chain, refined, strict=True):
                covers = refined_covers(items, points[i], which)
                levels.append(Level(min(points[i].log_scale + room, self.log_start), covers))
            return self._certificate(strategy, tuple(levels))

        return _Way(Found(math.log(value), write), strategy, items, points, 1, chain[0])

    def _single(
        self, strategy: Strategy, items: Sequence[Item], points: Sequence[Point], log_counts: Sequence[float]
    ) -> Iterator[Found]:
        room = slack(items)
        best: tuple[float, Point] | None = None
        for point, log_count in zip(points, log_counts, strict=True):
            if log_count > _MOST_COUNT:
                continue
            value = strategy.value(FLOAT, self._known(point.log_scale + room, log_count))
            if best is None or value < best[0]:
                best = value, point
        if best is not None:
            value, chosen = best

            def write() -> Certificate:
                level = Level(chosen.log_scale + room, covers_of(items, chosen))
                return self._certificate(strategy, (level,))

            yield Found(math.log(value), write)

    def first_link(self) -> Needed | None:
        """The cover and the number of samples by which one link would bring the gap below 1."""
        link = self.best_link()
        if link is None:
            return None
        n_train = math.ceil(math.exp(link.log_m)) if link.log_m < _LARGEST_LOG else None
        return Needed(link.log_count / math.log(10), n_train)

    def best_link(self) -> Link | None:
        """The one link that needs the fewest samples to bring the gap below 1."""
        if self._closed is not None:
            return None
        rough: list[Link] = []
        for uniform in (False, True):
            if not (self.has_uniform if uniform else self.has_empirical):
                continue
            alphas = (None,) if uniform else GHOSTS
            items, points = self._coarsest(alphas, uniform=uniform)
            for alpha in alphas:
                rough += [
                    Link(
                        self._log_samples(alpha, point.log_scale, point.log_count), point.log_count, items, point, alpha
                    )
                    for point in points
                    if point.log_count > -math.inf and point.log_scale < self.log_start - _FINER
                ]
        rough.sort(key=lambda link: link.log_m)
        return min(map(self._settled, rough[:_LINKS]), key=lambda link: link.log_m, default=None)

    def _coarsest(self, alphas: Sequence[int | None], *, uniform: bool) -> tuple[Sequence[Item], list[Point]]:
        """Allocations for a first link, down to where even an error of 0 at the same count would not be better."""
        origin = self._beside or self
        curve = origin._uniform if uniform else origin._empirical
        least: list[float] = []

        def may_gain(point: Point) -> bool:
            if point.log_count == -math.inf:
                return True
            if point.log_scale < self.log_start - _FINER:
                least.extend(self._log_samples(alpha, point.log_scale, point.log_count) for alpha in alphas)
            limit = min(self._log_samples(alpha, -math.inf, point.log_count) for alpha in alphas)
            return len(least) < _LINKS or limit < sorted(least)[_LINKS - 1]

        return curve.items, curve.until(curve.first + _FARTHER, may_gain)

    def _log_samples(self, alpha: int | None, log_scale: float, log_count: float) -> float:
        """Log of the m with which a link of this count brings the gap below 1; `alpha` None for uniform covers."""
        factor = 1.0 if alpha is None else 1 + 1 / alpha
        left = _BELOW_ONE * 2 * math.exp(self.log_start) - 2 * math.exp(log_scale)
        if left <= 0:
            return math.inf
        log_link = math.log(factor) + self.log_start + 0.5 * (math.log(2) + log_count)
        return 2 * (log_add(log_link, 0.5 * math.log(self.log_inverse_delta / 2)) - math.log(left))

    def _settled(self, link: Link) -> Link:
        """Covers that count points cost more on more samples: raise both until they agree."""
        alpha = link.alpha
        if alpha is None:
            return link
        for _ in range(_FIXED_POINT_STEPS):
            if link.log_m > _LARGEST_LOG:
                return link
            log_count = recount(link.items, link.point, (1 + alpha) * math.ceil(math.exp(link.log_m)))
            log_m = self._log_samples(alpha, link.point.log_scale, log_count)
            if log_m <= link.log_m:
                return replace(link, log_count=log_count)
            link = replace(link, log_m=log_m + 1e-3, log_count=log_count)
        return link

    def _closed_form(self, strategy: Strategy) -> Found:
        """A4 + G1 or PUB: every piece by the option of least coefficient, the error split by A1."""
        items = self.items(strategy.samples(self.m, 1), uniform=strategy.uniform)
        level, log_capacity = self._split(items, 0.0)
        if strategy.follows_m:
            for _ in range(_FIXED_POINT_STEPS):
                start = 0.5 * (log_capacity - math.log(self.m)) + math.log(3)  # where Dudley's integral starts
                if level.log_scale <= start:
                    break
                level, log_capacity = self._split(items, start - 1e-6)
        count, scale = LogFloat(log_capacity - 2 * level.log_scale), LogFloat(level.log_scale)
        inverse, m = LogFloat.of(self.log_inverse_delta), LogFloat.of(self.m)
        known = Known(LogFloat(self.log_start), [scale], [count], inverse, m, LogFloat.of(0))
        return Found(strategy.value(LOG, known).log, lambda: self._certificate(strategy, (level,)))

    def _split(self, items: Sequence[Item], log_scale: float) -> tuple[Level, float]:
        """A1 at one scale: shares in proportion to the cube roots of coefficient * reach^2."""
        assert self._closed is not None  # noqa: S101 - only closed forms split
        published = self._closed.published
        weights: list[float] = []
        chosen: list[tuple[Choice, ...]] = []
        for item in items:
            costs: list[float] = []
            choices: list[Choice] = []
            for log_multiplicity, options in item.members:
                at_one = [_log_coefficient(option, log_scale, published) + 2 * option.log_reach for option in options]
                best = min(range(len(options)), key=at_one.__getitem__)
                costs.append(at_one[best] + log_multiplicity)
                choices.append(Choice(options[best].lemma.name, options[best].index))
            weights.append(log_sum(costs) / 3)
            chosen.append(tuple(choices))
        total = log_sum(weights)
        room, gains = slack(items), [item.log_gain for item in items]
        if not published:  # the checked value is to be the formula's: exact gains, room only for the rounding of logs
            gains = [float(piece.gain.log()) for piece in lower(self.setting, INTERVAL).pieces]
            room = _LOG_ROUNDING * (1 + max(map(abs, (log_scale, total, *weights, *gains))))
        shares = [log_scale + weight - total - room for weight in weights]
        covers = {
            item.key: Cover(share - gain, choices)
            for item, gain, share, choices in zip(items, gains, shares, chosen, strict=True)
        }
        if not published:
            return Level(log_scale, covers), 3 * total
        costs = [
            log_sum(
                [
                    log_multiplicity + _log_published(options, choice, share)
                    for (log_multiplicity, options), choice in zip(item.members, choices, strict=True)
                ]
            )
            for item, share, choices in zip(items, shares, chosen, strict=True)
        ]
        return Level(log_scale, covers), log_sum(costs) + 2 * log_scale

    # -- risk

    @cached_property
    def speaks_of_none(self) -> bool:
        """Whether no network of the class meets the premise of a risk bound (G0e), however many samples there are."""
        if self._beside is not None:
            return self._beside.speaks_of_none
        return self._once(("no member",), lambda: no_member(self.setting) is not None)

    def risks(self) -> Iterator[Found]:
        """Candidate certificates for the risk at the assumed margin training error."""
        if self._closed is not None or self.speaks_of_none:
            return
        if self._met is not None:
            yield from self._met.risks()
        for strategy in self._strategies(MarginStrategy):
            items, point = self._uniform_half if strategy.uniform else self._ghost_half
            for alpha in GHOSTS if "alpha" in strategy.parameters else (1,):
                samples = strategy.samples(self.m, alpha)
                log_count = point.log_count if strategy.uniform else recount(items, point, samples)
                log_value, mu = self._margin_value(strategy, log_count, alpha)
                yield Found(log_value, partial(self._margin, strategy, items, point, alpha, mu))

        yield from self._noises()

    def _noises(self) -> Iterator[Found]:
        """Certificates of G11; where maps meet, noise on the product is as good (but for references, which it forgets)."""
        if not self.policy.noise or (self._met is not None and not _referred(self.setting)):
            return
        lemmas = self._beside_noise
        for strategy in STRATEGIES.values() if lemmas is not None else ():
            if isinstance(strategy, MarginStrategy) and strategy.noisy and strategy.refuses(self.setting) is None:
                eta = noise_chance(self.m)
                items = noise_items(self.lowered, eta, lambda lemma: lemma.name in (lemmas or ()))
                if uncoverable(items) is None:
                    point = self._once(("noise", eta), partial(allocate_exactly, items, HALF))
                    known = replace(self._known(HALF, point.log_count), eta=eta)
                    value, mu = least_mu(lambda mu, s=strategy, known=known: s.value(FLOAT, replace(known, mu=mu)))
                    yield Found(_log(value), partial(self._noise, strategy, items, point, mu, eta))

    @cached_property
    def _beside_noise(self) -> frozenset[str] | None:
        """The lemmas of the cheapest uniform cover, which may stand beside noise; None where noise too is hopeless."""
        if not self.has_uniform:
            return frozenset()
        point = self._uniform_half[1]
        if point.log_count > math.log(_HOPELESS * self.m):
            return None
        return frozenset(choice.lemma for choices in point.choices for choice in choices)

    def _noise(
        self, strategy: MarginStrategy, items: Sequence[Item], point: Point, mu: float, eta: float
    ) -> Certificate:
        return replace(self._margin(strategy, items, point, 1, mu), eta=eta)

    @cached_property
    def _uniform_half(self) -> tuple[Sequence[Item], Point]:
        """The cheapest uniform cover at half the margin: the same for every number of samples."""
        if self._beside is not None:
            return self._beside._uniform_half
        items = self.items(self.m, uniform=True)
        return self._once(("half", True, lemmas_of(items)), lambda: (items, allocate_exactly(items, HALF)))

    @cached_property
    def _ghost_half(self) -> tuple[Sequence[Item], Point]:
        """A cheap cover at half the margin, counted on two samples each."""
        if self._beside is not None:
            return self._beside._ghost_half
        items = self.items(2 * self.m, uniform=False)
        return self._once(("half", False, lemmas_of(items)), lambda: (items, allocate_exactly(items, HALF)))

    def _margin_value(self, strategy: Strategy, log_count: float, alpha: int) -> tuple[float, float | None]:
        """The log of a risk bound, at the best parameter of the kl inverse where it takes one (any is valid)."""
        if "mu" not in strategy.parameters:
            inverse, m = LogFloat.of(self.log_inverse_delta), LogFloat.of(self.m)
            q = LogFloat.of(self.setting.sample.train_error)
            known = Known(LogFloat(self.log_start), [LogFloat(HALF)], [LogFloat(log_count)], inverse, m, q, alpha)
            return strategy.value(LOG, known).log, None
        known = self._known(HALF, log_count, alpha)
        if not strategy.needs_mu(self.setting):
            return _log(strategy.value(FLOAT, known)), None
        value, mu = least_mu(lambda mu: strategy.value(FLOAT, replace(known, mu=mu)))
        return _log(value), mu

    def _margin(
        self, strategy: MarginStrategy, items: Sequence[Item], point: Point, alpha: int, mu: float | None
    ) -> Certificate:
        level = Level(HALF, covers_of(items, point))
        return replace(self._certificate(strategy, (level,)), alpha=alpha, mu=mu)

    def _certificate(self, strategy: Strategy, levels: tuple[Level, ...]) -> Certificate:
        setting, meeting = (self.setting, False) if self._claimed is None else (self._claimed, True)
        return Certificate(setting, self.policy.name, strategy.name, levels, measured=self.measured, meeting=meeting)


def least_mu(value: Callable[[float], float]) -> tuple[float, float]:
    """The least value over the parameter of the kl inverse, by golden section in its log; and the parameter."""
    mu = math.exp(golden(lambda x: value(math.exp(x)), -8.0, 8.0, _MU_STEPS))
    return value(mu), mu


def _log(value: float) -> float:
    return math.log(value) if 0 < value < math.inf else math.inf


def _log_coefficient(option: Option, log_scale: float, published: bool) -> float:
    """Log of the cost at y = 1 (for the published cover: at the y of about this scale)."""
    y = (
        LogFloat(max(0.0, option.log_reach - log_scale + 2.0))
        if published and option.lemma.published
        else LogFloat(0.0)
    )
    return option.lemma.closed(LOG, y, option.target, LogFloat.of(option.n)).log - 2 * y.log


def _log_published(options: Sequence[Option], choice: Choice, log_share: float) -> float:
    """Log cost of a chosen option under PUB (majorised by y^2 where it is not a power)."""
    option = next(o for o in options if o.lemma.name == choice.lemma and o.index == choice.target)
    y = LogFloat(option.log_reach - log_share)
    n = LogFloat.of(option.n)
    if option.lemma.published:
        return option.lemma.sharp(LOG, y, option.target, n, {}).log
    return option.lemma.closed(LOG, LogFloat(0.0), option.target, n).log + 2 * y.log


def _referred(setting: Setting) -> bool:
    """Whether some budget is of a distance from a reference."""
    return any(budget.distance is not None for budget in setting.norms.budgets.values())
