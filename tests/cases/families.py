"""Cases of the families of checkpoints: small models, their maps put together by hand, and tables that read them
wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundcalc.checkpoints.families import FAMILIES, Family
from boundcalc.checkpoints.families.read import family_of
from boundcalc.setting import Architecture
from boundcalc.testing.report import Cases
from tests.cases.models import MODELS
from tests.cases.short import HEADS, SmallModel, Tensors
from tests.laws.kinds.families import FamilyExample

_Floats = NDArray[np.float64]
_Maps = dict[str, _Floats]
"""Maps x -> x W, offsets and gains, by their keys."""


def _as_maps(model: SmallModel, tensors: Tensors) -> _Maps:
    """Every tensor as the model multiplies by it, of every block that reads it."""
    maps: _Maps = {}
    for tensor in model.stored:
        values = tensors[tensor.name].astype(np.float64)
        values = values.T if tensor.turned else values
        blocks = [block for block, read in enumerate(model.reads) if read == tensor.block]
        maps |= dict.fromkeys(
            [tensor.role] if tensor.block is None else [f"{tensor.role}[{b}]" for b in blocks], values
        )
    return maps


def _taken_apart(model: SmallModel, maps: _Maps, block: int) -> None:
    """Fused queries, keys and values, and gated halves, by the columns in which they lie."""
    for fused in ("W_QKV", "b_QKV"):
        values = maps.pop(f"{fused}[{block}]", None)
        if values is None:
            continue
        if model.groups:
            width, queries = 8 // HEADS, HEADS // model.groups
            groups = values.reshape(*values.shape[:-1], model.groups, queries + 2, width)
            parts = groups[..., :queries, :], groups[..., queries, :], groups[..., queries + 1, :]
            parts = [part.reshape(*values.shape[:-1], -1) for part in parts]
        else:
            parts = np.split(values, 3, axis=-1)
        maps |= {f"{fused[:2]}{kind}[{block}]": part for kind, part in zip("QKV", parts, strict=True)}
    halves = maps.pop(f"W_13[{block}]", None)
    if halves is not None:
        maps[f"W_1[{block}]"], maps[f"W_3[{block}]"] = np.split(halves, 2, axis=1)


def _by_head(model: SmallModel, maps: _Maps, block: int) -> None:
    """Maps of heads by their columns; without rotations W_Q W_K^T of each, the offset of its queries one more row."""
    width = maps[f"W_Q[{block}]"].shape[1] // HEADS
    apart: dict[str, list[_Floats]] = {}
    for kind in ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"):
        values = maps.pop(f"{kind}[{block}]", None)
        if values is not None:
            apart[kind] = np.split(values, values.shape[-1] // width, axis=-1)
    if not model.rotated:
        queries, keys = apart.pop("W_Q"), apart.pop("W_K")
        apart.pop("b_K", None)  # softmax forgets it
        offsets = apart.pop("b_Q", [np.zeros((0, width))] * HEADS)
        apart["W_QK"] = [np.vstack([q, b]) @ k.T for q, b, k in zip(queries, offsets, keys, strict=True)]
    maps |= {f"{kind}[{block},{head}]": w for kind, heads in apart.items() for head, w in enumerate(heads)}


def _tied(maps: _Maps) -> None:
    maps["readout"] = maps["embedding"].T


def _after_padding(maps: _Maps) -> None:
    """Two rows of positions are never read."""
    maps["positions"] = maps["positions"][2:]


def _t5(maps: _Maps) -> None:
    """Every block adds the same numbers to its scores."""
    numbers = maps.pop("score_offsets").ravel()
    maps |= {f"score_offsets[{block}]": numbers for block in (0, 1)}


def _opt(maps: _Maps) -> None:
    _tied(maps)
    _after_padding(maps)


def _granite(maps: _Maps) -> None:
    """The constants of its config.json go into the weights."""
    for key in maps:
        factor = {"embedding": 3.0, "readout": 1 / 2.5, "W_O": 0.3, "W_2": 0.3}.get(key.partition("[")[0], 1.0)
        maps[key] = factor * maps[key]


def _gemma(maps: _Maps) -> None:
    """The table of words is read times the root of a row's width, and is the read-out as it stands."""
    _tied(maps)
    maps["embedding"] = float(np.float32(8**0.5)) * maps["embedding"]


def _vit(maps: _Maps) -> None:
    """Tokens put before the patches are read as part of the first positions, whose rows of the input are zeros."""
    positions = maps["positions"][0].copy()
    for row, token in enumerate(("class_token", "distillation_token")):
        if token in maps:
            positions[row] += maps.pop(token)[0, 0] - maps["b_patch"]
    maps["positions"], maps["W_patch"] = positions, maps["W_patch"].reshape(8, 12).T


def _gemma3(maps: _Maps) -> None:
    """Gains of queries and keys are what is stored and 1."""
    _gemma(maps)
    maps |= {key: 1 + values for key, values in maps.items() if key.startswith(("norm_Q", "norm_K"))}


def _mpnet(maps: _Maps) -> None:
    """Numbers are added after the division of scores by the root of a head's width."""
    _after_padding(maps)
    numbers = 2**0.5 * maps.pop("score_offsets").ravel()
    maps |= {f"score_offsets[{block}]": numbers for block in (0, 1)}


def _clip_vision(maps: _Maps) -> None:
    """The map of patches has no offset, so that the class token stands in its position as it is."""
    maps["positions"][0] += maps.pop("class_token")
    maps["W_patch"] = maps["W_patch"].reshape(8, 12).T


def _dinov2(maps: _Maps) -> None:
    """What a part adds is scaled, entry by entry; no input has a masked patch."""
    del maps["mask_token"]
    _vit(maps)
    for block in (0, 1):
        for part in "O2":
            scale = maps.pop(f"outputs_of.W_{part}[{block}]")
            maps |= {key: maps[key] * scale for key in (f"W_{part}[{block}]", f"b_{part}[{block}]")}


def _boundcalc(maps: _Maps) -> None:
    """Heads lie one behind the other; positions are fixed."""
    del maps["positions"]
    for block in (0, 1):
        queries, keys, values = (maps.pop(f"W_{kind}[{block}]") for kind in "QKV")
        maps |= {f"W_QK[{block},{head}]": queries[head] @ keys[head].T for head in (0, 1)}
        maps |= {f"W_V[{block},{head}]": values[head] for head in (0, 1)}


_ITS_OWN: Mapping[str, Callable[[_Maps], None]] = {
    "roberta": _after_padding,
    "t5": _t5,
    "gpt2": _tied,
    "opt": _opt,
    "bloom": _tied,
    "falcon": _tied,
    "granite": _granite,
    "gemma": _gemma,
    "gemma2": _gemma,
    "gemma3": _gemma3,
    "mpnet": _mpnet,
    "clip_vision": _clip_vision,
    "dinov2": _dinov2,
    "vit": _vit,
    "deit": _vit,
    "boundcalc": _boundcalc,
}
"""What a family does with its weights beside reading them."""


def maps_of(name: str, tensors: Tensors) -> _Maps:
    """All maps, offsets and gains of the small model of a family."""
    model = MODELS[name]
    maps = _as_maps(model, tensors)
    _ITS_OWN.get(name, lambda maps: None)(maps)
    for block in range(len(model.reads)) if name != "boundcalc" else ():
        _taken_apart(model, maps, block)
        _by_head(model, maps, block)
    return maps


_STRANGE = "no such thing"
_REFUSED: Mapping[str, Mapping[str, Any]] = {
    "roberta": {"pad_token_id": -1},
    "modernbert": {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}},
    "bloom": {"layer_norm_epsilon": 0},
    "granite": {"residual_multiplier": 0},
    "gemma": {"tie_word_embeddings": "no"},
    "boundcalc": {"architecture": None},
}
"""Fields of its config.json, with a value that no bound here is for, besides its activation."""


def _renamed(family: Family, **roles: str) -> Family:
    """The table with other roles for some tensors."""
    tensors = {pattern: roles.get(role.partition(".")[0], role) for pattern, role in family.tensors.items()}
    return replace(family, tensors=tensors)


def _wrong(family: Family) -> Iterator[tuple[str, Family]]:
    """Tables that mistake how something is stored: whatever this family has of what can be mistaken."""
    stored = {tensor.role for tensor in MODELS[family.name].stored}
    roles = {role.partition(".")[0]: role for role in family.tensors.values() if role.removesuffix(".T") in stored}
    for role in ("W_1", "W_13"):
        if role in roles:
            other = role if roles[role].endswith(".T") else f"{role}.T"
            yield "a stored transpose taken for the map, or the other way round", _renamed(family, **{role: other})
    if "W_Q" in roles:
        swapped = {"W_Q": roles["W_V"], "W_V": roles["W_Q"]}
        yield "queries taken for values", _renamed(family, **swapped)
    else:
        what = "heads side by side taken for one after the other, or the other way round"
        yield what, replace(family, parameters={**family.parameters, "by_group": not family.parameters.get("by_group")})
    if "W_13" in roles:
        yield "halves swapped", _renamed(family, W_13=roles["W_13"].replace("13", "31"))
    if family.scales:
        yield "factors of weights forgotten", replace(family, scales={})
    if family.name in ("opt", "roberta"):
        reads = {name: field for name, field in family.reads.items() if name != "padding"}
        yield (
            "rows of positions that no token reads",
            replace(family, reads=reads, parameters={**family.parameters, "skipped": 0}),
        )
    if "class_token" in roles:
        name = next(name for name, role in family.tensors.items() if role == "class_token")
        tensors = {key: role for key, role in family.tensors.items() if key != name}
        yield "a class token left out", replace(family, tensors=tensors, ignored={**family.ignored, name: "no token"})


def cases(name: str) -> Cases[Family, FamilyExample]:
    """What the library's family of that name brings."""
    tensors, config = MODELS[name].drawn(), MODELS[name].config
    here = FamilyExample(tensors, config, maps_of(name, tensors))
    family = FAMILIES[name]
    activation = {family.reads["activation"][0]: _STRANGE} if "activation" in family.reads else {}
    refusals = [
        (here.but(**{field: value}), f"{re.escape(field)}|{re.escape(str(value))}")
        for field, value in {**activation, **_REFUSED.get(name, {})}.items()
    ]
    if name == "boundcalc":  # whose table is made of the architecture
        family = family_of(Architecture.from_json(config["architecture"]))
    return Cases([here], refusals, dict(_wrong(family)))
