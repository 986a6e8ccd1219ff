"""Certificates of what a trial's data teach, by every method, for `train`, `sweep` and figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boundcalc.base import validate
from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting

if TYPE_CHECKING:
    from boundcalc.lab.train.trial import Trial
    from boundcalc.predictors.certificate import PredictorCertificate
    from boundcalc.predictors.data import Data
    from boundcalc.predictors.rules.certify import StoredNetwork

Tell = Callable[[str, Mapping[str, Any] | str], None]
"""Receives the method and how far it is."""


@dataclass(frozen=True)
class Request:
    """The request for a certificate: all that, with the trial, determines it.

    Attributes:
        method: a name of `METHODS`.
        delta: failure probability.
        prefix: share of the examples that holdout and p2l start from; 0 for their own choice.
    """

    method: str
    delta: float = 0.05
    prefix: float = 0.0

    def __post_init__(self) -> None:
        validate.choice("method", self.method, METHODS)
        validate.fraction("delta", self.delta, ends=False)
        if not 0 <= self.prefix < 1:
            raise InvalidSetting(f"--prefix is the share of the examples to start from, in [0, 1); got {self.prefix:g}")

    def to_json(self) -> dict[str, Any]:
        """As a store keeps it."""
        return asdict(self)


@dataclass(frozen=True)
class Issued:
    """The answer to a request.

    Attributes:
        request: the request.
        certificate: None where it was refused.
        entry: one entry of `certificates` in the JSON of commands, without the file.
        network: the weights that a rule was proved of; workers do not hand them back.
    """

    request: Request
    certificate: PredictorCertificate | None
    entry: Mapping[str, Any]
    network: StoredNetwork | None = None


@dataclass(frozen=True)
class _Problem:
    """What a method certifies: a trial's examples, how many of them to start from, who hears of progress."""

    trial: Trial
    request: Request
    data: Data
    progress: Callable[[Any], None]
    resume: Path | None

    @property
    def prefix(self) -> int:
        return int(self.request.prefix * len(self.data))

    def refuse_prefix(self) -> None:
        if self.request.prefix:
            name = self.request.method
            raise InvalidSetting(f"{name} learns from all examples and starts from none: leave --prefix out")


@dataclass(frozen=True)
class _Answer:
    """A certificate, and what scores fresh examples with its state."""

    certificate: PredictorCertificate
    scorer: Any
    state: Any
    network: StoredNetwork | None = None
    facts: Mapping[str, Any] | None = None


def examples_of(trial: Trial) -> tuple[Data, Data]:
    """A trial's training and test examples."""
    from boundcalc.lab.train.data import Examples
    from boundcalc.predictors.data import Data

    if trial.online:
        raise InvalidSetting("certificates need a training sample: give --m above 0")
    examples = Examples(trial)
    assert examples.train is not None  # noqa: S101 - the trial is not online
    (x, y), (x_test, y_test) = examples.train, examples.test
    return Data(x.numpy(), y.numpy()), Data(x_test.numpy(), y_test.numpy())


def wanted(methods: Iterable[str]) -> list[str]:
    """Names of methods in their order; "all" is all of them."""
    named = set(methods)
    return [name for name in METHODS if name in named or "all" in named]


def certify_trial(
    trial: Trial,
    requests: Sequence[Request],
    *,
    tell: Tell | None = None,
    resume: Callable[[str], Path | None] = lambda _: None,
    done: Callable[[Issued], None] = lambda _: None,
) -> list[Issued]:
    """One certificate, or why there is none, for every request; `done` is called after each.

    Args:
        trial: whose data, model and optimisation.
        requests: what to certify by.
        tell: receives how far a method is.
        resume: where a method keeps an unfinished run, by its name.
        done: receives each answer as it is made.
    """
    answers: list[Issued] = []
    data, test = examples_of(trial)
    for request in requests:
        progress = partial(tell or (lambda *_: None), request.method)
        started = time.process_time()
        try:
            answer = _ANSWERS[request.method](_Problem(trial, request, data, progress, resume(request.method)))
        except BoundcalcError as refusal:
            issued = Issued(request, None, {"method": request.method, "risk": None, "refused": str(refusal)})
        else:
            measured = {
                "test_error": count_wrong(answer.scorer.scores(answer.state, test), len(test)) / len(test),
                "cpu_seconds": round(time.process_time() - started, 2),
            }
            entry = {**answer.certificate.summary(), **measured, **(answer.facts or {})}
            issued = Issued(request, answer.certificate, entry, answer.network)
        answers.append(issued)
        done(issued)
    return answers


def _by_picks(problem: _Problem) -> _Answer:
    """Holdout, and Pick-to-Learn."""
    from boundcalc.lab.train.pickers import ModelLearner
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_picks, default_splits, shared, splits

    request, m, seed, prefix = problem.request, len(problem.data), problem.trial.seed, problem.prefix
    if request.method == "p2l":
        members = default_picks(m, request.delta, prefix=prefix if request.prefix else None, seed=seed)
    elif request.prefix:
        members = shared(splits([max(1, prefix)], seed=seed), request.delta)
    else:
        members = default_splits(m, request.delta, seed=seed)
    learner = ModelLearner.of(problem.trial)
    options: dict[str, Any] = {"method": request.method, "progress": problem.progress, "resume": problem.resume}
    issued = pick_to_learn(learner, problem.data, members, request.delta, **options)
    return _Answer(issued.certificate, learner, issued.state)


def _occam(problem: _Problem) -> _Answer:
    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.occam import search

    problem.refuse_prefix()
    network = ModelNetwork.of(problem.trial)
    issued = search(network, problem.data, problem.request.delta, seed=problem.trial.seed, progress=problem.progress)
    return _Answer(issued.certificate, network, issued.state)


def _pac_bayes(problem: _Problem) -> _Answer:
    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.pac_bayes import DRAWS, train_posterior
    from boundcalc.predictors.pac_bayes import certify_draws

    problem.refuse_prefix()
    network, data = ModelNetwork.of(problem.trial), problem.data
    prior, laws = train_posterior(network, data, seed=problem.trial.seed, progress=problem.progress)
    issued = certify_draws(network, prior, laws, data, problem.request.delta, DRAWS)
    return _Answer(issued.certificate, network, issued.state)


def _rule(problem: _Problem) -> _Answer:
    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.pickers import ModelLearner
    from boundcalc.predictors.rules.certify import certificate_of, facts_of_rule
    from boundcalc.predictors.rules.search import explain, follow
    from boundcalc.predictors.rules.tables import tables_of

    network, data, prefix, say = trained_network(problem.trial), problem.data, problem.prefix, problem.progress
    tables = tables_of(network.architecture, network.weights)
    if prefix:
        learner, first = ModelLearner.of(problem.trial), data.take(range(prefix))
        weights = learner.weights(learner.fit(learner.start(problem.trial.seed), first, prefix))
        rule = explain(tables_of(network.architecture, weights), first.x, first.y, progress=say).rule
        explained = follow(tables, rule, progress=say)
    else:
        explained = explain(tables, data.x, data.y, progress=say)
    certificate = certificate_of(network, explained, data, problem.request.delta, prefix=prefix)
    answers = ModelNetwork.of(problem.trial)
    return _Answer(certificate, answers, network.weights, network, facts_of_rule(certificate))


def trained_network(trial: Trial) -> StoredNetwork:
    """What training a trial alone gives, as its file has it."""
    from boundcalc.lab.train.trainer import train
    from boundcalc.predictors.rules.certify import StoredNetwork

    return StoredNetwork(trial.model, train([trial])[0].arrays, trial.to_json())


_ANSWERS: Mapping[str, Callable[[_Problem], _Answer]] = {
    "holdout": _by_picks,
    "p2l": _by_picks,
    "occam": _occam,
    "pac-bayes": _pac_bayes,
    "rule": _rule,
}
METHODS = tuple(_ANSWERS)
"""What a trial can be certified by."""
