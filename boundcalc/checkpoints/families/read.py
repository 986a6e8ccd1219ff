"""The tables of families next to this file: one TOML file each, which may begin from another's (`like`)."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.checkpoints.families.blocks import stack
from boundcalc.checkpoints.families.names import with_offsets
from boundcalc.checkpoints.families.table import Family, Model

FOLDER = Path(__file__).parent
_TABLES = ("tensors", "reads", "fixed", "only", "ignored", "gives_way", "halves", "scales")

_BUFFERS = ("*attn.bias", "*attention.bias", "*masked_bias", "*inv_freq", "*embed_positions")
"""Names of masks and rotations in files of language models, where a family says that its files have `buffers`."""


def family_files() -> tuple[Family, ...]:
    """Every family that has a file."""
    files = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
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
        fixed=data["fixed"],
        only={field: tuple(values) for field, values in data["only"].items()},
        neutral=data.get("neutral", ""),
        gives_way=data["gives_way"],
        tokens=tuple(data.get("tokens", ("class_token",))),
        scales={role: _scale(said) for role, said in data["scales"].items()},
        by_group=data.get("by_group", False),
        halves={role: tuple(parts) for role, parts in data["halves"].items()},
    )


def _scale(said: str) -> Callable[[Model], float]:
    """What a weight is multiplied by: a number that config.json says, its inverse, or the root of the width."""
    if said == "root of width":
        return _root_of_width
    if said == "root of head":
        return lambda model: math.nextafter(math.sqrt(model.head_width(model.shape("W_O", 0)[0])), math.inf)
    if said.startswith("1/"):
        return lambda model: math.nextafter(1 / model.number(said[2:]), math.inf)
    return lambda model: model.number(said)


def _root_of_width(model: Model) -> float:
    """sqrt(d), which the library rounds to the type that the weights are stored in: the largest that it may be."""
    tensor = model.place("embedding").tensor
    exact = math.sqrt(tensor.shape[-1])
    roots = [math.nextafter(exact, math.inf), float(np.float32(exact))] if not exact.is_integer() else [exact]
    if bits := {"float16": 11, "bfloat16": 8}.get(tensor.dtype):
        mantissa, exponent = math.frexp(exact)
        roots.append(math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits))
    return max(roots)
