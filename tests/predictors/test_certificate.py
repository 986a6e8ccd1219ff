"""Certificates as files: what they hold is all read, and nothing in them can be changed unnoticed."""

from __future__ import annotations

import copy
from fractions import Fraction
from pathlib import Path

import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate, equal_shares, verify_predictor
from tests.cases.predictors import cases
from tests.laws.kinds.predictors import leaves, put

MADE = {str(case): case.certificate for case in cases("holdout").examples}


def test_a_field_of_another_type_is_refused() -> None:
    raw = MADE["H"].to_json()
    assert PredictorCertificate.from_json(raw) == MADE["H"]
    fixed = [(path, value) for path, value in leaves(raw) if not {"recipe", "environment"} & set(path[1:2])]
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
        lambda r: r.update(method="occult"),
        lambda r: r.update(format="boundcalc-predictor-certificate/5"),
    ):
        forged = copy.deepcopy(raw)
        change(forged)
        with pytest.raises(CertificateError):
            verify_predictor(PredictorCertificate.from_json(forged))


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 49])
def test_equal_shares_come_to_no_more_than_delta(count: int) -> None:
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
        with pytest.raises(CertificateError, match="need 'boundcalc-predictor-certificate/6'"):
            PredictorCertificate.from_json(data)
