"""Pick-to-Learn: learn from few picked examples, answer for all others; holdout is the case without picks.

A run is a function of the candidates' set alone (their places in the data's order break ties), so a replay on a part of
them that holds the picks must pick the same and end in the same bits; a certificate is issued only then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import numpy as np

from boundcalc.base.errors import BoundcalcError, CertificateError, InvalidSetting
from boundcalc.base.schema import write
from boundcalc.predictors.certificate import (
    METHODS,
    Certified,
    Method,
    PredictorCertificate,
    issue,
    plain,
    sha256_text,
)
from boundcalc.predictors.data import Data, evidence_of, fixed_order, named, readers
from boundcalc.predictors.plans import Member
from boundcalc.predictors.runs import Learner, Run, Saved, Stop
from boundcalc.predictors.statements import G10R, STATEMENTS, H, count

_Progress = Callable[[Mapping[str, Any]], None]

_OTHERS = 64
"""Examples besides the picks that a replay meets."""


class NotReproduced(BoundcalcError):
    """A learner that gave something else when it was run again: nothing can be certified."""


def pick_to_learn(
    learner: Learner,
    data: Data,
    members: Sequence[Member],
    delta: float,
    *,
    method: str = "p2l",
    progress: _Progress | None = None,
    resume: Path | None = None,
) -> Certified:
    """Run Pick-to-Learn: the best certificate of a list of members that share delta.

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
    saved = Saved(resume, learner, ordered, members, delta)
    best: tuple[float, int, Stop] | None = None
    for run, indices in _runs(members).items():
        for index, stop in _stops_of(learner, ordered, run, indices, members, saved, progress, best):
            risk = _risk(members[index], stop, len(data))
            if best is None or risk < best[0]:
                best = risk, index, stop
    if best is None:
        raise InvalidSetting("no member of the plan can certify a risk below 1, even without errors: plan fewer picks")
    _, index, stop = best
    member = members[index]
    state = _replay(learner, ordered, member, stop)
    saved.remove()
    certificate = issue(
        method,
        member.statement,
        _facts(member, stop, len(data)),
        delta=delta,
        alternatives=tuple(write(other, complete=True) for other in members),
        chosen=index,
        evidence=evidence_of(data, learner, picks=[int(places[place]) for place in stop.picks], weights=stop.weights),
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
    if plain(learner.recipe) != evidence["recipe"]:
        raise NotReproduced("the learner's recipe is not that of the certificate")
    member = Member.from_json(certificate.taken)
    places = fixed_order(len(data))
    run = Run(learner, data.take(places), member.prefix, member.seed, np.arange(member.prefix, len(data)))
    _finish(run, member)
    stop = run.stop()
    differs: list[str] = []
    if [int(places[place]) for place in stop.picks] != list(evidence["picks"]):
        differs.append("other examples are picked")
    if stop.wrong != certificate.facts["errors"]:
        differs.append(f"{stop.wrong} errors, not {certificate.facts['errors']}")
    if stop.weights != evidence["weights"]:
        differs.append("the weights are not equal to the bit")
    if differs:
        here, there = plain(learner.environment), evidence["environment"]
        names = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
        why = f" (here {', '.join(names)} differ: run it here and issue a certificate of its own)" if names else ""
        raise NotReproduced(f"trained again, {' and '.join(differs)}{why}")
    return run.state


def _runs(members: Sequence[Member]) -> dict[tuple[int, int, int], list[int]]:
    """Members by trajectory, in the order of the list: stops of one run have batches that begin alike."""
    groups: dict[tuple[int, int, int], list[int]] = {}
    for index in sorted(range(len(members)), key=lambda i: len(members[i].batches)):
        member = members[index]
        for number in range(len(members) + 1):
            key = (*member.run, number)
            last = members[groups[key][-1]].batches if key in groups else ()
            if member.batches[: len(last)] == last:
                groups.setdefault(key, []).append(index)
                break
    return dict(sorted(groups.items(), key=lambda pair: min(pair[1])))


def _stops_of(
    learner: Learner,
    data: Data,
    run: tuple[int, int, int],
    indices: Sequence[int],
    members: Sequence[Member],
    saved: Saved,
    progress: _Progress | None,
    best: tuple[float, int, Stop] | None,
) -> Iterable[tuple[int, Stop]]:
    """The stops of one trajectory as they are reached.

    Later stops are left out where not even no errors left would make them the best: what is not computed is not
    claimed.
    """
    prefix, seed, _ = run
    least = 1.0 if best is None else best[0]
    n = len(data) - prefix
    floors = {index: _floor(members[index], n, len(data)) for index in indices}
    if all(floor >= least for floor in floors.values()):
        return
    name = json.dumps(list(run))
    wanted = {members[index].stop for index in indices}
    trajectory = saved.load(name, learner, data, prefix, seed)
    if trajectory is None:
        trajectory = Run(learner, data, prefix, seed, np.arange(prefix, len(data)))

    def report() -> None:
        if len(trajectory.picks) in wanted:
            trajectory.stop()
        saved.keep(name, trajectory)
        if progress is not None:
            picked, wrong = len(trajectory.picks), trajectory.wrong
            progress({"prefix": prefix, "seed": seed, "picks": picked, "wrong": wrong, "others": len(trajectory.left)})

    report()
    for place, index in enumerate(indices):
        if all(floors[later] >= least for later in indices[place:]):
            return
        member = members[index]
        sums = [0, *accumulate(member.batches)]
        while len(trajectory.picks) < member.stop:  # a run that was taken up again may be past this stop already
            trajectory.round(member.batches[sums.index(len(trajectory.picks))])
            report()
        stop = trajectory.stops[member.stop]
        least = min(least, _risk(member, stop, len(data)))
        yield index, stop


def _floor(member: Member, n: int, m: int) -> float:
    """The member's bound if no error were left."""
    return _risk(member, Stop(tuple(range(member.stop)), 0, n - member.stop, ""), m)


def _risk(member: Member, stop: Stop, m: int) -> float:
    return STATEMENTS[member.statement].risk(_facts(member, stop, m), member.delta)


def _facts(member: Member, stop: Stop, m: int) -> dict[str, Any]:
    n, picks = m - member.prefix, len(stop.picks)
    if not picks:
        return {"errors": stop.wrong, "n": n}
    return {"errors": stop.wrong, "n": n, "picks": picks, "references": member.references}


def _finish(run: Run, member: Member) -> None:
    """Run to the member's stop."""
    for size in member.batches:
        run.round(size)


def _replay(learner: Learner, data: Data, member: Member, stop: Stop) -> Any:
    """Run again on the picks and some others, shuffled: the same picks and the same bits, or no certificate."""
    rest = np.setdiff1d(np.arange(member.prefix, len(data)), np.asarray(stop.picks, dtype=np.int64))
    shuffle = np.random.Generator(np.random.PCG64(len(data)))
    others = shuffle.permutation(rest)[:_OTHERS]
    mixed = shuffle.permutation(np.concatenate([np.asarray(stop.picks, dtype=np.int64), others]))
    again = Run(learner, data, member.prefix, member.seed, mixed)
    _finish(again, member)
    stopped = again.stop()
    if stopped.picks != stop.picks or stopped.weights != stop.weights:
        what = "picked other examples" if stopped.picks != stop.picks else "ended in other weights"
        raise NotReproduced(
            f"no certificate: run again on the {len(stop.picks)} picks and {len(others)} others, the learner {what}. "
            "It must depend on the examples it is given alone: fix its seeds, score in evaluation mode, in chunks of "
            "one shape, and look at no other candidate"
        )
    return again.state


def _picks(name: str, value: object) -> list[int]:
    if not isinstance(value, list):
        raise CertificateError(f"{name} must be a list of places in the data, got {value!r}")
    picks = [count("a pick", place) for place in cast("list[object]", value)]
    if len(set(picks)) != len(picks):
        raise CertificateError("an example is picked twice")
    return picks


_EVIDENCE = readers(picks=_picks, weights=sha256_text)


def _consistent(certificate: PredictorCertificate) -> str | None:
    member = Member.from_json(certificate.taken)
    examples, picks = certificate.evidence["data"]["examples"], certificate.evidence["picks"]
    facts = certificate.facts
    if facts["n"] != examples - member.prefix:
        return f"{facts['n']} candidates, but {examples} examples without a prefix of {member.prefix} are others"
    if any(place >= examples for place in picks):
        return f"a pick lies beyond the {examples} examples"
    if facts.get("picks", 0) != len(picks):
        return f"{facts.get('picks', 0)} picks in the facts, {len(picks)} in the evidence"
    if certificate.statement != member.statement:
        return f"the alternative taken is one of {member.statement}, not of {certificate.statement}"
    if len(picks) != member.stop:
        return f"{len(picks)} picks, but the alternative taken stops at {member.stop}"
    if "references" in facts and member.batches and tuple(facts["references"]) != member.references:
        return "the references are not those of the alternative taken"
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


METHODS.register_builtin(
    Method("holdout", (H,), "trained on the prefix", _EVIDENCE, Member.from_json, _holdout, _establish)
)
METHODS.register_builtin(
    Method(
        "p2l",
        (H, G10R),
        "trained on the prefix and the picks",
        _EVIDENCE,
        Member.from_json,
        _consistent,
        _establish,
    )
)
