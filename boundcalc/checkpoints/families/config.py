"""What the fields of a config.json mean that a family reads; a forward check decides whether others count."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


_PLAIN = ("default", "linear", "dynamic", "llama3")
"""Types of rotary positions that turn queries and keys and multiply them by nothing."""


def rotation_doubts(*tables: Any) -> Iterator[str]:
    """Doubts of rotary positions that may multiply scores, by a factor that differs from release to release.

    YaRN (arXiv:2309.00071v3, section 3.4) and LongRoPE (arXiv:2402.13753v1) do. Angles cost nothing (S4).
    """
    for rotations in filter(None, tables):
        table = rotations if isinstance(rotations, Mapping) else {"type": rotations}
        inner = list(table.values())  # perhaps a table for each kind of attention
        for part in inner if all(isinstance(value, Mapping) for value in inner) else [table]:
            for kind in (part.get("rope_type"), part.get("type")):
                if kind is not None and kind not in _PLAIN:
                    yield f"rope_parameters: no bound here has rotary positions of type {str(kind)!r:.40}"
