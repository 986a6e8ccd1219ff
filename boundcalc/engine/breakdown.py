"""A certificate taken apart, for readers: what each level and each piece contributes, in floats.

Nothing is proved here (the checker does that); a test holds the sum of the parts against the checked value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from boundcalc.base.numbers import LOG, LogFloat
from boundcalc.proof.certificate import Certificate, Choice, Level
from boundcalc.setting import Budget
from boundcalc.statements import gap
from boundcalc.statements.compose import Lowered, Piece, lower
from boundcalc.statements.covers import LEMMAS, TPUB
from boundcalc.statements.layers import PUBLISHED
from boundcalc.statements.posthoc import posthoc_cost
from boundcalc.statements.texts import STRATEGY_USES, cover_uses

_ONE_LINE = f"2k ({gap.CLOSED_OFFSET} + max(0, log(1/(2k)))), k = (17/32) e sqrt(2 C_F/m)"


@dataclass(frozen=True, slots=True)
class Part:
    """One piece at one level.

    Attributes:
        key: the piece.
        lemmas: how its maps are covered ("zero": by the zero map alone).
        eps: tolerance of the cover.
        error: what it adds to the error of the loss.
        count: its log count.
        share: its part of the level's log count.
    """

    key: str
    lemmas: tuple[str, ...]
    eps: LogFloat
    error: LogFloat
    count: LogFloat
    share: float


@dataclass(frozen=True, slots=True)
class LevelParts:
    """One level: its scale on the loss, its log count, what it adds to the bound (chains), its pieces."""

    scale: LogFloat
    count: LogFloat
    link: LogFloat | None
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A summand (or ingredient) of the value, as a formula and a number."""

    formula: str
    value: LogFloat
    statement: str


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A proof with its numbers.

    Attributes:
        formula: how the terms make the value.
        terms: its ingredients.
        levels: coarse to fine.
        statements: names of everything the proof uses.
    """

    certificate: Certificate
    formula: str
    value: LogFloat
    terms: tuple[Term, ...]
    levels: tuple[LevelParts, ...]
    statements: tuple[str, ...]


def break_down(certificate: Certificate) -> Breakdown:
    """The parts of a certificate's value."""
    return _Parts(certificate).whole()


class _Parts:
    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate
        setting = certificate.setting
        self.strategy = certificate.strategy
        self.lowered: Lowered = lower(
            setting, LOG, published=PUBLISHED if self.strategy == "published" else frozenset()
        )
        self.m = LogFloat.of(setting.sample.n_train)
        self.samples = setting.sample.n_train
        if self.strategy.startswith("ghost"):
            self.samples *= 1 + certificate.alpha
        elif self.strategy == "closed":
            self.samples *= 1 + gap.CLOSED_GHOSTS
        self.price = LogFloat.of(posthoc_cost(LOG, certificate))
        self.inverse = -LOG.log(setting.sample.delta) + self.price

    def whole(self) -> Breakdown:
        levels = [self._level(level) for level in self.certificate.levels]
        formula, value, terms, levels = self._combine(levels)
        if self.price.sign:
            terms = [*terms, Term("price of budgets read off trained weights, in log(1/delta)", self.price, "P1")]
        return Breakdown(self.certificate, formula, value, tuple(terms), tuple(levels), self._statements())

    def _statements(self) -> tuple[str, ...]:
        covers = {name for level in self.certificate.levels for name in self._covers(level)}
        strategy = STRATEGY_USES[self.strategy]
        price = ["P1"] if self.price.sign else []
        return (*sorted(covers), *self.lowered.uses, "A0", "A5", *strategy, *price)

    def _covers(self, level: Level) -> Iterator[str]:
        """The lemmas of a level, how scores are seen (S1-S3), and T7 where a difference from a reference is covered."""
        pieces = {piece.key: piece for piece in self.lowered.pieces}
        referred = {kind.partition("[")[0] for kind, part in self._budgets() if part.distance is not None}
        for key, cover in level.covers.items():
            for choice, member in zip(cover.choices, pieces[key].members, strict=True):
                if choice.lemma == "zero":
                    continue
                lemma = LEMMAS[choice.lemma]
                yield from cover_uses(lemma.name, member.targets[choice.target].kind, uniform=lemma.uniform)
                if key.partition("[")[0].partition("#")[0] in referred:
                    yield "T7"

    def _budgets(self) -> Iterable[tuple[str, Budget]]:
        return self.certificate.setting.norms.budgets.items()

    # -- levels

    def _level(self, level: Level) -> LevelParts:
        pieces = {piece.key: piece for piece in self.lowered.pieces}
        found = [(key, pieces[key], cover) for key, cover in level.covers.items()]
        counts = [
            sum(
                (
                    member.multiplicity * self._count(choice, cover.log_eps, piece, i)
                    for i, (choice, member) in enumerate(zip(cover.choices, piece.members, strict=True))
                ),
                start=LogFloat.of(0),
            )
            for _, piece, cover in found
        ]
        total = sum(counts, start=LogFloat.of(0))
        parts = tuple(
            Part(
                key,
                tuple(dict.fromkeys(choice.lemma for choice in cover.choices)),
                LogFloat(cover.log_eps),
                self._error(piece, cover.log_eps),
                count,
                float(count / total) if total.sign else 0.0,
            )
            for (key, piece, cover), count in zip(found, counts, strict=True)
        )
        return LevelParts(LogFloat(level.log_scale), total, None, parts)

    def _count(self, choice: Choice, log_eps: float, piece: Piece, member: int) -> LogFloat:
        if choice.lemma == "zero":
            return LogFloat.of(0)
        target = piece.members[member].targets[choice.target]
        lemma = LEMMAS[choice.lemma]
        y = lemma.reach(target) / LogFloat(log_eps)
        n = LogFloat.of(target.points.count(self.samples))
        if self.strategy in ("closed", "published") and lemma is not TPUB:
            return LogFloat.of(y**2 * lemma.closed(LOG, LogFloat.of(1), target, n))
        if y <= 1 and lemma is not TPUB:
            return LogFloat.of(0)
        return LogFloat.of(lemma.sharp(LOG, y, target, n, choice.params))

    @staticmethod
    def _error(piece: Piece, log_eps: float) -> LogFloat:
        error = piece.gain * LogFloat(log_eps)
        return error if piece.cap is None else min(error, piece.cap)

    # -- strategies

    def _combine(self, levels: list[LevelParts]) -> tuple[str, LogFloat, list[Term], list[LevelParts]]:
        if self.strategy.endswith("chain"):
            return self._chain(levels)
        count, scale = levels[0].count, levels[0].scale
        if self.strategy == "uniform-single":
            value = gap.gap_uniform_single(LOG, scale, count, self.inverse, self.m)
            terms = [
                Term("2 e", 2 * scale, "G2"),
                Term("sqrt((log N + log(1/delta))/(2m))", gap.deviation(LOG, count + self.inverse, self.m), "G2"),
            ]
            return "gap <= 2 e + sqrt((log N + log(1/delta))/(2m))", value, terms, levels
        if self.strategy in ("closed", "published"):
            return self._closed(levels, count * scale**2)
        return self._risk(levels, count)

    def _chain(self, levels: list[LevelParts]) -> tuple[str, LogFloat, list[Term], list[LevelParts]]:
        uniform = self.strategy == "uniform-chain"
        ghosts = self.certificate.alpha if self.strategy == "ghost-chain" else None
        factor = LogFloat.of(gap.chain_factor(LOG, ghosts, uniform=uniform))
        start = min(LogFloat.of(0.5), self.lowered.radius)
        scales = [start, *(level.scale for level in levels)]
        linked: list[LevelParts] = []
        least: LogFloat | None = None
        for coarser, level in reversed(list(zip(scales, levels, strict=False))):
            least = level.count if least is None else min(least, level.count)
            link = factor * coarser * LOG.sqrt(2 * least / self.m)
            linked.append(LevelParts(level.scale, level.count, link, level.parts))
        linked.reverse()
        links = sum((level.link for level in linked if level.link is not None), start=LogFloat.of(0))
        deviation = LogFloat.of(gap.deviation(LOG, self.inverse, self.m))
        how = "uniform covers" if uniform else "symmetrisation" if ghosts is None else f"{ghosts} ghosts a sample"
        terms = [
            Term("2 e_J", 2 * scales[-1], "G1"),
            Term(f"factor * sum of links, factor {float(factor):g} ({how})", links, "G1, G2"),
            Term("sqrt(log(1/delta)/(2m))", deviation, "G2"),
        ]
        formula = f"gap <= 2 e_J + factor * sum of e_(j-1) sqrt(2 log N_j/m) + deviation, e_0 = {float(start):.4g}"
        return formula, 2 * scales[-1] + links + deviation, terms, linked

    def _closed(
        self, levels: list[LevelParts], capacity: LogFloat
    ) -> tuple[str, LogFloat, list[Term], list[LevelParts]]:
        terms = [Term("C_F, with log N(e) <= C_F/e^2", capacity, "A1, A4")]
        if self.strategy == "closed":
            value = gap.gap_closed(LOG, capacity, self.inverse, self.m)
            deviation = LogFloat.of(gap.deviation(LOG, self.inverse, self.m))
            terms.append(Term(_ONE_LINE, value - deviation, "G1"))
            terms.append(Term("sqrt(log(1/delta)/(2m))", deviation, "G2"))
            return "gap <= closed chain + deviation", value, terms, levels
        value = gap.gap_published(LOG, capacity, self.inverse, self.m)
        complexity = 2 * gap.complexity_published(LOG, capacity, self.m)
        terms.append(Term("2 R_m by Dudley's integral", complexity, "PUB"))
        terms.append(Term("3 sqrt(log(2/delta)/(2m))", value - complexity, "PUB"))
        return "gap <= 2 R_m + 3 sqrt(log(2/delta)/(2m))", value, terms, levels

    def _risk(self, levels: list[LevelParts], count: LogFloat) -> tuple[str, LogFloat, list[Term], list[LevelParts]]:
        q, alpha = LogFloat.of(self.certificate.setting.sample.train_error), self.certificate.alpha
        mu = None if self.certificate.mu is None else LogFloat.of(self.certificate.mu)
        terms = [Term("log N at half the margin", count, "A0"), Term("log(1/delta)", self.inverse, "")]
        if self.strategy == "uniform-margin":
            value = gap.risk_uniform(LOG, q, count, self.inverse, self.m, mu)
            return "risk <= klinv(train error, (log N + log(1/delta))/m)", value, terms, levels
        if self.strategy == "ghost-realizable":
            value = gap.risk_realizable(LOG, count, self.inverse, self.m, alpha)
            formula = f"risk <= errors/(alpha m), alpha = {alpha}: errors that log(2N/delta) leaves the ghosts"
        else:
            value = gap.risk_ghost(LOG, q, count, self.inverse, self.m, alpha, mu)
            formula = (
                f"risk <= max over q' <= q of [(1+alpha) klinv(q', log(2N/delta)/m) - q' + 1/m]/alpha, alpha = {alpha}"
            )
        return formula, value, terms, levels
