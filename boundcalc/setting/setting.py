"""A complete question: which architecture, which norms, which sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import check_fields, read, write
from boundcalc.layers.base import Weight, weights_of
from boundcalc.setting.accounting import account, lookups
from boundcalc.setting.architecture import PRESETS, Architecture
from boundcalc.setting.norms import Norms
from boundcalc.setting.sample import Sample

_PARTS: Mapping[str, type] = {"architecture": Architecture, "sample": Sample}
_OWNER = {f.name: part for part, cls in _PARTS.items() for f in fields(cls)}


@dataclass(frozen=True)
class Setting:
    """An architecture, the norms its weights may have, and the sample it is trained on."""

    architecture: Architecture = Architecture()
    norms: Norms = Norms(C=1.0)
    sample: Sample = Sample()

    def __post_init__(self) -> None:
        check_fields(self, "a setting's ")
        if self.norms.budgets:
            if self.norms.headed and not isinstance(self.architecture.heads, int):
                raise InvalidSetting(f"budgets of single heads need a number of heads, got {self.architecture.heads}")
            account(self.norms, self.architecture)

    def __repr__(self) -> str:
        parts = (repr(part).partition("(")[2][:-1] for part in (self.architecture, self.norms, self.sample))
        return f"Setting({'; '.join(parts)})"

    @classmethod
    def of(
        cls, preset: str = "edelman", *, C: float | None = None, norms: Norms | None = None, **values: Any
    ) -> Setting:
        """A setting from a preset's name and any fields of `Architecture` and `Sample`, by name.

        C is 1 unless norms are given.
        """
        validate.choice("preset", preset, PRESETS)
        return cls(Architecture(**PRESETS[preset])).but(
            C=1.0 if C is None and norms is None else C, norms=norms, **values
        )

    def but(self, *, C: float | None = None, norms: Norms | None = None, **values: Any) -> Setting:
        """The same setting with some fields of its parts changed."""
        changes: dict[str, dict[str, Any]] = {"architecture": {}, "sample": {}}
        for name, value in validate.known_keys("a setting", values, _OWNER).items():
            changes[_OWNER[name]][name] = value
        new = self.norms if norms is None else norms
        if C is not None:
            new = replace(new, C=C)
        return Setting(
            self.architecture.with_fields(**changes["architecture"]), new, self.sample.with_fields(**changes["sample"])
        )

    @property
    def reads_knob(self) -> bool:
        """Whether any weight takes the default budget C."""
        return any(key is None for _, key in self.lookups())

    def lookups(self) -> Iterator[tuple[Weight, str | None]]:
        """Every weight whose budget is looked up, with the key of that budget; None where C is its default."""
        return lookups(self.norms, weights_of(self.architecture.stages, self.architecture.seq_len))

    def refuse_symbols(self) -> None:
        """Values and proofs are of numbers."""
        todo: list[Any] = [self]
        while todo:
            value = todo.pop()
            if is_dataclass(value):
                todo += (getattr(value, f.name) for f in fields(value))
            elif isinstance(value, Mapping | tuple):
                todo += value.values() if isinstance(value, Mapping) else value
            elif getattr(value, "free_symbols", None):
                raise InvalidSetting(f"a value needs numbers, got {value}: `closed_form` derives a formula of symbols")

    def to_json(self) -> dict[str, Any]:
        """What differs from the defaults, as a JSON object; `complete_json` leaves nothing out."""
        return {name: write(getattr(self, name)) for name in ("architecture", "norms", "sample")}

    def complete_json(self) -> dict[str, Any]:
        """Every field, as proofs have it: `read_complete` of `boundcalc.base.schema` reads it back."""
        return write(self, complete=True)

    @classmethod
    def from_json(cls, data: object) -> Setting:
        """A setting from its JSON object (or the text of one)."""
        if isinstance(data, str):
            from boundcalc.base.files import parse_json

            data = parse_json(data, "the setting")
        return read(cls, data, "setting")
