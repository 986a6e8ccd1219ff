"""Certificates of what a trial's data teach: every method on one bench, for `train`, `sweep` and figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boundcalc.base import validate
from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError, InvalidSetting

if TYPE_CHECKING:
    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.pickers import ModelLearner
    from boundcalc.lab.train.trial import Trial
    from boundcalc.predictors.certificate import PredictorCertificate
    from boundcalc.predictors.data import Data
    from boundcalc.predictors.rules.certify import StoredNetwork

Tell = Callable[[str, Mapping[str, Any] | str], None]
"""Receives the method and how far it is."""


@dataclass(frozen=True)
class Asked:
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
        return {"method": self.method, "delta": self.delta, "prefix": self.prefix}


@dataclass(frozen=True)
class Made:
    """What came of it.

    Attributes:
        asked: the request.
        certificate: None where it was refused.
        entry: one entry of `certificates` in the JSON of commands, without the file.
        network: the weights that a rule was proved of; workers do not hand them back.
    """

    asked: Asked
    certificate: PredictorCertificate | None
    entry: Mapping[str, Any]
    network: StoredNetwork | None = None

    def to_json(self) -> dict[str, Any]:
        """As workers hand it back."""
        certificate = None if self.certificate is None else self.certificate.to_json()
        return {"asked": self.asked.to_json(), "certificate": certificate, "entry": dict(self.entry)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Made:
        """What a worker handed back; the certificate is read as strictly as a file."""
        from boundcalc.predictors.certificate import PredictorCertificate

        certificate = None if data["certificate"] is None else PredictorCertificate.from_json(data["certificate"])
        return cls(Asked(**data["asked"]), certificate, data["entry"])


@dataclass
class Bench:
    """One trial's examples, and what several methods share.

    Attributes:
        trial: the task, the model, how it is trained.
        asked: what is to be made.
        tell: receives how far it is.
        resume: where an unfinished run of picks is kept.
    """

    trial: Trial
    asked: Asked
    tell: Tell | None = None
    resume: Path | None = None

    @cached_property
    def data(self) -> Data:
        """The training examples."""
        return examples_of(self.trial)[0]

    @cached_property
    def test(self) -> Data:
        """Fresh examples."""
        return examples_of(self.trial)[1]

    @cached_property
    def learner(self) -> ModelLearner:
        """What trains the trial's model from picks."""
        from boundcalc.lab.train.pickers import learner_of

        return learner_of(self.trial)

    @cached_property
    def network(self) -> ModelNetwork:
        """The trial's model as a function of its weights."""
        from boundcalc.lab.train.network import ModelNetwork

        return ModelNetwork.of(self.trial)

    @cached_property
    def trained(self) -> StoredNetwork:
        """The trial's network as plain training gives it."""
        return trained_network(self.trial)

    def progress(self, state: Mapping[str, Any] | str) -> None:
        """Pass on how far it is."""
        if self.tell is not None:
            self.tell(self.asked.method, state)

    @property
    def prefix(self) -> int:
        """Examples to start from."""
        return int(self.asked.prefix * len(self.data))

    def starts_from_none(self) -> None:
        """Refuse a prefix."""
        if self.asked.prefix:
            raise InvalidSetting(
                f"{self.asked.method} learns from all examples and starts from none: leave --prefix out"
            )


def examples_of(trial: Trial) -> tuple[Data, Data]:
    """A trial's training and test examples."""
    from boundcalc.lab.train.data import Examples
    from boundcalc.lab.train.device import torch_device
    from boundcalc.predictors.data import Data

    if trial.online:
        raise InvalidSetting("certificates need a training sample: give --m above 0")
    examples = Examples(trial, torch_device(trial.device))
    assert examples.train is not None  # noqa: S101 - the trial is not online
    (x, y), (x_test, y_test) = examples.train, examples.test
    return Data(x.cpu().numpy(), y.cpu().numpy()), Data(x_test.cpu().numpy(), y_test.cpu().numpy())


def wanted(methods: Iterable[str]) -> list[str]:
    """Names of methods in their order; "all" is all of them."""
    named = set(methods)
    return [name for name in METHODS if name in named or "all" in named]


def certify_trial(
    trial: Trial,
    plans: Sequence[Asked],
    *,
    tell: Tell | None = None,
    resume: Callable[[str], Path | None] = lambda _: None,
    done: Callable[[Made], None] = lambda _: None,
) -> list[Made]:
    """One certificate, or why there is none, for everything that is asked; `done` is called after each.

    Args:
        trial: whose data, model and optimisation.
        plans: the requests.
        tell: receives how far a method is.
        resume: where a method keeps an unfinished run, by its name.
        done: given each as it is made.
    """
    found: list[Made] = []
    bench: Bench | None = None
    for asked in plans:
        if bench is None:
            bench = Bench(trial, asked, tell, resume(asked.method))
            examples_of(trial)  # what cannot be had at all is no matter of one method
        bench.asked, bench.resume = asked, resume(asked.method)
        started = time.process_time()
        try:
            certificate, error = _MAKE[asked.method](bench)
        except BoundcalcError as refusal:
            made = Made(asked, None, {"method": asked.method, "risk": None, "refused": str(refusal)})
        else:
            seconds = round(time.process_time() - started, 2)
            test_error = error(bench.test) if len(bench.test) else None
            summary = {**certificate.summary(), "test_error": test_error, "cpu_seconds": seconds}
            made = Made(asked, certificate, summary | _explained(certificate), bench.__dict__.get("trained"))
        found.append(made)
        done(made)
    return found


def _explained(certificate: PredictorCertificate) -> dict[str, Any]:
    """What a certificate by a rule says besides its number."""
    if certificate.method != "rule":
        return {}
    from boundcalc.predictors.rules.certify import facts_of_rule

    return facts_of_rule(certificate)


_Error = Callable[[Any], float]


def _missed(scorer: Any, state: Any) -> _Error:
    """Share of examples that a predictor gets wrong."""
    return lambda test: count_wrong(scorer.scores(state, test), len(test)) / len(test)


def _holdout(bench: Bench) -> tuple[PredictorCertificate, _Error]:
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_splits, shared, splits

    members = default_splits(len(bench.data), bench.asked.delta, seed=bench.trial.seed)
    if bench.asked.prefix:
        members = shared(splits([max(1, bench.prefix)], seed=bench.trial.seed), bench.asked.delta)
    return _picked(bench, pick_to_learn, members)


def _p2l(bench: Bench) -> tuple[PredictorCertificate, _Error]:
    from boundcalc.predictors.picking import pick_to_learn
    from boundcalc.predictors.plans import default_picks

    prefix = bench.prefix if bench.asked.prefix else None
    members = default_picks(len(bench.data), bench.asked.delta, prefix=prefix, seed=bench.trial.seed)
    return _picked(bench, pick_to_learn, members)


def _picked(bench: Bench, pick_to_learn: Any, members: Any) -> tuple[PredictorCertificate, _Error]:
    method, delta = bench.asked.method, bench.asked.delta
    made = pick_to_learn(
        bench.learner, bench.data, members, delta, method=method, progress=bench.progress, resume=bench.resume
    )
    return made.certificate, _missed(bench.learner, made.state)


def _occam(bench: Bench) -> tuple[PredictorCertificate, _Error]:
    from boundcalc.lab.train.occam import search

    bench.starts_from_none()
    made = search(bench.network, bench.data, bench.asked.delta, seed=bench.trial.seed, progress=bench.progress)
    return made.certificate, _missed(bench.network, made.state)


def _pac_bayes(bench: Bench) -> tuple[PredictorCertificate, _Error]:
    from boundcalc.lab.train.pac_bayes import PosteriorRule, train_posterior
    from boundcalc.predictors.pac_bayes import certify_draws

    bench.starts_from_none()
    found = train_posterior(bench.network, bench.data, seed=bench.trial.seed, progress=bench.progress)
    made = certify_draws(bench.network, found.prior, found.laws, bench.data, bench.asked.delta, PosteriorRule().draws)
    return made.certificate, _missed(bench.network, made.state)


def _rule(bench: Bench) -> tuple[PredictorCertificate, _Error]:
    from boundcalc.predictors.rules.certify import certificate_of
    from boundcalc.predictors.rules.search import explain, follow
    from boundcalc.predictors.rules.tables import tables_of

    network, data, prefix = bench.trained, bench.data, bench.prefix
    tables = tables_of(network.architecture, network.weights)
    if prefix:
        learner = bench.learner
        first = data.take(range(prefix))
        weights = learner.weights(learner.fit(learner.start(bench.trial.seed), first, prefix))
        read_off = explain(tables_of(network.architecture, weights), first.x, first.y, progress=bench.progress).rule
        found = follow(tables, read_off, progress=bench.progress)
    else:
        found = explain(tables, data.x, data.y, progress=bench.progress)
    made = certificate_of(network, found, data, bench.asked.delta, prefix=prefix)
    return made, _missed(bench.network, network.weights)


def trained_network(trial: Trial) -> StoredNetwork:
    """What training a trial alone gives, as its file has it."""
    from boundcalc.lab.train.own_row import with_own_row
    from boundcalc.lab.train.trainer import train
    from boundcalc.predictors.rules.certify import StoredNetwork

    weights = {name: value.cpu().numpy() for name, value in train([trial])[0].weights.items()}
    return StoredNetwork(with_own_row(trial.architecture, trial.task.shape), weights, trial.to_json())


_MAKE: Mapping[str, Callable[[Bench], tuple[PredictorCertificate, _Error]]] = {
    "holdout": _holdout,
    "p2l": _p2l,
    "occam": _occam,
    "pac-bayes": _pac_bayes,
    "rule": _rule,
}
METHODS = tuple(_MAKE)
"""What a trial can be certified by."""
