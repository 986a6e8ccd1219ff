"""What the fields of a config.json mean: the few that a family reads, and those that change no bounded function.

A forward check decides whether a description is the model. Without one, a field that a family neither reads nor knows
is a
doubt: `norms` prints it, `certify` refuses.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundcalc.base.validate import positive, size
from boundcalc.checkpoints.errors import CheckpointError

_FIELDS = tomllib.loads((Path(__file__).parents[1] / "fields.toml").read_text(encoding="utf-8"))
NEUTRAL = re.compile(_FIELDS["neutral"], re.VERBOSE)
"""Fields that change no bounded function."""
ONLY: Mapping[str, tuple[Any, ...]] = {name: tuple(values) for name, values in _FIELDS["only"].items()}
"""Fields of any family, and the values that leave the function as it is described."""
ACTIVATIONS: Mapping[str, str] = _FIELDS["activations"]
"""Names of activations in config.json, and ours."""
NOT_YET: Mapping[str, str] = {kind: why for why, kinds in _FIELDS["not_yet"].items() for kind in kinds}
"""Known types that the calculus has no layer for, and why."""
_ATTENTION = {"full_attention", "sliding_attention"}


def activation(name: object) -> str:
    """Our name of an activation."""
    if name == "relu2":
        raise CheckpointError("activation 'relu2' is not Lipschitz: the slope of relu(x)^2 grows with the radius")
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


@dataclass(frozen=True)
class Settings:
    """The fields of one model: said by the user, else by its config.json, else the library's default.

    Attributes:
        where: what the user pointed at.
        said: by the user, before all else; null stands for the library's default.
        config: config.json.
        read: names of the fields that the description was built from.
        assumed: fields that no file gives, and their defaults.
        lasting: doubts that a forward check does not settle.
    """

    where: str
    said: Mapping[str, Any]
    config: Mapping[str, Any]
    read: set[str] = field(default_factory=set[str])
    assumed: dict[str, Any] = field(default_factory=dict[str, Any])
    doubts: list[str] = field(default_factory=list[str])
    lasting: list[str] = field(default_factory=list[str])

    def get(self, name: str, default: Any = None, *, null: bool = False) -> Any:
        """A field's value; `null`: whether null in config.json is a value, not silence."""
        self.read.add(name)
        if self.said.get(name) is not None:
            return self.said[name]
        if name not in self.said and name in self.config and (null or self.config[name] is not None):
            return self.config[name]
        if default is not None:
            self.assumed[name] = default
        return default

    def doubted(self, only: Mapping[str, tuple[Any, ...]], neutral: str) -> list[str]:
        """Fields because of which the model may not be the one that is described.

        `only` are further fields of the family, with the values that leave the description as it is; `neutral` is a
        pattern of further fields that change no bounded function.
        """
        doubts = list(self.doubts)
        for name, value in {**self.config, **self.said}.items():
            if value is None or name in self.read or NEUTRAL.fullmatch(name) or re.fullmatch(neutral, name):
                continue
            if name == "layer_types" and isinstance(value, list) and set(map(str, value)) <= _ATTENTION:
                continue  # masks may be any (L7)
            allowed = {**ONLY, **only}.get(name)
            if allowed is None:
                unread = f"if the model does not read it, say --set {name}=null"
                doubts.append(f"{_field_and_value(name, value)} is not known; {unread}")
            elif not any(value == option and isinstance(value, bool) == isinstance(option, bool) for option in allowed):
                words = " or ".join(repr(option) for option in allowed) or "nothing else than null"
                doubts.append(f"{_field_and_value(name, value)}, but the description has {words}")
        return doubts


def _field_and_value(name: str, value: object) -> str:
    text = ascii(value)
    return f"{name} = {text if len(text) <= 60 else text[:60] + '...'}"


# -- rotary positions

_ROTATIONS: Mapping[str, list[str]] = _FIELDS["rotations"]
"""Types of rotary positions, and the fields of each besides those of all."""


def rotation_factor(settings: Settings) -> float:
    """The factor of cos and sin of rotary positions, at least that of every release; scores grow by its square.

    YaRN (arXiv:2309.00071v3, section 3.4) and LongRoPE (arXiv:2402.13753v1) have one. Angles cost nothing (S4).
    """
    new, old = settings.get("rope_parameters"), settings.get("rope_scaling")
    longest, original = settings.get("max_position_embeddings"), settings.get("original_max_position_embeddings")
    if new and old and new != old:
        settings.doubts.append("rope_scaling differs from rope_parameters")
    rotations = old or new
    if not rotations:
        return 1.0
    tables = [rotations]
    if isinstance(rotations, Mapping) and rotations and all(isinstance(value, Mapping) for value in rotations.values()):
        tables = list(rotations.values())  # one table for each kind of attention
    return max(_factor(settings, table, longest, original) for table in tables)


def _factor(settings: Settings, rotations: Any, longest: Any, original: Any) -> float:
    def unknown(reason: str) -> float:
        settings.lasting.append(f"rope_parameters: {reason}")
        return 1.0

    if not isinstance(rotations, Mapping):
        return unknown("no table of rotary positions")
    kind = rotations.get("rope_type") or rotations.get("type") or "default"
    if rotations.get("type") not in (None, kind):
        return unknown("'type' and 'rope_type' of its rotary positions differ")
    if not isinstance(kind, str) or kind not in _ROTATIONS:
        return unknown(f"rotary positions of type {kind!r:.40} are not known: {', '.join(_ROTATIONS)} are")
    for key, value in rotations.items():
        if value is not None and key not in _ROTATIONS[kind] and key not in _FIELDS["any_rotation"]:
            return unknown(f"rotary positions of type {kind!r} have no {key!r:.40}")
    if kind not in ("yarn", "longrope"):
        return 1.0
    if rotations.get("partial_rotary_factor") not in (None, 1):
        return unknown("a factor of rotations of part of each head is not supported")
    try:
        factor = _stretched(kind, rotations, longest, original)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        return unknown(f"no factor of its rotations can be computed ({error})")
    return factor if 0 < factor < math.inf else unknown(f"its rotations have the factor {factor}")


def _stretched(kind: str, rotations: Mapping[str, Any], longest: Any, original: Any) -> float:
    """The largest factor that a release computes.

    Where the file says none, releases differ in what they take for the stretch: `factor`, or the ratio of the two
    lengths.
    """
    if rotations.get("attention_factor") is not None:
        return float(rotations["attention_factor"])
    inner = rotations.get("original_max_position_embeddings")
    lengths = [float(length) for length in (original, inner, longest) if length is not None]
    stretches = [float(longest) / length for length in lengths]
    if rotations.get("factor") is not None:
        stretches.append(float(rotations["factor"]))
    if kind == "longrope":
        stretch = max(stretches)
        return 1.0 if stretch <= 1 else max(math.sqrt(1 + math.log(stretch) / math.log(length)) for length in lengths)

    def grown(stretch: float, scale: float = 1.0) -> float:
        return 1.0 if stretch <= 1 else 0.1 * scale * math.log(stretch) + 1.0

    if rotations.get("mscale") and rotations.get("mscale_all_dim"):
        both = float(rotations["mscale"]), float(rotations["mscale_all_dim"])
        stretches_by_both = (grown(stretch, both[0]) / grown(stretch, both[1]) for stretch in stretches)
        return max(*stretches_by_both, *map(grown, stretches))  # older releases do not read them
    return max(map(grown, stretches))
