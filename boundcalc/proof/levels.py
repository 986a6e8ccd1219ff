"""The levels of a certificate: what the covers of each cost, and the error they leave (A0)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

from flint import arb

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.validate import shown
from boundcalc.layers.facts import Member, Slot
from boundcalc.proof.certificate import Choice, Cover, Level
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS, REFINING, CoverLemma
from boundcalc.statements.network import Network
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.strategies import Strategy
from boundcalc.statements.targets import Target

_NOTHING = Cover(0.0, ())


class Booked(NamedTuple):
    """What was found of one piece at one level: the error its cover leaves in the output of its layer, and the cost."""

    slot: Slot
    cover: Cover
    error: arb
    cost: arb


class Costs:
    """Sharp costs of lemmas: equal questions are asked once, by whichever certificate."""

    def __init__(self) -> None:
        self._targets: dict[int, tuple[Target, tuple[object, ...]]] = {}
        self._known: dict[tuple[object, ...], arb] = {}

    def sharp(self, lemma: CoverLemma, choice: Choice, target: Target, log_eps: float, y: arb, n: int) -> arb:
        """At some y = reach/eps, on n points."""
        if id(target) not in self._targets:
            self._targets[id(target)] = target, _identity(target)
        about = self._targets[id(target)][1]
        depth = _exact(y) if lemma.name in NOISES else None
        key = (lemma.name, about, log_eps, tuple(choice.params.items()), None if lemma.uniform else n, depth)
        if key not in self._known:
            self._known[key] = lemma.sharp(INTERVAL, y, target, arb(n), choice.params)
        return self._known[key]


class Levels:
    """Levels of one certificate, from the coarsest on.

    Attributes:
        booked: what was found of every piece, level by level.
    """

    def __init__(self, network: Network, strategy: Strategy, samples: int, eta: arb | None, costs: Costs) -> None:
        """Of a network whose covers are counted on `samples`; `eta` is the chance that noise fails (G11)."""
        self._network, self._strategy, self._samples, self._eta, self._costs = network, strategy, samples, eta, costs
        self.booked: list[dict[str, Booked]] = []

    def add(self, level: Level) -> None:
        """The next level, finer than those before."""
        booked: dict[str, Booked] = {}
        self._depth = self._noise_depth(level) if self._strategy.noisy else None

        def cover(key: str, slot: Slot) -> arb:
            if key not in level.covers:
                raise CertificateError(f"a level does not say how {key} is covered")
            error, cost = self._cover(level.covers[key], slot, key)
            booked[key] = Booked(slot, level.covers[key], error, cost)
            return error

        error = self._network.error(cover)
        unknown = set(level.covers) - set(booked)
        if unknown:
            raise CertificateError(f"the setting has no piece {shown(sorted(unknown)[0])}")
        if not certainly_le(error, arb(level.log_scale).exp()):
            raise CertificateError(f"the covers of the level at e^{level.log_scale:.6g} leave a larger error than that")
        self.booked.append(booked)

    def _noise_depth(self, level: Level) -> arb:
        """G11: the t that leaves eta to all Gaussians of the level that one example sees together."""
        seen = 0
        for key, slot in self._network.slots.items():
            cover = level.covers.get(key, _NOTHING)
            for choice, member in zip(cover.choices, slot.members, strict=False):
                if choice.lemma in NOISES:
                    seen += member.multiplicity * events(self._target(choice, member, key))
        return gap.noise_depth(INTERVAL, self._eta, arb(max(1, seen)))

    def _cover(self, cover: Cover, slot: Slot, name: str) -> tuple[arb, arb]:
        """The error a slot's covers leave in the layer's output, and what they cost."""
        if len(cover.choices) != len(slot.members):
            raise CertificateError(f"{name} has {len(slot.members)} kinds of maps, got covers for {len(cover.choices)}")
        eps = arb(cover.log_eps).exp()
        total = arb(0)
        unbounded = False
        for index, (choice, member) in enumerate(zip(cover.choices, slot.members, strict=True)):
            if choice.lemma == "zero" and self._strategy.every_scale:
                raise CertificateError(f"{name}: a closed form covers every scale, so no piece can be left out")
            if choice.lemma == "zero":
                within = any(certainly_le(t.radius * t.norms.op, eps) for t in member.targets)
                unbounded = unbounded or not within
            elif choice.refines:
                total = total + member.multiplicity * self._refinement(index, choice, member, cover.log_eps, name)
            else:
                total = total + member.multiplicity * self._cost(choice, member, cover.log_eps, eps, name)
        if unbounded:
            if slot.cap is None or any(choice.lemma != "zero" for choice in cover.choices):
                raise CertificateError(f"{name} is not covered: eps is below its reach")
            return slot.cap, total
        error = slot.sensitivity * eps
        if slot.cap is not None and not self._strategy.every_scale:
            error = slot.cap * (error / slot.cap).tanh() if slot.saturates else INTERVAL.minimum(error, slot.cap)
        return error, total

    def _refinement(self, index: int, choice: Choice, member: Member, log_eps: float, name: str) -> arb:
        """What it costs to cover the ball in which the cover of the level before has left a map."""
        before = self.booked[-1].get(name) if self.booked else None
        if not self._strategy.refines or before is None:
            raise CertificateError(f"{name}: no level before that strategy {self._strategy.name!r} could refine")
        target = self._target(choice, member, name)
        old = before.cover.choices[index]
        if old.lemma == "zero" or old.target != choice.target:
            raise CertificateError(f"{name}: it refines a cover of the same maps in the same metric only")
        if choice.lemma not in REFINING:
            raise CertificateError(f"{name}: {shown(choice.lemma)} does not cover what the level before has left")
        lemma = LEMMAS[choice.lemma]
        _hold(name, lemma.applies(target) or lemma.check_params(choice.params))
        y = (arb(before.cover.log_eps) - arb(log_eps)).exp()
        if certainly_le(y, arb(1)):
            return arb(0)
        return lemma.sharp(INTERVAL, y, target, target.points.count(self._samples), choice.params)

    def _cost(self, choice: Choice, member: Member, log_eps: float, eps: arb, name: str) -> arb:
        target, strategy = self._target(choice, member, name), self._strategy
        noise = NOISES.get(choice.lemma) if strategy.noisy else None
        lemma = noise or LEMMAS.get(choice.lemma)
        if lemma is None or (lemma.published and not strategy.published):
            raise CertificateError(f"{name}: no lemma {shown(choice.lemma)} for strategy {strategy.name!r}")
        _hold(name, lemma.applies(target))
        if strategy.uniform and not lemma.uniform:
            raise CertificateError(f"{name}: {lemma.name} is empirical, but {strategy.name!r} needs uniform covers")
        y = lemma.reach(target) / eps
        if noise is not None:  # of noise y is the norm in units of its size, which is never free
            y = y * spread(INTERVAL, target, self._depth)
        n = target.points.count(self._samples)
        if strategy.every_scale and not lemma.published:  # its cost at most, at this and all other scales
            if not lemma.quadratic:
                raise CertificateError(f"{name}: {lemma.name} at one scale is no cover at the others")
            return y**2 * lemma.closed(INTERVAL, arb(1), target, arb(n))
        if noise is None and certainly_le(y, arb(1)) and not strategy.every_scale:
            return arb(0)
        _hold(name, lemma.check_params(choice.params))
        return self._costs.sharp(lemma, choice, target, log_eps, y, n)

    @staticmethod
    def _target(choice: Choice, member: Member, name: str) -> Target:
        if choice.target not in range(len(member.targets)):
            raise CertificateError(f"{name} can be seen in {len(member.targets)} ways, got way {shown(choice.target)}")
        return member.targets[choice.target]


def _hold(name: str, problem: object) -> None:
    """Refuses what a lemma says against a target or its parameters."""
    if problem is not None:
        raise CertificateError(f"{name}: {problem}")


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
