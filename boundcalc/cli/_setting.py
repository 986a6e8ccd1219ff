"""The options that describe a setting, the setting they make with its defaults, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_json
from boundcalc.base.rounding import short
from boundcalc.base.schema import Spec, read, specs
from boundcalc.base.validate import hint, letter
from boundcalc.cli._options import FILE, NUMBER, WHOLE, Number, all_of, number, option, pairs, several, shown, whole
from boundcalc.setting import PRESETS, Architecture, Budget, Normaliser, Norms, Sample, Setting
from boundcalc.setting.setting import refuse_missing

_TYPES = {
    int: WHOLE,
    float: NUMBER,
    bool: Number("yes or no", {"yes": True, "true": True, "no": False, "false": False}.get, "yes"),
    str: Number("word", str, "relu"),
}


class Entry(NamedTuple):
    """A field of a setting on the command line.

    Attributes:
        field: of the architecture, the normaliser or the sample; C of the norms.
        name: how it is typed: --NAME VALUE if it has help, else --set NAME=VALUE; also of a sweep axis.
        type: of its value.
        help: of its option; "" where it has none.
        option: how it is typed, without its value.
    """

    field: str
    name: str
    type: Number
    help: str
    option: str

    def typed(self, value: Any) -> str:
        """The words that give it a value."""
        return f"{self.option}{' ' if self.help else '='}{shown(value) if isinstance(value, bool) else value}"

    def read(self, text: str) -> Any:
        """A value from --set or from the values of an axis."""
        value = self.type.read(text)
        if value is None:
            raise InvalidSetting(f"{self.name} needs a {self.type.name}, got {text!r}")
        return value


def _entry(field: str, spec: Spec) -> Entry:
    name = letter(field)
    typed = f"--{name.replace('_', '-')}" if spec.help else f"--set {name}"
    return Entry(field, name, _TYPES[spec.kind], spec.help, typed)


_NORMALISER = {"normaliser": "name", "temperature": "temperature", "normaliser_c": "c", "normaliser_mu": "mu"}
"""Fields of the normaliser by the names they have besides those of the architecture."""
_DECLARED = {**specs(Architecture), **specs(Sample), "C": specs(Norms)["C"]}
_DECLARED |= {name: specs(Normaliser)[field] for name, field in _NORMALISER.items()}
ENTRIES = tuple(_entry(name, spec) for name, spec in _DECLARED.items())
"""Every field of a setting, for options, --set, sweep axes and what is shown."""
BY_NAME: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}
BY_FIELD: Mapping[str, Entry] = {entry.field: entry for entry in ENTRIES}
_OPTIONS = [entry for entry in ENTRIES if entry.help]

SAMPLE = tuple(f.name for f in fields(Sample))
DEFAULTS: Mapping[str, Any] = {
    **{f.name: f.default for part in (Architecture, Sample) for f in fields(part)},
    **{"C": 1.0, "normaliser": "softmax", "temperature": None, "normaliser_c": None, "normaliser_mu": None},
}
"""The default of each field."""
_OTHERS = ", ".join(entry.name for entry in ENTRIES if not entry.help)


def _option(entry: Entry) -> Any:
    value = DEFAULTS[entry.field]
    text = value if isinstance(value, str) else value is not None and short(value)
    return option(f"{entry.option} {entry.field}", entry.type, entry.help, show_default=text)


_NORM_HELP = (
    "Norms of one kind of weight, such as W_V=op:2.5,21:8 (repeatable). op: largest singular value; 21: summed lengths "
    "of the columns of x -> xW, weight.norm(dim=1).sum() of a torch weight; docs/cli.md lists all."
)
picture_options = all_of(
    option("--preset", str, f"Architecture to start from: {', '.join(PRESETS)}.", show_default="edelman"),
    option("--setting setting_file", FILE, "A setting as JSON; options change it."),
    option("--norms norms_file", FILE, "Norm budgets as JSON, by kind, block and head."),
    several("--norm norm_words", _NORM_HELP, "KIND=NORM:VALUE"),
    *map(_option, _OPTIONS),
    several("--set others", f"Any other field: {_OTHERS}.", "NAME=VALUE"),
)
"""The options that describe a setting fixed before the data."""
_MEASURED = click.Choice(("margin", "train-error"))
setting_options = all_of(
    picture_options,
    several("--measured", "Chosen from the data; adds the union-bound cost P1 (repeatable).", kind=_MEASURED),
)
"""All options that describe a setting."""
PARAMETERS = (
    *(entry.field for entry in _OPTIONS),
    *("others", "measured", "preset", "setting_file", "norms_file", "norm_words"),
)
"""The names under which a command gets the setting's options."""


@dataclass(frozen=True)
class Question:
    """A setting, and where its values are from.

    Attributes:
        setting: what was asked about.
        origin: of each field "given", "preset" or "file"; the others are defaults.
        inputs: what --set gave that is no field of a setting: inputs of a theorem.
    """

    setting: Setting
    origin: Mapping[str, str]
    inputs: Mapping[str, float] = field(default_factory=dict[str, float])

    def refuse(self, name: str, why: str) -> None:
        """Refuses a field of the setting that was given and changes nothing."""
        if self.origin.get(name) == "given":
            typed = BY_FIELD[name].option if name in BY_FIELD else f"--{name}"
            raise InvalidSetting(f"{typed} would change nothing: {why}")

    def assumed(self, name: str) -> bool:
        """Whether this value is a default."""
        return name not in self.origin


def numbers(texts: Mapping[str, str]) -> dict[str, float]:
    """Finite numbers by name: inputs of a theorem."""
    values: dict[str, float] = {}
    for name, text in texts.items():
        value = number(text)
        if value is None or not math.isfinite(value):
            raise InvalidSetting(f"--set needs NAME=VALUE with a number, such as --set K=4, got {name}={text}")
        values[name] = value if (exact := whole(text)) is None else exact
    return values


def take_setting(options: dict[str, Any], *, complete: bool = True, inputs: bool = False) -> Question:
    """Removes the setting's options from a command's and makes the setting.

    `complete`: whether every weight must have a budget. `inputs`: whether --set may also name inputs of a theorem.
    """
    changes = {entry.field: options.pop(entry.field) for entry in _OPTIONS}
    changes = {name: value for name, value in changes.items() if value is not None}
    rest: dict[str, str] = {}
    for typed, text in pairs("--set", options.pop("others"), "causal=yes").items():
        name = typed.replace("-", "_")
        entry = BY_NAME.get(name)
        if entry is None and (not inputs or number(text) is None):
            raise InvalidSetting(f"--set: a setting has no field {name!r}{hint(name, BY_NAME)}")
        if entry is None:
            rest[name] = text
        elif entry.field in changes:
            raise InvalidSetting(f"{entry.option} and --set {name} give the same: leave one out")
        else:
            changes[entry.field] = entry.read(text)
    if measured := options.pop("measured", ()):
        changes["measured"] = tuple(name.replace("-", "_") for name in measured)
    names = ("preset", "setting_file", "norms_file", "norm_words")
    preset, file, norms_file, norm_words = (options.pop(name) for name in names)
    if preset is not None and file is not None:
        raise InvalidSetting("give --preset or --setting, not both: a setting has its own architecture")
    raw = {} if file is None else read_json(file, "--setting")
    start = Setting.of(preset or "edelman") if file is None else Setting.from_json(raw)
    origin = _named_in(raw)
    if preset is not None:
        origin |= dict.fromkeys(PRESETS[preset], "preset") | {"preset": "given"}
    norms = None
    if norms_file is not None:  # it is for the architecture that the options make, not for the one they start from
        norms = Norms.from_json(read_json(norms_file, "--norms"))
    if norm_words:
        before = norms if norms is not None else Norms() if file is None else start.norms
        norms = Norms(before.C, {**before.budgets, **budgets_of(norm_words)}, before.measured, before.failure)
    if norms is not None:
        origin |= {"C": "file", "norms": "file"}
    origin |= dict.fromkeys(changes, "given")
    setting = changed(start, changes, norms)
    if complete:
        refuse_missing(setting.norms, setting.architecture)
    if "C" in changes and not setting.reads_knob:
        raise InvalidSetting(
            "--C would change nothing: every weight has a norm budget of its own; leave one of them out"
        )
    return Question(setting, origin, numbers(rest))


def budgets_of(words: Sequence[str]) -> dict[str, Budget]:
    """--norm KIND=NORM:VALUE,..., repeated; the Schatten sum of power P is Sp:P:SUM."""
    budgets: dict[str, Budget] = {}
    for kind, text in pairs("--norm", words, "W_V=op:2.5,21:8").items():
        where = f"--norm {kind}"
        limits = pairs(where, (part.strip().replace(":", "=", 1) for part in text.split(",")), "op:2.5 or Sp:0.5:12")
        values = {name: [number(word) for word in limit.split(":")] for name, limit in limits.items()}
        budgets[kind] = read(Budget, {name: v if name == "Sp" else v[0] for name, v in values.items()}, where)
    return budgets


def changed(start: Setting, changes: Mapping[str, Any], norms: Norms | None = None) -> Setting:
    """A setting with the values of some options, and other norms."""
    inner = {_NORMALISER[name]: value for name, value in changes.items() if name in _NORMALISER}
    rest = {name: value for name, value in changes.items() if name not in _NORMALISER}
    if start.architecture.layers is not None and "depth" in changes:
        raise InvalidSetting("--depth would change nothing: the setting lists its layers one by one")
    if inner:
        if inner.get("name", "custom") != "custom":
            inner = {"c": None, "mu": None} | inner
        rest["normaliser"] = replace(start.architecture.normaliser, **inner)
    return start.but(norms=norms, **rest)


def _named_in(raw: Any) -> dict[str, str]:
    """The fields that a setting's file gives."""
    if not isinstance(raw, Mapping):  # a JSON string that holds JSON
        return {}
    architecture, sample = raw.get("architecture", {}), raw.get("sample", {})
    names = [BY_NAME[name].field if name in BY_NAME else name for name in (*architecture, *sample)]
    names += [name for name, key in _NORMALISER.items() if key in architecture.get("normaliser", {})]
    return dict.fromkeys([*names, *(("norms", "C") if "norms" in raw else ())], "file")


# -- how it is shown

_EMPTY = (None, False, 0, "none", ())
_MOST_NAMED = 4
"""Budgets that are listed by name."""


def described(question: Question) -> dict[str, tuple[str, str]]:
    """By its field every value that matters: the part of the setting, and the value as it is shown."""
    architecture, norms, sample = question.setting.architecture, question.setting.norms, question.setting.sample
    listed, normaliser = architecture.layers, architecture.normaliser
    values = {f.name: getattr(architecture, f.name) for f in fields(architecture) if f.name != "layers"}
    values |= {name: getattr(normaliser, field) for name, field in _NORMALISER.items()}
    rows: dict[str, tuple[str, str]] = {}
    if listed is not None:
        rows["layers"] = ("Setting", f"{len(listed)} layers listed")
    for name, value in values.items():
        empty = value in _EMPTY or (name, value) == ("classes", 1)
        read = architecture.unread(name) is None and (listed is None or name != "depth")
        if read and not (empty and question.assumed(name)):
            rows[name] = ("Setting", _labelled(name, value))
    if norms.C is not None:
        rows["C"] = ("Norms", _labelled("C", norms.C))
    if norms.budgets:
        keys = list(norms.budgets)
        text = f"{len(keys)} given" if len(keys) > _MOST_NAMED else f"of {' '.join(keys)}"
        text += ", measured" * norms.measured + "; C for the rest" * (norms.C is not None)
        rows["norm budgets"] = ("Norms", f"norm budgets {text}")
    for name in SAMPLE:
        if (value := getattr(sample, name)) is not None and name != "measured":
            rows[name] = ("Sample", _labelled(name, value))
    if sample.measured:
        words = " and ".join(name.replace("_", " ") for name in sample.measured)
        rows["measured"] = ("Sample", f"chosen from the data: {words}")
    return rows


def _labelled(name: str, value: Any) -> str:
    return f"{_DECLARED[name].label or letter(name)} {shown(value)}".replace("_", " ")


def defaults_in(question: Question) -> list[str]:
    """The shown fields whose values are defaults."""
    assumed = [name for name in described(question) if name in BY_FIELD and question.assumed(name)]
    return [name for name in assumed if name != "style" or question.assumed("preset")]


def setting_lines(question: Question, *, without: Collection[str] = (), marked: bool = True) -> list[str]:
    """The setting, with a star at defaults if these are `marked`; `without` some fields (those of a sweep)."""
    stars = defaults_in(question) if marked else []
    parts: dict[str, list[str]] = {}
    for name, (part, text) in described(question).items():
        if name not in without:
            parts.setdefault(part, []).append(f"{text}{'*' * (name in stars)}".replace(" ", "\xa0"))
    lines = [f"{part:8} {', '.join(items)}" for part, items in parts.items()]
    return lines + ["         * default; change it with the option of that name, or --set"] * bool(stars)
