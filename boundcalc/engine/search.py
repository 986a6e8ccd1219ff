"""The search for the smallest bound a policy allows: certificates, to be checked. Nothing here is trusted.

Every cover serves every sample, so allocations are found once, whatever the number of samples, and are shared by the
searches of a setting under several policies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

from flint import arb

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.intervals import INTERVAL, upper_log
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.allocate import Point, TradeOff, slack
from boundcalc.engine.chain import Chains
from boundcalc.engine.comparison import tune
from boundcalc.engine.items import Item, build_items, lemmas_of, uncoverable
from boundcalc.engine.one_level import closed_form, least_mu, risk_candidates
from boundcalc.layers.facts import PUBLISHED
from boundcalc.proof.certificate import Certificate, Level
from boundcalc.setting import Setting
from boundcalc.statements.comparison.network import network_of, refusal
from boundcalc.statements.comparison.sharp import Tuning
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.merge import Merged, merge_linear_maps
from boundcalc.statements.network import Network
from boundcalc.statements.posthoc import Measured
from boundcalc.statements.premise import no_member
from boundcalc.statements.strategies import STRATEGIES, Chain, Known, Quantity, Strategy, noise_chance, stored_count
from boundcalc.theorems.policies import Policy

_COMPARISONS = ("comparison-closed", "comparison")
_EQUAL = 1e-12
"""Conditions that hold by less than this (relative) are not left to the checker's rounding."""
_FINER, _FARTHER = 0.05, 4.0
"""A first link is this much finer than the loss' range (log), and its cover at most e^4 times as large."""
_BELOW_ONE = 0.998
_LARGEST_LOG = 690.0

Shared = dict[tuple[object, ...], Any]
"""What searches of one setting have in common, by what it depends on."""


class Candidate:
    """The value a search thinks a certificate has (log), and the certificate, written out at its first use."""

    def __init__(self, log_value: float, write: Callable[[], Certificate]) -> None:
        self.log_value = log_value
        self._write = write

    @cached_property
    def certificate(self) -> Certificate:
        """The same object each time."""
        return self._write()


class Needed(NamedTuple):
    """How far a statement is where the best bound is vacuous.

    Attributes:
        log10_count: base-10 logarithm of the log count (nats) of the cover that one link would need.
        n_train: samples with which that link brings the gap below 1; None where that is more than 10^300.
    """

    log10_count: float
    n_train: float | None


class Link(NamedTuple):
    """One link from the loss' own range to a cover, and log of the m at which it brings the gap below 1."""

    log_m: float
    point: Point


class Search:
    """Searches one setting under one policy, for the gap and for the risk."""

    def __init__(
        self,
        setting: Setting,
        policy: Policy,
        *,
        log_union: float = 0.0,
        measured: Measured | None = None,
        shared: Shared | None = None,
        claimed: Setting | None = None,
    ) -> None:
        """A search that adds `log_union` to log(1/delta) and shares its allocations with others of the same setting.

        `claimed`: the setting in whose name certificates speak, where its class lies in the class that is searched
        (A6).
        """
        self.setting = setting
        self.policy = policy
        self.measured = measured
        self.shared: Shared = {} if shared is None else shared
        self.m = setting.sample.n_train
        self.log_union = log_union
        self.log_inverse_delta = log_union - math.log(setting.sample.delta)
        self._claimed = claimed

    def with_samples(self, m: int) -> Self:
        """The same search for another number of samples, with the same allocations."""
        return self._like(
            replace(self.setting, sample=replace(self.setting.sample, n_train=m)), self._claimed, self.shared
        )

    def _like(self, setting: Setting, claimed: Setting | None, shared: Shared) -> Self:
        policy, union, measured = self.policy, self.log_union, self.measured
        if claimed is not None:
            claimed = replace(claimed, sample=setting.sample)
        return type(self)(setting, policy, log_union=union, measured=measured, shared=shared, claimed=claimed)

    def once(self, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Something other searches of this setting may have made already."""
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]

    # -- the class that is covered

    @cached_property
    def classes(self) -> list[Self]:
        """The searches of the classes that may be covered: that with maps merged (A6), and the setting's own.

        Where nothing but maps in a row was merged the covers of the merged class are smaller, and it stands alone.
        """
        larger: Merged | None = None
        if self.policy.meeting:
            larger = self.once(("merged",), lambda: merge_linear_maps(self.setting))
        if larger is None:
            return [self]
        setting = replace(larger.setting, sample=self.setting.sample)
        merged = self._like(setting, self.setting, self.once(("merged", "shared"), dict))
        return [merged] if larger.consecutive and merged.has_uniform else [merged, self]

    @cached_property
    def network(self) -> Network:
        """The network, in balls, which neither overflow nor underflow."""
        published = PUBLISHED if self.closed is not None and self.closed.published else frozenset[str]()
        return self.once(("network", published), lambda: Network(self.setting, INTERVAL, published=published))

    @cached_property
    def log_start(self) -> float:
        """Log e_0, the radius of the loss around its centre."""
        return min(math.log(0.5), upper_log(self.network.radius))

    @cached_property
    def has_empty_premise(self) -> bool:
        """Whether no network of the class meets the premise of a risk bound (G0e), however many samples there are."""
        return self.once(("no member",), lambda: no_member(self.setting) is not None)

    @cached_property
    def closed(self) -> Strategy | None:
        """The closed form the policy is about, if it is about one."""
        return None if self.policy.form == "search" else STRATEGIES[self.policy.form]

    # -- items and allocations

    def items(self, samples: int = 1, *, uniform: bool = True) -> list[Item]:
        """Options of every piece; raises `Unsupported` naming the piece that has none."""
        refused = self.policy.refuses(self.setting)
        if refused is not None:
            raise Unsupported(refused)
        items = self._options(samples, uniform=uniform)
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

    def _options(self, samples: int, *, uniform: bool) -> list[Item]:
        allowed = (lemma for lemma in LEMMAS.values() if self.policy.allows(lemma) and (lemma.uniform or not uniform))
        return self.covers(frozenset(lemma.name for lemma in allowed), samples)

    def covers(self, lemmas: frozenset[str], samples: int = 1) -> list[Item]:
        """Options among some lemmas, some pieces perhaps without any."""
        key = ("items", lemmas, samples)
        return self.once(key, lambda: build_items(self.network, samples, lambda lemma: lemma.name in lemmas))

    @cached_property
    def has_uniform(self) -> bool:
        """Whether every piece has a cover that serves every sample under this policy."""
        return uncoverable(self._options(1, uniform=True)) is None

    @cached_property
    def curve(self) -> TradeOff:
        """Allocations from coarse to fine."""
        items = self.items()
        key = ("curve", lemmas_of(items))
        if key not in self.shared:
            self.shared[key] = TradeOff(items, self.log_start)
        return self.shared[key]

    # -- candidates

    def gaps(self) -> Iterator[Candidate]:
        """Candidate certificates for the gap."""
        coverless = self.coverless("gap")
        yield from coverless
        try:
            if self.closed is not None:
                yield self._closed_form(self.closed)
            elif self.policy.lemmas:
                for search in self.classes:
                    yield search.chain()
        except Unsupported:
            if not coverless:
                raise

    def risks(self) -> Iterator[Candidate]:
        """Candidate certificates for the risk at the given margin training error."""
        if self.closed is not None or self.has_empty_premise:
            return
        coverless = self.coverless("risk")
        yield from coverless
        try:
            if self.policy.lemmas:
                yield from risk_candidates(self)
        except Unsupported:
            if not coverless:
                raise

    def coverless(self, quantity: Quantity) -> list[Candidate]:
        """Candidates without covers, which apply where some piece has none; a policy of these alone is refused here."""
        refused = None if self.policy.lemmas else self.policy.refuses(self.setting)
        if refused is not None:
            raise Unsupported(refused)
        return [*self._stored(quantity), *(self._compared() if quantity == "gap" else ())]

    def _closed_form(self, strategy: Strategy) -> Candidate:
        log_value, level = closed_form(self, strategy)
        return Candidate(log_value, lambda: self.certificate(strategy, (level,)))

    def _stored(self, quantity: Quantity) -> Iterator[Candidate]:
        """G13."""
        if not self.policy.stored or self.setting.architecture.bits is None:
            return
        for strategy in STRATEGIES.values():
            if strategy.stored and strategy.quantity == quantity and strategy.refuses(self.setting) is None:
                inputs = self.known([], [stored_count(FLOAT, self.setting)])
                yield self.at_best_mu(strategy, inputs, ())

    def at_best_mu(self, strategy: Strategy, inputs: Known, levels: tuple[Level, ...]) -> Candidate:
        """A candidate at the best parameter of the kl inverse, where the strategy takes one (any is valid)."""
        eta = noise_chance(self.m) if "eta" in strategy.parameters else None
        inputs, mu = replace(inputs, eta=eta), None
        if strategy.needs_mu(self.setting):
            value, mu = least_mu(lambda mu: strategy.value(FLOAT, replace(inputs, mu=mu)))
        else:
            value = strategy.value(FLOAT, inputs)

        def write() -> Certificate:
            return replace(self.certificate(strategy, levels), mu=mu, eta=eta)

        return Candidate(math.log(value) if 0 < value < math.inf else math.inf, write)

    def _compared(self) -> Iterator[Candidate]:
        """K1 and K2, where the policy may use them and the setting is one they are about."""
        if not self.policy.comparison or self.once(("refusal",), lambda: refusal(self.setting)) is not None:
            return
        tuning: Tuning | None = self.once(("tuning",), lambda: tune(network_of(FLOAT, self.setting)))
        for strategy in map(STRATEGIES.__getitem__, _COMPARISONS):
            chosen = tuning if strategy.parameters else None
            if strategy.parameters and tuning is None:
                continue
            whole = self.once(
                ("complexity", strategy.parameters), partial(strategy.complexity, INTERVAL, self.setting, chosen)
            )
            start, m = arb(self.log_start).exp(), arb(self.m)
            count = strategy.count(INTERVAL, self.setting, whole)
            value = strategy.value(INTERVAL, Known(start, [], [count], arb(self.log_inverse_delta), m, arb(0)))

            def write(strategy: Strategy = strategy, chosen: Tuning | None = chosen) -> Certificate:
                return replace(self.certificate(strategy, ()), tuning=chosen)

            yield Candidate(upper_log(value), write)

    # -- chains

    def chain(self) -> Candidate:
        """The best chain through the allocations of a curve."""
        curve = self.curve
        items, strategy = curve.items, STRATEGIES[Chain.name]
        refining = self.policy.refining
        chains: Chains = self.once(("chains", lemmas_of(items), refining), lambda: Chains(items, refining=refining))
        links = chains.best(math.exp(self.log_start), curve.until(math.log(self.m)), self.m)
        room = slack(items)
        log_scales = [min(link.point.log_scale + room, self.log_start) for link in links]
        inputs = self.known(list(map(math.exp, log_scales)), [link.adds for link in links])
        steep = any(less > more * (1 - _EQUAL) for less, more, _ in strategy.conditions(FLOAT, inputs))
        value = math.inf if steep else strategy.value(FLOAT, inputs)

        def write() -> Certificate:
            levels = zip(log_scales, links, strict=True)
            return self.certificate(strategy, tuple(Level(scale, chains.covers(link)) for scale, link in levels))

        return Candidate(math.log(value), write)

    # -- first links

    def best_link(self) -> Link | None:
        """The one link that needs the fewest samples to bring the gap below 1."""
        if self.closed is not None or not self.policy.lemmas or not self.has_uniform:
            return None
        curve = self.curve
        points = [point for point in curve.until(curve.first + _FARTHER) if point.log_scale < self.log_start - _FINER]
        links = [Link(self._log_samples(point), point) for point in points]
        return min(links, key=lambda link: link.log_m, default=None)

    def _log_samples(self, point: Point) -> float:
        """Log of the m with which a link to a point brings the gap below 1: what it adds falls like 1/sqrt(m)."""
        start, scale, count = (arb(log).exp() for log in (self.log_start, point.log_scale, point.log_count))
        inputs = Known(start, [scale], [count], arb(self.log_inverse_delta), arb(1), arb(0))
        left = 2 * (_BELOW_ONE * start - scale)
        at_one = STRATEGIES[Chain.name].value(INTERVAL, inputs) - 2 * scale
        return 2 * upper_log(at_one / left) if left > 0 else math.inf

    def first_link(self) -> Needed | None:
        """The cover and the number of samples by which one link would bring the gap below 1."""
        link = self.best_link()
        if link is None:
            return None
        n_train = math.ceil(math.exp(link.log_m)) if link.log_m < _LARGEST_LOG else None
        return Needed(link.point.log_count / math.log(10), n_train)

    # -- certificates

    def known(self, scales: Sequence[float], counts: Sequence[float]) -> Known:
        """The levels that a strategy receives, in floats."""
        start, q = math.exp(self.log_start), self.setting.sample.train_error
        return Known(start, scales, counts, self.log_inverse_delta, self.m, q)

    def certificate(self, strategy: Strategy, levels: tuple[Level, ...]) -> Certificate:
        """What is handed to the checker: of merged maps, in the name of the setting that was asked about."""
        setting, meeting = (self.setting, False) if self._claimed is None else (self._claimed, True)
        return Certificate(setting, self.policy.name, strategy.name, levels, measured=self.measured, meeting=meeting)
