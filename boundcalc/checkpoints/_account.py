"""Where every tensor of a checkpoint went: no parameter is left out silently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boundcalc.checkpoints.families.table import Key, Model
from boundcalc.layers.base import place_named, weights_of


@dataclass(frozen=True, slots=True)
class _Line:
    """One tensor: how many numbers, what they are in the bounded model, and why some are not."""

    tensor: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    used: int
    unused: int = 0
    reason: str = ""
    transposed: bool = False
    """Whether it is read as the transpose of what is stored, which is x -> x W^T of torch.nn.Linear."""
    factor: float = 1.0
    """What the model multiplies it by."""


@dataclass(frozen=True)
class Account:
    """All tensors of a checkpoint, and the parameters of the architecture they make up."""

    lines: tuple[_Line, ...]
    lowered: int
    """Parameters of the lowered architecture."""
    shared: int
    """Of these, such as are the same tensor twice (a read-out tied to the embedding), or not in the checkpoint."""
    doubts: tuple[str, ...] = ()
    """Why the model may not be the one that would be bounded."""
    assumed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that no file gives, and their defaults."""

    @property
    def total(self) -> int:
        """Numbers in the checkpoint that are weights."""
        return sum(line.used + line.unused for line in self.lines)

    @property
    def used(self) -> int:
        """Numbers that the lowered architecture has."""
        return sum(line.used for line in self.lines)

    @property
    def unknown(self) -> list[str]:
        """Tensors the family has no place for."""
        return [line.tensor for line in self.lines if line.role == "unknown"]

    @property
    def balanced(self) -> bool:
        """Whether the lowered architecture has just the parameters that were read."""
        return self.used + self.shared == self.lowered


KEY_BIAS = "softmax ignores what is the same for all keys of a query (T8)"
FOLDED = "folded into"
"""Of a token before the input, whose sum with a position is measured, and of maps that make a trained query."""


def balance(model: Model, read: Mapping[Key, tuple[int, str]], shared: int) -> Account:
    """The account of a model.

    Args:
        model: a checkpoint, seen through its family.
        read: how many numbers of each place are used, and why not the others.
        shared: parameters that are counted twice.
    """
    tensors, lines = model.checkpoint.tensors, list[_Line]()
    parts: dict[str, list[Key]] = {}
    for key, place in model.places.items():
        parts.setdefault(place.name, []).append(key)
    for name, keys in parts.items():
        (kind, block), place = keys[0], model.places[keys[0]]
        stored = tensors[name] if place.whole else place
        reads = [read.get(key, (0, "the bounded model does not read it")) for key in keys]
        used = sum(count for count, _ in reads)
        why = ", ".join(dict.fromkeys(why for _, why in reads if why)) if used < stored.size else ""
        role, turned = place_named(place.whole or kind, block), place.turned and len(place.shape) > 1
        factor = model.factor(kind, block)
        lines.append(_Line(name, stored.shape, place.dtype, role, used, stored.size - used, why, turned, factor))
    unread = [("ignored", name, why) for name, why in model.ignored.items()]
    unread += [("unknown", name, f"no place in family {model.family.name!r}") for name in model.unknown]
    for role, name, why in unread:
        tensor = tensors[name]
        again = role == "ignored" and (not tensor.is_float or why.startswith("the same parameter"))
        lines.append(_Line(name, tensor.shape, tensor.dtype, role, 0, 0 if again else tensor.size, why))
    lowered = sum(weight.parameters for weight in weights_of(model.architecture.stages, model.architecture.seq_len))
    doubts = tuple(dict.fromkeys((*model.checkpoint.doubts, *model.doubts)))
    return Account(tuple(lines), lowered, shared, doubts, dict(model.assumed))
