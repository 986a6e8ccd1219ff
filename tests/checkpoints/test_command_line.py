"""`boundcalc norms` and `boundcalc certify` as they are typed: answers, premises, doubts and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from boundcalc import Certificate, Sample, Setting, solve, verify
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints import audit
from boundcalc.cli import main
from boundcalc.statements.posthoc import Seen
from boundcalc.statements.strategies import stored_weights
from tests.checkpoints import handmade


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="boundcalc")


def done(*words: object) -> str:
    outcome = run(*words)
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    t, config = handmade.bert(np.random.default_rng(0))
    small = {name: 0.3 * values if values.dtype.kind == "f" else values for name, values in t.items()}
    return handmade.save(tmp_path_factory.mktemp("models") / "bert", small, config)


def test_the_table_has_every_weight_and_rounds_up(bert: Path) -> None:
    text = done("norms", bert)
    found = audit(bert)
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    for key in ("W_QK[0]", "W_V[1]", "W_1[1]", "embedding", "positions", "segments", "readout"):
        assert key in lines
    shown = float(lines["W_1[1]"].split()[2])
    exact = found.measured["W_1[1]"].op or 0
    assert exact <= shown <= exact * 1.001
    assert lines["W_QK[0]"].split()[1] == "4x9x8"
    assert "16 in 2 tensors: softmax ignores" in text


def test_certify_prints_paid_bounds(bert: Path, tmp_path: Path) -> None:
    options = ("--m", "1e8", "--gamma", "0.7", "--train-error", "0.02")
    text = done("certify", bert, *options, "--certificates", tmp_path)
    assert f"2 certificates are in {tmp_path}" in " ".join(text.split())
    assert "a posteriori" in text
    assert "gamma is 0.5; log(1/delta) grows from 3.00" in " ".join(text.split())
    for path in tmp_path.iterdir():
        certificate = Certificate.load(path)
        assert verify(certificate).log_value == certificate.log_value
        assert certificate.measured is not None
        assert certificate.measured.sample == Seen(0.7, 0.02, 3)
        assert certificate.setting.sample.margin == 0.5
        assert "verified" in done("verify", path)


def test_one_m_per_quantity_as_solve_gives_it(bert: Path) -> None:
    """No network with these norms has the margin, which the risk bound needs and the gap bound does not."""
    words = ("certify", bert, "--m", "1000", "--gamma", "64", "--train-error", "0.03", "--bound", "best", "--seed", "1")
    found = audit(bert, seed=1)
    measured = ("margin", "train_error")
    setting = Setting(found.architecture, found.norms(), Sample(1000, 0.05, 64, 0.03, measured=measured))
    smallest = json.loads(done(*words, "--format", "json"))["smallest_m"]
    assert smallest["gap"]["m"] == solve(setting, "m", 0.1, bound="best", quantity="gap").value
    assert smallest["gap"]["m"] > 1000
    assert smallest["risk"]["m"] is None
    assert "needs a margin above gamma" in smallest["risk"]["reason"]


def test_a_model_that_ends_in_rows_has_norms_and_no_bound(tmp_path: Path) -> None:
    t, config = handmade.bert(np.random.default_rng(0))
    t = {name: values for name, values in t.items() if not name.startswith("classifier")}
    headless = handmade.save(tmp_path / "m", t, config | {"architectures": ["BertModel"]})
    assert "Not in the checkpoint: readout" in done("norms", headless)
    for words in (("certify", headless, "--m", "1e8"), ("norms", headless, "--setting-out", tmp_path / "s.json")):
        outcome = run(*words)
        assert outcome.exit_code != 0
        assert "has no readout" in outcome.stderr


def lines_of(outcome: Result) -> list[str]:
    return outcome.stderr.splitlines()


@pytest.mark.parametrize("command", [("norms",), ("certify", "--m", "1000")])
def test_a_hostile_model_gets_one_line_and_nothing_is_written(command: tuple[str, ...], tmp_path: Path) -> None:
    ran, out = tmp_path / "ran", tmp_path / "out.json"
    path = handmade.save(tmp_path / "payload", *handmade.bert(np.random.default_rng(0)))
    (path / "model.safetensors").unlink()
    (path / "pytorch_model.bin").write_bytes(handmade.zipped(handmade.payload(ran)))
    outcome = run(command[0], path, *command[1:], "--out" if command[0] == "norms" else "--certificates", out)
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert len(lines_of(outcome)) == 1
    assert lines_of(outcome)[0].startswith("boundcalc: ")
    assert not ran.exists()
    assert [file.name for file in tmp_path.iterdir()] == ["payload"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("norms", "--T", "0"), "T must lie between 1"),
        (("norms", "--input-radius", "nan"), "input radius must be"),
        (("norms", "--seed", "-1"), "seed must lie between 0"),
        (("norms", "--out", "n.json", "--setting-out", "n.json"), "two outputs would be written to"),
        (("certify", "--m", "1000", "--gamma", "-1"), "gamma must be"),
        (("certify", "--m", "1000", "--train-error", "2"), "train_error must lie"),
    ],
)
def test_wrong_options(
    bert: Path, words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run(words[0], bert, *words[1:])
    assert outcome.exit_code in (1, 2)
    assert message in outcome.stderr
    assert len(lines_of(outcome)) == 1
    assert list(tmp_path.iterdir()) == []


def test_unexpected_tensors_stop_a_certificate_but_not_the_norms(tmp_path: Path) -> None:
    t, config = handmade.bert(np.random.default_rng(0))
    path = handmade.save(tmp_path / "m", t | {"bert.adapter": np.ones(3)}, config)
    assert "bert.adapter [3]: unexpected" in done("norms", path)
    outcome = run("certify", path, "--m", "1000")
    assert outcome.exit_code == 2
    assert "bert.adapter, which the family 'bert' does not know" in outcome.stderr


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tensors, config = handmade.bert(np.random.default_rng(0))
    return handmade.save(tmp_path_factory.mktemp("models") / "half", tensors, config, "float16")


def certify(model: Path, *words: object) -> Result:
    sample = "--m 1e9 --gamma 0.25 --train-error 0 --no-solve --bound best"
    return run("certify", model, *sample.split(), *words)


def answer(model: Path, *words: object) -> dict[str, Any]:
    outcome = certify(model, "--format", "json", *words)
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def test_a_checkpoint_of_16_bits_is_one_of_finitely_many(half: Path, tmp_path: Path) -> None:
    plain, found = answer(half), answer(half, "--bits", 16, "--certificates", tmp_path)
    best = found["results"][0]
    assert best["kind"] == "a_posteriori"
    assert best["strategy"] == "stored-gap"
    assert best["gap"] < plain["results"][0]["gap"]
    assert best["gap"] < answer(half, "--bits", 32)["results"][0]["gap"]  # a weaker premise
    assert found["stored_weights"]["weights"] == sum(stored_weights(Setting.from_json(found["setting"])).values())
    certificate = Certificate.load(tmp_path / "norms-best-gap.json")
    assert certificate.setting.architecture.bits == 16
    verify(certificate)
    said = " ".join(certify(half, "--bits", "16").stdout.split())
    assert "is based on a premise: each of the" in said
    assert "is a number of 16 bits, and that was fixed before the data (G13)" in said


def test_fewer_bits_than_are_stored_are_refused(half: Path) -> None:
    outcome = certify(half, "--bits", "8")
    assert outcome.exit_code == 2
    assert "is stored as float16, numbers of 16 bits; give --bits 16 if that was fixed before" in outcome.stderr


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
        with pytest.raises(InvalidSetting, match=r"cls_token is folded into position 0"):
            found.with_bits(16)
    else:
        assert found.with_bits(16).architecture.bits == 16


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    return handmade.save(tmp_path / "m", *handmade.llama(np.random.default_rng(0)))


def test_without_a_forward_check_certify_refuses(llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A family's table may not be the model: its user says so, or it is run."""
    monkeypatch.setattr("boundcalc.checkpoints.modules.MOST", 10)
    out = tmp_path / "setting.json"
    for words in (("certify", llama, "--m", "1e6"), ("norms", llama, "--setting-out", out)):
        outcome = run(*words)
        assert outcome.exit_code != 0
        assert "no forward pass was compared with its description" in outcome.stderr
        assert outcome.output.count("\n") == 1
    assert not out.exists()
    assert "Doubted, so that there is no bound: no forward pass" in done("norms", llama)
    words = ("certify", llama, "--m", "1e6", "--no-solve", "--compare")
    assert "not compared with a forward pass" in done(*words, "none")
    assert "Compared with a forward pass" in done(*words, "transformers")


def test_code_of_its_own_and_settings_that_nothing_reads_are_refused(llama: Path) -> None:
    config = json.loads((llama / "config.json").read_text())
    (llama / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "mine.Model"}}))
    for words, why in (
        (("certify", llama, "--m", "1e6"), "auto_map"),
        (("norms", llama, "--set", "attn_logit_softcapping=3"), "attn_logit_softcapping=... has no effect"),
    ):
        outcome = run(*words)
        assert outcome.exit_code != 0
        assert why in outcome.stderr


@pytest.mark.parametrize(("option", "value"), [("--heads", 3), ("--input-radius", 2.0)])
def test_options_without_effect_are_refused(bert: Path, option: str, value: float) -> None:
    for command in (("norms", bert), ("certify", bert, "--m", "1e6")):
        outcome = run(*command, option, value)
        assert outcome.exit_code != 0
        assert option in outcome.stderr
