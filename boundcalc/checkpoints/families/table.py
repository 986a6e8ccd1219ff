"""A family of models as data, and a checkpoint seen through it: which tensor plays which role (docs/weights.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.validate import positive, size
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import Options as Options
from boundcalc.checkpoints.families.derived import derived, heads_side_by_side, sliced, times, trained_query
from boundcalc.checkpoints.families.names import placed, stripped
from boundcalc.checkpoints.tensors import Checkpoint, Tensor, read, stored
from boundcalc.norms.matrix import Native, Stored
from boundcalc.setting import Architecture, Weight

Key = tuple[str, int | None]
"""A role and its block."""

TOKENS = ("class_token", "distillation_token")
"""Roles of tokens that are put before the input, in order; folded into the positions."""
_HALVES: Mapping[str, tuple[str, str]] = {
    f"{kind}_{i}{j}": (f"{kind}_{i}", f"{kind}_{j}") for kind in "Wb" for i, j in ("13", "31")
}
"""Roles of tensors that hold two weights, one after the other."""
_POOLING = "pooling_"
"""How roles begin that are of attention by a trained query after the last block, and are read as of one block more."""


@dataclass(frozen=True)
class Family:
    """A family of models as data.

    Attributes:
        name: in reports and for `--family`.
        model_types: values of "model_type" in config.json that it is for.
        tensors: name pattern -> role. "{b}" stands for the block number, a trailing ".T" says that the file holds the
            transpose of W (torch.nn.Linear does, GPT-2's Conv1D does not). Roles are the kinds of norms files, perhaps
            with their block and head (W_Q[0,1].T), and "W_QKV", "b_QKV" (fused), "W_13", "segments", "class_token".
        build: makes the architecture of the tensors (families/blocks.py).
        ignored: pattern -> why such a tensor is no weight of the bounded model.
        prefixes: parts that some checkpoints put before every name.
        reads: parameter of `build` -> the field of config.json that says it, and the library's default.
        parameters: further ones, which the library's code has as constants.
        scales: role -> what the model multiplies such a weight by.
        described: whether a mapping describes the model completely, so that config.json is not read.
        rotate: how queries and keys turn with their position, where the table says so; no bound reads it.
    """

    name: str
    model_types: tuple[str, ...]
    tensors: Mapping[str, str]
    build: Callable[[Model], Architecture]
    ignored: Mapping[str, str] = field(default_factory=dict[str, str])
    prefixes: tuple[str, ...] = ()
    reads: Mapping[str, tuple[str, Any]] = field(default_factory=dict[str, Any])
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    scales: Mapping[str, Callable[[Model], float]] = field(default_factory=dict[str, Any])
    described: bool = False
    rotate: Callable[[Any, int | None], Any] | None = None


class Model:
    """A checkpoint seen through a family: tensors by role, and its settings.

    Attributes:
        places: tensors by role and block.
        ignored: tensors that are no weights of the bounded model, with the reason.
        unknown: tensors the family has no place for.
        assumed: fields that no file gives, and their defaults.
        doubts: why the model may be another, of what no forward check sees.
        pooling: the block that is attention by a trained query, where there is one.
    """

    def __init__(self, checkpoint: Checkpoint, family: Family, options: Options | None = None) -> None:
        self.checkpoint, self.family, self.options = checkpoint, family, options or Options()
        self._read: set[str] = set()
        self.ignored: dict[str, str] = {}
        self.unknown: list[str] = []
        self.assumed: dict[str, Any] = {}
        self.doubts: list[str] = []
        self.places: dict[Key, Tensor] = {key: self._settled(key[0], own) for key, own in self._claims().items()}
        self.pooling: int | None = None
        self._fold()

    def option(self, name: str) -> Any:
        """What the user says beyond the files."""
        self._read.add(name)
        return getattr(self.options, name)

    def refuse_unread_options(self) -> None:
        """An option that changes nothing is a mistake of its user."""
        unread = [option for name, option in _OPTIONS.items() if getattr(self.options, name) is not None]
        read = {_OPTIONS.get(name, f"--set {name}=...") for name in self._read}
        if "model_type" not in self.options.settings:  # of a whole config.json only some fields are read
            unread += [f"--set {name}=..." for name in self.options.settings]
        for option in unread:
            if option not in read:
                raise InvalidSetting(
                    f"{option} has no effect on {self.checkpoint.where}: nothing that describes the model reads it"
                )

    @cached_property
    def architecture(self) -> Architecture:
        """What the tensors make up."""
        return self.family.build(self)

    def config_field(self, name: str, default: Any = None, *, null: bool = False) -> Any:
        """A field of config.json: said by the user, else by the file, else the library's default.

        A user's null stands for the default; `null`: whether null in config.json is a value, not silence.
        """
        self._read.add(name)
        said, config = self.options.settings, {} if self.family.described else self.checkpoint.config
        if said.get(name) is not None:
            return said[name]
        if name not in said and name in config and (null or config[name] is not None):
            return config[name]
        if default is not None:
            self.assumed[name] = default
        return default

    @cached_property
    def first_position(self) -> int:
        """The first row of the position table that is read: after the row of padding."""
        padding = self.setting_of("padding")
        return 0 if padding is None else size("pad_token_id", padding, least=0) + 1

    @cached_property
    def head(self) -> str:
        """Which kind of model "architectures" names, by the ending of its class; "" where it names none."""
        named = self.config_field("architectures")
        name = named[0] if isinstance(named, list) and len(named) == 1 else ""
        return next((ending for ending in (*LANGUAGE, *CLASSIFIERS) if str(name).endswith(ending)), "")

    def _claims(self) -> dict[Key, list[tuple[int | None, Tensor]]]:
        """The tensors of each role, with their heads; others are ignored with a reason, or unknown."""
        roles = [(compiled(pattern), placed(role)) for pattern, role in self.family.tensors.items()]
        reasons = [(compiled(pattern), why) for pattern, why in self.family.ignored.items()]
        patterns = (*self.family.tensors, *self.family.ignored, *self.family.prefixes)
        short = stripped(list(self.checkpoint.tensors), patterns)
        claims: dict[Key, list[tuple[int | None, Tensor]]] = {}
        for name, tensor in self.checkpoint.tensors.items():
            plain = short[name]
            prefix = next((prefix for prefix in self.family.prefixes if plain.startswith(prefix)), "")
            plain = plain.removeprefix(prefix)
            role = next(((match, own) for regex, own in roles if (match := regex.fullmatch(plain))), None)
            if role is not None and tensor.is_float:
                match, (kind, block, head, turned) = role
                block = int(match["b"]) if "b" in match.re.groupindex else block
                claims.setdefault((kind, block), []).append((head, replace(tensor, turned=turned)))
                continue
            why = next((why for regex, why in reasons if regex.fullmatch(plain)), None)
            if why is None and (name in self.checkpoint.buffers or not tensor.is_float):
                why = "a buffer, not a weight" if tensor.is_float else f"{tensor.dtype} numbers: a buffer, not a weight"
            if why is None:
                self.unknown.append(name)
            else:
                self.ignored[name] = why
        return claims

    def _settled(self, role: str, claims: list[tuple[int | None, Tensor]]) -> Tensor:
        """The tensor of a role, of those that may be it; or the maps of its heads side by side."""
        heads = {head: tensor for head, tensor in claims if head is not None}
        first = claims[0][1]
        if heads:
            alike = len({tensor.shape for tensor in heads.values()}) == 1 and len(heads) == len(claims)
            if sorted(heads) != list(range(len(heads))) or not alike:
                raise CheckpointError(f"{first.name} and its like are no heads 0, 1, ... of one shape for {role}")
            return heads_side_by_side([heads[at] for at in range(len(heads))])
        for _, other in claims[1:]:
            if other.storage != first.storage and not np.array_equal(other.fetch(), first.fetch()):
                raise CheckpointError(f"{first.name} and {other.name} both look like {role} of {self.family.name}")
            self.ignored[other.name] = f"the same parameter as {first.name}"
        return first

    def _fold(self) -> None:
        """Weights that are not one tensor: parts of one, those that a vector scales, and gains that are 1 + w."""
        places = self.places
        for role, block in [key for key in places if key[0].startswith(_POOLING)]:
            self.pooling = self.depth
            places[role.removeprefix(_POOLING), self.pooling] = places.pop((role, block))
        for (role, block), place in list(places.items()):
            map_name = role.removeprefix("outputs_of.")
            if parts := self._parts(role, place, places.get(("W_O", block))):
                if twice := next((kind for kind in parts if (kind, block) in places), None):
                    other = places[twice, block].name
                    raise CheckpointError(f"{place.name} and {other} both look like {twice}")
                del places[role, block]
                places.update({(kind, block): part for kind, part in parts.items()})
            elif map_name != role:
                for name in (map_name, f"b_{map_name[2:]}"):
                    if (name, block) in places:
                        places[name, block] = times(places[name, block], place)
                del places[role, block]
                self.ignored[place.name] = f"folded into {map_name}, whose outputs it multiplies"
            elif self.family.parameters.get("around_one") and role in ("norm_Q.gain", "norm_K.gain"):
                places[role, block] = derived(place, lambda values, *_: 1 + values)
        if self.pooling is not None:
            probe, queries, keys, offset = (self.place(role, self.pooling) for role in ("probe", "W_Q", "W_K", "b_Q"))
            places["q", self.pooling] = trained_query(probe, queries, keys, offset, self.heads)
            del places["probe", self.pooling]

    def _parts(self, role: str, place: Tensor, output: Tensor | None) -> dict[str, Tensor]:
        """The weights that a tensor holds side by side; {} of one weight."""
        if role in _HALVES:
            return {kind: sliced(place, role, slice(at, at + 1), 2) for at, kind in enumerate(_HALVES[role])}
        if role not in ("W_QKV", "b_QKV"):
            return {}
        if output is None:
            raise CheckpointError(f"{self.checkpoint.where} has {place.name} and no W_O that says its heads")
        shape, outputs = output.shape, place.shape[:1] if place.turned else place.shape[-1:]
        width = self.head_width(shape[-1] if output.turned else math.prod(shape[:1]))
        slots = math.prod(outputs) // width if width else 0
        groups = (slots - self.heads) // 2
        if groups < 1 or (self.heads + 2 * groups) * width != math.prod(outputs) or self.heads % groups:
            raise CheckpointError(
                f"{place.name}: {math.prod(outputs)} outputs do not make {self.heads} heads of width {width}, "
                "keys and values; of maps stored the other way round, as torch.nn.Linear does or does not, the module "
                "(--compare module.py:make) or a mapping says so"
            )
        apart = groups if self.flag("by_group") else 1
        ends = (0, self.heads // apart, (self.heads + groups) // apart, (self.heads + 2 * groups) // apart)
        return {
            f"{role[:2]}{kind}": sliced(place, role, slice(*ends[at : at + 2]), ends[-1], apart)
            for at, kind in enumerate("QKV")
        }

    def has(self, role: str, block: int | None = None) -> bool:
        """Whether a tensor, or part of one, plays a role."""
        return (role, block) in self.places

    def key(self, weight: Weight) -> Key:
        """Where the tensor of a weight is filed: under its block, or as one for all blocks."""
        shared = not self.has(weight.kind, weight.block) and self.has(weight.kind)
        return weight.kind, None if shared else weight.block

    def factor(self, role: str, block: int | None = None) -> float:
        """What the model multiplies a weight by: said of it, or of the tensor that holds it with others."""
        place = self.places.get((role, block))
        role = place.whole if place is not None and place.whole else role
        pooled = block is not None and block == self.pooling
        scale = self.family.scales.get(_POOLING + role if pooled else role)
        return 1.0 if scale is None else float(scale(self))

    def place(self, role: str, block: int | None = None) -> Tensor:
        """The tensor of a role; a clear line where it is missing."""
        if (role, block) in self.places:
            return self.places[role, block]
        written = (role, _POOLING + role)
        patterns = [pattern for pattern, r in self.family.tensors.items() if r.removesuffix(".T") in written]
        name = " or ".join(p.replace("{b}", str(block)) for p in patterns) or role
        raise CheckpointError(f"{self.checkpoint.where} has no {name}, which a {self.family.name} model needs")

    def shape(self, role: str, block: int | None = None) -> tuple[int, ...]:
        """(d, k) of x -> x W."""
        place = self.place(role, block)
        shape = place.shape
        if len(shape) < 2 or not all(shape):
            raise CheckpointError(f"{place.name} should be a matrix, the file has shape {shape}")
        flat = (shape[0], math.prod(shape[1:])) if len(shape) > 2 else shape
        return flat[::-1] if place.turned else flat

    def table_shape(self, role: str) -> tuple[int, int]:
        """(rows, d) of a table, which may have further dimensions of length 1 before."""
        tensor = self.place(role)
        rows, d = tensor.shape[-2:] if len(tensor.shape) > 1 else (0, 0)
        if not rows or rows * d != tensor.size:
            raise CheckpointError(f"{tensor.name} should be a table, the file has shape {tensor.shape}")
        return rows, d

    @cached_property
    def depth(self) -> int:
        """Number of blocks, without the attention that pools rows by a trained query."""
        blocks = 1 + max((block for _, block in self.places if block is not None), default=-1)
        if not blocks:
            raise CheckpointError(f"{self.checkpoint.where} has no blocks of the family {self.family.name}")
        return blocks

    def setting_of(self, name: str) -> Any:
        """A parameter of the family: of config.json (or --set), the library's default, or a constant of its code."""
        if name not in self.family.reads:
            return self.family.parameters.get(name)
        said, default = self.family.reads[name]
        return self.config_field(said, default, null=name in ("cap", "final_cap"))

    def flag(self, name: str) -> bool:
        """A parameter that is true or false; false where the family has none."""
        value = self.setting_of(name)
        if value is not None and not isinstance(value, bool):
            where = self.family.reads[name][0]
            raise CheckpointError(f"{self.checkpoint.where}: {where} should be true or false, got {value!r:.60}")
        return bool(value)

    def number(self, name: str) -> float:
        """A parameter that is a number above 0."""
        value = self.setting_of(name)
        where = self.family.reads[name][0] if name in self.family.reads else name
        if value is None:
            raise CheckpointError(f"{self.checkpoint.where} comes without {where!r}: say --set {where}=...")
        return positive(f"{self.checkpoint.where}: {where}", value)

    @cached_property
    def heads(self) -> int:
        """Attention heads."""
        said, count = self.option("heads"), self.setting_of("heads")
        count = next(filter(None, (count, *map(self.config_field, _HEADS))), None)
        where = self.family.reads["heads"][0] if "heads" in self.family.reads else "heads"
        if count is None and said is None:
            raise CheckpointError(
                f"{self.checkpoint.where} comes without the number of heads: put its config.json next to it, or say "
                f"--heads 12 (--set {where}=12)"
            )
        if said is not None and count not in (None, said):
            raise CheckpointError(f"--heads {said}, but {where} is {count!r}: leave out one of them")
        return size("heads", said if count is None else count)

    def head_width(self, outputs: int) -> int:
        """Width of a head, from how many outputs all queries have."""
        if outputs % self.heads:
            raise CheckpointError(f"{self.checkpoint.where}: {outputs} outputs do not make {self.heads} heads")
        return outputs // self.heads

    def vector(self, role: str, block: int | None = None) -> Native:
        """An offset, a gain or another small tensor, flat."""
        return read(self.place(role, block)).ravel()

    def matrix(self, role: str, block: int | None = None) -> Stored:
        """W of x -> x W; a read-out that the file does not hold is the embedding table, turned."""
        tied = role == "readout" and not self.has(role)
        place = self.place("embedding" if tied else role, block)
        return stored(place).turned if place.turned != tied else stored(place)


def compiled(pattern: str) -> re.Pattern[str]:
    """The expression that a pattern of a family's table stands for: {b} is the number of a block."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\{b\}", r"(?P<b>\d+)", 1))


_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
"""Names of one field in releases of the library; the family's own comes first."""

LANGUAGE = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForPreTraining")
"""Endings of classes that read out tokens."""
CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification", "ForImageClassification", "Model")

_OPTIONS: Mapping[str, str] = {"seq_len": "--T", "input_radius": "--input-radius", "heads": "--heads"}
"""Options of a model on the command line."""
