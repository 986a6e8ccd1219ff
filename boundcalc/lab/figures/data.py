"""What a figure shows, as plain data: the JSON next to an image, from which it is drawn again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from boundcalc.base import output, schema, validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_json
from boundcalc.base.rounding import down, up
from boundcalc.base.value import VACUOUS_MARGIN

FORMAT = "boundcalc-figure/2"
KINDS = ("bound", "a_posteriori", "proxy", "estimate", "certificate", "measured", "reference", "fit")


@dataclass(frozen=True)
class Series:
    """One curve, or one set of marks.

    Attributes:
        key: the bound or the measurement; names.LOOKS says how it is drawn.
        kind: one of `KINDS`.
        quantity: what y is, such as "gap", "risk" or "m".
        x: abscissae.
        y: values, bounds uncapped; None where there is none.
        low: lower ends of intervals.
        high: upper ends.
        label: a name other than the look's.
        panel: the axes it belongs to, where quantities do not tell them apart.
    """

    key: str
    kind: str
    quantity: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    label: str = ""
    panel: str = ""

    def __post_init__(self) -> None:
        validate.choice("kind of a series", self.kind, KINDS)
        for name in ("x", "y", "low", "high"):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            if values and len(values) != len(self.x):
                raise InvalidSetting(f"series {self.key!r}: {name} has {len(values)} values for {len(self.x)} of x")

    @classmethod
    def of_rows(cls, key: str, kind: str, quantity: str, rows: Iterable[Sequence[Any]], panel: str = "") -> Series:
        """A series from rows (x, y) or (x, y, low, high)."""
        x, y, *ends = zip(*rows, strict=True)
        low, high = ends or ((), ())
        return cls(key, kind, quantity, x, y, low, high, panel=panel)

    @property
    def promises(self) -> bool:
        """Whether it is a bound, and so lies above measurements."""
        return self.kind in ("bound", "a_posteriori")

    @property
    def informative(self) -> list[tuple[float, float]]:
        """(x, y) where there is a value and it is not a vacuous bound of a probability."""
        pairs = [(x, y) for x, y in zip(self.x, self.y, strict=True) if y is not None]
        if self.kind == "measured" or self.quantity not in ("gap", "risk"):
            return pairs
        return [(x, y) for x, y in pairs if y < math.exp(-VACUOUS_MARGIN)]

    def known(self, part: str = "y") -> dict[float, float]:
        """Values (or an end of their intervals) by x, where there is one."""
        return {x: y for x, y in zip(self.x, getattr(self, part), strict=False) if y is not None}


@dataclass(frozen=True)
class Figure:
    """Everything a figure shows.

    Attributes:
        name: of the figure, which says how it is drawn.
        title: its claim.
        subtitle: the setting, in words.
        caption: what it shows and how to read it, at most 60 words.
        alt: the picture for somebody who does not see it, two sentences.
        series: curves and marks.
        facts: numbers that are no curves.
        command: what made it.
    """

    name: str
    title: str = ""
    subtitle: str = ""
    caption: str = ""
    alt: str = ""
    series: tuple[Series, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    command: str = ""

    def of(self, **wanted: str) -> list[Series]:
        """Series whose fields have these values."""
        return [one for one in self.series if all(getattr(one, name) == value for name, value in wanted.items())]

    def but(self, **changes: Any) -> Figure:
        """The same with some fields changed."""
        return replace(self, **changes)


def write(figure: Figure, path: Path, *, force: bool = False) -> None:
    """The JSON file of a figure."""
    numbers = {"format": FORMAT, **schema.write(figure)}
    text = json.dumps(numbers, indent=1) + "\n"
    lists = re.sub(r"\[\s*([^\[\]{}]*?)\s*\]", lambda match: "[" + " ".join(match[1].split()) + "]", text)
    output.write_text(path, lists, force=force)


def read(path: Path) -> Figure:
    """A figure from its JSON file."""
    raw = read_json(path, "the figure's JSON")
    if not isinstance(raw, dict) or raw.pop("format", None) != FORMAT:
        raise InvalidSetting(f"{path} is not the JSON of a figure (format {FORMAT}): boundcalc plot FIGURE makes one")
    return schema.read(Figure, raw, str(path))


def contradictions(series: Iterable[Series]) -> list[str]:
    """Where the lower end of a measured interval lies above a bound: then bound, setting or measurement is wrong."""
    every = list(series)
    bounds = [one for one in every if one.promises]
    return [
        f"{bound.label or bound.key} at {x:g}: the {seen.quantity} of a run is at least {down(low)}, above the bound "
        f"{up(value)}"
        for seen in every
        if seen.kind == "measured"
        for x, low in zip(seen.x, seen.low, strict=False)
        for bound in bounds
        if bound.quantity == seen.quantity and low is not None and low > (value := bound.known().get(x, math.inf))
    ]
