"""The levels of a certificate: what the covers of each cost, and the error they leave (A0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from flint import arb

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.validate import shown
from boundcalc.layers.facts import Member, Slot, Target
from boundcalc.proof.certificate import Choice, Cover, Level
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS, REFINING
from boundcalc.statements.network import Network
from boundcalc.statements.noises import NOISES, events, spread
from boundcalc.statements.strategies import Strategy


class Booked(NamedTuple):
    """What was found of one piece at one level: the error its cover leaves in the output of its layer, and the cost."""

    slot: Slot
    cover: Cover
    error: arb
    cost: arb


Before = Mapping[str, Booked]
"""What was found at the level before; empty at the first."""


def book(
    network: Network, strategy: Strategy, level: Level, before: Before, samples: int, eta: arb | None
) -> dict[str, Booked]:
    """Every piece of a level whose covers are counted on `samples`; `eta` is the chance that noise fails (G11)."""
    covers = level.covers
    missing, unknown = sorted(network.slots.keys() - covers.keys()), sorted(covers.keys() - network.slots.keys())
    if missing:
        raise CertificateError(f"a level does not say how {missing[0]} is covered")
    if unknown:
        raise CertificateError(f"the setting has no piece {shown(unknown[0])}")
    for key, slot in network.slots.items():
        members, choices = len(slot.members), len(covers[key].choices)
        if choices != members:
            raise CertificateError(f"{key} has {members} kinds of maps, got covers for {choices}")
    depth = _noise_depth(network, level, eta) if strategy.noisy else None
    room = _Room(strategy, samples, depth, before)
    booked = {key: room.piece(key, slot, covers[key]) for key, slot in network.slots.items()}
    error = network.error(lambda key, _: booked[key].error)
    if not certainly_le(error, arb(level.log_scale).exp()):
        raise CertificateError(f"the covers of the level at e^{level.log_scale:.6g} leave a larger error than that")
    return booked


def _noise_depth(network: Network, level: Level, eta: arb | None) -> arb:
    """G11: the t that leaves eta to all Gaussians of the level that one example sees together."""
    seen = 0
    for key, slot in network.slots.items():
        for choice, member in zip(level.covers[key].choices, slot.members, strict=True):
            if choice.lemma in NOISES:
                seen += member.multiplicity * events(_target(choice, member, key))
    return gap.noise_depth(INTERVAL, eta, arb(max(1, seen)))


class _Room(NamedTuple):
    """What the covers of one level may be."""

    strategy: Strategy
    samples: int
    depth: arb | None
    before: Before

    def piece(self, name: str, slot: Slot, cover: Cover) -> Booked:
        """The error a slot's covers leave in the layer's output, and what they cost."""
        eps, cost = arb(cover.log_eps).exp(), arb(0)
        unbounded = False
        for index, (choice, member) in enumerate(zip(cover.choices, slot.members, strict=True)):
            if choice.lemma != "zero":
                cost = cost + member.multiplicity * self._cost(name, index, choice, member, cover.log_eps)
                continue
            if self.strategy.every_scale:
                raise CertificateError(f"{name}: a closed form covers every scale, so no piece can be left out")
            within = any(certainly_le(target.radius * target.norms.op, eps) for target in member.targets)
            unbounded = unbounded or not within
        error = slot.sensitivity * eps
        if unbounded:
            if slot.cap is None or any(choice.lemma != "zero" for choice in cover.choices):
                raise CertificateError(f"{name} is not covered: eps is below its reach")
            error = slot.cap
        elif slot.cap is not None and not self.strategy.every_scale:
            error = slot.cap * (error / slot.cap).tanh() if slot.saturates else INTERVAL.minimum(error, slot.cap)
        return Booked(slot, cover, error, cost)

    def _cost(self, name: str, index: int, choice: Choice, member: Member, log_eps: float) -> arb:
        """What covers of one map cost; refining, of the ball in which the cover of the level before has left it."""
        strategy, target = self.strategy, _target(choice, member, name)
        noise = NOISES.get(choice.lemma) if strategy.noisy else None
        lemma = noise or LEMMAS.get(choice.lemma)
        if lemma is None or (lemma.published and not strategy.published):
            raise CertificateError(f"{name}: no lemma {shown(choice.lemma)} for strategy {strategy.name!r}")
        _hold(name, lemma.applies(target))
        if strategy.uniform and not lemma.uniform:
            raise CertificateError(f"{name}: {lemma.name} is empirical, but {strategy.name!r} needs uniform covers")
        n = arb(target.points.count(self.samples))
        if choice.refines:
            y = self._ratio(name, index, choice, log_eps)
        else:
            y = lemma.reach(target) / arb(log_eps).exp()
        if noise is not None:  # of noise y is the norm in units of its size, which is never free
            y = y * spread(INTERVAL, target, self.depth)
        if strategy.every_scale and not lemma.published:  # its cost at most, at this and all other scales
            if not lemma.quadratic:
                raise CertificateError(f"{name}: {lemma.name} at one scale is no cover at the others")
            return y**2 * lemma.closed(INTERVAL, arb(1), target, n)
        if noise is None and certainly_le(y, arb(1)) and not strategy.every_scale:
            return arb(0)
        _hold(name, lemma.check_params(choice.params))
        return lemma.sharp(INTERVAL, y, target, n, choice.params)

    def _ratio(self, name: str, index: int, choice: Choice, log_eps: float) -> arb:
        """G12: how much finer a cover is than the one before of the same map, in the same metric."""
        if not self.strategy.refines or name not in self.before:
            raise CertificateError(f"{name}: no level before that strategy {self.strategy.name!r} could refine")
        before = self.before[name].cover
        old = before.choices[index]
        if old.lemma == "zero" or old.target != choice.target:
            raise CertificateError(f"{name}: it refines a cover of the same maps in the same metric only")
        if choice.lemma not in REFINING:
            raise CertificateError(f"{name}: {shown(choice.lemma)} does not cover what the level before has left")
        return (arb(before.log_eps) - arb(log_eps)).exp()


def _target(choice: Choice, member: Member, name: str) -> Target:
    if choice.target not in range(len(member.targets)):
        raise CertificateError(f"{name} can be seen in {len(member.targets)} ways, got way {shown(choice.target)}")
    return member.targets[choice.target]


def _hold(name: str, problem: object) -> None:
    """Refuses what a lemma says against a target or its parameters."""
    if problem is not None:
        raise CertificateError(f"{name}: {problem}")
