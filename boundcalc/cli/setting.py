"""The options that describe a setting, and the setting they make, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_json
from boundcalc.base.schema import Spec, specs, write
from boundcalc.base.validate import hint, letter
from boundcalc.cli.budgets import NORM_HELP, joined
from boundcalc.cli.files import FILE
from boundcalc.cli.options import all_of
from boundcalc.cli.values import NUMBER, WHOLE, exactly, number, pairs, short
from boundcalc.setting import PRESETS, Architecture, Normaliser, Norms, Sample, Setting
from boundcalc.setting.accounting import refuse_missing

_TYPES = {int: WHOLE, float: NUMBER, bool: bool, str: str}


@dataclass(frozen=True)
class Entry:
    """A field of a setting on the command line.

    Attributes:
        field: of the architecture, the normaliser or the sample; C of the norms.
        spec: what is declared of it.
    """

    field: str
    spec: Spec

    @property
    def name(self) -> str:
        """How it is typed: --NAME VALUE if it has help, else --set NAME=VALUE; also the name of a sweep axis."""
        return letter(self.field)

    @property
    def type(self) -> Any:
        """Of its value; `bool` for yes and no."""
        return _TYPES[self.spec.kind]

    @property
    def help(self) -> str:
        """Of its option; "" where it has none."""
        return self.spec.help

    @property
    def label(self) -> str:
        """How it is shown."""
        return self.spec.label or self.name.replace("_", " ")

    @property
    def option(self) -> str:
        """How it is typed, without its value."""
        return f"--{self.name.replace('_', '-')}" if self.help else f"--set {self.name}"

    def typed(self, value: Any) -> str:
        """The words that give it a value."""
        shown = ("yes" if value else "no") if self.type is bool else value
        return f"{self.option}{' ' if self.help else '='}{shown}"

    def read(self, text: str) -> Any:
        """A value from --set or from the values of an axis."""
        if self.type is str:
            return text
        if self.type is bool:
            if text not in ("yes", "no", "true", "false"):
                raise InvalidSetting(f"{self.name} is yes or no, got {text!r}")
            return text in ("yes", "true")
        value = exactly(text) if self.type is WHOLE else number(text)
        if value is None or isinstance(value, complex):
            raise InvalidSetting(
                f"{self.name} needs a {'whole number' if self.type is WHOLE else 'number'}, got {text!r}"
            )
        return value


_NORMALISER = {"normaliser": "name", "temperature": "temperature", "normaliser_c": "c", "normaliser_mu": "mu"}
"""Fields of the normaliser by the names they have besides those of the architecture."""
_DECLARED = {**specs(Architecture), **specs(Sample), "C": specs(Norms)["C"]}
_DECLARED |= {name: specs(Normaliser)[field] for name, field in _NORMALISER.items()}
ENTRIES = tuple(Entry(name, spec) for name, spec in _DECLARED.items())
"""Every field of a setting, for options, --set, sweep axes and what is shown."""
BY_NAME: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}
BY_FIELD: Mapping[str, Entry] = {entry.field: entry for entry in ENTRIES}
_OPTIONS = [entry for entry in ENTRIES if entry.help]

_MEASURED = ("margin", "train-error")
_SAMPLE = {f.name for f in fields(Sample)}
WITH_LAYERS = {"seq_len", "input_radius", "classes", "bits", "n_train", "C", *_SAMPLE}
"""What may still be changed when a setting lists its layers one by one."""
DEFAULTS: Mapping[str, Any] = {
    **{f.name: f.default for part in (Architecture, Sample) for f in fields(part)},
    **{"C": 1.0, "normaliser": "softmax", "temperature": None, "normaliser_c": None, "normaliser_mu": None},
}
"""The default of each field."""
_OTHERS = ", ".join(entry.name for entry in ENTRIES if not entry.help)


def _option(entry: Entry) -> Any:
    value = DEFAULTS[entry.field]
    shown = value if isinstance(value, str) else value is not None and short(value)
    return click.option(entry.option, entry.field, type=entry.type, default=None, help=entry.help, show_default=shown)


picture_options = all_of(
    [
        click.option("--preset", help=f"Architecture to start from: {', '.join(PRESETS)}.", show_default="edelman"),
        click.option("--setting", "setting_file", type=FILE, help="A setting as JSON; options change it."),
        click.option("--norms", "norms_file", type=FILE, help="Norm budgets as JSON, by kind, block and head."),
        click.option("--norm", "norm_words", multiple=True, metavar="KIND=NORM:VALUE", help=NORM_HELP),
        *map(_option, _OPTIONS),
        click.option("--set", "others", multiple=True, metavar="NAME=VALUE", help=f"Any other field: {_OTHERS}."),
    ]
)
"""The options that describe a setting fixed before the data."""
setting_options = all_of(
    [
        picture_options,
        click.option(
            "--measured",
            type=click.Choice(_MEASURED),
            multiple=True,
            help="Chosen from the data; adds the union-bound cost P1 (repeatable).",
        ),
    ]
)
"""All options that describe a setting."""


def parameters() -> list[str]:
    """The names under which a command gets the setting's options."""
    others = ("others", "measured", "preset", "setting_file", "norms_file", "norm_words")
    return [*(entry.field for entry in _OPTIONS), *others]


@dataclass(frozen=True)
class Question:
    """A setting, and where its values are from.

    Attributes:
        setting: what was asked about.
        origin: of each field "given", "preset" or "file"; the others are defaults.
        sources: the options that named a preset or a file.
        inputs: what --set gave that is no field of a setting: inputs of a theorem.
    """

    setting: Setting
    origin: Mapping[str, str]
    sources: tuple[str, ...] = ()
    inputs: Mapping[str, float] = field(default_factory=dict[str, float])

    def refuse(self, name: str, why: str) -> None:
        """Refuses a field of the setting that was given and changes nothing."""
        if self.origin.get(name) == "given":
            option = BY_FIELD[name].option if name in BY_FIELD else f"--{name}"
            raise InvalidSetting(f"{option} would change nothing: {why}")

    def assumed(self, name: str) -> bool:
        """Whether this value is a default."""
        return name not in self.origin


def numbers(texts: Mapping[str, str]) -> dict[str, float]:
    """The same as finite numbers: inputs of a theorem."""
    values: dict[str, float] = {}
    for name, text in texts.items():
        value = number(text)
        if value is None or isinstance(value, complex) or not abs(value) < float("inf"):
            raise InvalidSetting(f"--set needs NAME=VALUE with a number, such as --set K=4, got {name}={text}")
        whole = exactly(text)
        values[name] = value if whole is None else whole
    return values


def take_setting(
    options: dict[str, Any], start: Setting | None = None, *, complete: bool = True, inputs: bool = False
) -> Question:
    """Removes the setting's options from a command's and makes the setting.

    `start`: what the options change where neither a preset nor a file is named. `complete`: whether every weight must
    have a budget. `inputs`: whether --set may also name inputs of a theorem.
    """
    set_fields = {entry.field: options.pop(entry.field) for entry in _OPTIONS}
    set_fields = {name: value for name, value in set_fields.items() if value is not None}
    rest: dict[str, str] = {}
    for typed, text in pairs("--set", options.pop("others"), "causal=yes").items():
        name = typed.replace("-", "_")
        entry = BY_NAME.get(name)
        if entry is None and (not inputs or number(text) is None):
            raise InvalidSetting(f"--set: a setting has no field {name!r}{hint(name, BY_NAME)}")
        if entry is None:
            rest[name] = text
        elif entry.field in set_fields:
            raise InvalidSetting(f"{entry.option} and --set {name} give the same: leave one out")
        else:
            set_fields[entry.field] = entry.read(text)
    measured = options.pop("measured", ())
    if measured:
        set_fields["measured"] = tuple(name.replace("-", "_") for name in measured)
    preset, setting_file, norms_file = (options.pop(name) for name in ("preset", "setting_file", "norms_file"))
    norm_words = options.pop("norm_words")
    if preset is not None and setting_file is not None:
        raise InvalidSetting("give --preset or --setting, not both: a setting has its own architecture")
    origin: dict[str, str] = {}
    if setting_file is not None:
        raw = read_json(setting_file, "--setting")
        start = Setting.from_json(raw)
        origin |= _named_in(raw)
    elif preset is not None or start is None:
        start = Setting.of(preset or "edelman")
        origin |= dict.fromkeys(PRESETS[preset], "preset") | {"preset": "given"} if preset else {}
    norms = None
    if norms_file is not None:  # it is for the architecture that the options make, not for the one they start from
        norms = Norms.from_json(read_json(norms_file, "--norms"))
        origin |= {"C": "file", "norms": "file"}
    if norm_words:
        before = norms if norms is not None else start.norms if setting_file is not None else Norms()
        norms = joined(before, norm_words)
        origin |= {"C": "file", "norms": "file"}
    if start.architecture.layers is not None:
        useless = [name for name in set_fields if name not in WITH_LAYERS]
        if useless:
            raise InvalidSetting(
                f"the setting lists its layers one by one, so {BY_FIELD[useless[0]].option} would change nothing: "
                "change the layers"
            )
    origin |= dict.fromkeys(set_fields, "given")
    setting = changed(start, set_fields, norms)
    if complete:
        refuse_missing(setting.norms, setting.architecture)
    if "C" in set_fields and not setting.reads_knob:
        raise InvalidSetting(
            "--C would change nothing: every weight has a norm budget of its own; leave one of them out"
        )
    named = (("--preset", preset), ("--setting", setting_file), ("--norms", norms_file), ("--norm", norm_words or None))
    return Question(setting, origin, tuple(name for name, value in named if value is not None), numbers(rest))


def changed(start: Setting, new_fields: Mapping[str, Any], norms: Norms | None = None) -> Setting:
    """A setting with the values of some options, and other norms."""
    changes = {_NORMALISER[name]: value for name, value in new_fields.items() if name in _NORMALISER}
    rest = {name: value for name, value in new_fields.items() if name not in _NORMALISER}
    if changes:
        if changes.get("name", "custom") != "custom":
            changes = {"c": None, "mu": None} | changes
        rest["normaliser"] = replace(start.architecture.normaliser, **changes)
    return start.but(norms=norms, **rest)


def _named_in(raw: Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(raw, Mapping):  # a JSON string that holds JSON
        return {}
    named = [*raw.get("architecture", {}), *raw.get("sample", {})]
    inside = raw.get("architecture", {}).get("normaliser", {})
    named += [field for field, key in _NORMALISER.items() if key in inside]
    if "norms" in raw:
        named += ["norms", "C"]
    return dict.fromkeys(named, "file")


def full_json(setting: Setting) -> dict[str, Any]:
    """The setting with every default spelt out; `Setting.from_json` reads it back.

    Where layers are given they are the architecture: the style, sizes and names they replace are left out.
    """
    out = setting.complete_json()
    if setting.architecture.layers is None:
        del out["architecture"]["layers"]
    else:
        layers = write(setting.architecture)["layers"]
        kept = ("depth", "seq_len", "input_radius", "bits", "classes")
        out["architecture"] = {name: out["architecture"][name] for name in kept} | {"layers": layers}
    return out | {"norms": setting.norms.to_json()}
