"""Where the distance between the published constants and the tightest bound comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from boundcalc.base.numbers import LOG, LogFloat
from boundcalc.engine.evaluate import Desk
from boundcalc.engine.proved import BoundValue
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems.policies import CENTRES, LAWS, POLICIES, Policy
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.capacity import capacity
from boundcalc.statements.compose import lower
from boundcalc.statements.covers import CLOSED, COUNTING, LEMMAS, CoverLemma, family
from boundcalc.statements.noises import NOISES
from boundcalc.statements.strategies import STRATEGIES, Strategy

_LN10 = math.log(10)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Uncapped gaps (log10) under the published constants and under the best search.

    Attributes:
        setting: what was compared.
        published: G1+G2 with the constants of the literature, in closed form.
        same: the best certificate for the gap by G1+G2; None where it is trivial.
        anything: the least of that and of the risk at training error 0, which bounds the gap there; None where there
            is neither, or no network with a margin above gamma.
    """

    setting: Setting
    published: float
    same: float | None
    anything: float | None

    @property
    def factor_same(self) -> float | None:
        """log10 of published over best, same strategy."""
        return None if self.same is None else self.published - self.same

    @property
    def factor_any(self) -> float | None:
        """log10 of published over best, any strategy."""
        return None if self.anything is None else self.published - self.anything


def compare_with_published(setting: Setting) -> Comparison:
    """The published constants against the tightest checked bound, for one setting at training error 0."""
    setting = setting.but(train_error=0.0)
    desk = Desk(setting)
    best, published = desk.value("best"), desk.value("published")
    return Comparison(setting, published.log10, None if best.trivial else best.log10, _any(best))


def _any(best: BoundValue) -> float | None:
    """The least of the gap and the risk bound that say something (log10); None where none can have training error 0 (G0e)."""
    if best.risk_refusal is not None:
        return None
    gaps = [] if best.trivial else [best.log10]
    risks = [] if best.risk_trivial else [best.log_risk / _LN10]
    return min(gaps + risks, default=None)


@dataclass(frozen=True, slots=True)
class Rung:
    """One step from the published constants to the best bound: what changed, and log10 of the gap after it."""

    name: str
    statement: str
    log10: float


def ladder(setting: Setting) -> Iterator[Rung]:
    """From the published constants to the best bound, one ingredient at a time; closed forms up to the search."""
    sample = setting.sample
    m, confidence = LogFloat.of(sample.n_train), LogFloat.of(-math.log(sample.delta))
    deviation = 3 * gap.deviation(LOG, confidence + LOG.log(2), m)

    def capacity_of(published: frozenset[str], lemmas: tuple[CoverLemma, ...], samples: int) -> LogFloat:
        return capacity(LOG, lower(setting, LOG, published=published), LogFloat.of(samples), lemmas)

    def dudley(value: LogFloat) -> float:
        return (2 * gap.complexity_published(LOG, value, m) + deviation).log / _LN10

    bits, setting = setting.architecture.bits, setting.but(train_error=0.0, bits=None)
    desk = Desk(setting)
    yield Rung("published constants", "PUB", desk.value("published").log10)
    both, counted = frozenset({"L1", "L7"}), ", ".join(sorted(COUNTING))
    yield Rung("perceptron covers with explicit constants", counted, dudley(capacity_of(both, CLOSED, sample.n_train)))
    yield Rung("softmax is 1-Lipschitz, not 2", "L1", dudley(capacity_of(both - {"L1"}, CLOSED, sample.n_train)))
    ours = capacity_of(frozenset(), CLOSED, sample.n_train)
    yield Rung("Lipschitz factor of a head", "L7", dudley(ours))
    chained = gap.chain_closed(LOG, ours, LOG.number(2), m) + deviation
    yield Rung("entropy chaining instead of Dudley's integral", "G1", chained.log / _LN10)
    many = capacity_of(frozenset(), CLOSED, (1 + gap.CLOSED_GHOSTS) * sample.n_train)
    yield Rung("ghosts instead of symmetrisation", "G2", gap.gap_closed(LOG, many, confidence, m).log / _LN10)
    whole = POLICIES["best"]
    fresh = replace(whole, refining=False)
    apart = replace(fresh, meeting=False, laws=frozenset())
    for name, statement, policy in (
        (
            "covers T3-T6, numeric allocation and scales",
            "A2, T3-T6",
            replace(apart, lemmas=whole.lemmas - CENTRES),
        ),
        ("random centres reached through noise", "T12-T14", apart),
        ("linear maps that meet are one", "A6, A7", fresh),
        ("levels that refine one another", _resting(lambda s: s.refines), whole),
    ):
        search = Search(desk.paid, policy, log_union=desk.log_union, measured=desk.measured)
        searched = desk.value_of(policy.name, search, desk.setting)
        if not searched.trivial:
            yield Rung(name, statement, searched.log10)
    best: BoundValue = desk.value("best")
    if bits is not None:
        setting = setting.but(bits=bits)
        best = Desk(setting).value("best")
        if not best.trivial:
            yield Rung(f"weights of {bits} bits, counted where that is less", _resting(lambda s: s.stored), best.log10)
    least = _any(best)
    if least is not None:
        ways = [s.uses[-1] for s in STRATEGIES.values() if s.quantity == "risk" and s.refuses(setting) is None]
        yield Rung("any strategy, at training error 0", ", ".join(ways), least)


def _resting(kind: Callable[[Strategy], bool]) -> str:
    """What strategies of a kind rest on that others do not."""
    return ", ".join(sorted({strategy.uses[-1] for strategy in STRATEGIES.values() if kind(strategy)}))


@dataclass(frozen=True, slots=True)
class Left:
    """The best bounds where an ingredient is left out: base-10 logs of gap and risk; None where they say nothing."""

    name: str
    statement: str
    gap: float | None
    risk: float | None


def without(setting: Setting) -> Iterator[Left]:
    """What the best bound of the gap, and of the risk at training error 0, is worth without each of its ingredients."""
    desk = Desk(setting.but(train_error=0.0))
    for name, statement, policy in _less(POLICIES["best"], setting.architecture.bits):
        search = Search(desk.paid, policy, log_union=desk.log_union, measured=desk.measured)
        value = desk.value_of(policy.name, search, desk.setting)
        silent = value.risk_refusal is not None or value.risk_trivial
        yield Left(name, statement, None if value.trivial else value.log10, None if silent else value.log_risk / _LN10)


def _less(whole: Policy, bits: int | None) -> Iterator[tuple[str, str, Policy]]:
    """The whole search, and searches that lack one thing."""
    yield "everything", "", whole
    if bits is not None:
        yield f"weights of {bits} bits", _resting(lambda s: s.stored), replace(whole, stored=False)
    families = dict.fromkeys(LEMMAS[name].family for name in LEMMAS if name in whole.lemmas)
    lacking = [(name, family(name)) for name in families] + [("all centres of a chosen law", CENTRES)]
    for name, lemmas in lacking:
        yield name, ", ".join(sorted(lemmas)), replace(whole, lemmas=whole.lemmas - lemmas)
    yield "maps that meet", "A6, A7, V4", replace(whole, meeting=False)
    yield (
        "levels that refine one another",
        _resting(lambda s: s.refines),
        replace(whole, refining=False),
    )
    for name in dict.fromkeys(law.family for law in NOISES.values()):
        laws = frozenset(law.name for law in NOISES.values() if law.family == name)
        yield name, ", ".join(sorted(laws)), replace(whole, laws=whole.laws - laws)
    yield "all noise", _resting(lambda s: s.noisy), replace(whole, laws=whole.laws - LAWS)
    bare = replace(whole, lemmas=whole.lemmas - CENTRES, meeting=False, refining=False, laws=whole.laws - LAWS)
    newer = _resting(lambda s: s.noisy or s.refines)
    yield "centres, maps that meet, refinements, noise", f"A6, A7, {newer}, T12-T14", bare
