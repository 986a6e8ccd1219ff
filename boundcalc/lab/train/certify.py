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
    from boundcalc.predictors.certificate import Certified, PredictorCertificate
    from boundcalc.predictors.data import Data
    from boundcalc.predictors.rules.certify import StoredNetwork

METHODS = ("holdout", "p2l", "occam", "pac-bayes", "rule")
"""What a trial can be certified by."""
Tell = Callable[[str, Mapping[str, Any] | str], None]
"""Receives the method and how far it is."""


@dataclass(frozen=True)
class Request:
    """The request for a certificate: all that, with the trial, determines it.

    Attributes:
        method: a name of `METHODS`.
        delta: failure probability.
        prefix: share of the examples that a rule is read off; 0 for all of them.
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
        network: the weights that a rule was proved of.
    """

    request: Request
    certificate: PredictorCertificate | None
    entry: Mapping[str, Any]
    network: StoredNetwork | None = None


def examples_of(trial: Trial) -> tuple[Data, Data]:
    """A trial's training and test examples."""
    from boundcalc.lab.train.data import Examples
    from boundcalc.predictors.data import Data

    examples = Examples(trial)
    if examples.train is None:
        raise InvalidSetting("certificates need a training sample: give --m above 0")
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
            issued, scorer, facts = _certify(trial, request, data, progress, resume(request.method))
        except BoundcalcError as refusal:
            answer = Issued(request, None, {"method": request.method, "risk": None, "refused": str(refusal)})
        else:
            measured = {
                "test_error": count_wrong(scorer.scores(issued.state, test), len(test)) / len(test),
                "cpu_seconds": round(time.process_time() - started, 2),
            }
            network = _stored(trial, issued.state) if request.method == "rule" else None
            entry = {**issued.certificate.summary(), **measured, **facts}
            answer = Issued(request, issued.certificate, entry, network)
        answers.append(answer)
        done(answer)
    return answers


def _certify(
    trial: Trial, request: Request, data: Data, progress: Callable[[Any], None], resume: Path | None
) -> tuple[Certified, Any, Mapping[str, Any]]:
    """A certificate and its predictor's state, what scores fresh examples with the state, and more facts."""
    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.pickers import ModelLearner

    method, delta, seed = request.method, request.delta, trial.seed
    if request.prefix and method != "rule":
        raise InvalidSetting(f"{method} learns from all examples: leave --prefix to rules")
    network = ModelNetwork.of(trial)
    if method in ("holdout", "p2l"):
        from boundcalc.predictors.picking import pick_to_learn
        from boundcalc.predictors.plans import default_picks, default_splits

        learner = ModelLearner.of(trial)
        plan = (default_picks if method == "p2l" else default_splits)(len(data), delta, seed=seed)
        return pick_to_learn(learner, data, plan, delta, method=method, progress=progress, resume=resume), learner, {}
    if method == "occam":
        from boundcalc.lab.train.occam import search

        return search(network, data, delta, seed=seed, progress=progress), network, {}
    if method == "pac-bayes":
        from boundcalc.lab.train.pac_bayes import DRAWS, train_posterior
        from boundcalc.predictors.pac_bayes import certify_draws

        prior, laws = train_posterior(network, data, seed=seed, progress=progress)
        return certify_draws(network, prior, laws, data, delta, DRAWS), network, {}
    from boundcalc.predictors.certificate import Certified
    from boundcalc.predictors.rules.certify import certificate_of, facts_of_rule
    from boundcalc.predictors.rules.search import explain, follow
    from boundcalc.predictors.rules.tables import tables_of

    stored, prefix = trained_network(trial), int(request.prefix * len(data))
    tables = tables_of(stored.architecture, stored.weights)
    if prefix:
        learner, first = ModelLearner.of(trial), data.take(range(prefix))
        weights = learner.weights(learner.fit(learner.start(seed), first, prefix))
        rule = explain(tables_of(stored.architecture, weights), first.x, first.y, progress=progress).rule
        explained = follow(tables, rule, progress=progress)
    else:
        explained = explain(tables, data.x, data.y, progress=progress)
    certificate = certificate_of(stored, explained, data, delta, prefix=prefix)
    return Certified(certificate, stored.weights), network, facts_of_rule(certificate)


def trained_network(trial: Trial) -> StoredNetwork:
    """What training a trial alone gives, as its file has it."""
    from boundcalc.lab.train.trainer import train

    return _stored(trial, train([trial])[0].arrays)


def _stored(trial: Trial, weights: Mapping[str, Any]) -> StoredNetwork:
    from boundcalc.predictors.rules.certify import StoredNetwork

    return StoredNetwork(trial.model, weights, trial.to_json())
