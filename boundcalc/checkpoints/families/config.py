"""What the fields of a config.json mean that a family reads; a forward check decides whether others count."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundcalc.base.errors import BoundcalcError
from boundcalc.base.validate import positive, size
from boundcalc.checkpoints.errors import CheckpointError

_FIELDS = tomllib.loads((Path(__file__).parents[1] / "fields.toml").read_text(encoding="utf-8"))
ACTIVATIONS: Mapping[str, str] = _FIELDS["activations"]
"""Names of activations in config.json, and ours."""
NOT_YET: Mapping[str, str] = {kind: why for why, kinds in _FIELDS["not_yet"].items() for kind in kinds}
"""Known types that the calculus has no layer for, and why."""


def activation(name: object) -> str:
    """Our name of an activation."""
    if name == "relu2":
        raise CheckpointError("activation 'relu2' is not Lipschitz: the slope of relu(x)^2 grows with the radius")
    if name in ACTIVATIONS.values():
        return str(name)
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise CheckpointError(
            f"activation {name!r:.60} has no Lipschitz constant here; known: {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


@dataclass(frozen=True)
class Options:
    """What the user says of the model beyond its files.

    Attributes:
        seq_len: T; unset, the longest sequence that its positions allow.
        input_radius: largest l2 norm of an input row, for vector inputs.
        heads: attention heads, where no config says so.
        settings: further settings, as config.json would have them.
    """

    seq_len: int | None = None
    input_radius: float | None = None
    heads: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for name, value in (("T", self.seq_len), ("heads", self.heads)):
            if value is not None:
                size(name, value)
        if self.input_radius is not None:
            positive("input radius", self.input_radius)


# -- rotary positions

_ROTATIONS: Mapping[str, list[str]] = _FIELDS["rotations"]
"""Types of rotary positions, and the fields of each besides those of all."""


def rotation_factor(field_of: Callable[[str], Any], doubts: list[str]) -> float:
    """The factor of cos and sin of rotary positions, at least that of every release; scores grow by its square.

    YaRN (arXiv:2309.00071v3, section 3.4) and LongRoPE (arXiv:2402.13753v1) have one. Angles cost nothing (S4).

    Args:
        field_of: what config.json has by a name.
        doubts: where to say why the factor may be another.
    """
    longest, original = field_of("max_position_embeddings"), field_of("original_max_position_embeddings")
    factors: list[float] = []
    for rotations in filter(None, (field_of("rope_parameters"), field_of("rope_scaling"))):
        table = rotations if isinstance(rotations, Mapping) else {"type": rotations}
        inner = list(table.values())  # perhaps a table for each kind of attention
        for part in inner if all(isinstance(value, Mapping) for value in inner) else [table]:
            try:
                factors.append(_stretched(part, longest, original) if part else 1.0)
            except (BoundcalcError, TypeError, ValueError, ZeroDivisionError) as error:
                doubts.append(f"rope_parameters: {error}")
    return max(factors, default=1.0)


def _stretched(rotations: Mapping[str, Any], longest: Any, original: Any) -> float:
    """The largest factor that a release computes.

    Where the file says none, releases differ in what they take for the stretch: `factor`, or the ratio of the two
    lengths.
    """
    kind = rotations.get("rope_type") or rotations.get("type") or "default"
    if rotations.get("type") not in (None, kind) or not isinstance(kind, str) or kind not in _ROTATIONS:
        raise CheckpointError(f"no bound here has rotary positions of type {str(kind)!r:.40}")
    for key, value in rotations.items():
        if value is not None and key not in _ROTATIONS[kind] and key not in _FIELDS["any_rotation"]:
            raise CheckpointError(f"rotary positions of type {kind!r} have no {key!r:.40}")
    if kind not in ("yarn", "longrope"):
        return 1.0
    if rotations.get("partial_rotary_factor") not in (None, 1):
        raise CheckpointError("a factor of rotations of part of each head is not supported")
    if rotations.get("attention_factor") is not None:
        return positive("attention_factor", rotations["attention_factor"])
    inner = rotations.get("original_max_position_embeddings")
    lengths = [float(length) for length in (original, inner, longest) if length is not None]
    stretches = [float(longest) / length for length in lengths]
    if rotations.get("factor") is not None:
        stretches.append(float(rotations["factor"]))
    if kind == "longrope":
        stretch = max(stretches)
        factors = [math.sqrt(1 + math.log(stretch) / math.log(length)) for length in lengths]
        return 1.0 if stretch <= 1 else positive("the factor of its rotations", max(factors))

    def grown(stretch: float, scale: float = 1.0) -> float:
        return 1.0 if stretch <= 1 else 0.1 * scale * math.log(stretch) + 1.0

    factors = [grown(stretch) for stretch in stretches]  # older releases do not read the two scales
    if rotations.get("mscale") and rotations.get("mscale_all_dim"):
        first, second = float(rotations["mscale"]), float(rotations["mscale_all_dim"])
        factors += [grown(stretch, first) / grown(stretch, second) for stretch in stretches]
    return positive("the factor of its rotations", max(factors))
