"""Running a sweep: what is missing, in stacks, into the store as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from boundcalc.base.progress import Progress
from boundcalc.lab.train.backends import Where, spread
from boundcalc.lab.train.certify import Asked, Made, certify_trial
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.sweep import Sweep, missing
from boundcalc.lab.train.trial import Trial, canonical

_STACK = 10
"""Trials trained as one tensor program: on a CPU, between 4 and 16 are about as quick."""


@dataclass
class Ran:
    """What was there, and what was made of the rest."""

    total: int
    present: int
    added: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list[str])


@dataclass
class Trained(Ran):
    """What training a sweep did."""

    diverged: int = 0


@dataclass
class Certified(Ran):
    """What certifying a sweep did."""

    refused: int = 0


def _elsewhere(
    stacks: Sequence[Sequence[Trial]], where: Where, options: Any, shown: Progress, ran: Ran
) -> Generator[tuple[int, Mapping[str, Any] | None], None, None]:
    """What workers hand back, by the number of the stack; None for an error, which is noted.

    It is to be closed: workers go when something goes wrong here.
    """
    with closing(spread(stacks, where, options, shown.note)) as results:
        for number, found in results:
            if "error" in found:
                ran.errors.append(f"{_named(stacks[number])}: {found['error']}")
                shown.note(ran.errors[-1])
            yield number, None if "error" in found else found


def _named(stack: Sequence[Trial]) -> str:
    count = f"{len(stack)} trials like" if len(stack) > 1 else "trial"
    return f"{count} {stack[0].hash[:12]}"


def stacks_of(trials: Sequence[Trial], size: int) -> list[list[Trial]]:
    """Trials that may share a stack, at most `size` of them, of similar m; the costly stacks first."""
    from boundcalc.lab.train.trainer import stack_key

    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(stack_key(trial), []).append(trial)
    stacks: list[list[Trial]] = []
    for group in groups.values():
        group.sort(key=lambda trial: (trial.m, trial.seed, trial.hash))
        stacks += [group[start : start + size] for start in range(0, len(group), size)]
    return sorted(stacks, key=_cost, reverse=True)


def _cost(stack: Sequence[Trial]) -> float:
    """A rough cost, good enough to order stacks and to guess what is left."""
    first = stack[0]
    rows = first.architecture.seq_len
    rule = first.optimisation
    per_step = rows * 1.0 + first.batch * (rows * 0.3 + 30)
    return sum(per_step * max(1, trial.m) ** 0.5 for trial in stack) * min(rule.steps, 500)


def run_sweep(
    sweep: Sweep,
    store: Store,
    *,
    where: Where | None = None,
    stack: int = _STACK,
    keep_weights: bool = False,
    compiled: bool = False,
    progress: Progress | None = None,
) -> Trained:
    """Train what the store does not have; every finished trial is stored at once."""
    where = where or Where()
    shown = progress or Progress()
    started = time.monotonic()
    present = store.hashes()
    todo = missing(sweep.trials, present)
    ran = Trained(len(sweep.trials), len(sweep.trials) - len(todo))
    store.enrol(sweep.name, [trial.hash for trial in sweep.trials if trial.hash in present])
    shown.begin(ran.present, ran.total)
    stacks = stacks_of(todo, stack)
    costs = [_cost(each) for each in stacks]
    finished = 0.0

    def keep(trial: Trial, result: Mapping[str, Any], weights: Mapping[str, Any] | None) -> None:
        ran.added += store.add(trial, result, sweep=sweep.name, weights=weights)
        ran.diverged += result["status"] == "diverged"
        done = finished / max(sum(costs), 1e-9)
        spent = time.monotonic() - started
        shown.advance(1, ran.present + ran.added, ran.total, spent / done * (1 - done) if done > 0.02 else None)

    common = {"threads": where.threads, "keep_weights": keep_weights, "compiled": compiled}
    if where.here:
        for each, cost in zip(stacks, costs, strict=True):
            _train_here(each, store, common, keep, ran)
            finished += cost
    else:
        with closing(_elsewhere(stacks, where, common, shown, ran)) as results:
            for number, found in results:
                finished += costs[number]
                if found is not None:
                    for each in zip(stacks[number], found["results"], found["weights"], strict=True):
                        keep(*each)
    ran.seconds = time.monotonic() - started
    return ran


def _train_here(
    trials: Sequence[Trial], store: Store, options: Mapping[str, Any], keep: Callable[..., None], ran: Ran
) -> None:
    """In this process each trial is stored when it is finished, not when its stack is."""
    import torch

    from boundcalc.base.errors import BoundcalcError
    from boundcalc.lab.train.trainer import Outcome, train

    torch.set_num_threads(options["threads"])
    held = store.hashes()  # another sweep may have been quicker
    left = [trial for trial in trials if trial.hash not in held]
    ran.present += len(trials) - len(left)
    if not left:
        return

    def done(outcome: Outcome) -> None:
        keep(outcome.trial, outcome.result, outcome.arrays if options["keep_weights"] else None)

    try:
        train(left, compiled=options["compiled"], on_done=done)
    except BoundcalcError:
        raise
    except (RuntimeError, MemoryError) as error:
        ran.errors.append(f"{_named(left)}: {type(error).__name__}: {error}")


def certify_sweep(
    trials: Sequence[Trial],
    store: Store,
    plans: Sequence[Asked],
    *,
    where: Where | None = None,
    progress: Progress | None = None,
) -> Certified:
    """Everything asked of every trial that the store does not have; each certificate is stored as it is made."""
    where = where or Where()
    shown = progress or Progress()
    started = time.monotonic()
    held = store.certified()
    todo: list[tuple[Trial, list[Asked]]] = []
    for trial in trials:
        asked = [plan for plan in plans if (trial.hash, canonical(plan.to_json())) not in held]
        if asked:
            todo.append((trial, asked))
    todo.sort(key=lambda pair: -pair[0].m)
    total = len(trials) * len(plans)
    ran = Certified(total, total - sum(len(asked) for _, asked in todo))
    shown.begin(ran.present, total, "certificates")

    def keep(trial: Trial, made: Made) -> None:
        store.add_certificate(made, trial.hash)
        ran.added += 1
        ran.refused += made.certificate is None
        left = (total - ran.present - ran.added) * (time.monotonic() - started) / ran.added
        shown.advance(1, ran.present + ran.added, total, left)

    if where.here:
        import torch

        torch.set_num_threads(where.threads)
        for trial, asked in todo:
            certify_trial(trial, asked, done=lambda made, trial=trial: keep(trial, made))
    else:
        options = [{"threads": where.threads, "certify": [[one.to_json() for one in asked]]} for _, asked in todo]
        with closing(_elsewhere([[trial] for trial, _ in todo], where, options, shown, ran)) as results:
            for number, found in results:
                for made in found["certificates"][0] if found is not None else ():
                    keep(todo[number][0], Made.from_json(made))
    ran.seconds = time.monotonic() - started
    return ran
