"""Pick-to-Learn: learn from few picked examples, answer for all others; holdout is the case without picks.

A run is a function of the candidates' set alone (their places in the data's order break ties), so a replay on a part of
them that holds the picks must pick the same and end in the same bits; a certificate is issued only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError, CertificateError, InvalidSetting
from boundcalc.base.schema import Count, write
from boundcalc.predictors._statements import H
from boundcalc.predictors.certificate import (
    METHODS,
    Certified,
    LearnerOf,
    Method,
    PredictorCertificate,
    equal_shares,
    issue,
)
from boundcalc.predictors.data import (
    Answers,
    Array,
    Data,
    Evidence,
    digest_of_arrays,
    fixed_order,
    refuse_other_examples,
)
from boundcalc.predictors.plans import G10R, Member

_Progress = Callable[[Mapping[str, Any]], None] | None
"""Receives how far a run is, after every round."""
_OTHERS = 64
"""Examples besides the picks that a replay meets."""


class NotReproduced(BoundcalcError):
    """A learner that gave something else when it was run again: nothing can be certified."""


class Learner(Answers, Protocol):
    """A deterministic learner.

    Its state is a function of its recipe, the seed and the examples it was given, in their order: no clock, no global
    generator, nothing of other examples. A replay refuses a learner that is not (as far as a replay can tell).
    """

    def start(self, seed: int) -> Any:
        """The state before any example."""
        ...

    def fit(self, state: Any, examples: Data, prefix: int) -> Any:
        """Go on from a state: `examples` are the prefix, if there is one, then all picks so far in their order."""
        ...

    def scores(self, state: Any, examples: Data) -> Array:
        """A score per example that looks at this example and the state alone: right where it is above 0."""
        ...

    def weights(self, state: Any) -> Mapping[str, Array]:
        """The tensors of the model, copied."""
        ...


class _Stop(NamedTuple):
    """Where a run stands: its picks, how many of the others are wrong, and the digest of the weights."""

    picks: tuple[int, ...]
    wrong: int
    weights: str


class Run:
    """One trajectory over candidates of a data set, from a prefix on.

    Attributes:
        start: its prefix and its seed.
        left: candidates that are not picked: places in the data's order.
        keys: their scores; the worst are picked next.
        picks: places, in the order in which they were picked.
        batches: how many were picked in each round.
        state: of the learner.
    """

    def __init__(
        self, learner: Learner, data: Data, member: Member, candidates: Array, progress: _Progress = None
    ) -> None:
        self.learner, self.data, self.start, self.progress = learner, data, (member.prefix, member.seed), progress
        self.left, self.picks, self.batches = np.sort(candidates), list[int](), tuple[int, ...]()
        self.state = learner.start(member.seed)
        self._learn()

    def _learn(self) -> None:
        prefix, seed = self.start
        if places := [*range(prefix), *self.picks]:
            self.state = self.learner.fit(self.state, self.data.take(places), prefix)
        keys = np.zeros(0)
        if len(self.left):
            keys = np.asarray(self.learner.scores(self.state, self.data.take(self.left)), dtype=np.float64)
        if keys.shape != self.left.shape:
            raise InvalidSetting(f"scores must be one number per example: need {self.left.shape}, got {keys.shape}")
        self.keys = np.where(np.isnan(keys), -np.inf, keys)
        if self.progress is not None:
            sizes = {"picks": len(self.picks), "wrong": self.wrong, "others": len(self.left)}
            self.progress({"prefix": prefix, "seed": seed, **sizes})

    @property
    def wrong(self) -> int:
        """How many of the others are not right."""
        return count_wrong(self.keys, len(self.left))

    def round(self, size: int) -> None:
        """Pick the next ones with the worst keys (their places break ties), and learn."""
        order = np.lexsort((self.left, self.keys))[:size]
        self.picks += self.left[order].tolist()
        self.batches += (size,)
        self.left = np.delete(self.left, order)
        self._learn()

    def leads_to(self, member: Member) -> bool:
        """Whether the member is this stop of the run, or a later one."""
        same = self.start == (member.prefix, member.seed)
        return same and member.batches[: len(self.batches)] == self.batches

    def go_to(self, member: Member) -> Run:
        """Pick up to a member's stop."""
        for size in member.batches[len(self.batches) :]:
            self.round(size)
        return self

    def stop(self) -> _Stop:
        """Where it stands."""
        return _Stop(tuple(self.picks), self.wrong, digest_of_arrays(self.learner.weights(self.state)))


def pick_to_learn(
    learner: Learner, data: Data, members: Sequence[Member], delta: float, *, progress: _Progress = None
) -> Certified:
    """Run Pick-to-Learn: the best certificate of a list of members that share delta; holdout where none picks.

    Members are left out where not even no errors left would make them the best: what is not computed is not claimed.

    Args:
        learner: what learns.
        data: all examples: prefixes and candidates.
        members: everything that shares delta, fixed before the data.
        delta: failure probability of the whole list.
        progress: called after every round.

    Returns:
        The certificate, and the state of the learner that it is about.
    """
    m, places, share = len(data), fixed_order(len(data)), equal_shares(delta, max(1, len(members)))
    ordered = data.take(places)
    for member in members:
        if member.prefix + member.stop >= m:
            raise InvalidSetting(
                f"a prefix of {member.prefix} and {member.stop} picks leave none of {m} examples to test on"
            )
    run: Run | None = None
    least, best = 1.0, None
    for index in sorted(range(len(members)), key=lambda i: (members[i].prefix, members[i].seed, members[i].batches)):
        member = members[index]
        if member.risk(0, m, share) >= least:
            continue
        if run is None or not run.leads_to(member):
            run = Run(learner, ordered, member, np.arange(member.prefix, m), progress)
        if (risk := member.risk(run.go_to(member).wrong, m, share)) < least:
            least, best = risk, (index, run.stop())
    if best is None:
        raise InvalidSetting("no member of the plan can certify a risk below 1, even without errors: plan fewer picks")
    index, stop = best
    member = members[index]
    state = _replay(learner, ordered, member, stop)
    certificate = issue(
        "p2l" if any(member.batches for member in members) else "holdout",
        stop.wrong,
        delta=delta,
        alternatives=members,
        chosen=index,
        evidence=_Evidence.of(data, learner, learner.weights(state), tuple(places[list(stop.picks)].tolist())),
    )
    return Certified(certificate, state)


def _replay(learner: Learner, data: Data, member: Member, stop: _Stop) -> Any:
    """Run again on the picks and some others, shuffled: the same picks and the same bits, or no certificate."""
    picks = np.asarray(stop.picks, dtype=np.int64)
    rest, shuffle = np.setdiff1d(np.arange(member.prefix, len(data)), picks), np.random.default_rng(len(data))
    others = shuffle.permutation(rest)[:_OTHERS]
    again = Run(learner, data, member, shuffle.permutation(np.concatenate([picks, others])))
    stopped = again.go_to(member).stop()
    if differs := _differences(stop._replace(wrong=stopped.wrong), stopped):
        raise NotReproduced(
            f"no certificate: run again on the {len(stop.picks)} picks and {len(others)} others, {differs}. A learner "
            "must depend on the examples it is given alone: fix its seeds, score in evaluation mode, in chunks of one "
            "shape, and look at no other candidate"
        )
    return again.state


def _differences(before: _Stop, after: _Stop) -> str:
    """In what a run ended otherwise."""
    words = ("other examples are picked", f"{after.wrong} errors, not {before.wrong}", "the weights differ in some bit")
    return " and ".join(what for what, a, b in zip(words, before, after, strict=True) if a != b)


@dataclass(frozen=True)
class _Evidence(Evidence):
    picks: tuple[Count, ...]


def _facts(certificate: PredictorCertificate) -> tuple[str, Mapping[str, Any]]:
    member, examples, picks = certificate.alternative, certificate.evidence.data.examples, certificate.evidence.picks
    if len(set(picks)) != len(picks) or any(place >= examples for place in picks):
        raise CertificateError(f"the picks are not different places of the {examples} examples")
    if len(picks) != member.stop:
        raise CertificateError(f"{len(picks)} examples are picked, the alternative taken stops at {member.stop} picks")
    return member.facts(examples)


def _establish(certificate: PredictorCertificate, data: Any, learner_of: LearnerOf) -> str:
    """Run again on the same data: the same picks, errors and bits, or `NotReproduced` says what differs."""
    evidence, member, places = certificate.evidence, certificate.alternative, fixed_order(len(data))
    refuse_other_examples(certificate, data)
    learner = learner_of(evidence.recipe)
    if write(learner.recipe) != evidence.recipe:
        raise NotReproduced("the learner's recipe is not that of the certificate")
    stop = Run(learner, data.take(places), member, np.arange(member.prefix, len(data))).go_to(member).stop()
    stop = stop._replace(picks=tuple(places[list(stop.picks)].tolist()))
    if differs := _differences(_Stop(evidence.picks, certificate.errors, evidence.weights), stop):
        here, there = write(learner.environment), evidence.environment
        names = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
        why = f" (here {', '.join(names)} differ: run it here and issue a certificate of its own)" if names else ""
        raise NotReproduced(f"trained again, {differs}{why}")
    what = f"the same {member.stop} picks" if member.stop else "the same split"
    return f"trained again on these examples: {what}, the same errors, weights equal to the bit"


METHODS.register(Method("holdout", "trained on the prefix", (H,), _Evidence, _facts, _establish, Member))
METHODS.register(Method("p2l", "trained on the prefix and the picks", (H, G10R), _Evidence, _facts, _establish, Member))
