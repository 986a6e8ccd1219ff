"""A model of no known family, described by a small JSON, YAML or TOML file, or by the same as a Python dictionary.

{"architecture": {"style": "pre", "depth": 6, ...},          as in a setting; offsets are those the file has
 "tensors": {"blocks.{b}.attn.q.weight": "W_Q.T", ...},      name pattern -> role (".T": torch.nn.Linear)
 "ignored": {"blocks.{b}.attn.mask": "a buffer"},
 "pooler": "gelu",                                            the activation after W_pool, where it is not tanh
 "fused": "by head", "scales": {"positions": 0.125}, "rotary": {"theta": 10000}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_document
from boundcalc.base.validate import choice, flag, known_keys, positive
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import ACTIVATIONS
from boundcalc.checkpoints.families.names import offset_of
from boundcalc.checkpoints.families.native import said_otherwise
from boundcalc.checkpoints.families.table import Family, Model
from boundcalc.layers.attention import attentions
from boundcalc.layers.base import weights_of
from boundcalc.setting import Activation, Architecture, Attention, Embedding, Layer, Linear, Normaliser
from boundcalc.setting.norms import place_of

_MAPS = ("W_Q", "W_K", "W_V", "W_QKV", "W_O", "W_1", "W_2", "W_3", "W_13", "W_patch", "W_pool", "readout")
_GAINS = tuple(f"norm_{place}.gain" for place in ("embedding", "attention", "ffn", "final", "Q", "K"))
_OTHERS = ("embedding", "positions", "segments", "class_token", "outputs_of.W_O", "outputs_of.W_2")
ROLES = frozenset((*_OTHERS, *(role for name in (*_MAPS, *_GAINS) for role in (name, offset_of(name)))))
"""What a tensor of a mapping may be, besides the weights of the architecture (docs/weights.md)."""

_KEYS = ("architecture", "tensors", "ignored", "fused", "scales", "rotary")
_KEYS += ("plain_norms", "pooler", "qk_eps", "shared")


def read_mapping(source: Path | Mapping[str, Any]) -> Family:
    """The family that a file, or a dictionary of the same form, describes."""
    if isinstance(source, Mapping):
        return _mapping_family(source, "the mapping")
    try:
        data = read_document(source, "the mapping", CheckpointError)
    except OSError as error:
        raise CheckpointError(f"cannot read the mapping {source}: {error}") from None
    return _mapping_family(data, f"mapping {source}")


def _mapping_family(data: Any, where: str) -> Family:
    """The family of a mapping; `where` it stands, for errors."""
    from boundcalc.checkpoints.fixed import rotary_of

    raw = known_keys(where, data, list(_KEYS))
    for key in ("architecture", "tensors"):
        if key not in raw:
            raise InvalidSetting(
                f"{where} needs {key!r}: `boundcalc norms MODEL --template FILE --compare module.py:make` writes one"
            )
    tensors, ignored = _words(where, "tensors", raw["tensors"]), _words(where, "ignored", raw.get("ignored", {}))
    tensors, at = _placed(tensors)
    said = raw["architecture"]
    architecture = Architecture.from_json(said)
    _check_roles(where, tensors, architecture)
    fused = choice(f"{where}: fused", raw.get("fused", "thirds"), ("thirds", "by head"))
    if "fused" in raw and not {role.removesuffix(".T") for role in tensors.values()} & {"W_QKV", "b_QKV"}:
        raise InvalidSetting(f"{where}: 'fused' says how W_QKV lies, and no tensor has that role: leave it out")
    scales = raw.get("scales", {})
    if not isinstance(scales, Mapping):
        raise InvalidSetting(f"{where}: 'scales' is an object from roles to the factors a model multiplies them by")
    for role, factor in scales.items():
        choice(f"{where}: the role of a scale", role, sorted({r.removesuffix(".T") for r in tensors.values()}))
        positive(f"{where}: the scale of {role}", factor)

    if "rotary" in raw and "layers" not in said and not architecture.rope:
        raise InvalidSetting(
            f"{where}: 'rotary' says how queries and keys turn, and the architecture has no rope: set rope to true"
        )
    plain = flag(f"{where}: plain_norms", raw.get("plain_norms", False))
    shared = flag(f"{where}: shared", raw.get("shared", False))

    qk_eps = None if "qk_eps" not in raw else positive(f"{where}: qk_eps", raw["qk_eps"])
    if ("norm_Q.gain" in tensors.values()) != (qk_eps is not None):
        raise InvalidSetting(f"{where}: normalised queries and keys have tensors norm_Q.gain, norm_K.gain and a qk_eps")

    pooler = raw.get("pooler")
    if pooler is not None:
        choice(f"{where}: pooler", pooler, sorted(set(ACTIVATIONS.values())))

    def build(model: Model) -> Architecture:
        heads = None if "heads" in said or "layers" in said else model.option("heads")
        built = architecture if heads is None else architecture.with_fields(heads=heads)
        unsaid = {field.name for field in fields(Architecture)} - set(said) - {"heads" if heads else ""}
        unsaid &= {"input_radius"} if "layers" in said else unsaid
        for name in unsaid - {"bias"}:
            if getattr(model.options, name, None) is None:
                value = getattr(built, name)
                model.settings.assumed[name] = value.name if isinstance(value, Normaliser) else value
        built = built if "layers" in said else _fitted(model, built, said.get("bias"), plain, where, qk_eps)
        return said_otherwise(model, built if pooler is None else _pooled(model, built, pooler))

    return Family(
        "mapping",
        (),
        tensors,
        build,
        ignored,
        fixed={"depth": architecture.depth} if shared else {},
        described=True,
        by_group=fused == "by head",
        scales={role: (lambda _, factor=float(factor): factor) for role, factor in scales.items()},
        halves={"W_13": ("W_1", "W_3"), "b_13": ("b_1", "b_3")},
        at=at,
        known_heads=said.get("heads") or next((a.heads for a in attentions(architecture.layers or ())), None),
        rotate=rotary_of(raw["rotary"]) if "rotary" in raw else None,
    )


def _placed(tensors: Mapping[str, str]) -> tuple[dict[str, str], dict[str, tuple[int | None, int | None]]]:
    """Roles without their places, and the block and head of tensors whose role says them: W_Q[0,1].T."""
    roles: dict[str, str] = {}
    at: dict[str, tuple[int | None, int | None]] = {}
    for pattern, role in tensors.items():
        roles[pattern] = role
        if "[" in role:
            kind, *place = place_of(role.removesuffix(".T"))
            roles[pattern], at[pattern] = kind + ".T" * role.endswith(".T"), (place[0], place[1])
    return roles, at


def shortened(tensors: Mapping[str, str], depth: int) -> dict[str, str]:
    """The same with one pattern for the names of a role in every block, where only the block's number differs."""
    alike: dict[tuple[str, str], dict[int | None, str]] = {}
    for name, role in tensors.items():
        kind, block, head = place_of(role.removesuffix(".T"))
        parts = name.split(".")
        if head is None and str(block) in parts:
            parts[parts.index(str(block))] = "{b}"
            alike.setdefault((".".join(parts), kind + ".T" * role.endswith(".T")), {})[block] = name
    patterns = {pair: names for pair, names in alike.items() if len(names) == depth}
    gone = {name for names in patterns.values() for name in names.values()}
    return {pattern: role for pattern, role in patterns} | {
        name: role for name, role in tensors.items() if name not in gone
    }


def _check_roles(where: str, tensors: Mapping[str, str], architecture: Architecture) -> None:
    """A role that nothing knows is refused, with those there are."""
    roles = set(ROLES)
    for weight in weights_of(architecture.stages, architecture.seq_len):
        roles |= {part.kind for part in weight.all}
    for pattern, role in tensors.items():
        if role.removesuffix(".T") not in roles:
            choice(f"{where}: role of {pattern}", role.removesuffix(".T"), sorted(roles))


def _fitted(
    model: Model, architecture: Architecture, bias: bool | None, plain: bool, where: str, qk_eps: float | None
) -> Architecture:
    """The architecture with the offsets and gains that have tensors, one by one: heads often have none where maps do.

    A normalisation without any tensor is not there, unless the mapping says that there are `plain` ones.
    """
    stages = _with_offsets(model, architecture.stages, plain, qk_eps)
    if stages == architecture.stages:
        return architecture
    offsets = [role for role, _ in model.places if role.startswith("b_") or role.endswith(".offset")]
    if bias is False and offsets:
        raise InvalidSetting(f"{where} says bias false, and gives {offsets[0]} a tensor: leave bias out, or the tensor")
    if bias is True and not offsets:
        raise InvalidSetting(f"{where} says bias true, and gives no offset a tensor: leave bias out")
    tokens = architecture.unread("input_radius") is not None
    radius: dict[str, Any] = {} if tokens else {"input_radius": architecture.input_radius}
    return Architecture(layers=stages, seq_len=architecture.seq_len, classes=architecture.classes, **radius)


def _pooled(model: Model, architecture: Architecture, activation: str) -> Architecture:
    """The same with another activation between W_pool and the read-out, and the width that the tensors have."""
    stages = list(architecture.stages)
    at = next((place for place, layer in enumerate(stages) if getattr(layer, "kind", None) == "W_pool"), None)
    if at is None:
        raise InvalidSetting("'pooler' is the activation after W_pool: say pooler true in the architecture")
    pool, out = cast("Linear", stages[at]), cast("Linear", stages[at + 2])
    width = model.shape("W_pool")[1]
    stages[at : at + 3] = [replace(pool, d_out=width), Activation(activation), replace(out, d_in=width)]
    tokens = architecture.unread("input_radius") is not None
    radius: dict[str, Any] = {} if tokens else {"input_radius": architecture.input_radius}
    return Architecture(layers=tuple(stages), seq_len=architecture.seq_len, classes=architecture.classes, **radius)


def _with_offsets(model: Model, layers: Sequence[Layer], plain: bool, qk_eps: float | None) -> tuple[Layer, ...]:
    stages: list[Layer] = []
    for layer in layers:
        if layer.branches:
            stages.append(layer.map_branches(lambda branch: _with_offsets(model, branch, plain, qk_eps)))
            continue
        fitted = layer.fitted(partial(model.has, block=layer.where()))
        if isinstance(fitted, Embedding) and model.has("segments"):
            fitted = replace(fitted, segments=model.shape("segments")[0])
        if isinstance(fitted, Attention) and qk_eps is not None:
            alone = model.place("norm_Q.gain", layer.where()).tensor.size == fitted.d_head
            fitted = replace(fitted, qk="split", qk_norm="head" if alone else "width", qk_eps=qk_eps)
        if plain or fitted.weights(1) or not layer.weights(1):
            stages.append(fitted)
    return tuple(stages)


def _words(where: str, key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        raise InvalidSetting(f"{where}: {key!r} is an object from name patterns to strings")
    return dict(value)
