"""What `norms` and `certify` say of a field that the family does not know, of options without effect, of assumptions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from boundcalc.cli import main
from tests.checkpoints import handmade


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    t, config = handmade.llama(np.random.default_rng(0))
    return handmade.save(tmp_path / "m", t, config | {"attn_logit_softcapping": 50.0})


def test_without_a_forward_check_norms_warns_and_certify_refuses(strange: Path, tmp_path: Path) -> None:
    doubt, alone = "attn_logit_softcapping = 50.0 is not known", ("--compare", "none")
    code, text = run("norms", strange, *alone)
    assert code == 0
    assert doubt in text
    code, text = run("certify", strange, "--m", "1e6", *alone)
    assert code != 0
    assert doubt in text
    assert text.count("\n") == 1
    out = tmp_path / "setting.json"
    code, text = run("norms", strange, "--setting-out", out, *alone)
    assert code != 0
    assert doubt in text
    assert not out.exists()
    code, text = run("certify", strange, "--m", "1e6", "--set", "attn_logit_softcapping=null", "--no-solve", *alone)
    assert code == 0


def test_a_forward_check_settles_what_a_field_means(strange: Path, tmp_path: Path) -> None:
    """The library's Llama does not read the field; BERT with another activation is another function."""
    pytest.importorskip("transformers")
    code, text = run("certify", strange, "--m", "1e6", "--no-solve")
    assert code == 0
    assert "Compared with a forward pass" in text
    assert "Doubted" not in text
    t, config = handmade.bert(np.random.default_rng(0))
    path = handmade.save(tmp_path / "bert", t, config)
    code, text = run("certify", path, "--m", "1e6", "--set", "hidden_act=relu")
    assert code != 0
    assert "differ" in text
    path = handmade.save(tmp_path / "own", t, config | {"auto_map": {"AutoModel": "mine.Model"}})
    code, text = run("certify", path, "--m", "1e6")  # the library's class was run, and not the code of the model
    assert code != 0
    assert "auto_map" in text


def test_an_unknown_setting_is_no_use(tmp_path: Path) -> None:
    t, config = handmade.gpt2(np.random.default_rng(0))
    path = handmade.save(tmp_path / "m", t, config)
    assert "attention_multiplier = 5" in run("certify", path, "--m", "1e6", "--set", "attention_multiplier=5")[1]


@pytest.mark.parametrize(("option", "value"), [("--heads", 3), ("--classes", 2), ("--input-radius", 2.0)])
def test_options_without_effect_are_refused(tmp_path: Path, option: str, value: float) -> None:
    t, config = handmade.bert(np.random.default_rng(0))
    path = handmade.save(tmp_path / "m", t, config)
    for command in (("norms", path), ("certify", path, "--m", "1e6")):
        code, text = run(*command, option, value)
        assert code != 0
        assert option in text


def test_heads_that_are_said_are_not_assumed(tmp_path: Path) -> None:
    t, config = handmade.bert(np.random.default_rng(0))
    del config["num_attention_heads"]
    code, text = run("norms", handmade.save(tmp_path / "m", t, config), "--heads", 2)
    assert code == 0
    assert "Assumed" in text
    assert "num_attention_heads" not in text


def test_what_a_mapping_says_is_not_assumed(tmp_path: Path) -> None:
    """user.md P5: every value of the mapping was starred as assumed."""
    rng = np.random.default_rng(0)
    roles = {"q": "W_Q", "k": "W_K", "v": "W_V", "o": "W_O", "up": "W_1", "down": "W_2"}
    t = {f"net.0.{name}": rng.standard_normal((4, 4)) for name in roles} | {"head": rng.standard_normal((1, 4))}
    t |= {"net.0.n1": np.ones(4), "net.0.n2": np.ones(4), "norm": np.ones(4)}
    architecture = {"style": "pre", "depth": 1, "d": 4, "heads": 2, "seq_len": 3, "residual": True, "d_ff": 4}
    tensors = {f"net.{{b}}.{name}": f"{role}.T" for name, role in roles.items()} | {"head": "readout.T"}
    tensors |= {"net.{b}.n1": "norm_attention.gain", "net.{b}.n2": "norm_ffn.gain", "norm": "norm_final.gain"}
    mapping = {"architecture": architecture | {"normalisation": "rmsnorm"}, "tensors": tensors}
    (tmp_path / "w.safetensors").write_bytes(handmade.safetensors(t, "float64"))
    (tmp_path / "map.json").write_text(json.dumps(mapping))
    words = ("certify", tmp_path / "w.safetensors", "--mapping", tmp_path / "map.json", "--m", "1e6", "--no-solve")
    code, text = run(*words)
    assert code == 0
    assert "style pre, depth 1, T 3, d 4, heads 2, activation relu*" in text
    for option in ("--heads", "--classes"):
        assert f"{option} has no effect" in run(*words, option, 2)[1]
    assert "--set heads=... has no effect" in run(*words, "--set", "heads=2")[1]
    assert "T 2," in run(*words, "--T", 2)[1]
