"""Law: nothing in a checkpoint is ignored. A field of config.json or a tensor that is changed changes the model that is
read, is listed as neutral, or is refused; and what is read is what the library computes from the changed files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints import FAMILIES, Audit, CheckpointError, Want, audit
from boundcalc.checkpoints.families import NOT_YET, Family, llama
from boundcalc.checkpoints.families.fields import COMMON, ConfigField
from boundcalc.checkpoints.families.settings import Settings
from tests.checkpoints import handmade

SEED = 0
QUICK = Want(spectra=False)


def other(value: object, rng: np.random.Generator) -> list[Any]:
    """Values that differ from one: of its type, and of others."""
    whole = int(rng.integers(2, 9))
    if isinstance(value, bool):
        return [not value, "no"]
    if isinstance(value, int | float):
        return [value + whole, value * 2 + 1, 0, str(value), None if rng.random() < 0.5 else float(value) / 3 + 0.1]
    if isinstance(value, str):
        return ["relu", "gelu_new", "tanh", value + "x", 3]
    if isinstance(value, Mapping):
        return [{**value, "strange": 1}, {"rope_type": "yarn", "factor": 4.0, "attention_factor": 5.0}, "none"]
    if isinstance(value, list):
        return [[*value, "strange"], ["strange"]]
    return [True, 3, "relu", {"strange": 1}, {"rope_type": "yarn", "factor": 4.0, "attention_factor": 5.0}]


def reading(found: Audit) -> Any:
    """What is bounded: the architecture with its norms."""
    return found.architecture.to_json(), found.norms().to_json(), found.account.shared, found.missing


_BEFORE: dict[tuple[str, bool], Audit] = {}


def ignored(
    t: Mapping[str, Any], config: Mapping[str, Any], name: str, value: object, family: Family | None, path: Path
) -> bool:
    """Whether a changed field is neither read, nor neutral, nor refused."""
    key = str(path), family is None
    if key not in _BEFORE:
        _BEFORE[key] = audit(handmade.save(path / "before", t, config), family=family, want=QUICK, seed=1)
    before = _BEFORE[key]
    try:
        after = audit(handmade.save(path / "after", t, {**config, name: value}), family=family, want=QUICK, seed=1)
    except BoundcalcError:
        return False
    line = next(line for line in after.account.fields if line.name == name)
    listed = (line.use == "neutral" or (name not in config and line.use in ("agrees", "only"))) and line.reason
    return not (line.doubt or listed or reading(before) != reading(after))


INERT = {
    "tie_word_embeddings": "a classifier has no read-out to tie",
    "pooler_act": "a classifier of images has no pooler",
    "original_max_position_embeddings": "only rotations of YaRN and LongRoPE read it",
    "architectures": "classes of one ending are one head",
    "pad_token_id": "BERT's padding row is a row like others",
}
"""Fields that are used, and mean nothing for the handmade models; the library's forward pass decides below."""
DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": {"is_decoder": False, "vocab_size": 11, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2},
    "gpt2": {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "n_inner": 32, "n_embd": 8},
    "llama": {"rope_parameters": {"rope_type": "default"}, "rope_scaling": None, "num_key_value_heads": 2},
    "vit": {"image_size": 4, "patch_size": 2, "qkv_bias": True, "pooler_act": "tanh"},
}


@pytest.mark.parametrize("name", handmade.SMALL)
def test_a_changed_field_is_read_or_neutral_or_refused(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    t, config = handmade.SMALL[name](rng)
    config = config | DEFAULTS[name]
    family = next(f for f in FAMILIES.values() if config["model_type"] in f.model_types)
    names: list[str] = sorted({*config, *(family.fields or {}), "attn_logit_softcapping", "query_pre_attn_scalar"})
    tried = 0
    for field in names:
        for value in other(config.get(field), rng)[: 2 if field in COMMON else None]:
            if field in INERT or value == config.get(field) or value is None:
                continue
            tried += 1
            assert not ignored(t, config, field, value, None, tmp_path), (field, value)
    assert tried > 60


def test_the_law_catches_a_table_that_lists_what_it_does_not_read(tmp_path: Path) -> None:
    """Negative control: GPT-2's adapter as it was, which did not read this field, with a table that says it did."""
    t, config = handmade.gpt2(np.random.default_rng(SEED))
    gpt2 = FAMILIES["gpt2"]

    def forgetful(model: Any) -> Any:
        model.settings.get("attention_multiplier")
        return gpt2.architecture(model)

    fields = {**(gpt2.fields or {}), "attention_multiplier": ConfigField("used", "the temperature", 1.0)}
    wrong = replace(gpt2, architecture=forgetful, fields=fields)
    assert ignored(t, config, "attention_multiplier", 5.0, wrong, tmp_path)
    assert not ignored(t, config, "attention_multiplier", 5.0, None, tmp_path)


@pytest.mark.parametrize("name", handmade.SMALL)
def test_a_changed_tensor_is_read_or_said_to_be_unread(name: str, tmp_path: Path) -> None:
    t, config = handmade.SMALL[name](np.random.default_rng(SEED))
    before = audit(handmade.save(tmp_path / "before", t, config), want=QUICK, seed=1)
    for tensor, values in t.items():
        if values.dtype.kind != "f":
            continue
        after = audit(handmade.save(tmp_path / "after", {**t, tensor: 1000 * values}, config), want=QUICK, seed=1)
        line = next(line for line in after.account.lines if line.tensor == tensor)
        assert reading(before) != reading(after) or (line.used == 0 and line.reason), tensor
        try:
            less = {key: value for key, value in t.items() if key != tensor}
            after = audit(handmade.save(tmp_path / "less", less, config), want=QUICK, seed=1)
        except CheckpointError:
            continue
        assert reading(before) != reading(after) or after.account.doubts or line.used == 0, tensor
    more = audit(
        handmade.save(tmp_path / "more", {**t, "bert.extra.weight": np.ones((2, 2))}, config), want=QUICK, seed=1
    )
    assert more.account.unknown == ["bert.extra.weight"]


def test_every_entry_gives_its_reason() -> None:
    tables = [COMMON, *(family.fields or {} for family in FAMILIES.values())]
    assert all(entry.text for table in tables for entry in table.values())
    for family in FAMILIES.values():
        assert not set(family.aliases) & set(family.fields or {})
        assert set(family.aliases.values()) <= set(family.fields or {})


@pytest.mark.parametrize("kind", ["gemma", "granite", "mamba", "made-up"])
def test_a_family_reads_no_other_type(kind: str, tmp_path: Path) -> None:
    """cases.md F3: Gemma and Granite were read as Llama by --family llama, without a word."""
    t, config = handmade.llama(np.random.default_rng(0))
    path = handmade.save(tmp_path / "m", t, config | {"model_type": kind})
    with pytest.raises(CheckpointError, match=rf"model_type '{kind}'.*reads only llama, mistral, qwen2: ") as caught:
        audit(path, family="llama")
    text = str(caught.value)
    assert "\n" not in text
    assert ("--family granite" in text) == (kind == "granite")
    assert ("--family gemma" in text) == (kind == "gemma")
    assert NOT_YET.get(kind, "") in text


# -- against the library


def _library() -> Any:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.checkpoints import zoo

    return zoo


NAMES = (
    *("bert", "bert mlm", "bert untied", "roberta", "roberta mlm", "distilbert", "electra", "electra mlm", "albert"),
    *("gpt2", "opt", "opt narrow", "gpt_neox", "gptj", "phi", "llama", "mistral", "qwen2", "granite", "vit", "deit"),
    *("bloom", "falcon", "gemma", "gemma2", "modernbert", "olmo2", "qwen3", "t5 gated"),
)


OWN = {"torch-encoder": "no config.json: its settings are given by --set", "boundcalc": "written here, by one writer"}
"""Families without a model of the library to hold them against."""


def test_every_family_is_held_against_the_library() -> None:
    types = {_made(name)[1]["model_type"] for name in NAMES}
    assert {name for name, family in FAMILIES.items() if not types & {*family.model_types}} == set(OWN)


@cache
def _made(name: str) -> tuple[Any, Mapping[str, Any]]:
    """A model of the zoo, and its settings as a config.json has them."""
    model = _library().ZOO[name].make()
    return model, {**json.loads(model.config.to_json_string()), "architectures": [type(model).__name__]}


def misread(name: str, field: str, value: object, path: Path) -> bool:
    """Whether a field of config.json is changed, the library puts the same weights together to another function, and
    what is read here is not that function and is not refused either."""
    zoo = _library()
    from tests.checkpoints.live import hf

    kind, (model, settings) = zoo.ZOO[name], _made(name)
    config, state = {**settings, field: value}, model.state_dict()
    try:
        loaded = kind.of(getattr(hf, kind.config)(**json.loads(json.dumps(config))))
        loaded.load_state_dict(state)
        want = zoo.logits(kind, loaded)
    except Exception:
        return False  # the library refuses
    own = {key for key, _ in model.named_parameters()}  # tied weights once, as the library saves them
    handmade.save(path, {key: tensor.numpy() for key, tensor in state.items() if key in own}, config, "float64")
    try:
        found = audit(path, want=QUICK, seed=1)
        got = None if found.account.doubts else zoo.ours(kind, path, loaded)
    except BoundcalcError:
        return False
    return got is not None and not np.allclose(got, want, atol=1e-6 * max(1, np.abs(want).max()), rtol=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_is_what_the_library_computes(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED + len(name))
    values = _made(name)[1]
    family = next(f for f in FAMILIES.values() if values["model_type"] in f.model_types)
    own = [field for field in values if field in (family.fields or {})]
    assert set(values) <= {*(family.fields or {}), *COMMON}
    shared = rng.choice([field for field in values if field not in own], 4)
    for field in (*own, *shared):
        for value in other(values[field], rng)[:3]:
            assert not misread(name, str(field), value, tmp_path), (field, value)


@pytest.mark.filterwarnings("ignore")
def test_the_law_catches_rotations_without_their_factor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: rotary positions as they were read (cases.md F1)."""
    given = {"rope_type": "yarn", "factor": 1.0, "attention_factor": 5.0, "rope_theta": 10000.0}
    given |= {"original_max_position_embeddings": 12}
    assert not misread("llama", "rope_parameters", given, tmp_path)

    def without(settings: Settings) -> float:
        for name in ("rope_parameters", "rope_scaling", "max_position_embeddings", "original_max_position_embeddings"):
            settings.get(name)
        return 1.0

    monkeypatch.setattr(llama, "rotation_factor", without)
    assert misread("llama", "rope_parameters", given, tmp_path)
