"""Certificates as files: what they hold is all read, and nothing in them can be changed unnoticed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate, equal_shares, issue, verify_predictor
from boundcalc.predictors.data import named
from tests.cases.predictors import cases
from tests.cases.predictors import thresholds as draw
from tests.laws.kinds.predictors import leaves, put

DATA = draw(21, 120, 0.1)
MADE = {str(case): case.certificate for case in cases("holdout").examples}


def test_a_field_of_another_type_is_refused() -> None:
    raw = MADE["H"].to_json()
    assert PredictorCertificate.from_json(raw) == MADE["H"]
    fixed = [(path, value) for path, value in leaves(raw) if path[1:2] not in (("recipe",), ("environment",))]
    for path, value in fixed:
        for other in ([], {}) if value != [] else (None, {}):
            with pytest.raises(CertificateError):
                PredictorCertificate.from_json(put(raw, path, other))


def test_alternatives_may_not_spend_more_than_delta() -> None:
    raw = MADE["H"].to_json()
    for change in (
        lambda r: r["alternatives"].append({**r["alternatives"][0], "seed": 7}),
        lambda r: r["alternatives"].clear(),
        lambda r: r.update(chosen=5),
        lambda r: r.update(chosen=True),
        lambda r: r.update(chosen=1 - r["chosen"]),
        lambda r: r["alternatives"][0].update(more=1),
        lambda r: r["alternatives"][0].pop("seed"),
        lambda r: r.update(method="occult"),
        lambda r: r.update(statement="G10r"),
        lambda r: r.update(format="boundcalc-predictor-certificate/3"),
    ):
        forged = copy.deepcopy(raw)
        change(forged)
        with pytest.raises(CertificateError):
            PredictorCertificate.from_json(forged)


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 49])
def test_equal_shares_come_to_no_more_than_delta(count: int) -> None:
    from fractions import Fraction

    for delta in (0.05, 0.1, 1 / 3):
        share = equal_shares(delta, count)
        assert Fraction(share) * count <= Fraction(delta)
        assert share * count > delta * (1 - 1e-12)


def test_the_reader_is_strict(tmp_path: Path) -> None:
    for text in ('{"a": 1, "a": 2}', '{"a": NaN}', '{"a": -Infinity}', '{"a": 1', ""):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(CertificateError, match=r"c\.json"):
            PredictorCertificate.load(tmp_path / "c.json")
    for data in (None, [], "x", {}, {"format": "boundcalc-predictor-certificate/3"}):
        with pytest.raises(CertificateError, match="need 'boundcalc-predictor-certificate/4'"):
            PredictorCertificate.from_json(data)


class _Given:
    """A predictor that is right wherever y is 1."""

    weights = "0" * 64

    def scores(self, data: Any) -> Any:
        return data.y - 0.5


def test_a_held_out_certificate_is_about_as_many_examples_as_there_are() -> None:
    """More examples claimed than answered, beside the digest of those that were, make the number smaller."""
    evidence = {"data": named(DATA), "recipe": {"kind": "mine"}, "weights": _Given.weights}
    facts = {"errors": int((DATA.y < 0.5).sum()), "n": len(DATA)}
    true = issue("held-out", "H", facts, delta=0.05, alternatives=({"delta": 0.05},), chosen=0, evidence=evidence)
    assert verify_predictor(true, DATA, lambda _: _Given()).established is not None
    evidence["data"]["examples"] = facts["n"] = 10 * len(DATA)
    false = issue("held-out", "H", facts, delta=0.05, alternatives=({"delta": 0.05},), chosen=0, evidence=evidence)
    assert false.risk < true.risk
    with pytest.raises(CertificateError, match="not the examples"):
        verify_predictor(false, DATA, lambda _: _Given())
