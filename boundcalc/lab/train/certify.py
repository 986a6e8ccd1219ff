"""Certificates of what a trial's data teach, by every method, for `train`, `sweep` and figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting
from boundcalc.lab.train import _occam as occam
from boundcalc.lab.train import _pac_bayes as pac_bayes
from boundcalc.lab.train._data import Examples
from boundcalc.lab.train.network import ModelNetwork
from boundcalc.lab.train.pickers import ModelLearner
from boundcalc.lab.train.trainer import train
from boundcalc.lab.train.trial import Request, Trial
from boundcalc.predictors.certificate import Certified, PredictorCertificate
from boundcalc.predictors.data import Data
from boundcalc.predictors.pac_bayes import certify_draws
from boundcalc.predictors.picking import pick_to_learn
from boundcalc.predictors.plans import default_picks, default_splits
from boundcalc.predictors.rules.certify import StoredNetwork, certificate_of, facts_of_rule
from boundcalc.predictors.rules.search import explain
from boundcalc.predictors.rules.tables import tables_of

Tell = Callable[[str, Mapping[str, Any] | str], None]
"""Receives the method and how far it is."""


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
    examples = Examples(trial)
    if examples.train is None:
        raise InvalidSetting("certificates need a training sample: give --m above 0")
    (x, y), (x_test, y_test) = examples.train, examples.test
    return Data(x.numpy(), y.numpy()), Data(x_test.numpy(), y_test.numpy())


def certify_trial(trial: Trial, requests: Sequence[Request], *, tell: Tell = lambda *_: None) -> Iterator[Issued]:
    """One certificate, or why there is none, for every request, as they are made; `tell` receives how far each is."""
    if not requests:
        return
    data, test = examples_of(trial)
    for request in requests:
        method, started = request.method, time.process_time()
        try:
            issued, scorer, facts = _certify(trial, request, data, partial(tell, method))
        except BoundcalcError as refusal:
            yield Issued(request, None, {"method": method, "risk": None, "refused": str(refusal)})
            continue
        measured = {
            "test_error": count_wrong(scorer.scores(issued.state, test), len(test)) / len(test),
            "cpu_seconds": round(time.process_time() - started, 2),
        }
        network = _stored(trial, issued.state) if method == "rule" else None
        yield Issued(request, issued.certificate, {**issued.certificate.summary(), **measured, **facts}, network)


def _certify(
    trial: Trial, request: Request, data: Data, progress: Callable[[Any], None]
) -> tuple[Certified, Any, Mapping[str, Any]]:
    """A certificate and its predictor's state, what scores fresh examples with the state, and more facts."""
    method, delta, seed, network = request.method, request.delta, trial.seed, ModelNetwork.of(trial)
    if method in ("holdout", "p2l"):
        learner = ModelLearner.of(trial)
        plan = (default_picks if method == "p2l" else default_splits)(len(data), seed=seed)
        return pick_to_learn(learner, data, plan, delta, progress=progress), learner, {}
    if method == "occam":
        return occam.search(network, data, delta, seed=seed), network, {}
    if method == "pac-bayes":
        prior, laws = pac_bayes.train_posterior(network, data, seed=seed)
        return certify_draws(network, prior, laws, data, delta, pac_bayes.DRAWS), network, {}
    stored, prefix = trained_network(trial), int(request.prefix * len(data))
    tables = tables_of(stored.architecture, stored.weights)
    if prefix:
        learner, first = ModelLearner.of(trial), data.take(range(prefix))
        weights = learner.weights(learner.fit(learner.start(seed), first, prefix))
        rule = explain(tables_of(stored.architecture, weights), first.x, progress=progress).rule
        explained = explain(tables, rule=rule, progress=progress)
    else:
        explained = explain(tables, data.x, progress=progress)
    certificate = certificate_of(stored, explained, data, delta, prefix=prefix)
    return Certified(certificate, stored.weights), network, facts_of_rule(certificate)


def trained_network(trial: Trial) -> StoredNetwork:
    """What training a trial alone gives, as its file has it."""
    return _stored(trial, train([trial])[0].arrays)


def _stored(trial: Trial, weights: Mapping[str, Any]) -> StoredNetwork:
    return StoredNetwork(trial.model, weights, trial.to_json())
