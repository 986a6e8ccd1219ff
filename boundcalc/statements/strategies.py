"""Strategies: how counts of covers become a bound, one object per theorem of G; `STRATEGIES` is the registry.

A strategy says what it bounds, when it may be used, on how many samples covers are counted, how many levels it takes,
and its value, generic over the number system. The search, the checker, the breakdown and the commands read the object
and know none by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.records import dataclass
from boundcalc.base.registry import Registry
from boundcalc.setting import Setting
from boundcalc.setting.layer import flat
from boundcalc.setting.norms import place_named
from boundcalc.statements import gap
from boundcalc.statements.layers import unknown_to_noise

Quantity = Literal["gap", "risk"]

GHOSTS = (1, 2, 4, 8, 16, 32)
"""Ghost samples per sample that a search tries: fixed in advance, so that P1 can pay for a choice among them."""


@dataclass(slots=True)  # not frozen: a search makes thousands
class Known:
    """What a strategy is told, in some number system.

    Attributes:
        start: e_0, how far the loss is from its centre at most (and at most 1/2).
        scales: e_1, e_2, ... on the loss.
        counts: log N at each scale.
        log_inverse_delta: log(1/delta), with what P1 adds.
        m: samples.
        train_error: share of training sequences with margin at most gamma.
        alpha: ghost samples per sample.
        mu: parameter of the kl inverse; None for its limit, which is for training error 0.
        eta: chance that noise moves the loss of an example by more than the scale (G11).
        weights: w_j of every level, where links are taken by their dual form (G12).
    """

    start: Number
    scales: Sequence[Number]
    counts: Sequence[Number]
    log_inverse_delta: Number
    m: Number
    train_error: Number
    alpha: int = 1
    mu: Number | None = None
    eta: Number | None = None
    weights: Sequence[Number] | None = None


class Term(NamedTuple):
    """A summand (or ingredient) of the value, as a formula and a number."""

    formula: str
    value: Number
    statement: str


class Strategy(ABC):
    """A theorem of G, as a way to bound something by counts of covers.

    What the search offers it depends on what it is: a `ChainStrategy` falling scales, a `SingleStrategy` one free scale, a
    `MarginStrategy` one at half the margin, a `ClosedStrategy` one that is split in proportion.

    Attributes:
        name: in certificates and tables.
        title: a few words.
        quantity: what is bounded.
        uses: the statements it rests on, beside those of covers and layers.
        formula: how the terms make the value.
        one_level: whether it takes just one level.
        every_scale: whether that level's cover stands for those of all scales (closed forms).
        uniform: whether covers must serve every sample.
        noisy: whether maps may carry noise (V) instead of being covered (T).
        parameters: what a certificate has to say beside its levels: "alpha", "mu", "eta"; "weights" it may.
        published: whether the constants of the literature are taken (PUB), in covers and layers too.
        follows_m: whether its scale or its eta moves with m, so that no certificate survives another m.
        refines: whether a level may refine what the level before has left, its counts being what each level adds (G12).
        channels: whether a level may see maps through channels instead of covers (G14).
        stored: whether it counts the values that stored weights may take (G13) instead of covers: it has no levels, one
            count, and is about settings that say how many bits a weight has.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    quantity: ClassVar[Quantity]
    uses: ClassVar[tuple[str, ...]]
    formula: ClassVar[str]
    one_level: ClassVar[bool] = True
    every_scale: ClassVar[bool] = False
    uniform: ClassVar[bool] = False
    noisy: ClassVar[bool] = False
    parameters: ClassVar[tuple[str, ...]] = ()
    published: ClassVar[bool] = False
    follows_m: ClassVar[bool] = False
    refines: ClassVar[bool] = False
    channels: ClassVar[bool] = False
    stored: ClassVar[bool] = False

    @property
    def proportional(self) -> bool:
        """Whether the risk is a share of ghosts that the counts allow, instead of where kl crosses them."""
        return self.quantity == "risk" and "mu" not in self.parameters

    @property
    def counted(self) -> str:
        """What its counts are called: of noise they are a divergence, beside the log counts of what is covered (G11, G14)."""
        return "I" if self.noisy else "added I" if self.channels else "log N"

    def samples(self, m: int, alpha: int) -> int:
        """How many samples covers are counted on."""
        return (1 + alpha) * m if "alpha" in self.parameters else m

    def refuses(self, setting: Setting) -> str | None:
        """Why the strategy is not about a setting, or None."""
        del setting
        return None

    def needs_mu(self, setting: Setting) -> bool:
        """Whether a finite mu must be given: above training error 0."""
        return "mu" in self.parameters and setting.sample.train_error != 0

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        """(a, b, what fails): a <= b must be certain."""
        del ns, known
        yield from ()

    @abstractmethod
    def value(self, ns: NumberSystem, known: Known) -> Number:
        """The bound."""

    @abstractmethod
    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        """Its ingredients, for readers."""

    def links(self, ns: NumberSystem, known: Known) -> list[Number] | None:
        """What each level adds to the value; None where levels do not add up."""
        del ns, known
        return None

    def weights(self, ns: NumberSystem, known: Known) -> list[Number]:
        """How much each level matters, up to a factor."""
        return [ns.number(1) for _ in known.counts]


_G2_TERM = "sqrt(log(1/delta)/(2m))"


class ChainStrategy(Strategy):
    """G1 and G2 over several scales; kinds differ in what multiplies the links."""

    quantity = "gap"
    one_level = False
    formula = "gap <= 2 e_J + factor * sum of e_(j-1) sqrt(2 log N_j/m) + deviation, e_0 = min(1/2, L R)"
    how: ClassVar[str]

    @abstractmethod
    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        """What multiplies the links."""

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        for coarse, fine in pairwise([known.start, *known.scales]):
            yield fine, coarse, "the scales of a chain must fall, starting below e_0 = min(1/2, L R)"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        chain = [known.start, *known.scales]
        links = gap.chain_sum(ns, chain, known.counts, known.m)
        factor = self.factor(ns, known.alpha)
        return gap.gap_chain(ns, chain[-1], links, factor, known.log_inverse_delta, known.m)

    def weights(self, ns: NumberSystem, known: Known) -> list[Number]:
        return [e * ns.sqrt(count) for e, count in zip([known.start, *known.scales], known.counts, strict=False)]

    def links(self, ns: NumberSystem, known: Known) -> list[Number]:
        factor = self.factor(ns, known.alpha)
        return [factor * link for link in gap.chain_links(ns, [known.start, *known.scales], known.counts, known.m)]

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        last = known.scales[-1] if known.scales else known.start
        linked = sum(self.links(ns, known), start=ns.number(0))
        factor = float(self.factor(ns, known.alpha))
        how = self.how.format(alpha=known.alpha)
        return [
            Term("2 e_J", 2 * last, "G1"),
            Term(f"factor * sum of links, factor {factor:g} ({how})", linked, "G1, G2"),
            Term(_G2_TERM, gap.deviation(ns, known.log_inverse_delta, known.m), "G2"),
        ]


class Chain(ChainStrategy):
    """G1 + G2 by symmetrisation."""

    name = "chain"
    title = "chaining by entropy links over several scales, symmetrisation"
    uses = ("G0", "G1", "G2")
    how = "symmetrisation"

    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        return gap.chain_factor(ns, None, uniform=False)


class GhostChain(ChainStrategy):
    """G1 + G2 by several ghost samples per sample."""

    name = "ghost-chain"
    title = "chaining, with several ghost samples per sample instead of symmetrisation"
    uses = ("G0", "G1", "G2")
    parameters = ("alpha",)
    how = "{alpha} ghosts a sample"

    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        return gap.chain_factor(ns, alpha, uniform=False)


class UniformChain(ChainStrategy):
    """G2 for covers that serve every sample."""

    name = "uniform-chain"
    title = "chaining of covers that serve every sample"
    uses = ("G0", "G2")
    uniform = True
    how = "uniform covers"

    def factor(self, ns: NumberSystem, alpha: int) -> Number:
        return gap.chain_factor(ns, None, uniform=True)


class RefinedChain(UniformChain):
    """G12."""

    name = "refined-chain"
    title = "chaining of uniform covers that refine one another"
    uses = ("G0", "G2", "G12")
    refines = True
    parameters = ("weights",)
    how = "uniform covers, some of what the level before has left"
    formula = "gap <= 2 e_J + sum of e_(j-1) sqrt(2 c_j/m), or of e_(j-1)^2/(4 w_j) + 2 w_j c_j/m, + deviation"

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        yield from super().conditions(ns, known)
        if known.weights is not None:
            for weight, finer in pairwise(known.weights):
                yield finer, weight, "the weights of levels must not rise (G12)"
            return
        scales = [known.start, *known.scales]
        for j, (count, more) in enumerate(pairwise(known.counts)):
            yield scales[j + 1] ** 2 * count, scales[j] ** 2 * more, "what a level adds must grow as links shrink (G12)"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        last = known.scales[-1] if known.scales else known.start
        linked = sum(self.links(ns, known), start=ns.number(0))
        return gap.gap_chain(ns, last, linked, self.factor(ns, known.alpha), known.log_inverse_delta, known.m)

    def links(self, ns: NumberSystem, known: Known) -> list[Number]:
        scales = [known.start, *known.scales]
        if known.weights is not None:
            return gap.dual_links(ns, scales, known.counts, known.weights, known.m)
        return gap.refined_links(ns, scales, known.counts, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        last, linked, deviation = super().terms(ns, known)
        each = "links" if known.weights is None else "e_(j-1)^2/(4 w_j) + 2 w_j c_j/m"
        return [last, Term(f"sum of {each} ({self.how})", linked.value, ", ".join(self.uses[1:])), deviation]


class ChannelChain(RefinedChain):
    """G14."""

    name = "channel-chain"
    title = "chaining of channels: levels see weights through noise"
    uses = ("G0", "G2", "G12", "G14")
    channels = True
    how = "weights seen through noise, or by uniform covers"


class SingleStrategy(Strategy):
    """One cover at a scale of the search's choice."""

    quantity = "gap"


class UniformSingle(SingleStrategy):
    """G2 for one uniform cover."""

    name = "uniform-single"
    title = "one cover that serves every sample"
    uses = ("G0", "G2")
    uniform = True
    formula = "gap <= 2 e + sqrt((log N + log(1/delta))/(2m))"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.gap_uniform_single(ns, known.scales[0], known.counts[0], known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        deviation = gap.deviation(ns, known.counts[0] + known.log_inverse_delta, known.m)
        return [Term("2 e", 2 * known.scales[0], "G2"), Term("sqrt((log N + log(1/delta))/(2m))", deviation, "G2")]


class ClosedStrategy(Strategy):
    """log N(e) <= capacity/e^2 at every scale, from one."""

    quantity = "gap"
    every_scale = True

    @staticmethod
    def capacity(known: Known) -> Number:
        """C_F."""
        return known.counts[0] * known.scales[0] ** 2


class Closed(ClosedStrategy):
    """A4 + G1 + G2 in one line."""

    name = "closed"
    title = "chaining in closed form of an optimally split cover"
    uses = ("G0", "A1", "A4", "G1", "G2")
    formula = "gap <= closed chain + deviation"

    def samples(self, m: int, alpha: int) -> int:
        return m * (1 + gap.CLOSED_GHOSTS)

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.gap_closed(ns, self.capacity(known), known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        deviation = gap.deviation(ns, known.log_inverse_delta, known.m)
        chained = gap.chain_closed(
            ns, self.capacity(known), gap.chain_factor(ns, gap.CLOSED_GHOSTS, uniform=False), known.m
        )
        line = f"2k ({gap.CLOSED_OFFSET} + max(0, log(1/(2k)))), k = (17/32) e sqrt(2 C_F/m)"
        return [
            Term("C_F, with log N(e) <= C_F/e^2", self.capacity(known), "A1, A4"),
            Term(line, chained, "G1"),
            Term(_G2_TERM, deviation, "G2"),
        ]


class Published(ClosedStrategy):
    """Dudley's integral with the constants of the literature."""

    name = "published"
    title = "Dudley's integral with the constants of the literature"
    uses = ("G0", "A1", "PUB")
    published = True
    follows_m = True
    formula = "gap <= 2 R_m + 3 sqrt(log(2/delta)/(2m))"

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        start = 3 * ns.sqrt(self.capacity(known) / known.m)
        yield known.scales[0], start, "the published cover must be counted where Dudley's integral starts, or below"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.gap_published(ns, self.capacity(known), known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        confidence = 3 * gap.deviation(ns, known.log_inverse_delta + ns.log(ns.number(2)), known.m)
        return [
            Term("C_F, with log N(e) <= C_F/e^2", self.capacity(known), "A1, A4"),
            Term("2 R_m by Dudley's integral", 2 * gap.complexity_published(ns, self.capacity(known), known.m), "PUB"),
            Term("3 sqrt(log(2/delta)/(2m))", confidence, "PUB"),
        ]


class MarginStrategy(Strategy):
    """One cover at half the margin, for the risk at a margin training error."""

    quantity = "risk"

    def refuses(self, setting: Setting) -> str | None:
        if setting.sample.lipschitz is not None:
            return "risk bounds by margins need the ramp loss, not a Lipschitz constant of another"
        return None

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        half = ns.number(1) / 2
        yield known.scales[0], half, "margin bounds need a cover at half the margin: scale at most 1/2"

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        return [
            Term("log N at half the margin", known.counts[0], "A0"),
            Term("log(1/delta)", known.log_inverse_delta, ""),
        ]


class UniformMargin(MarginStrategy):
    """G3."""

    name = "uniform-margin"
    title = "one cover that serves every sample, at half the margin; any training error"
    uses = ("G0", "G0e", "G3")
    uniform = True
    parameters = ("mu",)
    formula = "risk <= largest p at which train error * m errors or fewer have the chance delta/N"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        q, mu = known.train_error, known.mu
        return gap.risk_uniform(ns, q, known.counts[0], known.log_inverse_delta, known.m, mu)


class GhostRealizable(MarginStrategy):
    """G4."""

    name = "ghost-realizable"
    title = "one cover of the sample and its ghosts, at half the margin; training error 0"
    uses = ("G0", "G0e", "G4")
    parameters = ("alpha",)
    formula = "risk <= errors/(alpha m): errors that log(2N/delta) leaves the ghosts, alpha a sample"

    def refuses(self, setting: Setting) -> str | None:
        if setting.sample.train_error != 0:
            return "G4 needs margin training error 0"
        return super().refuses(setting)

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.risk_realizable(ns, known.counts[0], known.log_inverse_delta, known.m, known.alpha)


class Ghost(MarginStrategy):
    """G5."""

    name = "ghost"
    title = "one cover of the sample and its ghosts, at half the margin; any training error"
    uses = ("G0", "G0e", "G5")
    parameters = ("alpha", "mu")
    formula = "risk <= max over q' <= q of [(1+alpha) klinv(q', log(2N/delta)/m) - q' + 1/m]/alpha"

    def refuses(self, setting: Setting) -> str | None:
        if setting.sample.train_error == 0:
            return "G5 is for margin training errors above 0 (G4 is for 0)"
        return super().refuses(setting)

    def value(self, ns: NumberSystem, known: Known) -> Number:
        q, mu = known.train_error, known.mu
        return gap.risk_ghost(ns, q, known.counts[0], known.log_inverse_delta, known.m, known.alpha, mu)


class NoiseMargin(MarginStrategy):
    """G11."""

    name = "noise-margin"
    title = "noise on the weights that one example does not notice, at half the margin; any training error"
    uses = ("G0", "G0e", "G11")
    uniform = True
    noisy = True
    parameters = ("mu", "eta")
    follows_m = True
    formula = "risk <= klinv(train error + eta, (I + log(1/delta) + log(2 + sqrt(pi m/2)))/m)/(1 - eta)"

    def refuses(self, setting: Setting) -> str | None:
        strange = unknown_to_noise(setting.architecture.stages)
        if strange is not None:
            return f"G11 knows the library's own layers only, got {strange}"
        return super().refuses(setting)

    def needs_mu(self, setting: Setting) -> bool:
        return True

    def value(self, ns: NumberSystem, known: Known) -> Number:
        assert known.eta is not None  # noqa: S101 - a certificate of this strategy has one
        q, count = known.train_error, known.counts[0]
        return gap.risk_noise(ns, q, count, known.eta, known.log_inverse_delta, known.m, known.mu)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        assert known.eta is not None  # noqa: S101 - as above
        return [
            Term("I, the divergence of the noisy weights from a fixed law", known.counts[0], "A0, G11"),
            Term("log(1/delta)", known.log_inverse_delta, ""),
            Term("log(2 + sqrt(pi m/2))", gap.averaging(ns, known.m), "G11"),
            Term("eta, the chance that an example notices", known.eta, "G11"),
        ]


class _Stored(Strategy):
    """G13: every network of the class is its own centre."""

    one_level = False
    uniform = True
    stored = True

    def refuses(self, setting: Setting) -> str | None:
        if setting.architecture.bits is None:
            return "G13 is about weights of so many bits, fixed before the data, and nobody said how many (--bits 16)"
        return super().refuses(setting)

    def _counted(self, ns: NumberSystem, known: Known) -> list[Term]:
        del ns
        return [
            Term("log N = n b log 2, for n stored weights of b bits", known.counts[0], "G13"),
            Term("log(1/delta)", known.log_inverse_delta, ""),
        ]


class StoredGap(_Stored):
    """G13, of the gap."""

    name = "stored-gap"
    title = "weights of so many bits: a finite class, fixed before the data"
    quantity = "gap"
    uses = ("G0", "G13")
    formula = "gap <= sqrt((n b log 2 + log(1/delta))/(2m)), n stored weights of b bits"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.deviation(ns, known.counts[0] + known.log_inverse_delta, known.m)

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        return self._counted(ns, known)


class StoredMargin(_Stored, UniformMargin):
    """G13, of the risk."""

    name = "stored-margin"
    title = "weights of so many bits: a finite class, fixed before the data; any training error"
    uses = ("G0", "G0e", "G3", "G13")
    formula = (
        "risk <= largest p at which train error * m errors or fewer have the chance delta/2^(n b), n weights of b bits"
    )

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        yield from ()

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        return self._counted(ns, known)


def stored_weights(setting: Setting) -> dict[str, int]:
    """How many numbers a network of the class stores, by kind and block.

    Offsets of keys are stored even where softmax forgets them: rounded arithmetic may not.
    """
    found: dict[str, int] = {}
    for layer in flat(setting.architecture.stages):
        for weight in layer.stored(setting.architecture.seq_len):
            place = place_named(weight.kind, weight.block)
            found[place] = found.get(place, 0) + weight.parameters
    return found


def stored_count(ns: NumberSystem, setting: Setting) -> Number:
    """G13: log of how many networks the class has, at most."""
    bits = setting.architecture.bits
    assert bits is not None  # noqa: S101 - a strategy about stored weights refuses settings that do not say
    return gap.stored_count(ns, ns.number(sum(stored_weights(setting).values())), bits)


def noise_chance(m: int) -> float:
    """The eta that is fixed in advance, for P1: a training error that was looked at may not choose it."""
    return 0.25 / m


STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    (
        Chain(),
        GhostChain(),
        UniformChain(),
        ChannelChain(),
        RefinedChain(),
        UniformSingle(),
        Closed(),
        Published(),
        UniformMargin(),
        GhostRealizable(),
        Ghost(),
        NoiseMargin(),
        StoredGap(),
        StoredMargin(),
    ),
    "boundcalc.laws.brought.strategies",
)
"""Every strategy by name; one is registered with its cases, which enrols it in search, checker, tables and laws."""


def risk_candidates(setting: Setting) -> int:
    """Ways to bound the risk that one may choose among after seeing the training error, for P1.

    The gap bound is one (which gap bound, and which cover, do not depend on the training error); of the others each
    counts once, or once per number of ghosts; those about stored weights where the setting says how many bits they have.
    """
    of_risk = [each for each in STRATEGIES.values() if each.quantity == "risk"]
    able = [each for each in of_risk if not each.stored or setting.architecture.bits is not None]
    return 1 + sum(len(GHOSTS) if "alpha" in each.parameters else 1 for each in able)
