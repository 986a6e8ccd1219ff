"""Readers: every format and type of number comes back exactly; hostile files and folders get one clear line."""

from __future__ import annotations

import json
import re
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import boundcalc
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints import CheckpointError, audit, open_checkpoint
from boundcalc.checkpoints.tensors import STORED, Checkpoint, read, to_float
from boundcalc.cli import main
from tests.checkpoints import handmade

TYPES = ("float64", "float32", "float16", "bfloat16")


def tensors(seed: int = 0) -> dict[str, handmade.Array]:
    rng = np.random.default_rng(seed)
    return {"a": rng.standard_normal((5, 3)), "b": rng.standard_normal(4), "n": np.arange(6), "s": np.array(2.5)}


def same(found: Checkpoint, want: dict[str, handmade.Array], dtype: str) -> None:
    assert set(found.tensors) == set(want)
    for name, values in want.items():
        tensor = found.tensors[name]
        assert tensor.shape == np.shape(values)
        assert np.array_equal(tensor.fetch(), handmade.encode(values, dtype if values.dtype.kind == "f" else "int64"))


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
@pytest.mark.parametrize("dtype", TYPES)
def test_files_of_every_type(tmp_path: Path, dtype: str, wrapper: str | None) -> None:
    path = tmp_path / ("w.safetensors" if wrapper is None else "w.pt")
    plain = wrapper is None
    path.write_bytes(handmade.safetensors(tensors(), dtype) if plain else handmade.torch_zip(tensors(), dtype, wrapper))
    found = open_checkpoint(path)
    same(found, tensors(), dtype)
    assert not found.tensors["n"].is_float
    assert np.allclose(read(found.tensors["a"]), tensors()["a"], rtol=1e-2, atol=1e-2)


def test_narrow_types_are_decoded_exactly() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    values = to_float(bits, "bfloat16")
    assert values.dtype == np.float32
    assert np.array_equal(values.view(np.uint32) >> 16, bits.astype(np.uint32))


def test_shards_and_directories(tmp_path: Path) -> None:
    want, config = handmade.bert(np.random.default_rng(1))
    whole, parts = (
        handmade.save(tmp_path / "whole", want, config),
        handmade.save_shards(tmp_path / "parts", want, config),
    )
    for source in (whole, parts, parts / "model.safetensors.index.json", whole / "model.safetensors"):
        found = open_checkpoint(source)
        assert found.config["model_type"] == "bert"
        same(found, want, "float32")


# -- hostile files


def refused(path: Path, word: str) -> str:
    """The one clear line a file is refused with."""
    with pytest.raises(CheckpointError, match=word) as caught:
        open_checkpoint(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def written(tmp_path: Path, content: bytes, name: str = "w.safetensors") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", [".pt", ".bin", ".ckpt", ".pth"])
@pytest.mark.parametrize("bare", [True, False])
def test_a_payload_is_refused_without_running_it(tmp_path: Path, ending: str, bare: bool) -> None:
    target = tmp_path / "ran"
    attack = handmade.payload(target)
    import pickle

    pickle.loads(attack)  # the attack works on a careless reader
    assert target.exists()
    target.unlink()
    path = written(tmp_path, attack if bare else handmade.zipped(attack), f"w{ending}")
    refused(path, "none of its code was run")
    assert not target.exists()


def test_torch_reads_the_same_from_its_old_files(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    whole = torch.randn(4, 6)
    state = {"a": whole, "b": whole.T, "c": whole[1:3], "d": torch.arange(5), "e": torch.zeros(0, 3), "f": whole.half()}
    path = tmp_path / "w.pt"
    for new in (False, True):
        torch.save(state | {"tied": whole, "copy": whole.clone()}, path, _use_new_zipfile_serialization=new)
        found = open_checkpoint(path).tensors
        assert all(np.array_equal(found[name].fetch(), state[name].numpy()) for name in state)
        assert found["a"].storage == found["tied"].storage
        assert found["a"].storage not in (found["b"].storage, found["copy"].storage)


def test_a_config_beside_any_weights_is_read(tmp_path: Path) -> None:
    """Names that save_pretrained does not write were once not looked beside."""
    path = written(tmp_path, handmade.torch_zip(tensors()), "w.ckpt")
    assert open_checkpoint(path).config == {}
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    assert open_checkpoint(path).config == {"model_type": "bert"}


def test_lying_headers(tmp_path: Path) -> None:
    def header(table: object, data: bytes = b"\0" * 64) -> Path:
        text = table if isinstance(table, bytes) else json.dumps(table).encode()
        return written(tmp_path, struct.pack("<Q", len(text)) + text + data)

    entry = {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}
    assert open_checkpoint(header({"w": entry})).tensors["w"].shape == (4, 4)
    wrong = ({"shape": [4, 5]}, {"shape": [-4, -4]}, {"shape": [2**40, 2**40]}, {"data_offsets": [0, 2**70]})
    begun_late = {"dtype": "F32", "shape": [2, 4], "data_offsets": [32, 64]}
    tables = [{"w": entry | change} for change in (*wrong, {"dtype": "F128"})]
    tables += [{"w": entry, "x": entry}, {"w": begun_late}, {"w": 3}, [1, 2], b'{"w": 1, "w": 2}', b"[" * 100_000]
    for table in tables:
        refused(header(table), "not a whole safetensors file")
    refused(header({"w": {"dtype": "F8_E8M0", "shape": [64], "data_offsets": [0, 64]}}), "no type of weights")
    twice = json.dumps(entry)
    refused(header(f'{{"w": {twice}, "w": {twice}}}'.encode(), b"\0" * 128), "not a whole safetensors file")
    refused(header({}, b""), "no tensors")
    refused(written(tmp_path, struct.pack("<Q", 10**12) + b"{}"), "at most 10,000,000")


@pytest.mark.parametrize("shard", ["../outside.safetensors", "/etc/passwd", "sub/w.safetensors", "..", "", 7, "a\\b"])
def test_an_index_names_only_files_beside_it(tmp_path: Path, shard: object) -> None:
    (tmp_path / "outside.safetensors").write_bytes(handmade.safetensors(tensors()))
    directory = tmp_path / "model"
    directory.mkdir()
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": shard}}))
    refused(directory, "not a file next to it")


def test_wrong_indexes(tmp_path: Path) -> None:
    want, config = handmade.bert(np.random.default_rng(1))
    path = handmade.save_shards(tmp_path / "m", want, config)
    index = path / "model.safetensors.index.json"
    good = json.loads(index.read_text())
    moved = dict(good["weight_map"])
    first = next(iter(moved))
    second = next(name for name, shard in moved.items() if shard != moved[first])
    moved[first] = moved[second]
    index.write_text(json.dumps({"weight_map": moved}))
    refused(path, "which does not have it")
    index.write_text(json.dumps({"weight_map": {k: v for k, v in good["weight_map"].items() if k != first}}))
    refused(path, "does not place there")
    index.write_text(json.dumps({"weight_map": {"x": "gone.safetensors"}}))
    refused(path, "is missing")
    for text in ("{", "[]", "{}", '{"weight_map": []}'):
        index.write_text(text)
        refused(path, "not JSON|no table|weight_map")


def test_other_places_and_objects(tmp_path: Path) -> None:
    refused(tmp_path / "nothing", "no file or directory")
    refused(tmp_path, "has none of")
    refused(written(tmp_path, b"", "w.gguf"), "no known ending")
    refused(written(tmp_path, handmade.zipped(b"\x80\x02K\x01."), "w.pt"), "not a table of tensors")
    refused(written(tmp_path, handmade.zipped(b"\x80\x02garbage"), "w.pt"), "not a whole file of torch.save|more than")


def test_every_type_of_torch_is_read_alike_from_a_module_and_its_file(tmp_path: Path) -> None:
    import torch

    state = {name: torch.ones(3).to(getattr(torch, name)) for name in STORED}
    torch.save(state, tmp_path / "m.pt")
    live, stored = open_checkpoint(state).tensors, open_checkpoint(tmp_path / "m.pt").tensors
    for name in STORED:
        assert live[name].dtype == stored[name].dtype == name
        assert np.array_equal(live[name].fetch(), stored[name].fetch())


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    t, config = handmade.bert(np.random.default_rng(0))
    return handmade.save(tmp_path / "m", t, config)


def test_an_adapter_is_refused_beside_a_model_and_alone(bert: Path) -> None:
    assert audit(bert).account.doubts == ()  # the negative control of all that follows
    (bert / "adapter_config.json").write_text("{}")
    weights = bert / "model.safetensors"
    for name in (weights, bert / "adapter_model.safetensors"):
        weights = weights.rename(name)
        for path in (bert, name):
            with pytest.raises(CheckpointError, match=r"has an adapter.*merge it into its base model"):
                audit(path)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["m.Transformer", "m.Pooling"], r"\(Transformer, Pooling\), and what follows its encoder is not read$"),
        (["m.Transformer", "m.Pooling", "m.Normalize"], "no Lipschitz constant near 0"),
        ([], r"\(\), and what follows"),
        ([None], r"\(None\), and what follows"),
    ],
)
def test_what_sentence_transformers_puts_behind_an_encoder_is_said(kinds: Any, words: str, bert: Path) -> None:
    (bert / "modules.json").write_text(json.dumps([{"type": kind} for kind in kinds]))
    (doubt,) = audit(bert).account.doubts
    assert re.search(words, doubt)


def test_quantised_weights_are_refused_by_name(bert: Path, tmp_path: Path) -> None:
    path = bert / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": {"quant_method": "awq"}}))
    with pytest.raises(CheckpointError, match=r"is quantised \(awq"):
        audit(bert)
    for ending in (".qweight", ".SCB", ".absmax"):
        (tmp_path / "w.safetensors").write_bytes(handmade.safetensors({f"layers.0.q_proj{ending}": np.ones(3)}))
        refused(tmp_path / "w.safetensors", "is quantised")


def test_compiled_and_parallel_names_of_a_folder_are_compared(bert: Path, tmp_path: Path) -> None:
    t, config = handmade.bert(np.random.default_rng(0))
    inner = {f"module._orig_mod.{name}".replace("layer.1.", "layer.1._orig_mod."): values for name, values in t.items()}
    path = handmade.save(tmp_path / "wrapped", inner, config)
    done = CliRunner().invoke(main, ["norms", str(path), "--compare", "transformers"])
    assert done.exit_code == 0, done.output
    assert "Compared with a forward pass" in done.output
    assert audit(path, seed=1).norms() == audit(bert, seed=1).norms()


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


@pytest.mark.parametrize(("length", "inside"), [(1 + 5e-10, True), (1 + 3e-9, False)])
def test_rows_that_were_normalised_in_floats_lie_in_the_ball(length: float, inside: bool) -> None:
    from boundcalc.lab._outputs import refuse_longer

    rows = np.random.default_rng(0).standard_normal((5, 2, 3))
    rows *= length / np.sqrt((rows**2).sum(-1, keepdims=True))
    if inside:
        refuse_longer(rows, 1.0, "row")
    else:
        with pytest.raises(InvalidSetting, match="a row of the data has norm"):
            refuse_longer(rows, 1.0, "row")
