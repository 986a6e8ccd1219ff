"""The checker: re-derives a certificate's value in interval arithmetic, or says why it does not follow.

It does not see how the certificate was found. It walks the network forward once (`Network`), then once per level with the
error made so far (A0), and asks the lemmas of T and L for their conditions, costs and sensitivities and the strategy for
the value; the search walks backward and works in floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb

from boundcalc.base.errors import CertificateError, InvalidSetting, Refusal, Unsupported
from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float, upper_log
from boundcalc.base.records import dataclass
from boundcalc.proof.certificate import LEAST_COUNT, Certificate, Choice, Cover, Level, problem_of
from boundcalc.proof.network import Network
from boundcalc.setting import Architecture, Norms, Setting
from boundcalc.setting.validate import shown
from boundcalc.statements import channels, gap
from boundcalc.statements.covers import LEMMAS, REFINING, CoverLemma
from boundcalc.statements.larger import joined
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.posthoc import posthoc_cost
from boundcalc.statements.premise import no_member
from boundcalc.statements.slots import Member, Slot
from boundcalc.statements.strategies import STRATEGIES, Known, stored_count, stored_weights
from boundcalc.statements.targets import Target

if TYPE_CHECKING:
    from boundcalc.proof.breakdown import Breakdown

CLAIM_TOLERANCE = 1e-12
"""A claim is a rounded logarithm: it may fall short of what is re-derived by its last printed digits."""


_NOTHING = Cover(0.0, ())


class Said(NamedTuple):
    """What one map has said through channels (G14): seen in which way, how finely, and what all of it tells in nats."""

    target: int
    log_eps: float
    heard: channels.Heard
    told: arb


class Booked(NamedTuple):
    """What was found of one piece at one level: the error its cover leaves in the output of its layer, and the cost."""

    slot: Slot
    cover: Cover
    error: arb
    cost: arb


@dataclass(frozen=True)
class Checked:
    """What the checker found, and everything it found on the way.

    Attributes:
        certificate: what was checked.
        log_value: a float that is at least the log of the value.
        value: a float that is at least the value.
        log_counts: the same for the log of every level's log count.
        nats: the same for what P1 adds to log(1/delta).
    """

    certificate: Certificate
    log_value: float
    value: float
    log_counts: tuple[float, ...]
    nats: float
    _run: _Run = field(repr=False, compare=False)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """Each piece's (or stored weight's) part of the log counts, averaged over levels by how much they matter."""
        if self._run.strategy.stored:
            weights = stored_weights(self.certificate.setting)
            return {kind: number / sum(weights.values()) for kind, number in weights.items()}
        return _shares(self._run.booked, STRATEGIES[self.certificate.strategy].weights(INTERVAL, self._run.known))

    @cached_property
    def breakdown(self) -> Breakdown:
        """The proof taken apart: every level, piece and term, as they were checked."""
        from boundcalc.proof.breakdown import break_down

        run = self._run
        return break_down(self.certificate, run.network, run.known, run.value, run.price, run.booked)

    @property
    def claimed(self) -> Certificate:
        """The certificate, claiming just what was found."""
        levels = tuple(
            replace(level, log_count=count)
            for level, count in zip(self.certificate.levels, self.log_counts, strict=True)
        )
        return replace(self.certificate, log_value=self.log_value, levels=levels, nats=self.nats)

    def moved(self, setting: Setting) -> Checked:
        """The same steps checked for another setting; what both have in common is not done again."""
        return self._run.checker.check(replace(self.certificate, setting=setting))


def verify(certificate: Certificate) -> Checked:
    """Re-derive a certificate's value and hold its claims against it.

    Args:
        certificate: as it was made, or read from a file.

    Returns:
        The value in interval arithmetic, and how it comes about.

    Raises:
        CertificateError: if a step does not follow, or something else was claimed.
    """
    try:
        checked = check(certificate)
    except (TypeError, LookupError, AttributeError) as error:  # whoever built it put something else in its place
        raise CertificateError(f"the steps cannot be followed ({type(error).__name__}: {error})") from error
    for i, (level, log_count) in enumerate(zip(certificate.levels, checked.log_counts, strict=True)):
        _hold(level.log_count, log_count, f"the log count claimed for level {i + 1}")
    _hold(certificate.nats, checked.nats, "what is said to be paid for measured numbers (nats)", logs=False)
    _hold(certificate.log_value, checked.log_value, "the claim")
    return checked


def _hold(claimed: float | None, found: float, what: str, *, logs: bool = True) -> None:
    """A claim must be at least what was found."""
    if claimed is not None and found <= claimed + CLAIM_TOLERANCE * max(1.0, abs(found)):
        return
    power = "e^" if logs else ""
    said = "nothing" if claimed is None else f"{power}{claimed:.12g}"
    raise CertificateError(f"{what} does not follow: {said} is claimed, but the steps only give {power}{found:.12g}")


def check(certificate: Certificate) -> Checked:
    """The upper end of the value the certificate's steps give; raises `CertificateError` when a step fails."""
    return Checker().check(certificate)


class Checker:
    """Checks certificates; settings that have a network in common share its walk, and equal covers their cost."""

    def __init__(self) -> None:
        self._networks: dict[tuple[Architecture, int, float, float | None, bool], tuple[Norms, Network]] = {}
        self._larger: dict[tuple[Architecture, int], tuple[Norms, Setting | Refusal]] = {}
        self._empty: dict[tuple[object, ...], tuple[Norms, Refusal | None]] = {}
        self._targets: dict[int, tuple[Target, tuple[object, ...]]] = {}
        self._costs: dict[tuple[object, ...], arb] = {}

    def check(self, certificate: Certificate) -> Checked:
        """The upper end of the value the certificate's steps give; raises `CertificateError` when a step fails."""
        problem = problem_of(certificate)
        if problem is not None:
            raise CertificateError(problem)
        try:
            return _Run(self, certificate).checked()
        except (InvalidSetting, Unsupported) as error:
            raise CertificateError(f"the certificate's setting: {error}") from None
        except (ArithmeticError, ValueError, RecursionError) as error:
            raise CertificateError(f"the steps cannot be evaluated: {error}") from None

    def network(self, setting: Setting, *, published: bool) -> Network:
        """The network of a setting in intervals."""
        sample, norms = setting.sample, setting.norms
        key = (setting.architecture, id(norms), sample.margin, sample.lipschitz, published)
        if key not in self._networks:
            self._networks[key] = norms, Network(setting, published=published)  # norms are kept, so the id stays theirs
        return self._networks[key][1]

    def larger(self, setting: Setting) -> Setting:
        """By A6 the setting whose class has maps that meet as one map, and contains the class of this one."""
        key = (setting.architecture, id(setting.norms))
        if key not in self._larger:
            self._larger[key] = setting.norms, joined(setting)
        found = self._larger[key][1]
        if isinstance(found, Refusal):
            raise CertificateError(str(found))
        return replace(found, sample=setting.sample)

    def no_member(self, setting: Setting) -> Refusal | None:
        """Why no network of a setting meets the premise of a risk bound (G0e)."""
        sample, norms = setting.sample, setting.norms
        key = (setting.architecture, id(norms), sample.margin, sample.lipschitz, sample.train_error)
        if key not in self._empty:
            self._empty[key] = norms, no_member(setting)
        return self._empty[key][1]

    def cost(self, lemma: CoverLemma, choice: Choice, target: Target, log_eps: float, y: arb, n: int) -> arb:
        """The sharp cost of a lemma; equal questions are asked once."""
        if id(target) not in self._targets:
            self._targets[id(target)] = target, _identity(target)
        about = self._targets[id(target)][1]
        depth = _exact(y) if lemma.name in NOISES else None
        key = (lemma.name, about, log_eps, tuple(choice.params.items()), None if lemma.uniform else n, depth)
        if key not in self._costs:
            self._costs[key] = lemma.sharp(INTERVAL, y, target, arb(n), choice.params)
        return self._costs[key]


class _Run:
    """One certificate, checked from the setting up."""

    def __init__(self, checker: Checker, certificate: Certificate) -> None:
        self.checker = checker
        self.certificate = certificate
        self.strategy = STRATEGIES[certificate.strategy]
        setting = certificate.setting
        self.m = setting.sample.n_train
        self.price = arb(posthoc_cost(INTERVAL, certificate))
        walked = checker.larger(setting) if certificate.meeting else setting
        self.network = None if self.strategy.stored else checker.network(walked, published=self.strategy.published)
        self.samples = self.strategy.samples(self.m, certificate.alpha)
        refusal = self.strategy.refuses(setting)
        if refusal is not None:
            raise CertificateError(refusal)
        empty = checker.no_member(setting) if self.strategy.quantity == "risk" else None
        if empty is not None:
            raise CertificateError(f"the premise is met by no network: {empty}")

    def checked(self) -> Checked:
        levels = self.certificate.levels
        eta = self.certificate.eta
        self.eta = None if eta is None else arb(eta)
        self.booked: list[dict[str, Booked]] = []
        self.said: dict[tuple[str, int], Said] = {}
        for level in levels:
            self.booked.append(self._level(level))
        sample = self.certificate.setting.sample
        mu, weights = self.certificate.mu, self.certificate.weights
        start = arb(1) / 2 if self.network is None else INTERVAL.minimum(arb(1) / 2, self.network.reach)
        counts = [sum((entry.cost for entry in booked.values()), start=arb(0)) for booked in self.booked]
        self.known = Known(
            start=arb(start.upper()),
            scales=[arb(level.log_scale).exp() for level in levels],
            counts=counts if self.network is not None else [stored_count(INTERVAL, self.certificate.setting)],
            log_inverse_delta=-arb(sample.delta).log() + self.price,
            m=arb(self.m),
            train_error=arb(sample.train_error),
            alpha=self.certificate.alpha,
            mu=None if mu is None else arb(mu),
            eta=self.eta,
            weights=None if weights is None else [arb(weight) for weight in weights],
        )
        for less, more, problem in self.strategy.conditions(INTERVAL, self.known):
            if not certainly_le(less, more):
                raise CertificateError(problem)
        self.value: arb = self.strategy.value(INTERVAL, self.known)
        if not self.value.is_finite():
            raise CertificateError("the steps give no finite value")
        return Checked(
            self.certificate,
            upper_log(self.value),
            upper_float(self.value),
            tuple(max(upper_log(count), LEAST_COUNT) for count in counts),
            upper_float(self.price),
            self,
        )

    # -- one level: costs of its covers, and the error they leave

    @property
    def _walked(self) -> Network:
        assert self.network is not None  # noqa: S101 - only strategies without levels have none
        return self.network

    def _level(self, level: Level) -> dict[str, Booked]:
        booked: dict[str, Booked] = {}
        self._depth = self._noise_depth(level) if self.strategy.noisy else None

        def cover(key: str, slot: Slot) -> arb:
            if key not in level.covers:
                raise CertificateError(f"a level does not say how {key} is covered")
            error, cost = self._cover(level.covers[key], slot, key)
            booked[key] = Booked(slot, level.covers[key], error, cost)
            return error

        error = self._walked.error(cover)
        unknown = set(level.covers) - set(booked)
        if unknown:
            raise CertificateError(f"the setting has no piece {shown(sorted(unknown)[0])}")
        if not certainly_le(error, arb(level.log_scale).exp()):
            raise CertificateError(f"the covers of the level at e^{level.log_scale:.6g} leave a larger error than that")
        return booked

    def _noise_depth(self, level: Level) -> arb:
        """G11: the t that leaves eta to all Gaussians of the level that one example sees together."""
        seen = 0
        for key, slot in self._walked.slots():
            cover = level.covers.get(key, _NOTHING)
            for choice, member in zip(cover.choices, slot.members, strict=False):
                if choice.lemma in NOISES:
                    seen += member.multiplicity * events(self._target(choice, member, key))
        return gap.noise_depth(INTERVAL, self.eta, arb(max(1, seen)))

    def _cover(self, cover: Cover, slot: Slot, name: str) -> tuple[arb, arb]:
        """The error a slot's covers leave in the layer's output, and what they cost."""
        if len(cover.choices) != len(slot.members):
            raise CertificateError(f"{name} has {len(slot.members)} kinds of maps, got covers for {len(cover.choices)}")
        eps = arb(cover.log_eps).exp()
        total = arb(0)
        unbounded = False
        for index, (choice, member) in enumerate(zip(cover.choices, slot.members, strict=True)):
            if choice.lemma == "zero" and self.strategy.every_scale:
                raise CertificateError(f"{name}: a closed form covers every scale, so no piece can be left out")
            if choice.lemma == "zero":
                within = any(certainly_le(t.radius * t.norms.op, eps) for t in member.targets)
                unbounded = unbounded or not within
            elif choice.refines:
                total = total + member.multiplicity * self._refinement(index, choice, member, cover.log_eps, name)
            elif self.strategy.channels and choice.lemma in NOISES:
                total = total + member.multiplicity * self._channel(index, choice, member, cover.log_eps, name)
            else:
                total = total + member.multiplicity * self._cost(choice, member, cover.log_eps, eps, name)
        if unbounded:
            if slot.cap is None or any(choice.lemma != "zero" for choice in cover.choices):
                raise CertificateError(f"{name} is not covered: eps is below its reach")
            return slot.cap, total
        error = slot.sensitivity * eps
        if slot.cap is not None and not self.strategy.every_scale:
            error = slot.cap * (error / slot.cap).tanh() if slot.saturates else INTERVAL.minimum(error, slot.cap)
        return error, total

    def _refinement(self, index: int, choice: Choice, member: Member, log_eps: float, name: str) -> arb:
        """G12: what it costs to cover the ball in which the cover of the level before has left a map."""
        before = self.booked[-1].get(name) if self.booked else None
        if not self.strategy.refines or before is None:
            raise CertificateError(f"{name}: no level before that strategy {self.strategy.name!r} could refine")
        target = self._target(choice, member, name)
        old = before.cover.choices[index]
        if old.lemma == "zero" or old.target != choice.target:
            raise CertificateError(f"{name}: it refines a cover of the same maps in the same metric only")
        if choice.lemma not in REFINING:
            raise CertificateError(f"{name}: {shown(choice.lemma)} does not cover what the level before has left")
        lemma = LEMMAS[choice.lemma]
        problem = lemma.applies(target) or lemma.check_params(choice.params)
        if problem is not None:
            raise CertificateError(f"{name}: {problem}")
        y = (arb(before.cover.log_eps) - arb(log_eps)).exp()
        if certainly_le(y, arb(1)):
            return arb(0)
        return lemma.sharp(INTERVAL, y, target, target.points.count(self.samples), choice.params)

    def _channel(self, index: int, choice: Choice, member: Member, log_eps: float, name: str) -> arb:
        """G14: how much more all levels so far tell of a map than those before, at most."""
        target, law = self._target(choice, member, name), NOISES[choice.lemma]
        problem = channels.refuses(law, target) or channels.check_params(law, choice.params)
        if problem is not None:
            raise CertificateError(f"{name}: {problem}")
        before = self.said.get((name, index))
        if before is not None and before.target != choice.target:
            raise CertificateError(f"{name}: its channels must all see it the same way")
        if before is not None and before.log_eps <= log_eps:  # what was heard is near enough: nothing new is said
            return arb(0)
        so_far = channels.heard(INTERVAL, target, choice.params["a"], log_eps, before and before.heard)
        told = channels.told(INTERVAL, law, target, so_far, choice.params)
        self.said[name, index] = Said(choice.target, log_eps, so_far, told)
        return told if before is None else told - before.told

    def _cost(self, choice: Choice, member: Member, log_eps: float, eps: arb, name: str) -> arb:
        target = self._target(choice, member, name)
        noise = NOISES.get(choice.lemma) if self.strategy.noisy else None
        lemma = noise or LEMMAS.get(choice.lemma)
        if lemma is None or (lemma.published and not self.strategy.published):
            raise CertificateError(f"{name}: no lemma {shown(choice.lemma)} for strategy {self.strategy.name!r}")
        refusal = lemma.applies(target)
        if refusal is not None:
            raise CertificateError(f"{name}: {refusal}")
        if self.strategy.uniform and not lemma.uniform:
            raise CertificateError(
                f"{name}: {lemma.name} is empirical, but {self.strategy.name!r} needs uniform covers"
            )
        y = lemma.reach(target) / eps
        if noise is not None:  # of noise y is the norm in units of its size, which is never free
            y = y * spread(INTERVAL, target, self._depth)
        n = target.points.count(self.samples)
        if self.strategy.every_scale and not lemma.published:
            if not lemma.quadratic:
                raise CertificateError(f"{name}: {lemma.name} at one scale says nothing about the others")
            return y**2 * lemma.closed(
                INTERVAL, arb(1), target, arb(n)
            )  # its cost at most, at this and all other scales
        if noise is None and certainly_le(y, arb(1)) and not self.strategy.every_scale:
            return arb(0)
        problem = lemma.check_params(choice.params)
        if problem is not None:
            raise CertificateError(f"{name}: {problem}")
        return self.checker.cost(lemma, choice, target, log_eps, y, n)

    @staticmethod
    def _target(choice: Choice, member: Member, name: str) -> Target:
        if choice.target >= len(member.targets):
            raise CertificateError(f"{name} can be seen in {len(member.targets)} ways, got way {shown(choice.target)}")
        return member.targets[choice.target]


def _identity(target: Target) -> tuple[object, ...]:
    """A key that targets share when a uniform lemma cannot tell them apart: all but the number of points."""
    parts = [getattr(target, f.name) for f in fields(target) if f.name not in ("norms", "points")]
    parts += [getattr(target.norms, f.name) for f in fields(target.norms)]
    return tuple(_exact(part) for part in parts)


def _exact(x: Any) -> Any:
    """An interval to the last bit; anything else as it is."""
    if isinstance(x, arb):
        return (*x.mid().man_exp(), *x.rad().man_exp())
    return tuple(_exact(part) for part in x) if isinstance(x, tuple) else x


def _shares(levels: Sequence[Mapping[str, Booked]], weights: Sequence[arb]) -> dict[str, float]:
    """Each piece's part of the log counts, averaged over levels by how much they matter."""
    total = sum(weights, start=arb(0))
    shares: dict[str, float] = {}
    for booked, weight in zip(levels, weights, strict=True):
        count = sum((entry.cost for entry in booked.values()), start=arb(0))
        for name, entry in booked.items():
            part = float(weight / total * (entry.cost / count)) if count > 0 and total > 0 else 0.0
            shares[name] = shares.get(name, 0.0) + part
    return shares
