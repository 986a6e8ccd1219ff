"""A complete question: which architecture, which norms, which sample."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from boundcalc.errors import InvalidSetting
from boundcalc.setting import validate
from boundcalc.setting.architecture import Architecture
from boundcalc.setting.norms import Norms
from boundcalc.setting.presets import PRESETS
from boundcalc.setting.sample import Sample

_PARTS: Mapping[str, type] = {"architecture": Architecture, "sample": Sample}
_OWNER = {f.name: part for part, cls in _PARTS.items() for f in fields(cls)}


@dataclass(frozen=True)
class Setting:
    """An architecture, the norms its weights may have, and the sample it is trained on."""

    architecture: Architecture = Architecture()
    norms: Norms = Norms(C=1.0)
    sample: Sample = Sample()

    @classmethod
    def of(
        cls, preset: str = "edelman2022", *, C: float | None = None, norms: Norms | None = None, **values: Any
    ) -> Setting:
        """A setting from a preset's name and any fields of `Architecture` and `Sample`, by name.

        The knob C is 1 unless norms are given.
        """
        validate.choice("preset", preset, PRESETS)
        return cls(Architecture(**PRESETS[preset])).but(
            C=1.0 if C is None and norms is None else C, norms=norms, **values
        )

    def but(self, *, C: float | None = None, norms: Norms | None = None, **values: Any) -> Setting:
        """The same setting with some fields of its parts changed."""
        changes: dict[str, dict[str, Any]] = {"architecture": {}, "sample": {}}
        for name, value in values.items():
            changes[_OWNER[validate.choice("setting", name, _OWNER)]][name] = value
        new = self.norms if norms is None else norms
        if C is not None:
            new = replace(new, C=C)
        return Setting(
            replace(self.architecture, **changes["architecture"]), new, replace(self.sample, **changes["sample"])
        )

    def to_json(self) -> dict[str, Any]:
        """What differs from the defaults, as a JSON object."""
        return {
            "architecture": self.architecture.to_json(),
            "norms": self.norms.to_json(),
            "sample": validate.to_fields(self.sample),
        }

    @classmethod
    def from_json(cls, data: object) -> Setting:
        """A setting from its JSON object (or the text of one)."""
        if isinstance(data, str):
            try:
                data = json.loads(data)
            except json.JSONDecodeError as error:
                raise InvalidSetting(f"not JSON: {error}") from None
        raw = validate.known_keys("setting", data, ["architecture", "norms", "sample"])
        return cls(
            Architecture.from_json(raw.get("architecture", {})),
            Norms.from_json(raw.get("norms", {"C": 1.0})),
            validate.from_fields("sample", Sample, raw.get("sample", {})),
        )
