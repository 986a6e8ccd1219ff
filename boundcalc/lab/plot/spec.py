"""A figure's specification: small, complete, and enough to draw it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.load import is_own
from boundcalc.formulas.theorems import BOUNDS
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.lab.plot.style import SIZES
from boundcalc.setting import Setting, validate

_QUANTITIES = ("gap", "risk")
_LOOKS = ("figure", "size", "usetex", "title")
_TYPED = {"columns": "column", "values": "sweep", "bounds": "bound", "quantities": "quantity", "norms": "norms-from"}
_NORMS = ("setting", "runs")


@dataclass(frozen=True)
class Spec:
    """What to draw.

    Attributes:
        figure: a name of `FIGURES`.
        setting: what the bounds are for; unset, the figure's own choice.
        values: of the axis the figure runs over; empty, the figure's own choice.
        bounds: policies; empty, the figure's own choice.
        quantities: "gap" and "risk".
        store: a store of trials, or a JSON export of one; empty for predicted curves alone.
        points: files of measurements of one's own (CSV), instead of a store.
        columns: which of their columns hold what, where their names do not say.
        runs: which trials: {"task": "conjunction", "T": 128, "sweep": "...", ...}.
        norms: "setting", or "runs": the class whose budgets are the largest norms among the trials drawn.
        target: the risk that counts as learned, in `sample-complexity`.
        share: of trials that must reach it.
        repetitions: inputs, or runs, per place in figures that measure as they are made; 0 for the figure's own choice.
        size: a name of `SIZES`.
        uncapped: draw bounds above 1 at their size.
        usetex: set text with LaTeX.
        title: above the figure.
    """

    figure: str
    setting: Setting | None = None
    values: tuple[float, ...] = ()
    bounds: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ("gap",)
    store: str = ""
    points: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    runs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    norms: str = "setting"
    target: float = 0.01
    share: float = 0.8
    repetitions: int = 0
    size: str = ""
    uncapped: bool = False
    usetex: bool = False
    title: str = ""

    def __post_init__(self) -> None:
        validate.choice("figure", self.figure, FIGURES)
        if self.size:
            validate.choice("size", self.size, SIZES)
        validate.choice("norms", self.norms, _NORMS)
        for name, known in (("bounds", BOUNDS), ("quantities", _QUANTITIES)):
            words = getattr(self, name)
            if isinstance(words, str) or not isinstance(words, list | tuple):
                raise InvalidSetting(f"{name} is a list such as [{next(iter(known))!r}], got {validate.shown(words)}")
            what = "bound" if name == "bounds" else "quantity"
            own = FIGURES[self.figure].along and name == "bounds"
            words = tuple(word if own and is_own(word) else validate.choice(what, word, known) for word in words)
            object.__setattr__(self, name, tuple(dict.fromkeys(words)))
        if not isinstance(self.values, list | tuple):
            raise InvalidSetting(f"values is a list of numbers, got {validate.shown(self.values)}")
        object.__setattr__(self, "values", tuple(validate.positive("a value of the axis", v) for v in self.values))
        validate.fraction("target", self.target, ends=False)
        validate.fraction("share", self.share, ends=False)
        if self.repetitions:
            object.__setattr__(self, "repetitions", validate.size("repetitions", self.repetitions, least=10))
        for name in ("uncapped", "usetex"):
            validate.flag(name, getattr(self, name))
        if self.norms == "runs" and not self.store:
            raise InvalidSetting("norms 'runs' are read off trials: name their store (--store runs.db)")
        validate.known_keys("runs", self.runs, _RUN_KEYS)
        self._refuse_idle()

    def _refuse_idle(self) -> None:
        """Refuse what changes nothing of this figure."""
        entry = FIGURES[self.figure]
        for each in fields(self):
            if each.name in entry.fields or each.name in _LOOKS:
                continue
            if getattr(self, each.name) not in (each.default, {}):
                raise InvalidSetting(
                    f"{self.figure} has no use for {each.name} (--{_TYPED.get(each.name, each.name)}): leave it out"
                )
        if isinstance(self.points, str) or not all(isinstance(file, str) for file in self.points):
            raise InvalidSetting(f"points is a list of CSV files, got {validate.shown(self.points)}")
        object.__setattr__(self, "points", tuple(self.points))
        if self.points and self.store:
            raise InvalidSetting("--points are measurements of your own, --store trials of this library: leave one out")
        if self.columns and not self.points:
            raise InvalidSetting("--column says what columns of --points hold: name a file, --points mine.csv")
        if self.runs and not self.store:
            raise InvalidSetting("runs (--runs) choose among the trials of a store: name it, --store runs.db")
        if self.store and self.values and self.figure == "sample-complexity":
            raise InvalidSetting("sample-complexity takes its T from the trials of --store: leave out values (--sweep)")
        if entry.single and len(several := getattr(self, entry.single)) > 1:
            raise InvalidSetting(f"{self.figure} shows one of {entry.single} at a time: leave out {several[1]!r}")

    @property
    def whole(self) -> tuple[int, ...]:
        """The values of the axis as whole numbers."""
        return tuple(round(value) for value in self.values)

    def but(self, **changes: Any) -> Spec:
        """The same with some fields changed."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """What differs from the defaults."""
        found = validate.to_fields(self)
        if self.setting is not None:
            found["setting"] = self.setting.to_json()
        for name in ("values", "bounds", "quantities", "points"):
            if name in found:
                found[name] = list(found[name])
        for name in ("runs", "columns"):
            found.pop(name, None)
            if getattr(self, name):
                found[name] = dict(getattr(self, name))
        return {"figure": self.figure, **found}

    @classmethod
    def from_json(cls, data: object) -> Spec:
        """A specification from its JSON object; `setting` may be a preset's name."""
        raw = dict(validate.known_keys("a figure's specification", data, [f.name for f in fields(cls)]))
        if "figure" not in raw:
            raise InvalidSetting(f"a figure's specification needs 'figure', one of {', '.join(FIGURES)}")
        setting = raw.get("setting")
        if isinstance(setting, str):
            raw["setting"] = Setting.of(setting)
        elif setting is not None:
            raw["setting"] = Setting.from_json(setting)
        return cls(**raw)


_RUN_KEYS = ("task", "T", "m", "s", "law", "d", "depth", "lr", "batch", "steps", "sweep", "seed", "certified")
"""By what trials can be chosen."""
