"""The settings of one checkpoint: what the user and its config.json say, what of it was read, and what is in doubt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.checkpoints.families.fields import COMMON, NEEDED, ConfigField, Fields

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field of a config.json: its value, what became of it, and whether that is in doubt."""

    name: str
    value: Any
    use: str
    reason: str
    doubt: bool = False

    @property
    def text(self) -> str:
        """For one line of a report or an error."""
        shown = ascii(self.value)
        return f"{self.name} = {shown if len(shown) <= _LONGEST else shown[:_LONGEST] + '...'}: {self.reason}"


@dataclass(frozen=True)
class Settings:
    """Looks settings up by the names of a family's table, and remembers which.

    Attributes:
        where: what the user pointed at.
        family: name of the family.
        fields: the family's table; None where a mapping says all there is to say.
        aliases: other names of fields, and the name in the table.
        said: by the user, before all else; null stands for the library's default.
        config: config.json.
    """

    where: str
    family: str
    fields: Fields | None
    aliases: Mapping[str, str]
    said: Mapping[str, Any]
    config: Mapping[str, Any]
    _asked: set[str] = field(default_factory=set[str])
    _assumed: dict[str, Any] = field(default_factory=dict[str, Any])
    _doubts: dict[str, str] = field(default_factory=dict[str, str])

    def entry(self, name: str) -> ConfigField | None:
        """The table's line for a field, under any of its names."""
        name = self.aliases.get(name, name)
        return (self.fields or {}).get(name) or COMMON.get(name)

    def given(self, name: str) -> Any:
        """What is said of a field, None where nothing is; its names may not contradict each other."""
        names = [name, *(alias for alias, canonical in self.aliases.items() if canonical == name)]
        for source in (self.said, self.config):
            found = {n: source[n] for n in names if n in source and (source is self.said or source[n] is not None)}
            values = list(found.values())
            if any(value != values[0] for value in values):
                raise CheckpointError(f"{self.where} has {' and '.join(found)}, which are one setting, and differ")
            if values:
                return values[0]
        return None

    def get(self, name: str, default: Any = NEEDED) -> Any:
        """A field's value; where nothing is said, `default`, which is said elsewhere, or else the table's: that is assumed."""
        entry = self.entry(name)
        if entry is None or entry.use != "used":
            raise TypeError(f"family {self.family!r} reads {name!r}, which its table does not list as used")
        self._asked.add(name)
        value = self.given(name)
        if value is not None:
            return value
        if default is not NEEDED:
            return default
        value = entry.default
        if value is NEEDED:
            raise CheckpointError(
                f"{self.where} comes without {name!r}: put its config.json beside it, or say --set {name}=..."
            )
        if value is not None:
            self._assumed[name] = value
        return value

    def flag(self, name: str) -> bool:
        """A field that is true or false."""
        value = self.get(name)
        if not isinstance(value, bool):
            raise CheckpointError(f"{self.where}: {name} should be true or false, got {value!r:.60}")
        return value

    def switched_off(self, name: str) -> bool:
        """Whether config.json says null of a field whose default is not null: the library then does without it."""
        names = [name, *(alias for alias, canonical in self.aliases.items() if canonical == name)]
        self._asked.add(name)
        return not any(n in self.said for n in names) and any(
            n in self.config and self.config[n] is None for n in names
        )

    def doubt(self, name: str, reason: str) -> None:
        """The model may not be what the architecture says, because of this field."""
        self._doubts[name] = reason

    def assume(self, name: str, value: object) -> None:
        """Nobody says this, and the architecture has it all the same."""
        self._assumed[name] = value

    @property
    def assumed(self) -> Mapping[str, Any]:
        """Fields that nothing is said of, and the library's defaults for them."""
        return self._assumed

    def lines(self, model: Any) -> list[FieldLine]:
        """What became of every field, once the architecture is built."""
        if self.fields is None:
            if self.said:
                raise InvalidSetting(
                    f"--set {next(iter(self.said))}=... has no effect: the mapping says what the model is"
                )
            return [FieldLine(name, value, "neutral", "the mapping says it") for name, value in self.config.items()]
        out: list[FieldLine] = []
        for name in dict.fromkeys((*self.said, *self.config)):
            value = self.said[name] if name in self.said else self.config[name]
            out.append(self._line(name, value, model))
        for name, reason in self._doubts.items():
            if name not in {line.name for line in out}:
                out.append(FieldLine(name, self._assumed.get(name), "assumed", reason, doubt=True))
        return out

    def _line(self, name: str, value: Any, model: Any) -> FieldLine:
        entry, plain = self.entry(name), self.aliases.get(name, name)
        if plain in self._doubts:
            return FieldLine(name, value, "used", self._doubts[plain], doubt=True)
        if value is None and (name in self.said or entry is None):
            return FieldLine(name, value, "neutral", "null says nothing")
        if entry is None:
            reason = f"family {self.family!r} does not know it; if the model does not read it, say --set {name}=null"
            return FieldLine(name, value, "unknown", reason, doubt=True)
        if entry.use == "used" and plain not in self._asked and plain != "model_type":
            return FieldLine(name, value, "unread", "nothing of this model reads it", doubt=True)
        if entry.use == "only" and not entry.permits(value):
            return FieldLine(name, value, "only", entry.text, doubt=True)
        if entry.use == "agrees" and entry.find is not None and value is not None:
            found = entry.find(model)
            if found is not None and not _same(value, found):
                return FieldLine(name, value, "agrees", f"the tensors say {found!r}", doubt=True)
        return FieldLine(name, value, entry.use, entry.text)


def _same(value: object, found: object) -> bool:
    if isinstance(value, Sequence) and isinstance(found, Sequence) and not isinstance(value, str):
        return len(value) == len(found) and all(map(_same, value, found))
    return value == found and isinstance(value, bool) == isinstance(found, bool)


def rotation_factor(settings: Settings) -> float:
    """What cos and sin of rotary positions are multiplied by; scores grow by its square.

    YaRN (arXiv:2309.00071v3, section 3.4) and LongRoPE (arXiv:2402.13753v1) have one; where a file does not say it, the
    library computes it from how far the sequences were stretched. Angles cost nothing (S4), so nothing else is read.
    """
    name, given = _rotation(settings)
    longest = settings.get("max_position_embeddings")
    original = settings.get("original_max_position_embeddings")
    if not given:
        return 1.0

    def unknown(reason: str) -> float:
        settings.doubt(name, reason)
        return 1.0

    if not isinstance(given, Mapping):
        return unknown("no table of rotary positions")
    kind = given.get("rope_type") or given.get("type") or "default"
    if given.get("type") not in (None, kind):
        return unknown("'type' and 'rope_type' differ")
    if not isinstance(kind, str) or kind not in _ROTATIONS:
        return unknown(f"rotary positions of type {kind!r:.40} are not known: {', '.join(_ROTATIONS)} are")
    for key, value in given.items():
        if value is not None and key not in _ROTATIONS[kind] and key not in _ANY_ROTATION:
            return unknown(f"rotary positions of type {kind!r} have no {key!r:.40}")
    if given.get("partial_rotary_factor") not in (None, 1) and kind in ("yarn", "longrope"):
        return unknown("a factor on part of each head is not supported")
    if kind not in ("yarn", "longrope"):
        return 1.0
    if original is None:
        original = given.get("original_max_position_embeddings") or longest
    try:
        factor = _stretched(kind, given, float(longest), float(original))
    except (TypeError, ValueError, ZeroDivisionError) as error:
        return unknown(f"no factor of its rotations can be computed ({error})")
    if not 0 < factor < math.inf:
        return unknown(f"its rotations have the factor {factor}")
    return factor


def refuse_rotation_factor(settings: Settings, why: str) -> None:
    """A factor of rotations is doubted where nothing pays for it."""
    if rotation_factor(settings) != 1:
        settings.doubt("rope_scaling", why)


_ANY_ROTATION = ("rope_type", "type", "rope_theta", "partial_rotary_factor")
_ROTATIONS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor", "original_max_position_embeddings"),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
    "yarn": (
        *("factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow"),
        *("mscale", "mscale_all_dim", "truncate"),
    ),
    "longrope": (*("factor", "original_max_position_embeddings", "attention_factor", "short_factor", "long_factor"),),
}
"""Types of rotary positions, and what each reads."""


def _rotation(settings: Settings) -> tuple[str, Any]:
    """The table of rotary positions, under its new or its old name."""
    new, old = settings.get("rope_parameters"), settings.get("rope_scaling")
    if new and old and new != old:
        settings.doubt("rope_scaling", "it differs from rope_parameters")
    return ("rope_scaling", old) if old else ("rope_parameters", new)


def _stretched(kind: str, given: Mapping[str, Any], longest: float, original: float) -> float:
    """The factor as the library has it."""
    if given.get("attention_factor") is not None:
        return float(given["attention_factor"])
    ratio = longest / original
    stretch = float(given["factor"]) if given.get("factor") is not None else ratio
    if kind == "longrope":
        # releases differ in which of the two they take: the larger factor is sound for both
        stretch = max(stretch, ratio)
        return 1.0 if stretch <= 1 else math.sqrt(1 + math.log(stretch) / math.log(original))

    def grown(scale: float) -> float:
        return 1.0 if stretch <= 1 else 0.1 * scale * math.log(stretch) + 1.0

    if given.get("mscale") and given.get("mscale_all_dim"):
        return grown(float(given["mscale"])) / grown(float(given["mscale_all_dim"]))
    return grown(1.0)
