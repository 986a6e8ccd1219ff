"""The checker: re-derives a certificate's value in interval arithmetic, or says why it does not follow.

It does not see how the certificate was found. It walks the network forward once (`Network`), then once per level with
the error made so far (A0), and asks the lemmas of T and L for their conditions, costs and sensitivities and the
strategy for the value; the search walks backward and works in floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from flint import arb

from boundcalc.base.errors import CertificateError, InvalidSetting, Refusal, Unsupported
from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float, upper_log
from boundcalc.base.numbers import log_add
from boundcalc.base.rounding import log_up
from boundcalc.base.value import Value
from boundcalc.proof._levels import Booked, book
from boundcalc.proof.certificate import LEAST_COUNT, Certificate, problem_of
from boundcalc.setting import Norms, Setting
from boundcalc.statements.merge import merge_linear_maps
from boundcalc.statements.network import Network
from boundcalc.statements.posthoc import posthoc_cost
from boundcalc.statements.premise import no_member
from boundcalc.statements.strategies import STRATEGIES, Known, Strategy, stored_weights

if TYPE_CHECKING:
    from boundcalc.proof.breakdown import Breakdown

_T = TypeVar("_T")

_CLAIM_TOLERANCE = 1e-12
"""A claim is a rounded logarithm: it may fall short of what is re-derived by its last printed digits."""
_ROOM = 1e-12
"""What rounding may add to a rescaled tolerance."""


@dataclass(frozen=True, kw_only=True)
class Checked(Value):
    """A certificate that passed: the value that it proves.

    Attributes:
        certificate: what was checked, claiming just what was derived.
    """

    certificate: Certificate
    _run: Run = field(repr=False, compare=False)

    def bounding(self, quantity: str, train_error: float | None = None) -> Checked:
        """The same, or the bound of the risk that follows from one of the gap: with the training error added."""
        if quantity == self.quantity:
            return self
        q = self.certificate.setting.sample.train_error if train_error is None else train_error
        log_value = log_up(log_add(self.log_value, math.log(q))) if q else self.log_value
        return replace(self, quantity="risk", log_value=log_value, form=f"{self.form} + train error")

    @cached_property
    def log_rate(self) -> float:
        """Log of (count + log 1/delta)/m at the last level: what a bound is made of that itself may have reached 1."""
        inputs = self._run.known
        return upper_log((inputs.counts[-1] + inputs.log_inverse_delta) / inputs.m)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """Each piece's (or stored weight's) part of the log counts, averaged over levels by how much they matter."""
        if self._run.strategy.stored:
            weights = stored_weights(self.certificate.setting)
            return {kind: number / sum(weights.values()) for kind, number in weights.items()}
        levels = self.breakdown.levels
        links = [arb(1) if level.link is None else level.link for level in levels]
        total, shares = sum(links, start=arb(0)), dict[str, float]()
        for level, link in zip(levels, links, strict=True):
            weight = float(link / total) if total > 0 else 0.0
            for part in level.parts:
                shares[part.key] = shares.get(part.key, 0.0) + part.share * weight
        return shares

    @property
    def dominant(self) -> tuple[str, float] | None:
        """The piece that costs most, and its part of the log counts."""
        name = max(self.shares, key=self.shares.__getitem__, default="")
        return (name, self.shares[name]) if self.shares.get(name, 0) > 0 else None

    @cached_property
    def breakdown(self) -> Breakdown:
        """The proof taken apart: every level, piece and term, as they were checked."""
        from boundcalc.proof.breakdown import break_down

        return break_down(self._run)

    def moved(self, setting: Setting) -> Checked:
        """The same proof of another setting, every cover leaving the error of the loss that it left before.

        What both settings have in common is not done again. Raises `CertificateError` where the steps do not carry
        over.
        """
        run, certificate = self._run, replace(self.certificate, setting=setting)
        if run.network is not None:
            there = run.checker.network(setting, run.strategy, merged=certificate.meeting)
            before, after = ({piece.key: upper_log(piece.gain) for piece in net.pieces} for net in (run.network, there))
            if before.keys() != after.keys():
                raise CertificateError("the other setting has other pieces")
            finer = {key: before[key] - after[key] - _ROOM * (before[key] != after[key]) for key in before}
            levels = (
                replace(
                    level,
                    covers={
                        key: replace(cover, log_eps=cover.log_eps + finer[key]) for key, cover in level.covers.items()
                    },
                )
                for level in certificate.levels
            )
            certificate = replace(certificate, levels=tuple(levels))
        return run.checker.check(certificate)


def verify(certificate: Certificate) -> Checked:
    """Re-derive a certificate's value and compare it with the claim.

    Args:
        certificate: as it was made, or read from a file.

    Returns:
        The value in interval arithmetic, and how it comes about.

    Raises:
        CertificateError: if a step does not follow, or something else was claimed.
    """
    try:
        checked = check(certificate)
    except (TypeError, LookupError, AttributeError) as error:  # a field holds another type
        raise CertificateError(f"the steps cannot be followed ({type(error).__name__}: {error})") from error
    derived = checked.certificate
    claims = [
        *((level.log_count, f"the log count claimed for level {i}") for i, level in enumerate(certificate.levels, 1)),
        (certificate.nats, "the claimed cost of measured numbers (nats)"),
        (certificate.log_value, "the claim"),
    ]
    values = [*(level.log_count for level in derived.levels), derived.nats, derived.log_value]
    for (claimed, what), value in zip(claims, values, strict=True):
        if claimed is None or value is None or not value <= claimed + _CLAIM_TOLERANCE * max(1.0, abs(value)):
            power = "" if "nats" in what else "e^"
            said = "nothing" if claimed is None else f"{power}{claimed:.12g}"
            raise CertificateError(f"{what} does not follow: {said} is claimed, but the steps only give {power}{value}")
    return checked


def check(certificate: Certificate) -> Checked:
    """The upper end of the value the certificate's steps give; raises `CertificateError` when a step fails."""
    return Checker().check(certificate)


class Checker:
    """Checks certificates; settings that have a network in common share its walk."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Norms, Any]] = {}

    def check(self, certificate: Certificate) -> Checked:
        """The upper end of the value the certificate's steps give; raises `CertificateError` when a step fails."""
        problem = problem_of(certificate)
        if problem is not None:
            raise CertificateError(problem)
        try:
            certificate.setting.refuse_symbols()
            return Run(self, certificate).checked()
        except (InvalidSetting, Unsupported) as error:
            raise CertificateError(f"the certificate's setting: {error}") from None
        except (ArithmeticError, ValueError, RecursionError) as error:
            raise CertificateError(f"the steps cannot be evaluated: {error}") from None

    def network(self, setting: Setting, strategy: Strategy, *, merged: bool) -> Network:
        """The network of a setting in intervals, or that of the larger class with maps that meet as one map (A6)."""
        sample, published = setting.sample, strategy.published
        if merged:
            larger = self._once(setting, ("larger",), lambda: merge_linear_maps(setting))
            if larger is None:
                raise CertificateError("A6: no linear maps meet with nothing between them that acts")
            setting = replace(larger.setting, sample=sample)
        about = "network", sample.margin, sample.lipschitz, published
        return self._once(setting, about, lambda: Network(setting, INTERVAL, published=published))

    def count(self, certificate: Certificate) -> arb:
        """The count of a strategy without covers."""
        strategy, setting, tuning = STRATEGIES[certificate.strategy], certificate.setting, certificate.tuning
        short = replace(setting, architecture=replace(setting.architecture, seq_len=2))  # T does not matter to it
        problem = self._once(short, ("tuning", tuning), lambda: strategy.unproved(short, tuning))
        if problem is not None:
            raise CertificateError(problem)
        about = "complexity", strategy.name, tuning
        return strategy.count(
            INTERVAL, setting, self._once(setting, about, lambda: strategy.complexity(INTERVAL, setting, tuning))
        )

    def price(self, certificate: Certificate) -> arb:
        """What norms and margins read off weights or sample add to log(1/delta) (P1)."""
        measured, strategy = certificate.measured, STRATEGIES[certificate.strategy]
        about = "P1", id(measured), certificate.setting.sample, strategy.quantity
        # kept next to the price, so that the id stays its own
        return self._once(
            certificate.setting, about, lambda: (arb(posthoc_cost(INTERVAL, certificate.setting, measured)), measured)
        )[0]

    def no_member(self, setting: Setting) -> Refusal | None:
        """Why no network of a setting meets the premise of a risk bound (G0e)."""
        sample = setting.sample
        about = "no member", sample.margin, sample.lipschitz, sample.train_error
        return self._once(setting, about, lambda: no_member(setting))

    def _once(self, setting: Setting, about: tuple[object, ...], make: Callable[[], _T]) -> _T:
        """What depends on the network, its norms and what is named; norms are kept, so that their id stays."""
        key = (*about, setting.architecture, id(setting.norms))
        if key not in self._known:
            self._known[key] = setting.norms, make()
        return self._known[key][1]


class Run:
    """One certificate, checked from the setting up."""

    def __init__(self, checker: Checker, certificate: Certificate) -> None:
        self.checker = checker
        self.certificate = certificate
        self.strategy = STRATEGIES[certificate.strategy]
        setting = certificate.setting
        self.price = checker.price(certificate)
        self.network: Network | None = None
        if not self.strategy.coverless:
            self.network = checker.network(setting, self.strategy, merged=certificate.meeting)
        refusal = self.strategy.refuses(setting)
        if refusal is not None:
            raise CertificateError(refusal)
        empty = checker.no_member(setting) if self.strategy.quantity == "risk" else None
        if empty is not None:
            raise CertificateError(f"the premise is met by no network: {empty}")

    def checked(self) -> Checked:
        levels, sample = self.certificate.levels, self.certificate.setting.sample
        m, mu = sample.n_train, self.certificate.mu
        eta = None if self.certificate.eta is None else arb(self.certificate.eta)
        start = arb(1) / 2
        self.booked: list[dict[str, Booked]] = []
        if self.network is not None:
            start = INTERVAL.minimum(start, self.network.radius)
            for level in levels:
                before = self.booked[-1] if self.booked else {}
                self.booked.append(book(self.network, self.strategy, level, before, self.strategy.samples(m), eta))
        counts = [sum((entry.cost for entry in booked.values()), start=arb(0)) for booked in self.booked]
        self.known = Known(
            start=arb(start.upper()),
            scales=[arb(level.log_scale).exp() for level in levels],
            counts=counts if self.network is not None else [self.checker.count(self.certificate)],
            log_inverse_delta=-arb(sample.delta).log() + self.price,
            m=arb(m),
            train_error=arb(sample.train_error),
            mu=None if mu is None else arb(mu),
            eta=eta,
        )
        for less, more, problem in self.strategy.conditions(INTERVAL, self.known):
            if not certainly_le(less, more):
                raise CertificateError(problem)
        self.value: arb = self.strategy.value(INTERVAL, self.known)
        if not self.value.is_finite():
            raise CertificateError("the steps give no finite value")
        levels = tuple(
            replace(level, log_count=max(upper_log(count), LEAST_COUNT))
            for level, count in zip(levels, counts, strict=True)
        )
        nats = upper_float(self.price)
        claimed = replace(self.certificate, log_value=upper_log(self.value), levels=levels, nats=nats)
        return Checked(
            name=claimed.policy,
            quantity=claimed.quantity,
            kind=claimed.kind,
            log_value=claimed.log_value,
            form=claimed.strategy,
            always=1.0,
            trivial=claimed.trivial,
            saturates=claimed.quantity == "risk",  # above 1 its formula is no distance from a bound below 1
            certificate=claimed,
            _run=self,
        )
