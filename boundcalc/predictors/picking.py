"""Pick-to-Learn: learn from few picked examples, answer for all others; holdout is the case without picks.

A run is a function of the candidates' set alone (their places in the data's order break ties), so a replay on a part of
them that holds the picks must pick the same and end in the same bits; a certificate is issued only then.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.base.output import write_text
from boundcalc.base.schema import Count, write
from boundcalc.predictors.certificate import (
    METHODS,
    Certified,
    Method,
    PredictorCertificate,
    digest_of,
    issue,
)
from boundcalc.predictors.data import (
    Answers,
    Array,
    Data,
    EvidenceHere,
    digest_of_arrays,
    evidence_of,
    fixed_order,
    named,
)
from boundcalc.predictors.plans import Member
from boundcalc.predictors.statements import G10R, STATEMENTS, H

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

    def dump(self, state: Any) -> bytes:
        """The state, to go on with after a kill."""
        ...

    def restore(self, data: bytes) -> Any:
        """The state from such bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a run stands: its picks, how many of the others are wrong, and the digest of the weights."""

    picks: tuple[int, ...]
    wrong: int
    weights: str


@dataclass
class Run:
    """One trajectory over candidates of a data set; picks are places in the data's order.

    Attributes:
        learner: what learns.
        data: the examples in their order: the prefix first.
        prefix: how many of them it starts from.
        seed: of the learner.
        candidates: places that may be picked.
        picks: so far, in their order.
        batches: how many were picked in each round so far.
        state: of the learner.
    """

    learner: Learner
    data: Data
    prefix: int
    seed: int
    candidates: Array
    picks: list[int] = field(default_factory=list[int])
    batches: tuple[int, ...] = ()
    state: Any = None
    left: Array = field(init=False)
    keys: Array = field(init=False)

    def __post_init__(self) -> None:
        self.left = np.setdiff1d(self.candidates, np.asarray(self.picks, dtype=np.int64))
        if self.state is None:
            self.state = self.learner.start(self.seed)
            self._learn(fit=self.prefix > 0)
        else:
            self._learn(fit=False)

    def _learn(self, *, fit: bool = True) -> None:
        if fit:
            places = [*range(self.prefix), *self.picks]
            self.state = self.learner.fit(self.state, self.data.take(places), self.prefix)
        keys = np.zeros(0)
        if len(self.left):
            keys = np.asarray(self.learner.scores(self.state, self.data.take(self.left)), dtype=np.float64)
        if keys.shape != self.left.shape:
            raise InvalidSetting(f"scores must be one number per example: need {self.left.shape}, got {keys.shape}")
        self.keys = np.where(np.isnan(keys), -np.inf, keys)

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

    def stop(self) -> Stop:
        """Where it stands."""
        return Stop(tuple(self.picks), self.wrong, digest_of_arrays(self.learner.weights(self.state)))

    @classmethod
    def to_stop(cls, learner: Learner, data: Data, member: Member, candidates: Array) -> Run:
        """A run up to a member's stop."""
        run = cls(learner, data, member.prefix, member.seed, candidates)
        for size in member.batches:
            run.round(size)
        return run


class _Unfinished:
    """The stops that were reached and the run under way; in a file of one learner, data set and plan, if there is one.

    Attributes:
        stops: by the place of their member in the plan.
        run: the trajectory under way.
    """

    def __init__(self, path: Path | None, learner: Learner, data: Data, plan: Sequence[Any]) -> None:
        self.path, self.learner, self.data = path, learner, data
        self.stops: dict[int, Stop] = {}
        self.run: Run | None = None
        self.owner = "" if path is None else digest_of([write(learner.recipe), data.sha256, *plan])
        if path is None or not path.exists():
            return
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            owner, stops, (prefix, seed, picks, batches, state) = document["of"], document["stops"], document["run"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidSetting(f"{path} is no state of a run: name another file, or remove it") from None
        if owner != self.owner:
            raise InvalidSetting(f"{path} is of another run: name another file, or remove it")
        self.stops = {int(index): Stop(tuple(places), *rest) for index, (places, *rest) in stops.items()}
        state, candidates = learner.restore(b64decode(state)), np.arange(prefix, len(data))
        self.run = Run(learner, data, prefix, seed, candidates, picks, tuple(batches), state)

    def towards(self, member: Member) -> Run:
        """The run under way, where the member is a later stop of it; else a new one."""
        run = self.run
        if (
            run is None
            or (run.prefix, run.seed) != (member.prefix, member.seed)
            or (member.batches[: len(run.batches)] != run.batches)
        ):
            candidates = np.arange(member.prefix, len(self.data))
            run = self.run = Run(self.learner, self.data, member.prefix, member.seed, candidates)
        return run

    def keep(self) -> None:
        """Write it, whole or not at all."""
        if self.path is None or self.run is None:
            return
        run, state = self.run, b64encode(self.learner.dump(self.run.state)).decode()
        stops = {index: [list(stop.picks), stop.wrong, stop.weights] for index, stop in self.stops.items()}
        document = {"of": self.owner, "stops": stops, "run": [run.prefix, run.seed, run.picks, run.batches, state]}
        write_text(self.path, json.dumps(document), force=True)


def pick_to_learn(
    learner: Learner,
    data: Data,
    members: Sequence[Member],
    delta: float,
    *,
    method: str = "p2l",
    progress: Callable[[Mapping[str, Any]], None] | None = None,
    resume: Path | None = None,
) -> Certified:
    """Run Pick-to-Learn: the best certificate of a list of members that share delta.

    Members are left out where not even no errors left would make them the best: what is not computed is not claimed.

    Args:
        learner: what learns.
        data: all examples: prefixes and candidates.
        members: everything that shares delta, fixed before the data.
        delta: failure probability of the whole list.
        method: name in the certificate: p2l, or holdout where no member picks.
        progress: called after every round.
        resume: where to keep the state of an unfinished run, to go on from there.

    Returns:
        The certificate, and the weights it is about.
    """
    places = fixed_order(len(data))
    ordered = data.take(places)
    for member in members:
        if member.prefix + member.stop >= len(data):
            raise InvalidSetting(
                f"a prefix of {member.prefix} and {member.stop} picks leave none of {len(data)} examples to test on"
            )
    alternatives = tuple(write(member, complete=True) for member in members)
    work = _Unfinished(resume, learner, ordered, [alternatives, delta])

    def report(run: Run) -> None:
        work.keep()
        if progress is not None:
            sizes = {"picks": len(run.picks), "wrong": run.wrong, "others": len(run.left)}
            progress({"prefix": run.prefix, "seed": run.seed, **sizes})

    best: tuple[float, int, Stop] | None = None
    for index in sorted(range(len(members)), key=lambda i: (members[i].prefix, members[i].seed, members[i].batches)):
        member, least = members[index], 1.0 if best is None else best[0]
        if _risk(member, 0, len(data)) >= least:
            continue
        if index not in work.stops:
            before, run = work.run, work.towards(member)
            if run is not before:
                report(run)
            for size in member.batches[len(run.batches) :]:
                run.round(size)
                report(run)
            work.stops[index] = run.stop()
        stop = work.stops[index]
        risk = _risk(member, stop.wrong, len(data))
        if risk < least:
            best = risk, index, stop
    if best is None:
        raise InvalidSetting("no member of the plan can certify a risk below 1, even without errors: plan fewer picks")
    _, index, stop = best
    member = members[index]
    state = _replay(learner, ordered, member, stop)
    if resume is not None:
        resume.unlink(missing_ok=True)
    certificate = issue(
        method,
        member.statement,
        _facts(member, stop.wrong, len(data)),
        delta=delta,
        alternatives=alternatives,
        chosen=index,
        evidence=evidence_of(data, learner, picks=places[list(stop.picks)].tolist(), weights=stop.weights),
    )
    return Certified(certificate, state)


def rerun(learner: Learner, data: Data, certificate: PredictorCertificate) -> Any:
    """Establish a certificate's facts again: the same run on the same data; the learner's state at the end.

    Raises `NotReproduced` with what differs.
    """
    evidence = certificate.evidence
    if evidence["data"] != named(data):
        raise NotReproduced(
            f"these are not the examples of the certificate: {len(data)} with sha256 {data.sha256[:12]}.., "
            f"it is about {evidence['data']['examples']} with {str(evidence['data']['sha256'])[:12]}.."
        )
    if write(learner.recipe) != evidence["recipe"]:
        raise NotReproduced("the learner's recipe is not that of the certificate")
    member, places = Member.from_json(certificate.taken), fixed_order(len(data))
    run = Run.to_stop(learner, data.take(places), member, np.arange(member.prefix, len(data)))
    stop = run.stop()
    differs: list[str] = []
    if places[list(stop.picks)].tolist() != list(evidence["picks"]):
        differs.append("other examples are picked")
    if stop.wrong != certificate.facts["errors"]:
        differs.append(f"{stop.wrong} errors, not {certificate.facts['errors']}")
    if stop.weights != evidence["weights"]:
        differs.append("the weights are not equal to the bit")
    if differs:
        here, there = write(learner.environment), evidence["environment"]
        names = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
        why = f" (here {', '.join(names)} differ: run it here and issue a certificate of its own)" if names else ""
        raise NotReproduced(f"trained again, {' and '.join(differs)}{why}")
    return run.state


def _facts(member: Member, wrong: int, m: int) -> dict[str, Any]:
    picks = {"picks": member.stop, "references": member.references} if member.batches else {}
    return {"errors": wrong, "n": m - member.prefix, **picks}


def _risk(member: Member, wrong: int, m: int) -> float:
    return STATEMENTS[member.statement].risk(_facts(member, wrong, m), member.delta)


def _replay(learner: Learner, data: Data, member: Member, stop: Stop) -> Any:
    """Run again on the picks and some others, shuffled: the same picks and the same bits, or no certificate."""
    picks = np.asarray(stop.picks, dtype=np.int64)
    rest, shuffle = np.setdiff1d(np.arange(member.prefix, len(data)), picks), np.random.default_rng(len(data))
    others = shuffle.permutation(rest)[:_OTHERS]
    again = Run.to_stop(learner, data, member, shuffle.permutation(np.concatenate([picks, others])))
    stopped = again.stop()
    if stopped.picks != stop.picks or stopped.weights != stop.weights:
        what = "picked other examples" if stopped.picks != stop.picks else "ended in other weights"
        raise NotReproduced(
            f"no certificate: run again on the {len(stop.picks)} picks and {len(others)} others, the learner {what}. "
            "It must depend on the examples it is given alone: fix its seeds, score in evaluation mode, in chunks of "
            "one shape, and look at no other candidate"
        )
    return again.state


def _consistent(certificate: PredictorCertificate) -> str | None:
    member, facts = Member.from_json(certificate.taken), certificate.facts
    examples, picks = certificate.evidence["data"]["examples"], certificate.evidence["picks"]
    if len(set(picks)) != len(picks) or any(place >= examples for place in picks):
        return f"the picks are not different places of the {examples} examples"
    if certificate.statement != member.statement or len(picks) != member.stop:
        return f"the alternative taken is one of {member.statement} and stops at {member.stop} picks"
    if facts != (expected := _facts(member, facts["errors"], examples)):
        return f"the facts are not those of the alternative taken, which are {expected}"
    return None


def _holdout(certificate: PredictorCertificate) -> str | None:
    if any(entry["batches"] for entry in certificate.alternatives):
        return "holdout picks no examples: a list with picks is method p2l"
    return _consistent(certificate)


def _establish(certificate: PredictorCertificate, data: Any, learner_of: Callable[[Mapping[str, Any]], Any]) -> str:
    rerun(learner_of(certificate.evidence["recipe"]), data, certificate)
    picks = len(certificate.evidence["picks"])
    what = f"the same {picks} picks" if picks else "the same split"
    return f"trained again on these examples: {what}, the same errors, weights equal to the bit"


@dataclass(frozen=True)
class _Evidence(EvidenceHere):
    picks: tuple[Count, ...]


METHODS.register(Method("holdout", (H,), "trained on the prefix", _Evidence, Member.from_json, _holdout, _establish))
_PICKED = "trained on the prefix and the picks"
METHODS.register(Method("p2l", (H, G10R), _PICKED, _Evidence, Member.from_json, _consistent, _establish))
