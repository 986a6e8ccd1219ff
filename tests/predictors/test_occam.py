"""Occam certificates: of a linear network whose risk is known, forged in every field, and from the search."""

from __future__ import annotations

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate, verify_predictor
from boundcalc.predictors.data import Array, digest_of_arrays
from boundcalc.predictors.occam import Code, Message, Update, certify_message, float_risk
from boundcalc.predictors.reference import Law, Reference
from boundcalc.predictors.shorten import shorten
from tests.cases.predictors import BITS
from tests.cases.predictors import Votes as Linear
from tests.cases.predictors import votes as draw

REFERENCE = Reference({"votes": Law((BITS, 1), "constant", 0.0), "bias": Law((1,), "constant", 0.0)})
CODE = Code(REFERENCE)


DATA = draw(5, 80, 0.1)


def test_the_search_guesses_the_number_that_is_proved() -> None:
    message = Message(0, {"votes": Update(0, {3: 1})})
    found = certify_message(Linear(), CODE, message, DATA, 0.05).certificate
    assert found.risk == pytest.approx(float_risk(found.facts["errors"], 80, found.facts["bits"], 0.05), rel=1e-6)
    assert 0.1 < found.risk < 0.5


def test_the_bits_of_a_reference_are_pinned() -> None:
    laws = {law: Law((3, 4), law, 0.7) for law in ("uniform", "normal", "constant")}
    pinned = "7af7c80a0766a6ce1f485affaa95a80576feb1d7a8ba2d0953de160328fd2bdd"
    assert digest_of_arrays(Reference(laws).weights(5)) == pinned


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_search_finds_few_bits_and_answers_for_its_number(noise: float) -> None:
    torch = pytest.importorskip("torch")
    from boundcalc.lab.train._occam import search
    from boundcalc.lab.train.network import ModelNetwork
    from boundcalc.lab.train.tasks import BooleanTask
    from boundcalc.lab.train.trial import Trial, model_for

    torch.set_num_threads(1)
    task = BooleanTask(T=16, s=2, noise=noise)
    trial = Trial(task, model_for(task, d=8, heads=1, d_ff=8), 300, seed=1, n_test=4000)
    from boundcalc.lab.train.certify import examples_of

    data, test = examples_of(trial)
    network = ModelNetwork.of(trial)
    found = search(network, data, 0.05)
    certificate = found.certificate
    assert certificate.facts["bits"] < 45
    assert certificate.risk < 0.12 + 2.5 * noise
    assert float((network.scores(found.state, test) <= 0).mean()) <= certificate.risk


def trained() -> dict[str, Array]:
    """A vote for bit 3, and noise that training left."""
    rng = np.random.default_rng(0)
    votes = 0.02 * rng.standard_normal((BITS, 1))
    votes[3] += 1.3
    return {"votes": votes, "bias": 0.01 * rng.standard_normal(1)}


def test_rounded_weights_are_certified_and_decode_to_the_bit() -> None:
    data = draw(1, 400, 0.05)
    made = shorten(Linear(), [CODE], trained(), data, 0.05)
    certificate = made.certificate
    assert certificate.facts["bits"] < 40
    assert certificate.facts["errors"] == int((Linear().scores(made.state, data) <= 0).sum())
    assert certificate.risk < 0.2
    again = verify_predictor(PredictorCertificate.from_json(certificate.to_json()), data, lambda _: Linear())
    assert again.established is not None
    assert "equal to the bit" in again.established
    with pytest.raises(CertificateError, match="sha256"):
        verify_predictor(certificate, draw(2, 400, 0.05), lambda _: Linear())


def test_codes_share_delta_and_the_better_reference_is_taken() -> None:
    data, weights = draw(1, 400, 0.05), trained()
    start = trained()
    start["votes"][3] += 0.5
    near = Code(Reference.of_checkpoint(start))
    made = shorten(Linear(start), [CODE, near], weights, data, 0.05)
    listed = made.certificate.alternatives
    assert len(listed) == 2
    assert made.certificate.share == 0.025
    assert listed[made.certificate.chosen].reference.checkpoint == near.reference.checkpoint
    assert made.certificate.risk <= shorten(Linear(), [CODE], weights, data, 0.025).certificate.risk
    for other, why in ((None, "reference is a checkpoint"), ({**start, "bias": np.ones(1)}, "not the reference")):
        with pytest.raises(CertificateError, match=why):
            verify_predictor(made.certificate, data, lambda _, other=other: Linear(other))
    assert verify_predictor(made.certificate, data, lambda _: Linear(start)).established
