"""What a strategy is, and what it receives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.setting import Setting

if TYPE_CHECKING:
    from boundcalc.statements.comparison.sharp import Tuning

Quantity = Literal["gap", "risk"]


@dataclass(slots=True)  # not frozen: a search makes thousands
class Known:
    """What a strategy receives, in some number system.

    Attributes:
        start: e_0, how far the loss is from its centre at most (and at most 1/2).
        scales: e_1, e_2, ... on the loss.
        counts: log N at each scale.
        log_inverse_delta: log(1/delta), with the correction of P1.
        m: samples.
        train_error: share of training sequences with margin at most gamma.
        mu: parameter of the kl inverse; None for its limit, which is for training error 0.
        eta: chance that noise moves the loss of an example by more than the scale (G11).
    """

    start: Number
    scales: Sequence[Number]
    counts: Sequence[Number]
    log_inverse_delta: Number
    m: Number
    train_error: Number
    mu: Number | None = None
    eta: Number | None = None


class Term(NamedTuple):
    """A summand (or ingredient) of the value, as a formula and a number."""

    formula: str
    value: Number
    statement: str


class Strategy(ABC):
    """A theorem of G, as a way to bound something by counts of covers.

    What the search offers it depends on what it is: a `Chain` falling scales, a `MarginStrategy` one at half the
    margin, a `ClosedStrategy` one that is split in proportion.

    Attributes:
        name: in certificates and tables.
        title: a few words.
        quantity: what is bounded.
        uses: the statements it is based on, besides those of covers and layers.
        formula: how the terms make the value.
        one_level: whether it takes just one level.
        every_scale: whether that level's cover stands for those of all scales (closed forms).
        uniform: whether covers must serve every sample.
        noisy: whether maps may carry noise (V) instead of being covered (T).
        counted: what its counts are called: log N, of noise a divergence in addition (G11).
        parameters: what a certificate has to say besides its levels: "mu", "eta", "tuning".
        published: whether the constants of the literature are taken (PUB), in covers and layers too.
        follows_m: whether its scale or its eta moves with m, so that no certificate survives another m.
        refines: whether a level may refine what the level before has left, its counts being what each level adds.
        coverless: whether it needs no covers: it has no levels, and one count that depends on the setting alone.
        stored: whether that is the number of values that stored weights may take (G13), of settings that say how many
            bits a weight has.
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
    counted: ClassVar[str] = "log N"
    parameters: ClassVar[tuple[str, ...]] = ()
    published: ClassVar[bool] = False
    follows_m: ClassVar[bool] = False
    refines: ClassVar[bool] = False
    coverless: ClassVar[bool] = False
    stored: ClassVar[bool] = False

    def samples(self, m: int) -> int:
        """How many samples covers are counted on."""
        return m

    def complexity(self, ns: NumberSystem, setting: Setting, tuning: Tuning | None) -> Number:
        """The number of a strategy without covers, for every sample, given numbers that `unproved` accepted."""
        raise NotImplementedError(f"{self.name} takes covers")

    def count(self, ns: NumberSystem, setting: Setting, complexity: Number) -> Number:
        """The one count of a strategy without covers."""
        del ns, setting
        return complexity

    def unproved(self, setting: Setting, tuning: Tuning | None) -> str | None:
        """Why a tuning proves nothing about a setting, in intervals; whatever T and the sample are."""
        del setting, tuning
        return None

    def refuses(self, setting: Setting) -> str | None:
        """Why the strategy is not about a setting, or None."""
        del setting
        return None

    def needs_mu(self, setting: Setting) -> bool:
        """Whether a finite mu must be given: above training error 0."""
        return "mu" in self.parameters and setting.sample.train_error != 0

    def conditions(self, ns: NumberSystem, inputs: Known) -> Iterator[tuple[Number, Number, str]]:
        """(a, b, what fails): a <= b must be certain."""
        del ns, inputs
        yield from ()

    def value(self, ns: NumberSystem, inputs: Known) -> Number:
        """The bound: the sum of its terms, unless a strategy says otherwise."""
        return sum((term.value for term in self.terms(ns, inputs)), start=ns.number(0))

    @abstractmethod
    def terms(self, ns: NumberSystem, inputs: Known) -> list[Term]:
        """Its ingredients, for readers."""

    def links(self, ns: NumberSystem, inputs: Known) -> list[Number] | None:
        """What each level adds to the value; None where levels do not add up."""
        del ns, inputs
        return None
