"""The search for the smallest bound a policy allows: certificates, to be checked. Nothing here is trusted.

Every cover serves every sample, so allocations are found once, whatever the number of samples, and are shared by the
searches of a setting under several policies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Self

from flint import arb

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.intervals import INTERVAL, upper_float, upper_log
from boundcalc.base.numbers import FLOAT
from boundcalc.engine._allocate import Point, TradeOff, slack
from boundcalc.engine._chain import Chains
from boundcalc.engine._comparison import tune
from boundcalc.engine._items import Item, build_items, lemmas_of, uncoverable
from boundcalc.engine.one_level import closed_form, least_mu, risk_candidates
from boundcalc.proof.certificate import Certificate, Level
from boundcalc.setting import Setting
from boundcalc.statements.comparison.network import network_of
from boundcalc.statements.comparison.sharp import Tuning
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.merge import Merged, merge_linear_maps
from boundcalc.statements.network import Network
from boundcalc.statements.posthoc import Measured
from boundcalc.statements.premise import no_member
from boundcalc.statements.strategies import STRATEGIES, Chain, Known, Quantity, Strategy, noise_chance
from boundcalc.theorems.policies import Policy

_EQUAL = 1e-12
"""Conditions that hold by less than this (relative) are not left to the checker's rounding."""
_FINER, _FARTHER = 0.05, 4.0
"""A first link is this much finer than the loss' range (log), and its cover at most e^4 times as large."""
_BELOW_ONE = 0.998

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
        self._candidates: dict[Quantity, list[Candidate]] = {}

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
        published = self.closed is not None and self.closed.published
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
        refused, items = self.policy.refuses(self.setting), self._options(samples, uniform=uniform)
        missing = uncoverable(items)
        if refused is None and missing is not None:
            lemmas = ", ".join(sorted(self.policy.lemmas))
            what = f"a piece {missing} that none of {lemmas} covers"
            refused = Refusal(f"policy {self.policy.name!r}", what, "a cover of every piece")
        if refused is not None:
            raise Unsupported(refused)
        return items

    def _options(self, samples: int, *, uniform: bool) -> list[Item]:
        allowed = (lemma for lemma in LEMMAS.values() if self.policy.allows(lemma) and (lemma.uniform or not uniform))
        return self.covers(frozenset(lemma.name for lemma in allowed), samples)

    def covers(self, lemmas: frozenset[str], samples: int = 1) -> list[Item]:
        """Options among some lemmas, some pieces perhaps without any."""
        return self.once(("items", lemmas, samples), lambda: build_items(self.network, samples, lemmas))

    @cached_property
    def has_uniform(self) -> bool:
        """Whether every piece has a cover that serves every sample under this policy."""
        return uncoverable(self._options(1, uniform=True)) is None

    @cached_property
    def curve(self) -> TradeOff:
        """Allocations from coarse to fine."""
        items = self.items()
        return self.once(("curve", lemmas_of(items)), lambda: TradeOff(items, self.log_start))

    # -- candidates

    def candidates(self, quantity: Quantity) -> list[Candidate]:
        """Certificates that may bound a quantity, not checked; raises `Unsupported` where the policy does not apply."""
        if quantity in self._candidates:
            return self._candidates[quantity]
        if quantity == "risk" and (self.closed is not None or self.has_empty_premise):
            return []
        candidates = self.coverless(quantity)
        try:
            if self.closed is not None:
                log_value, level = closed_form(self, self.closed)
                candidates.append(Candidate(log_value, partial(self.certificate, self.closed, (level,))))
            elif self.policy.lemmas and quantity == "risk":
                candidates += risk_candidates(self)
            elif self.policy.lemmas:
                for search in self.classes:
                    candidates.append(search.chain())
        except Unsupported:
            if not candidates:
                raise
        self._candidates[quantity] = candidates
        return candidates

    def coverless(self, quantity: Quantity) -> list[Candidate]:
        """Candidates without covers (G13, K1, K2), which apply where some piece has none.

        A policy of these alone is refused here.
        """
        setting, candidates = self.setting, list[Candidate]()
        refused = None if self.policy.lemmas else self.policy.refuses(setting)
        if refused is not None:
            raise Unsupported(refused)
        for name, strategy in STRATEGIES.items():
            allowed = self.policy.stored if strategy.stored else self.policy.comparison
            if not (strategy.coverless and allowed and strategy.quantity == quantity):
                continue
            if self.once(("refused", name), partial(strategy.refuses, setting)) is not None:
                continue
            tuning: Tuning | None = None
            if "tuning" in strategy.parameters:
                tuning = self.once(("tuning",), lambda: tune(network_of(FLOAT, setting)))
                if tuning is None:
                    continue
            whole = self.once(("complexity", name), partial(strategy.complexity, INTERVAL, setting, tuning))
            inputs = self.known([], [upper_float(strategy.count(INTERVAL, setting, whole))])
            candidates.append(self.candidate(strategy, inputs, (), tuning=tuning))
        return candidates

    def candidate(
        self, strategy: Strategy, inputs: Known, levels: tuple[Level, ...], tuning: Tuning | None = None
    ) -> Candidate:
        """A candidate at the best parameter of the kl inverse, where the strategy takes one (any is valid)."""
        eta = noise_chance(self.m) if "eta" in strategy.parameters else None
        inputs, mu = replace(inputs, eta=eta), None
        if strategy.needs_mu(self.setting):
            value, mu = least_mu(lambda mu: strategy.value(FLOAT, replace(inputs, mu=mu)))
        else:
            value = strategy.value(FLOAT, inputs)
        write = partial(self.certificate, strategy, levels, mu=mu, eta=eta, tuning=tuning)
        return Candidate(math.log(value) if 0 < value < math.inf else math.inf, write)

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

    def best_link(self) -> Point | None:
        """The cover to which a link from the loss' own range brings the gap below 1 with fewest samples."""
        if self.closed is not None or not self.policy.lemmas or not self.has_uniform:
            return None
        points = self.curve.until(self.curve.first + _FARTHER)
        return min((p for p in points if p.log_scale < self.log_start - _FINER), key=self._log_samples, default=None)

    def _log_samples(self, point: Point) -> float:
        """Log of the m with which a link to a point brings the gap below 1: what it adds falls like 1/sqrt(m)."""
        start, scale, count = (arb(log).exp() for log in (self.log_start, point.log_scale, point.log_count))
        inputs = Known(start, [scale], [count], arb(self.log_inverse_delta), arb(1), arb(0))
        left = 2 * (_BELOW_ONE * start - scale)
        at_one = STRATEGIES[Chain.name].value(INTERVAL, inputs) - 2 * scale
        return 2 * upper_log(at_one / left) if left > 0 else math.inf

    # -- certificates

    def known(self, scales: Sequence[float], counts: Sequence[float]) -> Known:
        """The levels that a strategy receives, in floats."""
        start, q = math.exp(self.log_start), self.setting.sample.train_error
        return Known(start, scales, counts, self.log_inverse_delta, self.m, q)

    def certificate(self, strategy: Strategy, levels: tuple[Level, ...], **parameters: Any) -> Certificate:
        """What is handed to the checker: of merged maps, in the name of the setting that was asked about."""
        setting, more = self._claimed or self.setting, {"measured": self.measured, "meeting": self._claimed is not None}
        return Certificate(setting, self.policy.name, strategy.name, levels, **more, **parameters)
