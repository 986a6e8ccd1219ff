"""Cases of the families of checkpoints: a small model of the library, its maps as the forward check runs them, and
tables that read it wrongly."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors.numpy import load_file

from boundcalc.checkpoints._arrays import Arrays
from boundcalc.checkpoints.audit import open_model
from boundcalc.checkpoints.families import FAMILIES, Family, Model
from boundcalc.checkpoints.families.table import compiled
from boundcalc.layers.base import flat, place_named
from boundcalc.testing._drawing import Parameters, joined
from boundcalc.testing._judge import Cases
from tests.checkpoints.zoo import ZOO
from tests.laws.kinds.families import FamilyExample

MODELS = {name.replace(" ", "_"): kind for name, kind in ZOO.items() if name.replace(" ", "_") in FAMILIES}
MODELS["falcon"] = ZOO["falcon groups"]
"""A small model of every family that the library has; falcon's with groups, which can be mistaken."""


def maps_of(seen: Model) -> dict[str, NDArray[Any]]:
    """Every map x -> x W, offset and gain by its key in an audit, from the arrays that the forward check runs."""
    a, arrays = seen.architecture, Arrays(seen, seen.architecture.seq_len)
    maps: Parameters = {}
    for layer in (layer for layer in flat(a.stages) if not layer.branches):
        own: Parameters = {}
        for weight in layer.weights(a.seq_len):
            for part in weight.factors or (weight,):
                if part.kind == "readout" and not (seen.has("readout") or seen.has("embedding")):
                    continue  # a model without one
                values = arrays(layer, part.kind)
                several = part.heads > 0 or part.copies > 1
                own |= (
                    {(part.kind, part.block, i): values[i] for i in range(part.copies)}
                    if several
                    else {(part.kind, part.block, None): values}
                )
        maps |= joined(layer, own, a.seq_len)
    return {place_named(*key): values for key, values in maps.items()}


@cache
def example(name: str) -> FamilyExample:
    """The small model of a family, as the library saves it."""
    module = MODELS[name].make()
    with tempfile.TemporaryDirectory() as folder:
        module.save_pretrained(folder)
        tensors, config = load_file(Path(folder) / "model.safetensors"), Path(folder, "config.json").read_text()
        return FamilyExample(tensors, json.loads(config), maps_of(open_model(Path(folder))))


def patterns_of(family: Family, names: Mapping[str, Any]) -> dict[str, list[str]]:
    """The patterns of a family's table that some tensors match, with their names."""
    matches = {
        pattern: [
            n for n in names if any(compiled(pattern).fullmatch(n.removeprefix(p)) for p in ("", *family.prefixes))
        ]
        for pattern in family.tensors
    }
    return {pattern: matching for pattern, matching in matches.items() if matching}


_REFUSED: Mapping[str, Mapping[str, Any]] = {
    "roberta": {"pad_token_id": -1},
    "modernbert": {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}},
    "bloom": {"layer_norm_epsilon": 0},
    "granite": {"residual_multiplier": 0},
    "gemma": {"tie_word_embeddings": "no"},
}
"""Fields of its config.json, with a value that no bound here is for, besides its activation."""


def _renamed(family: Family, **roles: str) -> Family:
    """The table with other roles for some tensors."""
    tensors = {pattern: roles.get(role.partition(".")[0], role) for pattern, role in family.tensors.items()}
    return replace(family, tensors=tensors)


def _wrong(family: Family, here: FamilyExample) -> Iterator[tuple[str, Family]]:
    """Tables that mistake how something is stored: whatever this family has of what can be mistaken."""
    stored = [family.tensors[pattern] for pattern in patterns_of(family, here.tensors)]
    roles = {role.partition(".")[0]: role for role in stored}
    for role in ("W_1", "W_13"):
        if role in roles:
            other = role if roles[role].endswith(".T") else f"{role}.T"
            yield "a stored transpose taken for the map, or the other way round", _renamed(family, **{role: other})
    if "W_Q" not in roles:
        what = "heads side by side taken for one after the other, or the other way round"
        yield what, replace(family, parameters={**family.parameters, "by_group": not family.parameters.get("by_group")})
    if "W_13" in roles:
        yield "halves swapped", _renamed(family, W_13=roles["W_13"].replace("13", "31"))
    if family.scales:
        yield "factors of weights forgotten", replace(family, scales={})
    if family.name in ("mpnet", "opt", "roberta"):
        reads = {name: field for name, field in family.reads.items() if name != "padding"}
        parameters = {name: value for name, value in family.parameters.items() if name != "padding"}
        yield "rows of positions that no token reads", replace(family, reads=reads, parameters=parameters)
    if "class_token" in roles:
        name = next(name for name, role in family.tensors.items() if role == "class_token")
        tensors = {key: role for key, role in family.tensors.items() if key != name}
        yield "a class token left out", replace(family, tensors=tensors, ignored={**family.ignored, name: "no token"})


def cases(name: str) -> Cases:
    """What the library's family of that name brings."""
    family, here = FAMILIES[name], example(name)
    activation = {family.reads["activation"][0]: "no such thing"} if "activation" in family.reads else {}
    refusals = [
        (here.but(**{field: value}), f"{re.escape(field)}|{re.escape(str(value))}")
        for field, value in {**activation, **_REFUSED.get(name, {})}.items()
    ]
    return Cases([here], refusals, dict(_wrong(family, here)))
