"""The checker: re-derives a certificate's value in interval arithmetic, or says why it does not follow.

It does not see how the certificate was found. It walks the network forward, once per level, carrying the
radius of the activations and the error made so far (A0), and asks the lemmas of T and L for their conditions,
costs and sensitivities; the search walks backward and works in floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flint import arb

from boundcalc.base.errors import CertificateError, InvalidSetting, Unsupported
from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float, upper_log
from boundcalc.proof.certificate import Certificate, Choice, Cover, Level
from boundcalc.setting import Layer, Residual
from boundcalc.setting.layer import rows_used
from boundcalc.setting.validate import shown
from boundcalc.statements import gap
from boundcalc.statements.compose import loss_lipschitz
from boundcalc.statements.covers import LEMMAS, TPUB
from boundcalc.statements.layers import PUBLISHED, Context, Member, Slot, facts
from boundcalc.statements.posthoc import posthoc_cost
from boundcalc.statements.premise import no_member
from boundcalc.statements.targets import Target
from boundcalc.statements.weights import Weights

CLAIM_TOLERANCE = 1e-12
"""A claim is a rounded logarithm: it may fall short of what is re-derived by its last printed digits."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checker found: an upper end, and how much of it each piece is answerable for."""

    log_value: float
    value: float
    shares: Mapping[str, float]


def verify(certificate: Certificate) -> Checked:
    """Re-derive a certificate's value and hold its claim against it."""
    checked = check(certificate)
    if checked.log_value > certificate.log_value + CLAIM_TOLERANCE * max(1.0, abs(checked.log_value)):
        raise CertificateError(
            f"the claim does not follow: e^{certificate.log_value:.12g} is claimed, "
            f"but the steps only give e^{checked.log_value:.12g}"
        )
    return checked


def check(certificate: Certificate) -> Checked:
    """The upper end of the value the certificate's steps give; raises `CertificateError` when a step fails."""
    try:
        return _Check(certificate).run()
    except (InvalidSetting, Unsupported) as error:
        raise CertificateError(f"the certificate's setting: {error}") from None
    except (ArithmeticError, ValueError, RecursionError) as error:
        raise CertificateError(f"the steps cannot be evaluated: {error}") from None


class _Check:
    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate
        setting = certificate.setting
        self.published = PUBLISHED if certificate.strategy == "published" else frozenset[str]()
        self.weights = Weights(INTERVAL, setting.norms)
        self.m = arb(setting.sample.n_train)
        self.log_inverse_delta = -arb(setting.sample.delta).log() + posthoc_cost(INTERVAL, certificate)
        self.lipschitz = loss_lipschitz(INTERVAL, setting)
        self.for_all_scales = certificate.strategy in ("closed", "published")
        self.uniform = certificate.strategy.startswith("uniform")
        self.samples = setting.sample.n_train
        if certificate.strategy.startswith("ghost"):
            self.samples *= 1 + certificate.alpha
        elif certificate.strategy == "closed":
            self.samples *= 1 + gap.CLOSED_GHOSTS

    def run(self) -> Checked:
        if self.certificate.setting.norms.budgets:
            self._walk(None)
            self.weights.check_all_read()
        if not self.certificate.levels and self.certificate.quantity == "risk":
            raise CertificateError("a risk bound needs one level")
        spent = [self._level(level) for level in self.certificate.levels]
        counts = [_sum(costs.values()) for costs in spent]
        scales = [arb(level.log_scale).exp() for level in self.certificate.levels]
        value, weights = getattr(self, "_" + self.certificate.strategy.replace("-", "_"))(scales, counts)
        if not value.is_finite():
            raise CertificateError("the steps give no finite value")
        return Checked(upper_log(value), upper_float(value), _shares(spent, weights))

    # -- strategies: each returns the value and how much each level matters for it

    def _scales(self, scales: Sequence[arb]) -> list[arb]:
        """e_0 (the loss stays within it of its centre) followed by the given scales, which must fall."""
        reach = self.lipschitz * self._walk(None)[0]
        first = INTERVAL.minimum(arb(1) / 2, reach)
        chain = [arb(first.upper()), *scales]
        for coarse, fine in pairwise(chain):
            if not certainly_le(fine, coarse):
                raise CertificateError("the scales of a chain must fall, starting below e_0 = min(1/2, L R)")
        return chain

    def _chained(self, scales: Sequence[arb], counts: Sequence[arb], factor: arb) -> tuple[arb, list[arb]]:
        chain = self._scales(scales)
        links = gap.chain_sum(INTERVAL, chain, counts, self.m)
        value = gap.gap_chain(INTERVAL, chain[-1], links, factor, self.log_inverse_delta, self.m)
        return value, [coarser * count.sqrt() for coarser, count in zip(chain, counts, strict=False)]

    def _chain(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        return self._chained(scales, counts, gap.chain_factor(INTERVAL, None, uniform=False))

    def _ghost_chain(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        return self._chained(scales, counts, gap.chain_factor(INTERVAL, self.certificate.alpha, uniform=False))

    def _uniform_chain(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        return self._chained(scales, counts, gap.chain_factor(INTERVAL, None, uniform=True))

    def _one(self, counts: Sequence[arb]) -> arb:
        if len(counts) != 1:
            raise CertificateError(f"strategy {self.certificate.strategy!r} has one level, got {len(counts)}")
        return counts[0]

    def _uniform_single(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        count = self._one(counts)
        return gap.gap_uniform_single(INTERVAL, scales[0], count, self.log_inverse_delta, self.m), [arb(1)]

    def _capacity(self, scales: Sequence[arb], counts: Sequence[arb]) -> arb:
        return self._one(counts) * scales[0] ** 2

    def _closed(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        return gap.gap_closed(INTERVAL, self._capacity(scales, counts), self.log_inverse_delta, self.m), [arb(1)]

    def _published(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        capacity = self._capacity(scales, counts)
        if not certainly_le(scales[0], 3 * (capacity / self.m).sqrt()):
            raise CertificateError("the published cover must be counted where Dudley's integral starts, or below")
        return gap.gap_published(INTERVAL, capacity, self.log_inverse_delta, self.m), [arb(1)]

    def _margin_scale(self, scales: Sequence[arb], counts: Sequence[arb]) -> arb:
        if self.certificate.setting.sample.lipschitz is not None:
            raise CertificateError("risk bounds by margins need the ramp loss, not a Lipschitz constant of another")
        empty = no_member(self.certificate.setting)
        if empty is not None:
            raise CertificateError(f"the premise is met by no network: {empty}")
        if not certainly_le(scales[0], arb(1) / 2):
            raise CertificateError("margin bounds need a cover at half the margin: scale at most 1/2")
        return self._one(counts)

    def _uniform_margin(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        count = self._margin_scale(scales, counts)
        q = arb(self.certificate.setting.sample.train_error)
        return gap.risk_uniform(INTERVAL, q, count, self.log_inverse_delta, self.m, self._mu(q)), [arb(1)]

    def _ghost_realizable(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        count = self._margin_scale(scales, counts)
        if self.certificate.setting.sample.train_error != 0:
            raise CertificateError("G4 needs margin training error 0")
        value = gap.risk_realizable(INTERVAL, count, self.log_inverse_delta, self.m, self.certificate.alpha)
        return value, [arb(1)]

    def _ghost(self, scales: Sequence[arb], counts: Sequence[arb]) -> tuple[arb, list[arb]]:
        count = self._margin_scale(scales, counts)
        q = arb(self.certificate.setting.sample.train_error)
        alpha = self.certificate.alpha
        return gap.risk_ghost(INTERVAL, q, count, self.log_inverse_delta, self.m, alpha, self._mu(q)), [arb(1)]

    def _mu(self, q: arb) -> arb | None:
        mu = self.certificate.mu
        if mu is None:
            if q != 0:
                raise CertificateError("the kl inverse at a training error above 0 needs a finite mu")
            return None
        if not mu > 0:
            raise CertificateError(f"mu must be above 0, got {mu!r}")
        return arb(mu)

    # -- one level: costs of its covers, and the error they leave

    def _level(self, level: Level) -> dict[str, arb]:
        costs: dict[str, arb] = {}
        _, error = self._walk(_Covering(level.covers, costs))
        unknown = set(level.covers) - set(costs)
        if unknown:
            raise CertificateError(f"the setting has no piece {shown(sorted(unknown)[0])}")
        if not certainly_le(self.lipschitz * error, arb(level.log_scale).exp()):
            raise CertificateError(f"the covers of the level at e^{level.log_scale:.6g} leave a larger error than that")
        return costs

    def _walk(self, covering: _Covering | None) -> tuple[arb, arb]:
        architecture = self.certificate.setting.architecture
        start = arb(architecture.input_radius)
        return self._through(architecture.stages, start, arb(0), 1, covering)

    def _through(
        self, layers: Sequence[Layer], radius: arb, error: arb, rows: int, covering: _Covering | None
    ) -> tuple[arb, arb]:
        """Radius and error after some layers of which so many output rows are read."""
        seq_len = self.certificate.setting.architecture.seq_len
        for layer, used in zip(layers, rows_used(layers, rows, seq_len), strict=True):
            if isinstance(layer, Residual):
                reach, made = self._through(layer.branch, radius, error, used, covering)
                radius, error = radius + reach, error + made
                continue
            at = Context(self.weights, radius, used, seq_len, self.published)
            here = facts(layer, at)
            error = here.lipschitz * error
            if covering is not None:
                block = layer.where()
                for slot in here.slots:
                    name = slot.kind if block is None else f"{slot.kind}[{block}]"
                    error = error + self._cover(covering.take(name), slot, name, covering)
            radius = here.radius
        return radius, error

    def _cover(self, cover: Cover, slot: Slot, name: str, covering: _Covering) -> arb:
        """Adds the cost of a slot's covers; returns the error they leave in the layer's output."""
        if len(cover.choices) != len(slot.members):
            raise CertificateError(f"{name} has {len(slot.members)} kinds of maps, got covers for {len(cover.choices)}")
        eps = arb(cover.log_eps).exp()
        total = arb(0)
        unbounded = False
        for choice, member in zip(cover.choices, slot.members, strict=True):
            if choice.lemma == "zero" and self.for_all_scales:
                raise CertificateError(f"{name}: a closed form covers every scale, so no piece can be left out")
            if choice.lemma == "zero":
                within = any(certainly_le(t.radius * t.norms.op, eps) for t in member.targets)
                unbounded = unbounded or not within
            else:
                total = total + member.multiplicity * self._cost(choice, member, eps, name)
        covering.spend(name, total)
        if unbounded:
            if slot.cap is None or any(choice.lemma != "zero" for choice in cover.choices):
                raise CertificateError(f"{name} is not covered: eps is below its reach")
            return slot.cap
        error = slot.sensitivity * eps
        return error if slot.cap is None or self.for_all_scales else INTERVAL.minimum(error, slot.cap)

    def _cost(self, choice: Choice, member: Member, eps: arb, name: str) -> arb:
        target = self._target(choice, member, name)
        lemma = LEMMAS.get(choice.lemma)
        if lemma is None or (lemma is TPUB and self.certificate.strategy != "published"):
            raise CertificateError(f"{name}: no lemma {shown(choice.lemma)} for strategy {self.certificate.strategy!r}")
        refusal = lemma.applies(target)
        if refusal is not None:
            raise CertificateError(f"{name}: {refusal}")
        if self.uniform and not lemma.uniform:
            raise CertificateError(
                f"{name}: {lemma.name} is empirical, but {self.certificate.strategy!r} needs uniform covers"
            )
        y = lemma.reach(target) / eps
        n = arb(target.points.count(self.samples))
        if self.for_all_scales and lemma is not TPUB:
            if not lemma.quadratic:
                raise CertificateError(f"{name}: {lemma.name} at one scale says nothing about the others")
            return y**2 * lemma.closed(INTERVAL, arb(1), target, n)  # at least the cost, at this scale and all others
        if certainly_le(y, arb(1)) and not self.for_all_scales:
            return arb(0)
        problem = lemma.check_params(choice.params)
        if problem is not None:
            raise CertificateError(f"{name}: {problem}")
        return lemma.sharp(INTERVAL, y, target, n, choice.params)

    @staticmethod
    def _target(choice: Choice, member: Member, name: str) -> Target:
        if choice.target >= len(member.targets):
            raise CertificateError(f"{name} can be seen in {len(member.targets)} ways, got way {shown(choice.target)}")
        return member.targets[choice.target]


class _Covering:
    """The covers of one level, handed out once each, and what they cost."""

    def __init__(self, covers: Mapping[str, Cover], costs: dict[str, arb]) -> None:
        self.covers = covers
        self.costs = costs
        self._seen: dict[str, int] = {}

    def take(self, name: str) -> Cover:
        """The cover of the next piece of this name."""
        times = self._seen.get(name, 0) + 1
        self._seen[name] = times
        key = self._key(name, times)
        if key not in self.covers:
            raise CertificateError(f"a level does not say how {key} is covered")
        return self.covers[key]

    def spend(self, name: str, cost: arb) -> None:
        """Book the cost of the piece last taken."""
        self.costs[self._key(name, self._seen[name])] = cost

    @staticmethod
    def _key(name: str, times: int) -> str:
        return name if times == 1 else f"{name}#{times}"


def _sum(costs: Iterable[arb]) -> arb:
    return sum(costs, start=arb(0))


def _shares(spent: Sequence[Mapping[str, arb]], weights: Sequence[arb]) -> dict[str, float]:
    """Each piece's part of the log counts, averaged over levels by how much they matter."""
    total = _sum(weights)
    shares: dict[str, float] = {}
    for costs, weight in zip(spent, weights, strict=True):
        count = _sum(costs.values())
        for name, cost in costs.items():
            part = float(weight / total * (cost / count)) if count > 0 and total > 0 else 0.0
            shares[name] = shares.get(name, 0.0) + part
    return shares
