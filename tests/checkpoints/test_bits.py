"""`certify --bits`: the premise that a stored weight has so many bits, held against what a checkpoint stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from boundcalc import Certificate, verify
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints import audit
from boundcalc.cli import main
from boundcalc.setting import Sample, Setting
from boundcalc.statements.strategies import stored_weights
from tests.checkpoints import handmade


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tensors, config = handmade.bert(np.random.default_rng(0))
    return handmade.save(tmp_path_factory.mktemp("models") / "half", tensors, config, "float16")


def certify(model: Path, *words: object) -> Result:
    sample = ("--m", "1e9", "--gamma", "0.25", "--train-error", "0", "--no-solve", "--bound", "best")
    line = ("certify", model, "--no-spectra", "--quiet", *sample, *words)
    return CliRunner().invoke(main, [str(word) for word in line])


def answer(model: Path, *words: object) -> dict[str, Any]:
    outcome = certify(model, "--format", "json", *words)
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def test_a_checkpoint_of_16_bits_is_one_of_finitely_many(half: Path, tmp_path: Path) -> None:
    plain, found = answer(half), answer(half, "--bits", 16, "--certificate", tmp_path / "gap.json")
    best = found["results"][0]
    assert best["kind"] == "a_posteriori"
    assert best["strategy"] == "stored-gap"
    assert best["gap"] < plain["results"][0]["gap"]
    assert found["stored_weights"]["without"]["gap"] == plain["results"][0]["gap"]
    assert found["stored_weights"]["weights"] == sum(stored_weights(Setting.from_json(found["setting"])).values())
    certificate = Certificate.load(tmp_path / "gap.json")
    assert certificate.setting.architecture.bits == 16
    verify(certificate)
    said = " ".join(certify(half, "--bits", "16").stdout.split())
    assert "rests on a premise: each of the" in said
    assert "is a number of 16 bits, and that was fixed before the data (G13)" in said


def test_more_bits_than_are_stored_are_a_weaker_premise(half: Path) -> None:
    assert answer(half, "--bits", 32)["results"][0]["gap"] > answer(half, "--bits", 16)["results"][0]["gap"]


def test_fewer_bits_than_are_stored_are_refused(half: Path) -> None:
    outcome = certify(half, "--bits", "8")
    assert outcome.exit_code == 2
    assert (
        "is stored as float16, numbers of 16 bits; give --bits 16 if that was fixed before the data" in outcome.stderr
    )
    with pytest.raises(InvalidSetting, match="float16"):
        audit(half).with_bits(15)


@pytest.mark.parametrize("name", handmade.SMALL)
def test_every_number_that_acts_is_counted_or_the_model_is_refused(name: str, tmp_path: Path) -> None:
    tensors, config = handmade.SMALL[name](np.random.default_rng(0))
    found = audit(handmade.save(tmp_path / name, tensors, config, "float16"))
    acts = sum(
        int(np.prod(line.shape)) if line.reason.startswith(("softmax ignores", "folded")) else line.used
        for line in found.account.lines
    )
    counted = sum(stored_weights(Setting(found.architecture, found.norms(), Sample())).values())
    assert (counted < acts) is (name == "vit")
    if counted < acts:
        with pytest.raises(InvalidSetting, match=r"cls_token and the positions are measured as one sum"):
            found.with_bits(16)
    else:
        assert found.with_bits(16).architecture.bits == 16


def test_where_no_bound_reads_it_it_is_refused(half: Path) -> None:
    line = (
        "certify",
        half,
        "--no-spectra",
        "--quiet",
        "--m",
        "1e9",
        "--no-solve",
        "--bound",
        "trauger",
        "--bits",
        "16",
    )
    outcome = CliRunner().invoke(main, [str(word) for word in line])
    assert outcome.exit_code == 2
    assert "only 'best' counts stored weights (G13)" in outcome.stderr
