"""Nothing in a folder is ignored: adapters, pooling and quantisation are refused by name; compiled names are read."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import boundcalc
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints import CheckpointError, audit, open_checkpoint
from boundcalc.cli import main
from tests.checkpoints import handmade


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    t, config = handmade.bert(np.random.default_rng(0))
    return handmade.save(tmp_path / "m", t, config)


def write(path: Path, **table: Any) -> None:
    path.write_text(json.dumps(table))


def test_a_folder_with_nothing_more_is_read(bert: Path) -> None:
    """The negative control of all that follows."""
    assert audit(bert).account.doubts == ()


def test_an_adapter_is_refused_beside_a_model_and_alone(bert: Path) -> None:
    write(bert / "adapter_config.json", peft_type="LORA", r=8)
    for path in (bert, bert / "model.safetensors"):
        with pytest.raises(CheckpointError, match=r"has an adapter.*merge it into its base model"):
            audit(path)
    alone = bert / "model.safetensors"
    alone.rename(bert / "adapter_model.safetensors")
    for path in (bert, bert / "adapter_model.safetensors"):
        with pytest.raises(CheckpointError, match=r"has an adapter.*merge it into its base model"):
            audit(path)


def test_pooling_is_a_doubt_that_a_forward_check_does_not_settle(bert: Path) -> None:
    (bert / "modules.json").write_text(
        json.dumps(
            [
                {"idx": i, "type": f"sentence_transformers.models.{kind}"}
                for i, kind in enumerate(("Transformer", "Pooling"))
            ]
        )
    )
    said = "modules.json: a sentence-transformers model (Transformer, Pooling)"
    for word in ("transformers", "none"):
        if word == "transformers":
            pytest.importorskip("transformers")
        done = CliRunner().invoke(main, ["norms", str(bert), "--compare", word])
        assert done.exit_code == 0
        assert said in done.output
        done = CliRunner().invoke(main, ["certify", str(bert), "--m", "1e6", "--compare", word])
        assert done.exit_code != 0
        assert said in done.output


@pytest.mark.parametrize("method", ["bitsandbytes", "gptq", "awq"])
def test_quantised_weights_are_refused_by_name(bert: Path, method: str) -> None:
    path = bert / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": {"quant_method": method}}))
    with pytest.raises(CheckpointError, match=rf"is quantised \({method}"):
        audit(bert)


@pytest.mark.parametrize("ending", [".qweight", ".SCB", ".absmax"])
def test_codes_are_known_by_their_names(tmp_path: Path, ending: str) -> None:
    t, config = handmade.llama(np.random.default_rng(0))
    t[f"model.layers.0.self_attn.q_proj{ending}"] = t.pop("model.layers.0.self_attn.q_proj.weight")
    with pytest.raises(CheckpointError, match="is quantised"):
        audit(handmade.save(tmp_path / "m", t, config))


@pytest.mark.parametrize("start", ["module._orig_mod.", "_orig_mod.", "module."])
def test_compiled_and_parallel_names_of_a_folder_are_compared(bert: Path, tmp_path: Path, start: str) -> None:
    pytest.importorskip("transformers")
    t, config = handmade.bert(np.random.default_rng(0))
    inner = {f"{start}{name}".replace("layer.1.", "layer.1._orig_mod."): values for name, values in t.items()}
    path = handmade.save(tmp_path / "wrapped", inner, config)
    done = CliRunner().invoke(main, ["norms", str(path), "--compare", "transformers"])
    assert done.exit_code == 0, done.output
    assert "Compared with a forward pass" in done.output
    assert audit(path, seed=1).norms() == audit(bert, seed=1).norms()


def test_a_buffer_is_never_taken_for_a_weight(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tests.checkpoints.layouts import NanoGPT

    class WithBuffer(NanoGPT):
        """A mask under a name that says nothing, in every block, before all maps."""

        def __init__(self) -> None:
            super().__init__()
            for block in self.transformer["h"]:
                block.attn.register_buffer("lower", torch.tril(torch.ones(16, 16)))

        def forward(self, tokens: Any) -> Any:
            return super().forward(tokens)[0]

    torch.manual_seed(0)
    module = WithBuffer().eval()
    x, y = np.random.default_rng(0).integers(0, 11, (20, 6)), np.arange(20) % 2
    found = boundcalc.certify(module, (x, y), heads=4, methods=["norms"])
    assert found.parity is not None
    lines = {line.tensor: line for line in found.audit.account.lines}
    assert {line.reason for name, line in lines.items() if name.endswith("lower")} == {
        "a buffer of the module, not a weight"
    }
    torch.save(module.state_dict(), tmp_path / "m.pt")
    again = boundcalc.certify(tmp_path / "m.pt", (x, y), module=module, heads=4, methods=["norms"])
    assert again.setting.norms == found.setting.norms


def test_a_quantised_module_is_refused_in_a_line() -> None:
    torch = pytest.importorskip("torch")
    from tests.checkpoints.layouts import NanoGPT

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised = torch.ao.quantization.quantize_dynamic(NanoGPT().eval(), {torch.nn.Linear}, dtype=torch.qint8)
    with pytest.raises(CheckpointError, match="not a tensor of plain numbers"):
        open_checkpoint(quantised)
    x, y = np.zeros((4, 6), int), np.arange(4) % 2
    with pytest.raises(CheckpointError, match="not a tensor of plain numbers"):
        boundcalc.certify(quantised, (x, y), heads=4)


@pytest.mark.parametrize(("length", "inside"), [(1.0, True), (1 + 5e-10, True), (1 + 3e-9, False), (1.1, False)])
def test_rows_that_were_normalised_in_floats_lie_in_the_ball(length: float, inside: bool) -> None:
    from boundcalc.checkpoints.examples import Sequences
    from boundcalc.lab.reading import fits
    from boundcalc.setting import Architecture

    class Found:
        architecture = Architecture(depth=1, d=3, heads=1, seq_len=4, input_radius=1.0)
        family = ""

    rows = np.random.default_rng(0).standard_normal((5, 2, 3))
    rows *= length / np.sqrt((rows**2).sum(-1, keepdims=True))
    data = Sequences(list(rows), np.zeros(5, int))
    if inside:
        fits(data, Found())  # type: ignore[arg-type]
    else:
        with pytest.raises(InvalidSetting, match="a row of the data has norm"):
            fits(data, Found())  # type: ignore[arg-type]
