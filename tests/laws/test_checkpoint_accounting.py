"""Law: nothing in a checkpoint is ignored. A tensor that is changed changes the model that is read, or is said to be
unread. With any field of config.json changed, a description that passes the forward check is the library's function."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints import FAMILIES, Audit, CheckpointError, audit
from boundcalc.checkpoints.audit import open_model
from boundcalc.checkpoints.families import NOT_YET
from boundcalc.checkpoints.families.config import rotation_factor
from boundcalc.checkpoints.parity import compare
from boundcalc.layers.base import of_class
from boundcalc.setting import Pool
from tests.checkpoints import handmade, zoo
from tests.checkpoints.live import hf

SEED = 0


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


@pytest.mark.parametrize("name", handmade.SMALL)
def test_a_changed_tensor_is_read_or_said_to_be_unread(name: str, tmp_path: Path) -> None:
    t, config = handmade.SMALL[name](np.random.default_rng(SEED))
    before = audit(handmade.save(tmp_path / "before", t, config), seed=1)
    for tensor, values in t.items():
        if values.dtype.kind != "f":
            continue
        after = audit(handmade.save(tmp_path / "after", {**t, tensor: 1000 * values}, config), seed=1)
        line = next(line for line in after.account.lines if line.tensor == tensor)
        assert reading(before) != reading(after) or (line.used == 0 and line.reason), tensor
        try:
            less = {key: value for key, value in t.items() if key != tensor}
            after = audit(handmade.save(tmp_path / "less", less, config), seed=1)
        except CheckpointError:
            continue
        assert reading(before) != reading(after) or after.account.doubts or line.used == 0, tensor
    more = audit(handmade.save(tmp_path / "more", {**t, "bert.extra.weight": np.ones((2, 2))}, config), seed=1)
    assert more.account.unknown == ["bert.extra.weight"]


@pytest.mark.parametrize("kind", ["gemma", "granite", "mamba", "made-up"])
def test_a_family_reads_no_other_type(kind: str, tmp_path: Path) -> None:
    """cases.md F3: Gemma and Granite were read as Llama by --family llama, without a word."""
    t, config = handmade.llama(np.random.default_rng(0))
    path = handmade.save(tmp_path / "m", t, config | {"model_type": kind})
    with pytest.raises(CheckpointError, match=rf"model_type '{kind}'.*reads only llama, mistral, qwen2") as caught:
        audit(path, family="llama")
    text = str(caught.value)
    assert "\n" not in text
    assert NOT_YET.get(kind, "") in text


# -- against the library


NAMES = ("bert", "roberta", "electra mlm", "gpt2", "opt", "gpt_neox", "llama", "granite", "vit", "bloom")
NAMES += ("falcon", "gemma2", "modernbert", "olmo2", "t5 gated", "phi3", "mpnet", "siglip text")


@cache
def _made(name: str) -> tuple[Any, Mapping[str, Any]]:
    """A model of the zoo, and its settings as a config.json has them."""
    model = zoo.ZOO[name].make()
    return model, {**json.loads(model.config.to_json_string()), "architectures": [type(model).__name__]}


def misread(name: str, field: str, value: object, path: Path, *, compared: bool = True) -> bool:
    """Whether a field of config.json is changed, the library puts the same weights together to another function, and
    what is read here is not that function and passes the forward check."""
    kind, (model, settings) = zoo.ZOO[name], _made(name)
    config, state = {**settings, field: value}, model.state_dict()
    try:
        loaded = kind.of(kind.config(**json.loads(json.dumps(config))))
        loaded.load_state_dict(state)
        want = zoo.logits(kind, loaded)
    except Exception:
        return False  # the library refuses
    own = {key for key, _ in model.named_parameters()}  # tied weights once, as the library saves them
    handmade.save(path, {key: tensor.numpy() for key, tensor in state.items() if key in own}, config, "float64")
    try:
        seen = open_model(path)
        if not any(layer.how for layer in of_class(seen.architecture.stages, Pool)):
            return False  # it ends in rows, and nothing is bounded
        if compared:
            compare(loaded, seen)
        got = zoo.ours(kind, path, loaded)
    except BoundcalcError:
        return False
    return not np.allclose(got, want, atol=1e-6 * max(1, np.abs(want).max()), rtol=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_what_passes_the_forward_check_is_what_the_library_computes(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED + len(name))
    values = _made(name)[1]
    family = next(f for f in FAMILIES.values() if values["model_type"] in f.model_types)
    read = [field for field, _ in family.reads.values() if field in values]
    for field in (*read, *rng.choice([field for field in values if field not in read], 8)):
        for value in other(values[field], rng)[:2]:
            assert not misread(name, str(field), value, tmp_path), (field, value)


@pytest.mark.filterwarnings("ignore")
def test_without_the_forward_check_a_field_that_no_family_reads_is_misread(tmp_path: Path) -> None:
    """The negative control: GPT-2 whose scores are not divided."""
    assert misread("gpt2", "scale_attn_weights", False, tmp_path, compared=False)
    assert not misread("gpt2", "scale_attn_weights", False, tmp_path)


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


def _below_a_release(factor: Rotation, kind: str, tries: int = 400) -> bool:
    """Whether the factor of some table is less than that of some release."""
    rng = np.random.default_rng(SEED)
    for _ in range(tries):
        given, config = _drawn(kind, rng)
        releases = [release.get(kind, lambda *_: 1.0)(given, config) for release in RELEASES.values()]
        if factor(given, config) < max(releases) * (1 - 1e-12):
            return True
    return False


@pytest.mark.parametrize("kind", ["default", "linear", "dynamic", "llama3", "yarn", "longrope"])
def test_rotations_have_at_least_the_factor_of_every_release(kind: str) -> None:
    """YaRN with factor 2, original length 16 and longest 512 had 1.069, and releases of 4.49 to 4.57 have 1.347."""

    def ours(given: Mapping[str, Any], config: Mapping[str, Any]) -> float:
        oldest = {"type" if name == "rope_type" else name: value for name, value in given.items()}
        spellings = ({"rope_parameters": given}, {"rope_scaling": given}, {"rope_scaling": oldest})
        (factor,) = {rotation_factor({**config, **said}.get, []) for said in spellings}
        return factor

    assert not _below_a_release(ours, kind)
    if kind in ("yarn", "longrope"):  # the negative control: one release's own constant is less than another's
        for release in RELEASES.values():
            assert _below_a_release(release[kind], kind)


def test_a_field_of_rotations_that_nothing_reads_is_doubted() -> None:
    """A forward check sees what one release makes of it; without one, nothing does."""
    table = {"rope_type": "linear", "factor": 2.0}
    for more, number in (({}, 0), ({"mscale": 3.0}, 1), ({"attention_factor": 2.0}, 1), ({"rope_theta": 1e4}, 0)):
        doubts: list[str] = []
        rotation_factor({"rope_parameters": table | more}.get, doubts)
        assert len(doubts) == number, more


@pytest.mark.parametrize("kind", ["yarn", "longrope"])
@pytest.mark.filterwarnings("ignore")
def test_the_table_of_releases_has_the_release_that_is_installed(kind: str) -> None:
    if int(hf.__version__.partition(".")[0]) < 5:
        pytest.skip("another release")
    rng = np.random.default_rng(SEED)
    for _ in range(30):
        given, config = _drawn(kind, rng)
        config.pop("original_max_position_embeddings", None)
        given.setdefault("original_max_position_embeddings", 16)
        given |= {"short_factor": [1.0, 1.0], "long_factor": [2.0, 2.0]} if kind == "longrope" else {}
        read = hf.LlamaConfig(
            hidden_size=16, num_attention_heads=4, **config, rope_parameters=given | {"rope_theta": 1e4}
        )
        _, factor = hf.modeling_rope_utils.ROPE_INIT_FUNCTIONS[kind](read, "cpu")
        assert factor == pytest.approx(RELEASES["5.0 to 5.23"][kind](given, config), rel=1e-12)
