"""Law: nothing in a checkpoint is ignored. A field of config.json or a tensor that is changed changes the model that is
read, is listed as neutral, or is refused; and what is read is what the library computes from the changed files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints import FAMILIES, Audit, CheckpointError, Want, audit
from boundcalc.checkpoints.families import NOT_YET, Family
from boundcalc.checkpoints.families.config import NEUTRAL, ONLY, Settings, rotation_factor
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


def ignored(
    before: Audit,
    t: Mapping[str, Any],
    config: Mapping[str, Any],
    name: str,
    value: object,
    family: Family,
    path: Path,
) -> bool:
    """Whether a changed field is neither read, nor neutral, nor refused."""
    try:
        after = audit(handmade.save(path / "after", t, {**config, name: value}), family=family, want=QUICK, seed=1)
    except BoundcalcError:
        return False
    if (
        NEUTRAL.fullmatch(name)
        or re.fullmatch(family.neutral, name)
        or any(name in doubt for doubt in after.account.doubts)
    ):
        return False
    return reading(before) == reading(after)


INERT = {
    "tie_word_embeddings": "a classifier has no read-out to tie",
    "pooler_act": "a classifier of images has no pooler",
    "original_max_position_embeddings": "only rotations of YaRN and LongRoPE read it",
    "architectures": "classes of one ending are one head",
}
"""Fields that are read, and mean nothing for the handmade models; the library's forward pass decides below."""
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
    names = sorted(
        {*config, *(field for field, _ in family.reads.values()), *family.only, *ONLY, "query_pre_attn_scalar"}
    )
    before = audit(handmade.save(tmp_path / "before", t, config), family=family, want=QUICK, seed=1)
    tried = 0
    for field in names:
        for value in other(config.get(field), rng):
            if field in INERT or value == config.get(field) or value is None:
                continue
            allowed = {**ONLY, **family.only}.get(field, ())
            if any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed):
                continue
            tried += 1
            assert not ignored(before, t, config, field, value, family, tmp_path), (field, value)
    assert tried > 60


def test_the_law_catches_a_table_that_does_not_read_a_field(tmp_path: Path) -> None:
    """Negative control: Granite's temperature, in a table that takes its field for neutral."""
    t, config = handmade.llama(np.random.default_rng(SEED))
    config = config | {"model_type": "granite"}
    forgetful = replace(FAMILIES["llama"], model_types=("granite",), neutral="attention_multiplier")
    lying = replace(forgetful, neutral="", only={"attention_multiplier": (5.0,)})
    for family, unseen in ((FAMILIES["granite"], False), (lying, True)):
        before = audit(handmade.save(tmp_path / "before", t, config), family=family, want=QUICK, seed=1)
        assert ignored(before, t, config, "attention_multiplier", 5.0, family, tmp_path) == unseen


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
    *("bert", "bert mlm", "bert untied", "roberta", "roberta mlm", "distilbert", "electra", "electra mlm"),
    *("gpt2", "opt", "opt narrow", "gpt_neox", "gptj", "phi", "llama", "mistral", "qwen2", "granite", "vit", "deit"),
    *("bloom", "falcon", "gemma", "gemma2", "modernbert", "olmo2", "qwen3", "t5 gated", "phi3", "smollm3", "gemma3"),
)


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
    read = {field for field, _ in family.reads.values()} | {*family.only, *ONLY}
    own = [field for field in values if field in read or not NEUTRAL.fullmatch(field)]
    shared = rng.choice([field for field in values if field not in own], 4)
    for field in (*own, *shared):
        for value in other(values[field], rng)[:3]:
            assert not misread(name, str(field), value, tmp_path), (field, value)


# -- constants of releases

Rotation = Callable[[Mapping[str, Any], Mapping[str, Any]], float]
"""What a release multiplies cos and sin by, from rope_scaling (rope_parameters) and config.json."""


def _grown(stretch: float, scale: float = 1.0) -> float:
    return 1.0 if stretch <= 1 else 0.1 * scale * math.log(stretch) + 1.0


def _yarn(given: Mapping[str, Any], stretch: float, *, scales: bool = True) -> float:
    if given.get("attention_factor") is not None:
        return given["attention_factor"]
    if scales and given.get("mscale") and given.get("mscale_all_dim"):
        return _grown(stretch, given["mscale"]) / _grown(stretch, given["mscale_all_dim"])
    return _grown(stretch)


def _yarn_by_ratio(given: Mapping[str, Any], config: Mapping[str, Any]) -> float:
    original = given.get("original_max_position_embeddings")
    return _yarn(given, config["max_position_embeddings"] / original if original else given["factor"])


def _long(given: Mapping[str, Any], stretch: float, original: float) -> float:
    if given.get("attention_factor") is not None:
        return given["attention_factor"]
    return 1.0 if stretch <= 1 else math.sqrt(1 + math.log(stretch) / math.log(original))


def _long_of_old(given: Mapping[str, Any], config: Mapping[str, Any]) -> float:
    original, longest = config.get("original_max_position_embeddings"), config["max_position_embeddings"]
    return _long(given, longest / original if original else given["factor"], original or longest)


def _long_of_new(given: Mapping[str, Any], config: Mapping[str, Any]) -> float:
    inner = given.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
    return _long(given, given["factor"], inner or config["max_position_embeddings"])


RELEASES: Mapping[str, Mapping[str, Rotation]] = {
    "4.45 to 4.48": {"yarn": lambda given, _: _yarn(given, given["factor"], scales=False), "longrope": _long_of_old},
    "4.49 to 4.57": {"yarn": _yarn_by_ratio, "longrope": _long_of_old},
    "5.0 to 5.23": {"yarn": lambda given, _: _yarn(given, given["factor"]), "longrope": _long_of_new},
}
"""By release of transformers; every other type of rotations has factor 1 in each."""


def _drawn(kind: str, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """A table of rotations and the lengths beside it."""
    given: dict[str, Any] = {"rope_type": kind, "factor": float(rng.choice([1.0, 2.0, 8.0, 40.0]))}
    config: dict[str, Any] = {"max_position_embeddings": int(rng.choice([64, 512, 4096]))}
    if rng.random() < 0.7:
        given["original_max_position_embeddings"] = int(rng.choice([16, 64, 256]))
    if kind == "longrope" and rng.random() < 0.5:
        config["original_max_position_embeddings"] = int(rng.choice([16, 64]))
    if kind == "yarn" and rng.random() < 0.5:
        given |= {"mscale": float(rng.uniform(0.3, 2)), "mscale_all_dim": float(rng.uniform(0.3, 2))}
    if kind in ("yarn", "longrope") and rng.random() < 0.2:
        given["attention_factor"] = float(rng.uniform(0.5, 5))
    return given, config


def _below_a_release(factor: Callable[[Settings], float], kind: str, tries: int = 400) -> bool:
    """Whether the factor of some table is less than that of some release."""
    rng = np.random.default_rng(SEED)
    for _ in range(tries):
        given, config = _drawn(kind, rng)
        found = factor(Settings("a file", {}, config | {"rope_parameters": given}))
        releases = [release.get(kind, lambda *_: 1.0)(given, config) for release in RELEASES.values()]
        if found < max(releases) * (1 - 1e-12):
            return True
    return False


@pytest.mark.parametrize("kind", ["default", "linear", "dynamic", "llama3", "yarn", "longrope"])
def test_rotations_have_at_least_the_factor_of_every_release(kind: str) -> None:
    """YaRN with factor 2, original length 16 and longest 512 had 1.069, and releases of 4.49 to 4.57 have 1.347."""
    assert not _below_a_release(rotation_factor, kind)
    if kind in ("yarn", "longrope"):  # the negative control: one release's own constant is less than another's
        for release in RELEASES.values():
            one = release[kind]
            assert _below_a_release(
                lambda settings, one=one: one(settings.get("rope_parameters"), settings.config), kind
            )


@pytest.mark.parametrize("kind", ["yarn", "longrope"])
@pytest.mark.filterwarnings("ignore")
def test_the_table_of_releases_has_the_release_that_is_installed(kind: str) -> None:
    from tests.checkpoints.live import hf

    if int(hf.__version__.partition(".")[0]) < 5:
        pytest.skip("another release")
    rng = np.random.default_rng(SEED)
    for _ in range(30):
        given, config = _drawn(kind, rng)
        config.pop("original_max_position_embeddings", None)
        given.setdefault("original_max_position_embeddings", 16)
        given |= {"short_factor": [1.0, 1.0], "long_factor": [2.0, 2.0]} if kind == "longrope" else {}
        made = hf.LlamaConfig(
            hidden_size=16, num_attention_heads=4, **config, rope_parameters=given | {"rope_theta": 1e4}
        )
        _, factor = hf.modeling_rope_utils.ROPE_INIT_FUNCTIONS[kind](made, "cpu")
        assert factor == pytest.approx(RELEASES["5.0 to 5.23"][kind](given, config), rel=1e-12)
