"""What a figure draws, as plain data: it is stored beside the image, and the image is a function of it alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import down, up
from boundcalc.base.value import VACUOUS_MARGIN, Kind
from boundcalc.setting import validate

_KINDS: tuple[str, ...] = (*get_args(Kind), "certificate", "measured", "computed", "reference", "fit")
_PREDICTIONS = ("bound", "a_posteriori")
"""Kinds that promise to lie above what is measured."""

_Number = float | None


@dataclass(frozen=True)
class Series:
    """One curve or set of marks.

    Attributes:
        key: the theorem, or what was measured: it chooses the look.
        label: what the legend says; the kind is added to it.
        kind: "bound", "a_posteriori", "proxy", "estimate", "certificate" (of one predictor), "measured" (by trials or by
            drawing), "computed" (exactly, of something explicit), "reference" or "fit".
        quantity: what y is, such as "gap", "risk", "m", "norm".
        x: abscissae.
        y: values; bounds of a probability capped at 1, None where there is none.
        log10: of bounds, base-10 logarithms of the uncapped values.
        low: lower ends of intervals.
        high: upper ends.
        count: how many trials each value is from.
        refusal: why values are missing.
        panel: on which axis it is drawn.
    """

    key: str
    label: str
    kind: str
    quantity: str
    x: tuple[float, ...]
    y: tuple[_Number, ...]
    log10: tuple[_Number, ...] = ()
    low: tuple[_Number, ...] = ()
    high: tuple[_Number, ...] = ()
    count: tuple[int, ...] = ()
    refusal: str = ""
    panel: str = "main"

    def __post_init__(self) -> None:
        validate.choice("kind of a series", self.kind, _KINDS)
        for name in ("x", "y", "log10", "low", "high", "count"):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            if values and len(values) != len(self.x):
                raise InvalidSetting(f"series {self.label!r}: {name} has {len(values)} values for {len(self.x)} of x")

    @classmethod
    def measured(
        cls,
        key: str,
        label: str,
        quantity: str,
        rows: Iterable[tuple[float, Iterable[_Number], int]],
        *,
        panel: str = "main",
    ) -> Series:
        """Measured values: at every place the value and the two ends of its interval, and from how many trials (0: untold)."""
        x, intervals, counts = zip(*rows, strict=True)
        y, low, high = zip(*(map(_finite, one) for one in intervals), strict=True)
        told = counts if any(counts) else ()
        return cls(key, label, "measured", quantity, tuple(map(float, x)), y, (), low, high, told, panel=panel)

    @classmethod
    def capped(
        cls,
        key: str,
        label: str,
        quantity: str,
        x: Sequence[float],
        values: Iterable[float],
        *,
        kind: str = "bound",
        panel: str = "main",
    ) -> Series:
        """Bounds of what is at most 1 anyway: capped there, with their own size in logarithms."""
        sizes = tuple(values)
        logs = tuple(math.log10(size) for size in sizes)
        return cls(key, label, kind, quantity, tuple(x), tuple(min(1.0, v) for v in sizes), logs, panel=panel)

    @property
    def vacuous(self) -> tuple[bool, ...]:
        """Where the value says nothing: bounds of a probability that reach 1."""
        edge = -VACUOUS_MARGIN / math.log(10)
        return tuple(log is not None and log > edge for log in self.log10) or (False,) * len(self.x)

    @property
    def telling(self) -> bool:
        """Whether any value says something: it is there, and not vacuous."""
        return any(y is not None and not empty for y, empty in zip(self.y, self.vacuous, strict=True))

    def known(self, part: Literal["y", "low", "high"] = "y") -> dict[float, float]:
        """Place -> value (or an end of its interval), where there is one."""
        return {x: value for x, value in zip(self.x, getattr(self, part), strict=True) if value is not None}

    def settled(self, limit: float) -> float | None:
        """The place from which on values stay at most so large."""
        found = None
        for x, y in sorted(zip(self.x, self.y, strict=True), reverse=True):
            if y is None or y > limit:
                break
            found = x
        return found

    def to_json(self) -> dict[str, Any]:
        """What is not empty."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if value}

    @classmethod
    def from_json(cls, data: object) -> Series:
        """A series from its JSON object."""
        raw = validate.known_keys("a series", data, [f.name for f in fields(cls)])
        values: dict[str, Any] = {"x": (), "y": (), **raw}
        for name in ("key", "label", "kind", "quantity"):
            if name not in values:
                raise InvalidSetting(f"a series needs {name!r}")
        return cls(**values)


def _finite(value: _Number) -> _Number:
    """An end that is infinite is none."""
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class FigureData:
    """Everything a figure shows.

    Attributes:
        series: curves and marks.
        facts: numbers that are no curves (the rungs of a ladder, shares of bars, fits).
        trials: hashes of the stored trials that were used.
    """

    series: tuple[Series, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    trials: tuple[str, ...] = ()

    def of(self, *, kind: str | None = None, quantity: str | None = None, panel: str | None = None) -> list[Series]:
        """Series by kind, quantity or panel."""
        asked = {"kind": kind, "quantity": quantity, "panel": panel}
        return [s for s in self.series if all(want is None or getattr(s, name) == want for name, want in asked.items())]

    def to_json(self) -> dict[str, Any]:
        """The data as JSON."""
        return {
            "series": [series.to_json() for series in self.series],
            "facts": dict(self.facts),
            "trials": list(self.trials),
        }

    @classmethod
    def from_json(cls, data: object) -> FigureData:
        """The data of a JSON object."""
        raw = validate.known_keys("the data of a figure", data, ["series", "facts", "trials"])
        return cls(
            tuple(Series.from_json(series) for series in raw.get("series", [])),
            dict(raw.get("facts", {})),
            tuple(raw.get("trials", [])),
        )


def refuse_mixture(series: Sequence[Series]) -> None:
    """No proxy on one absolute axis with anything else: its size means nothing beside theirs."""
    proxies = [s for s in series if s.kind == "proxy"]
    others = [s for s in series if s.kind != "proxy"]
    if proxies and others:
        raise InvalidSetting(
            f"the proxy {proxies[0].label!r} and the {others[0].kind} {others[0].label!r} cannot share an absolute "
            "axis: a proxy misses constants, so put it on a normalised axis of its own"
        )
    quantities = sorted({s.quantity for s in others if s.kind != "reference"})
    if len(quantities) > 1:
        raise InvalidSetting(f"{quantities[0]} and {quantities[1]} are different quantities: give each its own axis")


def normalised(series: Series) -> Series:
    """Divided by its first value, in logs: of a proxy, the one thing that may be read off is how it changes."""
    logs = series.log10 or tuple(None if v is None or v <= 0 else math.log10(v) for v in series.y)
    first = next((log for log in logs if log is not None), None)
    if first is None:
        return series
    shifted = tuple(None if log is None else log - first for log in logs)
    values = tuple(None if log is None else 10.0 ** min(log, 300.0) for log in shifted)
    return Series(series.key, series.label, series.kind, series.quantity, series.x, values, panel=series.panel)


@dataclass(frozen=True)
class Contradiction:
    """A prediction that promises to lie above what is measured, and does not."""

    bound: str
    quantity: str
    x: float
    predicted: float
    measured: float

    def __str__(self) -> str:
        return (
            f"{self.bound} at {self.x:g}: the {self.quantity} is measured to be at least {down(self.measured)} (95%), "
            f"above the {up(self.predicted)} predicted"
        )


def contradictions(data: FigureData) -> list[Contradiction]:
    """Where a computed value, or the lower end of a measured interval, lies above a bound: none, unless something is wrong.

    Only kinds that promise it are asked (`_PREDICTIONS`); proxies, fits and references promise nothing.
    """
    found: list[Contradiction] = []
    for seen in (*data.of(kind="measured"), *data.of(kind="computed")):
        lows = {x: low for x, low in zip(seen.x, seen.low or seen.y, strict=True) if low is not None}
        for bound in data.of(quantity=seen.quantity, panel=seen.panel):
            if bound.kind not in _PREDICTIONS or seen.key not in ("measured", bound.key):
                continue  # what has a name of its own is bounded by what bears the same name
            for x, y in zip(bound.x, bound.y, strict=True):
                if y is not None and x in lows and lows[x] > y:
                    found.append(Contradiction(bound.label, seen.quantity, x, y, lows[x]))
    return found
