"""Tables of families: one TOML file each next to this one, or a mapping of the user's, which has the same form."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_json
from boundcalc.base.validate import choice, flag, known_keys, positive, size
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.blocks import stack
from boundcalc.checkpoints.families.config import activation
from boundcalc.checkpoints.families.names import offset_of, placed, with_offsets
from boundcalc.checkpoints.families.table import TOKENS, Family, Model
from boundcalc.layers.base import flat, weights_of
from boundcalc.setting import Architecture

_FOLDER = Path(__file__).parent
_TABLES = ("tensors", "reads", "architecture", "ignored", "scales")

_BUFFERS = ("*attn.bias", "*attention.bias", "*masked_bias", "*inv_freq", "*embed_positions")
"""Names of masks and rotations in files of language models, where a family says that its files have `buffers`."""


def family_files() -> tuple[Family, ...]:
    """Every family that has a file."""
    files = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.toml"))}
    return tuple(_family(name, _merged(name, files)) for name in files)


def _merged(name: str, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A file's tables, with those of the family that it is like, but for what it drops of them.

    "modules" are tensors in pairs: the weight has the role that is written, and the bias is the offset of that role.
    """
    own = files[name]
    parent = _merged(own["like"], files) if "like" in own else {}
    drop = own.get("drop", [])
    merged: dict[str, Any] = {**parent, **own}
    for table in _TABLES:
        inherited = {k: v for k, v in parent.get(table, {}).items() if not any(fnmatchcase(k, rule) for rule in drop)}
        more = with_offsets(own.get("modules", {})) if table == "tensors" else {}
        merged[table] = inherited | own.get(table, {}) | more
    return merged


def _family(name: str, data: Mapping[str, Any]) -> Family:
    return Family(
        name,
        tuple(data["types"]),
        data["tensors"],
        stack,
        data["ignored"] | (dict.fromkeys(_BUFFERS, "a buffer") if data.get("buffers") else {}),
        tuple(data.get("prefixes", ())),
        reads={name: (said[0], said[1] if len(said) > 1 else None) for name, said in data["reads"].items()},
        parameters=data["architecture"],
        scales={role: _scale(said) for role, said in data["scales"].items()},
    )


def _scale(said: str | float) -> Callable[[Model], float]:
    """What a weight is multiplied by: a number, one that config.json says, its inverse, or the root of a width."""
    if not isinstance(said, str):
        return lambda _: float(said)
    if said == "root of width":
        return lambda model: _root(model.shape("embedding")[1])
    if said == "root of head":
        return lambda model: _root(model.head_width(model.shape("W_O", 0)[0]))
    if said.startswith("1/"):
        return lambda model: math.nextafter(1 / model.number(said[2:]), math.inf)
    return lambda model: model.number(said)


def _root(width: int) -> float:
    """The square root, rounded up where it is no whole number."""
    root = math.sqrt(width)
    return root if root.is_integer() else math.nextafter(root, math.inf)


# -- mappings

_MAPS = [f"W_{at}" for at in ("Q", "K", "V", "QKV", "O", "1", "2", "3", "13", "31", "in", "patch", "pool")]
_GAINS = [f"norm_{at}.gain" for at in ("embedding", "attention", "ffn", "attention_out", "ffn_out", "final")]
_ROLES = {role for name in (*_MAPS, *_GAINS, "readout") for role in (name, offset_of(name))}
_ROLES |= {"embedding", "positions", "segments", "score_offsets", *TOKENS}
_ROLES |= {"norm_Q.gain", "norm_K.gain", "outputs_of.W_O", "outputs_of.W_2"}
"""What a tensor of a mapping may be (docs/weights.md)."""
_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("eps", "cap", "final_cap", "qk_eps", "score_scale", "score_root", "input_radius"), positive),
    **dict.fromkeys(("causal", "plain", "parallel", "around_one", "alibi", "by_group", "tied"), flag),
    **dict.fromkeys(("heads", "longest", "padding"), size),
    **dict.fromkeys(("activation", "pooler"), lambda _, value: activation(value)),
    "position_radius": positive,
    "style": partial(choice, options=("pre", "post")),
    "normalisation": partial(choice, options=("layernorm", "rmsnorm")),
    "readout": partial(choice, options=("cls", "mean")),
}
"""What a mapping may say of its blocks (families/blocks.py), and the check of each."""


def read_mapping(source: Path | Mapping[str, Any]) -> Family:
    """The family that a file, or a dictionary of the same form, describes."""
    from boundcalc.checkpoints.forward import rotary

    where, data = "the mapping", source
    if isinstance(source, Path):
        where = f"mapping {source}"
        try:
            data = read_json(source, "the mapping", CheckpointError)
        except OSError as error:
            raise CheckpointError(f"cannot read the mapping {source}: {error}") from None
    raw = known_keys(where, data, ["architecture", "modules", "tensors", "ignored", "scales", "rotary"])
    for key in ("architecture", "tensors"):
        if key not in raw:
            raise InvalidSetting(
                f"{where} needs {key!r}: `boundcalc norms MODEL --template FILE --compare module.py:make` writes one"
            )
    for key, value in raw.items():
        if not isinstance(value, Mapping):
            raise InvalidSetting(f"{where}: {key!r} is an object")
    said = known_keys(f"{where}: architecture", raw["architecture"], list(_CHECKS))
    family = _family("mapping", _merged("mapping", {"mapping": {"types": (), **raw}}))
    roles = {placed(role)[0] for role in family.tensors.values()}
    for role in roles:
        choice(f"{where}: role of a tensor", role, sorted(_ROLES))
    for role, factor in raw.get("scales", {}).items():
        choice(f"{where}: the role of a scale", role, sorted(roles))
        positive(f"{where}: the scale of {role}", factor)
    for name, value in said.items():
        _CHECKS[name](f"{where}: {name}", value)
    if "by_group" in said and not roles & {"W_QKV", "b_QKV"}:
        raise InvalidSetting(f"{where}: 'by_group' says how W_QKV lies, and no tensor has that role: leave it out")
    if ("norm_Q.gain" in roles) != ("qk_eps" in said):
        raise InvalidSetting(f"{where}: normalised queries and keys have tensors norm_Q.gain, norm_K.gain and a qk_eps")
    turns = known_keys(f"{where}: rotary", raw.get("rotary", {}), ["theta", "pairs"])
    rotate = rotary(**turns) if "rotary" in raw else None
    return replace(family, parameters={**said, "rope": rotate is not None}, described=True, rotate=rotate)


# -- this library's own models


def family_of(architecture: Architecture) -> Family:
    """The table of one architecture: tensors are called as in norms files ("W_V[0]"), perhaps with ":" for ".".

    A tensor of heads has a first dimension for them; maps are stored as x -> x W.
    """
    tensors: dict[str, str] = {}
    for weight in weights_of(architecture.stages, architecture.seq_len):
        kinds = {part.kind for part in weight.all}
        for kind in kinds | ({"b_K"} if "b_Q" in kinds else set()):  # trained, though softmax may forget it
            for name in {kind, kind.replace(".", ":")}:
                tensors[name if weight.block is None else f"{name}[{{b}}]"] = kind
    fixed = any(layer.fixed(1) for layer in flat(architecture.stages))
    ignored = {"positions": "fixed positions are not trained"} if fixed else {}
    return replace(NATIVE, tensors=tensors, build=lambda model: _said_otherwise(model, architecture), ignored=ignored)


def _said_otherwise(model: Model, architecture: Architecture) -> Architecture:
    """An architecture that is known, with the T and the input radius that the user says."""
    said = {name: model.option(name) for name in ("seq_len", "input_radius")}
    return replace(architecture, **{name: value for name, value in said.items() if value is not None})


def _stored_architecture(model: Model) -> Architecture:
    raise CheckpointError(
        f"{model.checkpoint.where} has tensors named as in norms files but no architecture: save it as JSON under the "
        "safetensors metadata key 'architecture', or in config.json"
    )


NATIVE = Family("boundcalc", ("boundcalc",), {}, _stored_architecture, described=True)
"""This library's own models, whose architecture travels with them."""
