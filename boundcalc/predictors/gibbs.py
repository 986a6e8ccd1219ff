"""PAC-Bayes as it is usually meant (G6): weights drawn anew for every answer; the draws that estimate its errors are paid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import upper_float
from boundcalc.predictors.certificate import METHODS, Method, PredictorCertificate, issue, object_of
from boundcalc.predictors.data import Data
from boundcalc.predictors.examples import readers, refuse_other_examples, told
from boundcalc.predictors.occam import Network
from boundcalc.predictors.pac_bayes import (
    LatticeLaw,
    Prior,
    draw_weights,
    law_divergence,
    of_another_size,
    posterior_of,
)
from boundcalc.predictors.statements import G6
from boundcalc.predictors.statements.base import positive_count, real


@dataclass(frozen=True, slots=True)
class Estimate:
    """How the posterior's training error is estimated; fixed beforehand.

    Attributes:
        draws: of weights.
        tested: examples that each draw answers (all, where there are fewer).
        sampling: the share of delta that the estimate may fail with.
    """

    draws: int = 600
    tested: int = 256
    sampling: float = 0.2

    def places(self, draw: int, n: int) -> Any:
        """Which examples a draw answers: a matter of its number alone."""
        if self.tested >= n:
            return np.arange(n)
        return np.random.Generator(np.random.PCG64([draw, n])).permutation(n)[: self.tested]


@dataclass(frozen=True)
class Mixed:
    """A certificate and the posterior it is about.

    Attributes:
        certificate: the claim.
        state: the posterior's laws, in steps of the prior's lattice.
        prior: whose reference the draws are around.
    """

    certificate: PredictorCertificate
    state: tuple[LatticeLaw, ...]
    prior: Prior

    def error(self, network: Network, examples: Data, draws: int = 100) -> float:
        """The share of wrong answers on examples, over draws that the certificate did not use."""
        if not len(examples):
            return 0.0
        return _errors(network, self.prior, self.state, examples, Estimate(draws, min(1000, len(examples))), "fresh")[1]


def certify_mixture(
    network: Network,
    prior: Prior,
    posterior: Sequence[LatticeLaw],
    data: Data,
    delta: float,
    estimate: Estimate | None = None,
) -> Mixed:
    """The certificate of a posterior whose every answer is given by weights drawn anew."""
    estimate = estimate or Estimate()
    errors, _ = _errors(network, prior, posterior, data, estimate, "mixture")
    certificate = issue(
        "gibbs",
        "G6",
        {
            "errors": errors,
            "n": len(data),
            "draws": estimate.draws,
            "tested": min(estimate.tested, len(data)),
            "sampling": estimate.sampling,
            "nats": _nats(prior, posterior),
        },
        delta=delta,
        alternatives=(
            {
                **prior.to_json(),
                "draws": estimate.draws,
                "tested": estimate.tested,
                "sampling": estimate.sampling,
                "delta": delta,
            },
        ),
        chosen=0,
        evidence=told(data, network, posterior=[[law.centre, law.deviation] for law in posterior]),
    )
    return Mixed(certificate, tuple(posterior), prior)


def _errors(
    network: Network, prior: Prior, posterior: Sequence[LatticeLaw], data: Data, estimate: Estimate, what: str
) -> tuple[int, float]:
    """Wrong answers of all draws together, and their share."""
    wrong = total = 0
    for draw in range(estimate.draws):
        some = data.take(estimate.places(draw, len(data)))
        weights = prior.weights(draw_weights(posterior, draw, what), network.checkpoint)
        wrong += count_wrong(network.scores(weights, some), len(some))
        total += len(some)
    return wrong, wrong / total


def _nats(prior: Prior, posterior: Sequence[LatticeLaw]) -> float:
    total = arb(0)
    for mine, other in zip(posterior, prior.laws, strict=True):
        total = total + law_divergence(mine, other)
    return max(0.0, upper_float(total))


def _alternative(entry: Mapping[str, Any]) -> tuple[Prior, Estimate]:
    names = ("draws", "tested", "sampling")
    raw = object_of("an alternative", entry, ("tensors", "checkpoint", "seed", "groups", "exponent", *names))
    prior = Prior.from_json({name: value for name, value in raw.items() if name not in names})
    draws, tested = (positive_count(name, raw[name]) for name in names[:2])
    return prior, Estimate(draws, tested, real("sampling", raw["sampling"]))


def _taken(certificate: PredictorCertificate) -> tuple[Prior, Estimate]:
    return _alternative(certificate.taken)


def _consistent(certificate: PredictorCertificate) -> str | None:
    prior, estimate = _taken(certificate)
    if (other := of_another_size(certificate, prior)) is not None:
        return other
    facts = certificate.facts
    asked = {"draws": estimate.draws, "tested": min(estimate.tested, facts["n"]), "sampling": estimate.sampling}
    for name, value in asked.items():
        if facts[name] != value:
            return f"{name} {facts[name]!r} in the facts, {value!r} were fixed beforehand"
    return None


def _establish(certificate: PredictorCertificate, data: Any, network_of: Callable[[Mapping[str, Any]], Any]) -> str:
    evidence = certificate.evidence
    refuse_other_examples(certificate, data)
    prior, estimate = _taken(certificate)
    posterior = posterior_of("posterior", evidence["posterior"])
    nats, claimed = _nats(prior, posterior), certificate.facts["nats"]
    if not nats <= claimed <= nats + 1e-9 * max(1.0, nats):
        raise CertificateError(f"the divergence from the prior is {nats!r}, {claimed!r} is claimed")
    errors, _ = _errors(network_of(evidence["recipe"]), prior, posterior, data, estimate, "mixture")
    if errors != certificate.facts["errors"]:
        raise CertificateError(f"{errors} wrong answers are counted, {certificate.facts['errors']} are claimed")
    return f"the same divergence; {estimate.draws} draws answered again: {errors} errors"


GIBBS = METHODS.ours(
    Method(
        "gibbs",
        (G6,),
        "drawn anew for every answer",
        readers(posterior=posterior_of),
        _alternative,
        _consistent,
        _establish,
    )
)
