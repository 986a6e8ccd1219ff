"""A family of models as data, and a checkpoint seen through it: which tensor plays which role (docs/weights.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.validate import positive, size
from boundcalc.checkpoints.decode import read, stored
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.config import Options as Options
from boundcalc.checkpoints.families.config import Settings
from boundcalc.checkpoints.families.derived import Place, class_and_mean, derived, heads_side_by_side, sliced, times
from boundcalc.checkpoints.families.names import POOLING_HEAD, block_count, block_of, compiled, read_again, stripped
from boundcalc.checkpoints.readers.base import Checkpoint, Tensor
from boundcalc.norms.matrix import Native, Stored
from boundcalc.setting import Architecture


@dataclass(frozen=True)
class Family:
    """A family of models as data.

    Attributes:
        name: in reports and for `--family`.
        model_types: values of "model_type" in config.json that it is for.
        tensors: name pattern -> role. "{b}" stands for the block number, a trailing ".T" says that the file holds the
            transpose of W (torch.nn.Linear does, GPT-2's Conv1D does not). Roles are the kinds of norms files, and
            "W_QKV", "b_QKV" (fused, equal thirds), "segments", "class_token".
        architecture: builds the architecture from the tensors (families/blocks.py).
        ignored: pattern -> why such a tensor is no weight of the bounded model.
        prefixes: parts that some checkpoints put before every name.
        reads: parameter of `architecture` -> the field of config.json that says it, and the library's default.
        fixed: further parameters, which the library's code has as constants.
        only: field -> the values that leave the description as it is.
        neutral: pattern of further fields that change no bounded function.
        gives_way: tensor -> why it is not read where another tensor has the same role.
        tokens: roles of tokens that are put before the input, in order; folded into the positions.
        scales: role -> what the model multiplies such a weight by.
        by_group: whether fused queries, keys and values lie group by group, not one after the other: the query heads of
            a group, then its key, then its value.
        halves: role of a tensor that holds two weights, one after the other -> their roles.
        described: whether a mapping describes the model completely, so that config.json is not read.
        known_heads: attention heads, where the table itself gives them.
        at: tensor -> its block and head, where a mapping says them with the role (W_Q[0,1].T).
        rotate: how queries and keys turn with their position, where the table says so; no bound reads it.
    """

    name: str
    model_types: tuple[str, ...]
    tensors: Mapping[str, str]
    architecture: Callable[[Model], Architecture]
    ignored: Mapping[str, str] = field(default_factory=dict[str, str])
    prefixes: tuple[str, ...] = ()
    reads: Mapping[str, tuple[str, Any]] = field(default_factory=dict[str, Any])
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, Any])
    neutral: str = ""
    gives_way: Mapping[str, str] = field(default_factory=dict[str, str])
    tokens: tuple[str, ...] = ("class_token",)
    scales: Mapping[str, Callable[[Model], float]] = field(default_factory=dict[str, Any])
    by_group: bool = False
    halves: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, Any])
    described: bool = False
    known_heads: int | None = None
    at: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict[str, Any])
    rotate: Callable[[Any, int | None], Any] | None = None


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
    options: Options = field(default_factory=Options)
    _options_read: set[str] = field(default_factory=set[str], compare=False)

    def option(self, name: str) -> Any:
        """What the user says beyond the files."""
        self._options_read.add(name)
        return getattr(self.options, name)

    def refuse_unread_options(self) -> None:
        """An option that changes nothing is a mistake of its user."""
        for name, (option, why) in _OPTIONS.items():
            if getattr(self.options, name) is not None and name not in self._options_read:
                raise InvalidSetting(f"{option} has no effect on {self.checkpoint.where}: {why}; leave it out")

    @cached_property
    def settings(self) -> Settings:
        """The fields that the user and config.json give."""
        return Settings(self.checkpoint.where, self.options.settings, self.checkpoint.config)

    @property
    def doubts(self) -> list[str]:
        """What a forward check must settle, once the architecture is built."""
        settings = self.settings
        if not self.family.described:
            settings.read.update(name for name, _ in self.family.reads.values())
            return settings.doubted(self.family.only, self.family.neutral)
        if settings.said:
            raise InvalidSetting(
                f"--set {next(iter(settings.said))}=... has no effect: the mapping says what the model is"
            )
        return []

    @cached_property
    def first_position(self) -> int:
        """The first row of the position table that is read: after `skipped` rows, or after the row of padding."""
        padding = self.setting_of("padding")
        return self.family.fixed.get("skipped", 0) if padding is None else size("pad_token_id", padding, least=0) + 1

    @cached_property
    def head(self) -> str:
        """Which kind of model "architectures" names, by the ending of its class; "" where it names none."""
        named = self.settings.get("architectures")
        if not named or self.family.described:
            return ""
        name = named[0] if isinstance(named, list) and len(named) == 1 else ""
        kind = next((ending for ending in _HEADS_OF if isinstance(name, str) and name.endswith(ending)), "")
        if not kind:
            self.settings.doubts.append(f"architectures: need one class, whose name ends with {', '.join(_HEADS_OF)}")
        return kind

    @cached_property
    def _sorted(self) -> _Sorted:
        roles = [(compiled(pattern), pattern, role) for pattern, role in self.family.tensors.items()]
        reasons = [(compiled(pattern), why) for pattern, why in self.family.ignored.items()]
        places: dict[tuple[str, int | None], Place] = {}
        ignored: dict[str, str] = {}
        unknown: list[str] = []
        gave: list[tuple[Tensor, Tensor]] = []
        apart: dict[tuple[str, int | None], dict[int, Tensor]] = {}
        for name, tensor in self.checkpoint.tensors.items():
            plain = self._plain(name)
            claim = next(((m, *rest) for regex, *rest in roles if (m := regex.fullmatch(plain))), None)
            why = next((why for regex, why in reasons if regex.fullmatch(plain)), None)
            if claim is None or not tensor.is_float:
                if why is None and not tensor.is_float:
                    why = f"{tensor.dtype} numbers: a buffer, not a weight"
                if why is None and name in self.checkpoint.buffers:
                    why = "a buffer of the module, not a weight"
                if why is None:
                    unknown.append(name)
                else:
                    ignored[name] = why
                continue
            match, pattern, role = claim
            block, head = self.family.at.get(pattern, (block_of(match), None))
            if head is not None:
                apart.setdefault((role, block), {})[head] = tensor
                continue
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
        for (role, block), heads in apart.items():
            key = role.removesuffix(".T"), block
            if (
                sorted(heads) != list(range(len(heads)))
                or len({tensor.shape for tensor in heads.values()}) > 1
                or key in places
            ):
                raise CheckpointError(
                    f"{heads[min(heads)].name} and its like are no heads 0, 1, ... of one shape for {role}"
                )
            places[key] = Place(
                heads_side_by_side([heads[at] for at in range(len(heads))], role.endswith(".T")), role.endswith(".T")
            )
        self._fold(places, ignored)
        places |= read_again(places, self.family.fixed.get("depth", 0))
        return _Sorted(places, ignored, unknown, gave)

    def _fold(self, places: dict[tuple[str, int | None], Place], ignored: dict[str, str]) -> None:
        """Weights that are not one tensor: parts of one, those that a vector scales, and gains that are 1 + w."""
        after = block_count(places)
        for role, block in [key for key in places if key[0].startswith(POOLING_HEAD)]:
            places[role.removeprefix(POOLING_HEAD), after] = places.pop((role, block))
        for (role, block), place in list(places.items()):
            map_name = role.removeprefix("outputs_of.")
            if parts := self._parts(role, place, places.get(("W_O", block))):
                if twice := next((kind for kind in parts if (kind, block) in places), None):
                    other = places[twice, block].tensor.name
                    raise CheckpointError(f"{place.tensor.name} and {other} both look like {twice}")
                del places[role, block]
                places |= {(kind, block): part for kind, part in parts.items()}
            elif map_name != role:
                for name in (map_name, f"b_{map_name[2:]}"):
                    if (name, block) in places:
                        places[name, block] = times(places[name, block], place.tensor)
                del places[role, block]
                ignored[place.tensor.name] = f"folded into {map_name}, whose outputs it multiplies"
            elif role == "readout_both":
                places |= class_and_mean(places.pop((role, block)), places.get(("positions", None)))
            elif self.family.fixed.get("around_one") and role in ("norm_Q.gain", "norm_K.gain"):
                places[role, block] = derived(place, lambda values, *_: 1 + values)

    def _parts(self, role: str, place: Place, output: Place | None) -> dict[str, Place]:
        """The weights that a tensor holds side by side; {} of one weight."""
        if role in self.family.halves:
            pairs = enumerate(self.family.halves[role])
            return {kind: sliced(place, role, slice(at, at + 1), 2) for at, kind in pairs}
        if role not in ("W_QKV", "b_QKV"):
            return {}
        if output is None:
            raise CheckpointError(f"{self.checkpoint.where} has {place.tensor.name} and no W_O that says its heads")
        shape, outputs = output.tensor.shape, place.tensor.shape[:1] if place.transposed else place.tensor.shape[-1:]
        width = self.head_width(shape[-1] if output.transposed else math.prod(shape[:1]))
        slots = math.prod(outputs) // width if width else 0
        groups = (slots - self.heads) // 2
        if groups < 1 or (self.heads + 2 * groups) * width != math.prod(outputs) or self.heads % groups:
            raise CheckpointError(
                f"{place.tensor.name}: {math.prod(outputs)} outputs do not make {self.heads} heads of width {width}, "
                "keys and values; of maps stored the other way round, as torch.nn.Linear does or does not, the module "
                "(--compare module.py:make) or a mapping says so"
            )
        apart = groups if self.family.by_group else 1
        ends = (0, self.heads // apart, (self.heads + groups) // apart, (self.heads + 2 * groups) // apart)
        return {
            f"{role[:2]}{kind}": sliced(place, role, slice(*ends[at : at + 2]), ends[-1], apart)
            for at, kind in enumerate("QKV")
        }

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

    def has(self, role: str, block: int | None = None) -> bool:
        """Whether a tensor, or part of one, plays a role."""
        return (role, block) in self.places

    def factor(self, role: str, block: int | None = None) -> float:
        """What the model multiplies a weight by: said of it, or of the tensor that holds it with others."""
        place = self.places.get((role, block))
        scale = self.family.scales.get(place.whole if place is not None and place.whole else role)
        return 1.0 if scale is None else float(scale(self))

    def place(self, role: str, block: int | None = None) -> Place:
        """The tensor of a role; a clear line where it is missing."""
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
        return flat[::-1] if place.transposed else flat

    def table_shape(self, role: str) -> tuple[int, int]:
        """(rows, d) of a table, which may have further dimensions of length 1 before."""
        tensor = self.place(role).tensor
        rows, d = tensor.shape[-2:] if len(tensor.shape) > 1 else (0, 0)
        if not rows or rows * d != tensor.size:
            raise CheckpointError(f"{tensor.name} should be a table, the file has shape {tensor.shape}")
        return rows, d

    @cached_property
    def depth(self) -> int:
        """Number of blocks, without the attention that pools rows by a trained query."""
        blocks = block_count(self.places)
        if not blocks:
            raise CheckpointError(f"{self.checkpoint.where} has no blocks of the family {self.family.name}")
        return blocks - self.has("probe", blocks - 1)

    def setting_of(self, name: str) -> Any:
        """A parameter of the family: of config.json (or --set), the library's default, or a constant of its code."""
        if name not in self.family.reads:
            return self.family.fixed.get(name)
        said, default = self.family.reads[name]
        return self.settings.get(said, default, null=name in ("cap", "final_cap"))

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
        if self.family.described:
            return self.family.known_heads or self.option("heads") or 1
        said, count = self.option("heads"), self.setting_of("heads")
        count = next(filter(None, (count, *(self.settings.get(name) for name in _HEADS))), None)
        where = self.family.reads["heads"][0] if "heads" in self.family.reads else "heads"
        if count is None and said is None:
            raise CheckpointError(
                f"{self.checkpoint.where} comes without the number of heads: put its config.json next to it, or say "
                f"--heads 12 (--set {where}=12)"
            )
        if said is not None and count is not None and count != said:
            raise CheckpointError(f"--heads {said}, but {where} is {count!r}: leave out one of them")
        return size("heads", said if count is None else count)

    def head_width(self, outputs: int) -> int:
        """Width of a head, from how many outputs all queries have."""
        if outputs % self.heads:
            raise CheckpointError(f"{self.checkpoint.where}: {outputs} outputs do not make {self.heads} heads")
        return outputs // self.heads

    def vector(self, role: str, block: int | None = None) -> Native:
        """An offset, a gain or another small tensor, flat."""
        return read(self.place(role, block).tensor).ravel()

    def matrix(self, role: str, block: int | None = None) -> tuple[Stored, bool]:
        """A matrix as stored, and whether that is the transpose of W."""
        place = self.place(role, block)
        return stored(place.tensor), place.transposed


_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
"""Names of one field in releases of the library; the family's own comes first."""

LANGUAGE = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForPreTraining")
"""Endings of classes that read out tokens."""
_CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification", "ForImageClassification")
_HEADS_OF = (*LANGUAGE, *_CLASSIFIERS, "Model", "ModelWithProjection")

_OPTIONS: Mapping[str, tuple[str, str]] = {
    "seq_len": ("--T", "the model itself gives T"),
    "input_radius": ("--input-radius", "it reads tokens, whose rows are the embedding table's"),
    "heads": ("--heads", "the model itself gives the heads"),
    "classes": ("--classes", "its read-out says how many logits there are"),
}
"""Options of a model, and why one may have no effect."""
