"""The options that describe a setting, the setting they make with its defaults, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_json
from boundcalc.base.rounding import short
from boundcalc.base.schema import Spec, read, specs
from boundcalc.base.validate import hint, letter
from boundcalc.cli._options import FILE, TYPES, all_of, number, option, pairs, several, shown, whole
from boundcalc.setting import PRESETS, Architecture, Budget, Normaliser, Norms, Sample, Setting

# -- the field table

_NORMALISER = {"normaliser": "name", "temperature": "temperature", "normaliser_c": "c", "normaliser_mu": "mu"}
"""Fields of the normaliser by the names they have next to those of the architecture."""


class Entry(NamedTuple):
    """A field of a setting: of the architecture, the normaliser, the norms or the sample.

    `part` is where it is shown; it is typed --NAME VALUE if it has help, else --set NAME=VALUE.
    """

    field: str
    part: str
    spec: Spec

    @property
    def name(self) -> str:
        """How it is typed, also as an axis."""
        return letter(self.field)

    @property
    def option(self) -> str:
        """How it is typed, without its value."""
        return f"--{self.name.replace('_', '-')}" if self.spec.help else f"--set {self.name}"

    def read(self, text: str) -> Any:
        """A value from --set or from the values of an axis."""
        try:
            return TYPES[self.spec.kind].convert(text, None, None)
        except click.BadParameter as error:
            raise InvalidSetting(f"{self.name}: {error.message}") from None

    def of(self, setting: Setting) -> Any:
        """Its value in a setting."""
        if self.field in _NORMALISER:
            return getattr(setting.architecture.normaliser, _NORMALISER[self.field])
        part = {"Norms": setting.norms, "Sample": setting.sample}.get(self.part, setting.architecture)
        return getattr(part, self.field)


def _entries() -> Iterator[Entry]:
    declared, normaliser = specs(Architecture), specs(Normaliser)
    for name in (f.name for f in fields(Architecture)):
        if name in declared:
            yield Entry(name, "Setting", declared[name])
        if name == "normaliser":
            yield from (Entry(own, "Setting", normaliser[field]) for own, field in _NORMALISER.items())
    yield Entry("C", "Norms", specs(Norms)["C"])
    yield from (Entry(name, "Sample", spec) for name, spec in specs(Sample).items())


ENTRIES = tuple(_entries())
"""Every field of a setting, for options, --set, axes and what is shown."""
BY_NAME: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}
_BY_FIELD = {entry.field: entry for entry in ENTRIES}
_OPTIONS = [entry for entry in ENTRIES if entry.spec.help]
SAMPLE = tuple(f.name for f in fields(Sample))


# -- options


def _option(entry: Entry) -> Any:
    value = entry.of(Setting())
    text = value if isinstance(value, str) else value is not None and short(value)
    return option(f"{entry.option} {entry.field}", entry.spec.kind, entry.spec.help, show_default=text)


_OTHERS = ", ".join(entry.name for entry in ENTRIES if not entry.spec.help)
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
_SOURCES = ("preset", "setting_file", "norms_file", "norm_words")
PARAMETERS = (*(entry.field for entry in _OPTIONS), "others", "measured", *_SOURCES)
"""The names under which a command gets the setting's options."""


class Question(NamedTuple):
    """A setting, and where its values are from.

    Attributes:
        setting: what is asked about.
        typed: its fields that options give.
        stated: these, and those that a file or a preset gives; the others are defaults.
        inputs: what --set gave that is no field of a setting: inputs of a theorem.
    """

    setting: Setting
    typed: Collection[str] = ()
    stated: Collection[str] = ()
    inputs: Mapping[str, float] = {}

    def refuse(self, name: str, why: str) -> None:
        """Refuses a field of the setting that was given and changes nothing."""
        if name in self.typed:
            flag = _BY_FIELD[name].option if name in _BY_FIELD else f"--{name}"
            raise InvalidSetting(f"{flag} would change nothing: {why}")

    def assumed(self, name: str) -> bool:
        """Whether this value is a default."""
        return name not in self.stated


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
    values = {entry.field: options.pop(entry.field) for entry in _OPTIONS}
    changes = {name: value for name, value in values.items() if value is not None}
    rest: dict[str, str] = {}
    for word, text in pairs("--set", options.pop("others"), "causal=yes").items():
        name = word.replace("-", "_")
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
    preset, file, norms_file, norm_words = (options.pop(name) for name in _SOURCES)
    if preset is not None and file is not None:
        raise InvalidSetting("give --preset or --setting, not both: a setting has its own architecture")
    raw = {} if file is None else read_json(file, "--setting")
    start = Setting.of(preset or "edelman") if file is None else Setting.from_json(raw)
    norms = None
    if norms_file is not None:  # it is for the architecture that the options make, not for the one they start from
        norms = Norms.from_json(read_json(norms_file, "--norms"))
    if norm_words:
        before = norms if norms is not None else Norms() if file is None else start.norms
        norms = replace(before, budgets={**before.budgets, **budgets_of(norm_words)})
    setting = changed(start, changes, norms)
    if complete:
        setting.refuse_missing()
    if "C" in changes and not setting.default_kinds():
        raise InvalidSetting(
            "--C would change nothing: every weight has a norm budget of its own; leave one of them out"
        )
    typed = {*changes, *(["preset"] if preset else [])}
    stated = {*typed, *_named_in(raw), *(PRESETS[preset] if preset else ()), *(("C", "norms") if norms else ())}
    return Question(setting, typed, stated, numbers(rest))


def budgets_of(words: Sequence[str]) -> dict[str, Budget]:
    """--norm KIND=NORM:VALUE,..., repeated."""
    budgets: dict[str, Budget] = {}
    for kind, text in pairs("--norm", words, "W_V=op:2.5,21:8").items():
        where = f"--norm {kind}"
        limits = pairs(where, (part.strip().replace(":", "=", 1) for part in text.split(",")), "op:2.5")
        budgets[kind] = read(Budget, {name: number(limit) for name, limit in limits.items()}, where)
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


def _named_in(raw: Any) -> Iterator[str]:
    """The fields that a setting's file gives."""
    if isinstance(raw, Mapping):  # and not a JSON string that holds JSON
        architecture = raw.get("architecture", {})
        for name in (*architecture, *raw.get("sample", {})):
            yield BY_NAME[name].field if name in BY_NAME else name
        yield from (name for name, key in _NORMALISER.items() if key in architecture.get("normaliser", {}))
        yield from ("norms", "C") if "norms" in raw else ()


# -- how it is shown

_EMPTY = (None, False, 0, "none", ())
_MOST_NAMED = 4
"""Budgets that are listed by name."""


def _described(question: Question) -> Iterator[tuple[str, str, str]]:
    """Every value that matters: the part of the setting, the field, and the value as it is shown."""
    architecture, norms, sample = question.setting.architecture, question.setting.norms, question.setting.sample
    if architecture.layers is not None:
        yield "Setting", "layers", f"{len(architecture.layers)} layers listed"
    for entry in ENTRIES:
        name, value = entry.field, entry.of(question.setting)
        empty = value is None
        if entry.part == "Setting":
            idle = architecture.unread(name) is not None or (architecture.layers is not None and name == "depth")
            default = value in _EMPTY or (name, value) == ("classes", 1)
            empty = idle or (default and question.assumed(name))
        if not empty:
            yield entry.part, name, f"{entry.spec.label or entry.name} {shown(value)}".replace("_", " ")
        if name == "C" and norms.budgets:
            keys = list(norms.budgets)
            text = f"{len(keys)} given" if len(keys) > _MOST_NAMED else f"of {' '.join(keys)}"
            text += ", measured" * norms.measured + "; C for the rest" * (norms.C is not None)
            yield "Norms", "norm budgets", f"norm budgets {text}"
    if sample.measured:
        words = " and ".join(name.replace("_", " ") for name in sample.measured)
        yield "Sample", "measured", f"chosen from the data: {words}"


def defaults_in(question: Question) -> list[str]:
    """The shown fields whose values are defaults."""
    assumed = [name for _, name, _ in _described(question) if name in _BY_FIELD and question.assumed(name)]
    return [name for name in assumed if name != "style" or question.assumed("preset")]


def setting_lines(question: Question, *, without: Collection[str] = (), marked: bool = True) -> list[str]:
    """The setting, with a star at defaults if these are `marked`; `without` some fields (those of a sweep)."""
    stars = defaults_in(question) if marked else []
    parts: dict[str, list[str]] = {}
    for part, name, text in _described(question):
        if name not in without:
            parts.setdefault(part, []).append(f"{text}{'*' * (name in stars)}".replace(" ", "\xa0"))
    lines = [f"{part:8} {', '.join(items)}" for part, items in parts.items()]
    return lines + ["         * default; change it with the option of that name, or --set"] * bool(stars)
