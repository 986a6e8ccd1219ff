"""A family of models as a table: which tensor plays which role, and which architecture they make up.

Adding a family takes five steps (docs/weights.md): copy an adapter, name its model types, list its tensors with their
roles, list what is no weight and why, and build its architecture from blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.decode import read, stored
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.fields import Fields
from boundcalc.checkpoints.families.names import block_of, compiled, stripped
from boundcalc.checkpoints.families.settings import Settings
from boundcalc.checkpoints.readers.base import Checkpoint, Tensor
from boundcalc.norms.matrix import Native, Stored
from boundcalc.setting import Architecture
from boundcalc.setting.validate import positive, size


@dataclass(frozen=True)
class Family:
    """An adapter.

    Attributes:
        name: in reports and for `--family`.
        model_types: values of config.json's "model_type" it is for.
        tensors: name pattern -> role. "{b}" stands for the block number, a trailing ".T" says that the file holds the
            transpose of W (torch.nn.Linear does, GPT-2's Conv1D does not). Roles are the kinds of norms files, and
            "W_QKV", "b_QKV" (fused, equal thirds), "segments", "class_token".
        architecture: builds the architecture from what is there.
        ignored: pattern -> why such a tensor is no weight of the bounded model.
        prefixes: parts that some checkpoints put before every name.
        marks: patterns of which one must be there, to recognise a checkpoint without config.json.
        fields: what the fields of config.json mean (families/fields.py); None where the family reads none.
        aliases: other names that config.json may use for fields, and the name in `fields`.
        heads: the field that says how many heads there are.
        classes: endings of the class names in "architectures" -> tensors such a model has, or with "!" has not.
        gives_way: tensor -> why it is not read where another tensor has the same role.
        first_position: the first row of the position table that is read.
        tokens: roles of tokens that are put before the input, in order; folded into the positions (families/vit.py).
        scales: role -> what the model multiplies such a weight by.
        by_group: whether fused queries, keys and values lie group by group, not one after the other: the query heads of
            a group, then its key, then its value.
        halves: role of a tensor that holds two weights, one after the other -> their roles.
        bare_sublayers: whether a sublayer without gains in the file has no normalisation, and the file lacks nothing.
        stored_block: the block of the file whose weights a block of the model has.
        known_heads: attention heads, where the table itself says how many.
        rotate: how queries and keys turn with their position, where the table says so; no bound reads it.
    """

    name: str
    model_types: tuple[str, ...]
    tensors: Mapping[str, str]
    architecture: Callable[[Model], Architecture]
    ignored: Mapping[str, str] = field(default_factory=dict[str, str])
    prefixes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    fields: Fields | None = field(default_factory=dict[str, Any])
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    heads: str = "num_attention_heads"
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, Any])
    gives_way: Mapping[str, str] = field(default_factory=dict[str, str])
    first_position: Callable[[Model], int] = lambda _: 0
    tokens: tuple[str, ...] = ("class_token",)
    scales: Mapping[str, Callable[[Model], float]] = field(default_factory=dict[str, Any])
    by_group: bool = False
    halves: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, Any])
    bare_sublayers: bool = False
    stored_block: Callable[[Model, int], int] = lambda _, block: block
    known_heads: int | None = None
    rotate: Callable[[Any, int | None], Any] | None = None


@dataclass(frozen=True)
class Options:
    """What the user says of the model beyond its files.

    Attributes:
        seq_len: T; unset, the longest sequence that its positions allow.
        input_radius: largest l2 norm of an input row, for vector inputs.
        heads: attention heads, where no config says so.
        classes: logits of a read-out that is not in the checkpoint.
        settings: further settings, as config.json would have them.
    """

    seq_len: int | None = None
    input_radius: float | None = None
    heads: int | None = None
    classes: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for name, value in (("T", self.seq_len), ("heads", self.heads), ("classes", self.classes)):
            if value is not None:
                size(name, value)
        if self.input_radius is not None:
            positive("input radius", self.input_radius)


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor in its role."""

    tensor: Tensor
    transposed: bool


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Places by (role, block); ignored tensors with the reason; names that match nothing; pairs for one role."""

    places: dict[tuple[str, int | None], Place]
    ignored: dict[str, str]
    unknown: list[str]
    gave_way: list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Model:
    """A checkpoint seen through a family: tensors by role, and its settings."""

    checkpoint: Checkpoint
    family: Family
    options: Options = Options()
    _options_read: set[str] = field(default_factory=set[str], compare=False)

    def option(self, name: str) -> Any:
        """What the user says beyond the files."""
        self._options_read.add(name)
        return getattr(self.options, name)

    def refuse_unread_options(self) -> None:
        """An option that changes nothing is a mistake of whoever gave it."""
        for name, (option, why) in _OPTIONS.items():
            if getattr(self.options, name) is not None and name not in self._options_read:
                raise InvalidSetting(f"{option} has no effect on {self.checkpoint.where}: {why}; leave it out")

    @cached_property
    def settings(self) -> Settings:
        """What the user and config.json say."""
        f = self.family
        return Settings(
            self.checkpoint.where, f.name, f.fields, f.aliases, self.options.settings, self.checkpoint.config
        )

    @cached_property
    def head(self) -> str:
        """Which kind of model "architectures" names, by the ending of its class; "" where it names none.

        A class whose tensors are not those of the file is doubted: the library would leave out some, or draw them anew.
        """
        named = self.settings.get("architectures", None)
        if not named or not self.family.classes:
            return ""
        name = named[0] if isinstance(named, list) and len(named) == 1 else ""
        endings = sorted(self.family.classes, key=len, reverse=True)
        found = next((ending for ending in endings if isinstance(name, str) and name.endswith(ending)), "")
        if not found:
            known = ", ".join(self.family.classes)
            self.settings.doubt("architectures", f"the read-outs known are those of classes that end with {known}")
            return ""
        plain = {self._plain(tensor) for tensor in self.checkpoint.tensors}
        for pattern in self.family.classes[found]:
            if (pattern.removeprefix("!") in plain) == pattern.startswith("!"):
                has = "has" if pattern.startswith("!") else "has no"
                self.settings.doubt("architectures", f"the file {has} {pattern.removeprefix('!')}")
        return found

    @cached_property
    def _sorted(self) -> _Sorted:
        roles = [(compiled(pattern), role) for pattern, role in self.family.tensors.items()]
        reasons = [(compiled(pattern), why) for pattern, why in self.family.ignored.items()]
        places: dict[tuple[str, int | None], Place] = {}
        ignored: dict[str, str] = {}
        unknown: list[str] = []
        gave: list[tuple[Tensor, Tensor]] = []
        for name, tensor in self.checkpoint.tensors.items():
            plain = self._plain(name)
            found = next(((m, role) for regex, role in roles if (m := regex.fullmatch(plain))), None)
            why = next((why for regex, why in reasons if regex.fullmatch(plain)), None)
            if found is None or not tensor.is_float:
                if why is None and not tensor.is_float:
                    why = f"{tensor.dtype} numbers: a buffer, not a weight"
                if why is None:
                    unknown.append(name)
                else:
                    ignored[name] = why
                continue
            match, role = found
            block = block_of(match)
            key = (role.removesuffix(".T"), block)
            if key in places and places[key].tensor.storage == tensor.storage:
                ignored[name] = f"the same parameter as {places[key].tensor.name}"
            elif key in places and plain in self.family.gives_way:
                ignored[name] = self.family.gives_way[plain]
                gave.append((tensor, places[key].tensor))
            elif key in places and self._plain(places[key].tensor.name) in self.family.gives_way:
                other = places[key].tensor
                ignored[other.name] = self.family.gives_way[self._plain(other.name)]
                gave.append((other, tensor))
                places[key] = Place(tensor, role.endswith(".T"))
            elif key in places:
                raise CheckpointError(
                    f"{name} and {places[key].tensor.name} both look like {key[0]} of {self.family.name}"
                )
            else:
                places[key] = Place(tensor, role.endswith(".T"))
        return _Sorted(places, ignored, unknown, gave)

    @cached_property
    def _short(self) -> Mapping[str, str]:
        """Names without what a wrapper puts before all of them, unless the table has names that begin so."""
        patterns = (*self.family.tensors, *self.family.ignored, *self.family.prefixes)
        return stripped(list(self.checkpoint.tensors), patterns)

    def _plain(self, name: str) -> str:
        name = self._short[name]
        for prefix in self.family.prefixes:
            if name.startswith(prefix):
                return name.removeprefix(prefix)
        return name

    @property
    def places(self) -> Mapping[tuple[str, int | None], Place]:
        """Tensors by role and block."""
        return self._sorted.places

    @property
    def ignored(self) -> Mapping[str, str]:
        """Tensors that are no weights of the bounded model, with the reason."""
        return self._sorted.ignored

    @property
    def unknown(self) -> list[str]:
        """Tensors the family has no place for."""
        return self._sorted.unknown

    @property
    def gave_way(self) -> list[tuple[Tensor, Tensor]]:
        """Tensors that are not read because another has the same role, and that other."""
        return self._sorted.gave_way

    def stored(self, block: int | None) -> int | None:
        """The block of the file whose weights a block of the model has."""
        return None if block is None else self.family.stored_block(self, block)

    def has(self, role: str, block: int | None = None) -> bool:
        """Whether a tensor, or half of one, plays a role."""
        return (self.role_of(role, block)[0], self.stored(block)) in self.places

    def role_of(self, role: str, block: int | None = None) -> tuple[str, int | None]:
        """The role of the tensor that holds a weight, and which half of it the weight is (None: all)."""
        if (role, self.stored(block)) not in self.places:
            for whole, parts in self.family.halves.items():
                if role in parts and (whole, self.stored(block)) in self.places:
                    return whole, parts.index(role)
        return role, None

    def factor(self, role: str, block: int | None = None) -> float:
        """What the model multiplies a weight by: said of it, or of the tensor that holds it beside others."""
        whole, _ = self.role_of(role, block)
        fused = f"{role[:2]}QKV"
        if role[2:] in ("Q", "K", "V") and (role, self.stored(block)) not in self.places and self.has(fused, block):
            whole = fused
        scale = self.family.scales.get(whole)
        return 1.0 if scale is None else float(scale(self))

    def place(self, role: str, block: int | None = None) -> Place:
        """The tensor of a role, or which half of it is; a clear line where it is missing."""
        role, _ = self.role_of(role, block)
        block = self.stored(block)
        if (role, block) in self.places:
            return self.places[role, block]
        patterns = [pattern for pattern, r in self.family.tensors.items() if r.removesuffix(".T") == role]
        name = " or ".join(p.replace("{b}", str(block)) for p in patterns) or role
        raise CheckpointError(f"{self.checkpoint.where} has no {name}, which a {self.family.name} model needs")

    def shape(self, role: str, block: int | None = None) -> tuple[int, ...]:
        """(d, k) of x -> x W."""
        place = self.place(role, block)
        shape = place.tensor.shape
        if len(shape) < 2 or not all(shape):
            raise CheckpointError(f"{place.tensor.name} should be a matrix, the file has shape {shape}")
        flat = (shape[0], math.prod(shape[1:])) if len(shape) > 2 else shape
        d, k = flat[::-1] if place.transposed else flat
        return d, k if self.role_of(role, block)[1] is None else self._half(role, k)

    def _half(self, role: str, size: int) -> int:
        if size % 2:
            raise CheckpointError(f"{self.checkpoint.where}: {size} outputs do not make {role} and its twin")
        return size // 2

    def table_shape(self, role: str) -> tuple[int, int]:
        """(rows, d) of a table, which may have further dimensions of length 1 before."""
        tensor = self.place(role).tensor
        rows, d = tensor.shape[-2:] if len(tensor.shape) > 1 else (0, 0)
        if not rows or rows * d != tensor.size:
            raise CheckpointError(f"{tensor.name} should be a table, the file has shape {tensor.shape}")
        return rows, d

    @cached_property
    def depth(self) -> int:
        """Number of blocks: one more than the largest block number."""
        blocks = [block for _, block in self.places if block is not None]
        if not blocks:
            raise CheckpointError(f"{self.checkpoint.where} has no blocks of the family {self.family.name}")
        return max(blocks) + 1

    def setting(self, name: str) -> Any:
        """A setting of the family's table: said by the user, else by config.json, else the library's default."""
        return self.settings.get(name)

    def flag(self, name: str) -> bool:
        """A setting that is true or false."""
        return self.settings.flag(name)

    def whole(self, name: str, least: int = 1) -> int:
        """A setting that is a whole number."""
        return size(f"{self.checkpoint.where}: {name}", self.setting(name), least=least)

    def number(self, name: str) -> float:
        """A setting that is a number above 0."""
        return positive(f"{self.checkpoint.where}: {name}", self.setting(name))

    @cached_property
    def heads(self) -> int:
        """Attention heads."""
        if self.family.fields is None:
            return self.family.known_heads or self.option("heads") or 1
        said = self.option("heads")
        found = self.settings.get(self.family.heads, said)
        if found is None:
            raise CheckpointError(
                f"{self.checkpoint.where} comes without the number of heads: put its config.json beside it, or say "
                f"--heads 12 (--set {self.family.heads}=12)"
            )
        if said is not None and found != said:
            raise CheckpointError(f"--heads {said}, but {self.family.heads} is {found!r}: leave out one of them")
        return size("heads", found)

    def head_width(self, outputs: int) -> int:
        """Width of a head, from how many outputs all queries have."""
        if outputs % self.heads:
            raise CheckpointError(f"{self.checkpoint.where}: {outputs} outputs do not make {self.heads} heads")
        return outputs // self.heads

    def vector(self, role: str, block: int | None = None) -> Native:
        """An offset, a gain or another small tensor, flat."""
        values, half = read(self.place(role, block).tensor).ravel(), self.role_of(role, block)[1]
        return values if half is None else np.split(values, 2)[half]

    def matrix(self, role: str, block: int | None = None) -> tuple[Stored, bool]:
        """A matrix as stored, and whether that is the transpose of W."""
        place, half = self.place(role, block), self.role_of(role, block)[1]
        whole = stored(place.tensor)
        if half is None:
            return whole, place.transposed
        size = self._half(role, whole.shape[0 if place.transposed else 1])
        first = half * size

        def moved(part: slice) -> slice:
            start, stop, _ = part.indices(size)
            return slice(first + start, first + stop)

        def cut(rows: slice, columns: slice) -> Native:
            return whole.block(moved(rows), columns) if place.transposed else whole.block(rows, moved(columns))

        shape = (size, whole.shape[1]) if place.transposed else (whole.shape[0], size)
        return Stored(shape, cut, whole.name), place.transposed


_OPTIONS: Mapping[str, tuple[str, str]] = {
    "seq_len": ("--T", "T is said by the model itself"),
    "input_radius": ("--input-radius", "it reads tokens, whose rows are the embedding table's"),
    "heads": ("--heads", "the heads are said by the model itself"),
    "classes": ("--classes", "its read-out says how many logits there are"),
}
"""Options of a model, and why one may have no effect."""
