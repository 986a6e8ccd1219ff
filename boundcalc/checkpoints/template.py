"""A mapping for a checkpoint of no known family: every tensor guessed by name, else by shape and order.

A guess is only that: with the module the forward check decides (`describe`), and without it the certificate
says that no forward pass was compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boundcalc.checkpoints.decode import read
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.mapping import OPEN, ROLES
from boundcalc.checkpoints.families.names import offset_of, stripped
from boundcalc.checkpoints.readers.base import Checkpoint, Tensor

_INSIDE: tuple[tuple[str, str], ...] = (
    (r"(c_attn|qkv|in_proj|query_key_value)", "W_QKV"),
    (r"(^|[._])(q|query|queries|to_q|wq|w_q|q_proj|q_lin)$", "W_Q"),
    (r"(^|[._])(k|key|keys|to_k|wk|w_k|k_proj|k_lin)$", "W_K"),
    (r"(^|[._])(v|value|values|to_v|wv|w_v|v_proj|v_lin)$", "W_V"),
    (r"(c_fc|fc1|linear1|fc_in|lin1|dense_h_to_4h|intermediate|(^|[._])(w1|w_1|up)$)", "W_1"),
    (r"(fc2|linear2|fc_out|lin2|dense_4h_to_h|down_proj|(^|[._])(w2|w_2|down)$)", "W_2"),
    (r"(gate_proj|(^|[._])gate$)", "W_1"),
    (r"(up_proj|(^|[._])w3$)", "W_3"),
    (r"(mlp|ff|ffn)[._a-z]*(c_proj|[._](proj|out))$", "W_2"),
    (
        r"(to_out|out_proj|o_proj|out_lin|(attn|att|attention|self)[._a-z]*(c_proj|[._](proj|out|output|dense|o)))",
        "W_O",
    ),
)
_NORM = re.compile(r"(norm|(^|[._])(ln|rms)(?![a-z]))|(^|[._])ln_?\d?")
_SECOND = re.compile(r"(2|mlp|ffn|ff|feed|post_attention|after|output\.layernorm)")
_FIRST = re.compile(r"(1|attn|attention|input|before)")
_OUTSIDE: tuple[tuple[str, str], ...] = (
    (r"(cls|class)_?(tok|token|emb)", "class_token"),
    (r"(wpe|pos|place)", "positions"),
    (r"(patch|input_proj|proj_in)", "W_patch"),
    (r"(wte|tok|word|vocab|char)", "embedding"),
    (r"(pool)", "W_pool"),
    (r"(head|logits|classif|read_?out|score|unembed)", "readout"),
)
_MASK = re.compile(r"(mask|tril|causal|attn\.bias)")


@dataclass
class _Part:
    """Tensors that belong to one module of the model: a weight and perhaps an offset."""

    path: str
    weight: tuple[str, Tensor] | None = None
    bias: tuple[str, Tensor] | None = None
    role: str = OPEN


def template(checkpoint: Checkpoint, *, heads: int | None = None) -> dict[str, Any]:
    """The mapping, with "?" where nothing in the file identifies the tensor."""
    short = stripped(list(checkpoint.tensors))
    ignored = {short[n]: "a mask, not a weight" for n, t in checkpoint.tensors.items() if _is_mask(short[n], t)}
    buffers = {short[name] for name in checkpoint.buffers & set(short)}
    ignored |= dict.fromkeys(buffers, "a buffer of the module, not a weight")
    floats = {short[n]: t for n, t in checkpoint.tensors.items() if t.is_float and short[n] not in ignored}
    stack, inside, outside, depth = _split(floats)
    inside, apart = _heads_together(inside)
    heads = heads or apart
    parts = {where: _parts(tensors) for where, tensors in (("inside", inside), ("outside", outside))}
    d = _width(parts["inside"])
    _roles_inside(parts["inside"], d)
    after = list(floats).index(stack) if stack else len(floats)
    _roles_outside(parts["outside"], d, {name: index < after for index, name in enumerate(floats)})
    tensors: dict[str, str] = {}
    flat = _transposed(parts["inside"], d)
    for part in (*parts["outside"], *parts["inside"]):
        _write(part, tensors, flat)
    architecture = _architecture(parts["inside"], parts["outside"], d, depth, heads)
    found: dict[str, Any] = {"architecture": architecture, "tensors": tensors}
    if "W_pool" in {part.role for part in parts["outside"]}:
        found["pooler"] = "tanh"
    if "positions" not in tensors.values() and (fixed := fixed_positions(checkpoint, short, d)):
        name, rows, radius = fixed
        ignored.pop(name, None)
        tensors[name] = "positions"
        architecture |= {"positions": "fixed", "seq_len": rows, "position_radius": radius}
    if ignored:
        found["ignored"] = ignored
    return found


def fixed_positions(checkpoint: Checkpoint, short: Mapping[str, str], d: int) -> tuple[str, int, float] | None:
    """A buffer that is a table of positions, how many rows it has, and the largest norm of one, rounded up."""
    for name in checkpoint.buffers & set(short):
        tensor = checkpoint.tensors[name]
        wide = len(tensor.shape) >= 2 and tensor.shape[-1] == d and tensor.size == d * tensor.shape[-2]
        if tensor.is_float and wide and not _MASK.search(short[name]):
            rows = np.asarray(read(tensor), np.float64).reshape(-1, d)
            return short[name], len(rows), float(np.sqrt((rows**2).sum(1)).max()) * (1 + 1e-12)
    return None


def _is_mask(name: str, tensor: Tensor) -> bool:
    if not tensor.is_float:
        return False
    square = len(tensor.shape) >= 2 and tensor.shape[-1] == tensor.shape[-2]
    return square and bool(_MASK.search(name)) and (len(tensor.shape) == 4 or "attn.bias" not in name)


def _split(tensors: Mapping[str, Tensor]) -> tuple[str | None, dict[str, Tensor], dict[str, Tensor], int]:
    """The first tensor of the blocks, those of one block by pattern, all others, and the number of blocks."""
    stacks: dict[str, dict[int, dict[str, Tensor]]] = {}
    for name, tensor in tensors.items():
        found = re.match(r"(.*?)(?:^|\.)(\d+)\.(.+)$", name)
        if found:
            head, number, rest = found[1], int(found[2]), found[3]
            stacks.setdefault(head, {}).setdefault(number, {})[rest] = tensor
    stacks = {
        h: s for h, s in stacks.items() if sum(len(t.shape) == 2 for block in s.values() for t in block.values()) > 3
    }
    if not stacks:
        raise CheckpointError("no tensors are numbered as blocks are (blocks.0.attn.weight): a template needs blocks")
    head = max(stacks, key=lambda h: sum(map(len, stacks[h].values())))
    blocks = stacks[head]
    before = f"{head}." if head else ""
    numbers = sorted(blocks)
    names = {n: {k: t.shape for k, t in blocks[n].items()} for n in numbers}
    period = 1
    if len(numbers) % 2 == 0 and set(names[numbers[0]]) != set(names[numbers[1]]):
        period = 2  # sublayers numbered one by one
    inside: dict[str, Tensor] = {}
    for number in numbers[:period]:
        slot = "{b}" if period == 1 else "{2b}" if number % 2 == 0 else "{2b+1}"
        inside |= {f"{before}{slot}.{rest}": tensor for rest, tensor in blocks[number].items()}
    for number in numbers[period:]:
        if names[number] != names[numbers[number % period]]:
            raise CheckpointError(
                f"block {number} has other tensors, or tensors of other shapes, than block {number % period}: a "
                "mapping describes blocks that are alike; list its layers one by one (docs/weights.md)"
            )
    outside = {n: t for n, t in tensors.items() if not re.match(rf"{re.escape(before)}\d+\.", n)}
    first = f"{before}{numbers[0]}.{next(iter(blocks[numbers[0]]))}"
    return first, inside, outside, len(numbers) // period


_OF_HEAD = re.compile(
    r"(.*?)(?<=\.)(\d+)(\.(?:.*[._])?(?:[qkv]|query|key|value|queries|keys|values|w_?[qkv]|to_[qkv])\..*)"
)


def _heads_together(inside: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], int | None]:
    """Heads that have tensors of their own as one tensor of all ("heads.{h}.key.weight"), and how many there are."""
    found: dict[str, Tensor] = {}
    patterns = {name: f"{head[1]}{{h}}{head[3]}" for name in inside if (head := _OF_HEAD.fullmatch(name))}
    counts = Counter(patterns.values())
    for name, tensor in inside.items():
        pattern = patterns.get(name, "")
        if counts[pattern] > 1 or "head" in pattern.partition("{h}")[0]:
            found[pattern] = replace(tensor, shape=(tensor.shape[0] * counts[pattern], *tensor.shape[1:]))
        else:
            found[name] = tensor
    return found, next((counts[pattern] for pattern in found if pattern in counts), None)


def _parts(tensors: Mapping[str, Tensor]) -> list[_Part]:
    found: dict[str, _Part] = {}
    for name, tensor in tensors.items():
        path, _, leaf = name.rpartition(".")
        offset = leaf in ("bias", "beta", "b") or leaf.endswith("_bias")
        stem = leaf.removesuffix("_bias").removesuffix("_weight")
        path = (
            path
            if leaf in ("weight", "bias", "gamma", "beta", "g", "b", "gain", "scale")
            else f"{path}.{stem}".lstrip(".")
        )
        part = found.setdefault(path, _Part(path))
        if offset:
            part.bias = name, tensor
        else:
            part.weight = name, tensor
    return list(found.values())


def _shape(part: _Part) -> tuple[int, ...]:
    return part.weight[1].shape if part.weight else ()


def _width(parts: Sequence[_Part]) -> int:
    """Width d: the length of a normalisation's gain, else the side that most matrices have."""
    for part in parts:
        if len(_shape(part)) == 1 and _NORM.search(part.path.lower()):
            return _shape(part)[0]
    sides = [side for part in parts if len(_shape(part)) == 2 for side in _shape(part)]
    if not sides:
        raise CheckpointError(
            "the blocks hold no matrices: a template needs the maps of attention and feed-forward parts"
        )
    return max(set(sides), key=sides.count)


def _roles_inside(parts: Sequence[_Part], d: int) -> None:
    norms = [part for part in parts if len(_shape(part)) == 1]
    kinds = ("norm_attention", "norm_ffn")
    taken: set[str] = set()
    for part in norms:
        path = part.path.lower()
        last = path.rsplit(".", 1)[-1]
        if "{2b" in path:
            role = kinds["{2b+1}" in path]
        elif _SECOND.search(last):
            role = kinds[1]
        else:
            role = kinds[0] if _FIRST.search(last) else ""
        part.role = role if role and role not in taken else ""
        taken.add(role)
    free = [kind for kind in kinds if kind not in taken]
    for part, kind in zip([p for p in norms if not p.role], free, strict=False):
        part.role = kind
    for part in norms:
        part.role = part.role or OPEN
    maps = [part for part in parts if len(_shape(part)) == 2]
    gated = any(re.search(_INSIDE[6][0], part.path.lower()) for part in maps)
    for part in maps:
        path = part.path.lower()
        role = next((role for regex, role in _INSIDE if re.search(regex, path)), OPEN)
        part.role = "W_1" if role == "W_3" and not gated and "up_proj" in path else role
    for role in {part.role for part in maps}:
        same = [part for part in maps if part.role == role]
        for part in same if len(same) > 1 else ():
            part.role = OPEN
    _by_shape([part for part in maps if part.role == OPEN], {part.role for part in maps}, d)


def _by_shape(maps: Sequence[_Part], taken: set[str], d: int) -> None:
    """Roles of maps whose names do not identify them, in the order of the file."""
    for part in maps:
        shape, sides = _shape(part), sorted(_shape(part))
        fused = 3 * d in shape and not taken & {"W_QKV", "W_Q"} and "W_O" not in taken
        if fused and sides == sorted((d, 3 * d)):
            role = "W_QKV"
        elif shape == (d, d):
            wanted = ("W_O",) if "W_QKV" in taken else ("W_Q", "W_K", "W_V", "W_O")
            role = next((kind for kind in wanted if kind not in taken), OPEN)
        else:
            role = next((kind for kind in ("W_1", "W_2") if kind not in taken), OPEN)
        part.role = role
        taken.add(role)


def _roles_outside(parts: Sequence[_Part], d: int, early: Mapping[str, bool]) -> None:
    for part in parts:
        name, tensor = part.weight or part.bias or ("", None)
        path, shape = part.path.lower(), _shape(part)
        size = tensor.size if tensor is not None else 0
        named = next((role for regex, role in _OUTSIDE if re.search(regex, path)), OPEN)
        if len(shape) == 1 and shape[0] == d and named != "class_token":
            part.role = "norm_embedding" if early[name] else "norm_final"
        elif len(shape) == 4:
            part.role = "W_patch"
        elif named == "class_token" or (size == d and len(shape) == 3):
            part.role = "class_token"
        elif len(shape) in (2, 3) and d in shape[-2:] and named != OPEN:
            part.role = "W_patch" if named == "embedding" and part.bias is not None else named
        elif len(shape) in (2, 3) and d in shape[-2:]:
            part.role = _unnamed(parts, part, early[name])
    last = [part for part in parts if part.role == "readout"]
    if len(last) == 2 and len(_shape(last[0])) == 2:  # a head of two maps
        last[0].role = "W_pool"
    _unique(parts)


def _unnamed(parts: Sequence[_Part], part: _Part, early: bool) -> str:
    if not early:
        return "readout"
    if part.bias is not None:
        return "W_patch"
    return "positions" if any(other.role == "embedding" for other in parts) else "embedding"


def _unique(parts: Sequence[_Part]) -> None:
    """Of two parts for one role the first keeps it."""
    taken: set[str] = set()
    for part in parts:
        if part.role in taken and part.role != OPEN:
            part.role = OPEN
        taken.add(part.role)


def _transposed(parts: Sequence[_Part], d: int) -> bool:
    """Whether maps are stored as torch.nn.Linear stores them; a square one does not tell."""
    for part in parts:
        shape = _shape(part)
        if len(shape) == 2 and shape[0] != shape[1]:
            out_first = shape[1] == d
            return out_first if part.role not in ("W_2", "W_O") else not out_first
    return True


def _write(part: _Part, tensors: dict[str, str], transposed: bool) -> None:
    norm = part.role.startswith("norm_")
    if part.weight:
        dims = len(part.weight[1].shape)
        flipped = part.role in ("readout", "W_patch", "W_pool") or (transposed and part.role.startswith("W_"))
        role = f"{part.role}.gain" if norm else f"{part.role}.T" if flipped and dims > 1 else part.role
        tensors[part.weight[0]] = role
    if part.bias:
        offset = offset_of(f"{part.role}.gain" if norm else part.role)
        tensors[part.bias[0]] = offset if offset in ROLES else OPEN


def _architecture(
    inside: Sequence[_Part], outside: Sequence[_Part], d: int, depth: int, heads: int | None
) -> dict[str, Any]:
    roles = {part.role: part for part in (*inside, *outside)}
    found: dict[str, Any] = {"style": "pre", "depth": depth, "d": d, "heads": heads or OPEN, "residual": True}
    norms = [part for part in (*inside, *outside) if part.role.startswith("norm_")]
    if not norms:
        found["normalisation"] = "none"
    else:
        found["normalisation"] = "layernorm" if any(part.bias for part in norms) or len(norms) == 0 else "rmsnorm"
        found["eps"] = 1e-5
    if "norm_embedding" in roles:
        found["embedding_norm"] = True
    hidden = [side for side in _shape(roles["W_1"]) if side != d] if "W_1" in roles else []
    found["d_ff"] = hidden[0] if hidden else d
    found["activation"] = "gelu"
    found |= {"gated": True} if {"W_3", "W_13"} & set(roles) else {}
    if "class_token" not in roles and "W_patch" not in roles:
        found["causal"] = True
    if "embedding" in roles:
        found["vocabulary"] = _shape(roles["embedding"])[0]
    elif "W_patch" in roles:
        patch = _shape(roles["W_patch"])
        found["d_patch"] = patch[1] * patch[2] * patch[3] if len(patch) == 4 else patch[1]
        if len(patch) == 4:  # pixels in [-1, 1]
            found["input_radius"] = math.nextafter(math.sqrt(found["d_patch"]), math.inf)
    if "positions" in roles:
        found |= {"positions": "learned", "seq_len": _shape(roles["positions"])[-2]}
    if "W_pool" in roles:
        found["pooler"] = True
    if "readout" in roles:
        found["classes"] = _shape(roles["readout"])[0]
    elif "vocabulary" in found:
        found["classes"] = found["vocabulary"]  # the read-out is the token table
    return found


def open_places(mapping: Mapping[str, Any]) -> Iterator[str]:
    """What a template leaves to say."""
    yield from (name for name, value in mapping["architecture"].items() if value == OPEN)
    yield from (name for name, role in mapping["tensors"].items() if role == OPEN)
