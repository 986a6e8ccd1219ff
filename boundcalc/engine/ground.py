"""What every search of a setting stands on: its pieces, the options of each, and allocations that are found once.

Searches of one setting under several policies share them, and so do searches of it on other numbers of samples: uniform
covers do not depend on the number at all, others are counted anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.numbers import LOG
from boundcalc.engine.allocate import Point, TradeOff, recount
from boundcalc.engine.options import Item, build_items, lemmas_of, uncoverable
from boundcalc.engine.refine import Refinements
from boundcalc.formulas.theorems.policies import Policy
from boundcalc.proof.certificate import Certificate, Level
from boundcalc.setting import Setting
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.statements.merge import Merged, merge_linear_maps
from boundcalc.statements.network import Network
from boundcalc.statements.posthoc import Measured
from boundcalc.statements.premise import no_member
from boundcalc.statements.slots import PUBLISHED
from boundcalc.statements.strategies import STRATEGIES, Known, Strategy

S = TypeVar("S", bound=Strategy)

_MOST_COUNT = 600.0
"""Logs of log counts that floats can hold."""


class Found:
    """The value a search thinks a certificate has (log), and the certificate, written out when it is asked for."""

    def __init__(self, log_value: float, strategy: str, write: Callable[[], Certificate]) -> None:
        self.log_value = log_value
        self.strategy = strategy
        self._write = write

    @cached_property
    def certificate(self) -> Certificate:
        """The same object each time."""
        return self._write()


Shared = dict[tuple[object, ...], Any]
"""What searches of one setting under different policies have in common, by what it depends on."""


class Ground:
    """One setting under one policy."""

    def __init__(
        self,
        setting: Setting,
        policy: Policy,
        *,
        log_union: float = 0.0,
        measured: Measured | None = None,
        shared: Shared | None = None,
        beside: Self | None = None,
    ) -> None:
        """A search that adds `log_union` to log(1/delta) and shares its allocations with others of the same setting."""
        self.setting = setting
        self.policy = policy
        self.measured = measured
        self._shared: Shared = {} if shared is None else shared
        self.m = setting.sample.n_train
        self.log_union = log_union
        self.log_inverse_delta = log_union - math.log(setting.sample.delta)
        self.beside = beside
        """The search on another number of samples whose allocations are used."""
        self._claimed: Setting | None = None
        """The setting whose class lies in the one that is searched."""

    def with_samples(self, m: int) -> Self:
        """The same search for another number of samples, reusing the allocations found so far."""
        changed = replace(self.setting, sample=replace(self.setting.sample, n_train=m))
        origin = self.beside or self
        return type(self)(changed, self.policy, log_union=self.log_union, measured=self.measured, beside=origin)

    def once(self, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Something other searches of this setting may have made already."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    # -- the class that is covered

    @cached_property
    def met(self) -> Self | None:
        """The search of the class in which maps that meet are one (A6), where the policy may use it."""
        if not self.policy.meeting or self._claimed is not None:
            return None
        if self.beside is not None:
            beside = self.beside.met
            found = None if beside is None else beside.with_samples(self.m)
        else:
            if self._merged is None:
                return None
            shared = self.once(("met", "shared"), dict)
            found = type(self)(
                self._merged.setting, self.policy, log_union=self.log_union, measured=self.measured, shared=shared
            )
        if found is not None:
            found._claimed = self.setting
        return found

    @property
    def _merged(self) -> Merged | None:
        """The larger class with its linear maps merged."""
        return self.once(("met",), lambda: merge_linear_maps(self.setting))

    @cached_property
    def _in_a_row(self) -> bool:
        """Whether maps that meet follow each other in fewer numbers, so that what is joined has smaller covers."""
        if self.met is None:
            return False
        return (
            self.beside._in_a_row
            if self.beside is not None
            else (self._merged is not None and self._merged.consecutive)
        )

    @cached_property
    def lowered(self) -> Network:
        """The pieces, in logs."""
        if self.beside is not None:
            return self.beside.lowered
        published = PUBLISHED if self.closed is not None and self.closed.published else frozenset[str]()
        return self.once(("lowered", published), lambda: Network(self.setting, LOG, published=published))

    @cached_property
    def log_start(self) -> float:
        """Log e_0, the radius of the loss around its centre."""
        return min(math.log(0.5), self.lowered.radius.log)

    @cached_property
    def speaks_of_none(self) -> bool:
        """Whether no network of the class meets the premise of a risk bound (G0e), however many samples there are."""
        if self.beside is not None:
            return self.beside.speaks_of_none
        return self.once(("no member",), lambda: no_member(self.setting) is not None)

    # -- options

    def items(self, samples: int, *, uniform: bool) -> list[Item]:
        """Options of every piece; raises `Unsupported` naming the piece that has none."""
        refusal = self.policy.refuses(self.setting)
        if refusal is not None:
            raise Unsupported(refusal)
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
        names = frozenset(
            lemma.name for lemma in LEMMAS.values() if self.policy.allows(lemma) and (lemma.uniform or not uniform)
        )

        def allowed(lemma: CoverLemma) -> bool:
            return lemma.name in names

        counted = None if uniform else samples
        return self.once(("items", names, counted), lambda: build_items(self.lowered, samples, allowed))

    def covers(self, lemmas: frozenset[str]) -> list[Item]:
        """Options among uniform lemmas, some pieces perhaps without any."""
        return build_items(self.lowered, 1, lambda lemma: lemma.name in lemmas)

    @cached_property
    def has_uniform(self) -> bool:
        """Whether every piece has a uniform cover under this policy, whatever the number of samples."""
        if self.beside is not None:
            return self.beside.has_uniform
        return uncoverable(self._options(self.m, uniform=True)) is None

    @cached_property
    def has_empirical(self) -> bool:
        """Whether some allowed lemma counts points (else every cover is uniform)."""
        return any(self.policy.allows(lemma) and not lemma.uniform for lemma in LEMMAS.values())

    # -- allocations

    def points(
        self, may_gain: Callable[[Point], bool] | None = None, *, uniform: bool
    ) -> tuple[Sequence[Item], list[Point], list[float]]:
        """Allocations to chain through and their log counts; uniform ones are the same for every number of samples."""
        curve = self.curve(uniform=uniform)
        points = curve.until(math.log(self.m), may_gain or (lambda _: True))
        if uniform or self.beside is None:
            return curve.items, points, [point.log_count for point in points]
        return curve.items, points, [recount(curve.items, point, self.m) for point in points]

    def curve(self, *, uniform: bool) -> TradeOff:
        """Allocations from coarse to fine, on the samples of the search that this one stands beside."""
        if self.beside is not None:
            return self.beside.curve(uniform=uniform)
        return self._uniform if uniform else self._empirical

    @cached_property
    def _uniform(self) -> TradeOff:
        return self._trade_off(uniform=True)

    @cached_property
    def _empirical(self) -> TradeOff:
        return self._trade_off(uniform=False)

    def _trade_off(self, *, uniform: bool) -> TradeOff:
        items = self.items(self.m, uniform=uniform)
        return self.once(("curve", uniform, lemmas_of(items)), lambda: TradeOff(items, self.log_start))

    @cached_property
    def refinements(self) -> Refinements:
        """What the uniform allocations leave to one another."""
        if self.beside is not None:
            return self.beside.refinements
        items = self.curve(uniform=True).items
        return self.once(("refinements", lemmas_of(items)), lambda: Refinements(items))

    # -- strategies

    @cached_property
    def closed(self) -> Strategy | None:
        """The closed form the policy is about, if it is about one."""
        return None if self.policy.form == "search" else STRATEGIES[self.policy.form]

    def strategies(self, kind: type[S]) -> Iterator[S]:
        """What the search may use of a kind: empirical ones only where some lemma counts points."""
        for strategy in STRATEGIES.values():
            covering = not (strategy.noisy or strategy.coverless)
            if isinstance(strategy, kind) and covering and strategy.refuses(self.setting) is None:
                uniform = self.has_uniform and not self._in_a_row  # whose uniform covers are smaller
                possible = uniform if strategy.uniform else self.has_empirical
                if possible:
                    yield strategy

    def known(
        self, log_scale: float, log_count: float, alpha: int = 1, mu: float | None = None, eta: float | None = None
    ) -> Known:
        """One level as a strategy is told of it, in floats."""
        q = self.setting.sample.train_error
        count = math.exp(min(log_count, _MOST_COUNT))
        start = math.exp(self.log_start)
        return Known(start, [math.exp(log_scale)], [count], self.log_inverse_delta, self.m, q, alpha, mu, eta)

    def certificate(self, strategy: Strategy, levels: tuple[Level, ...]) -> Certificate:
        """What is handed to the checker: of maps that meet, in the name of the setting that was asked about."""
        setting, meeting = (self.setting, False) if self._claimed is None else (self._claimed, True)
        return Certificate(setting, self.policy.name, strategy.name, levels, measured=self.measured, meeting=meeting)
