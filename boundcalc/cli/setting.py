"""The options that describe a setting, and the setting they make, with what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.strict_json import read_json
from boundcalc.cli.budgets import NORM_HELP, joined
from boundcalc.cli.files import FILE
from boundcalc.cli.options import all_of
from boundcalc.cli.values import NUMBER, WHOLE, short
from boundcalc.setting import PRESETS, Architecture, Norms, Sample, Setting
from boundcalc.setting.accounting import refuse_missing
from boundcalc.setting.architecture import NORMALISATIONS, STYLES
from boundcalc.setting.attention import NORMALISERS
from boundcalc.setting.feedforward import ACTIVATIONS


class Option(NamedTuple):
    """One option: the field it sets, how it is typed, its type and help."""

    field: str
    names: str
    type: Any
    help: str


def _one_of(words: tuple[str, ...]) -> str:
    return ", ".join(words)


OPTIONS: tuple[Option, ...] = (
    Option("depth", "--depth", WHOLE, "Blocks."),
    Option("seq_len", "--T", WHOLE, "Rows (tokens) per sequence."),
    Option("n_train", "--m", WHOLE, "Training sequences."),
    Option("C", "--C", NUMBER, "Knob for every norm budget that is not given by itself."),
    Option("d", "--d", WHOLE, "Width of a row."),
    Option("heads", "--heads", WHOLE, "Attention heads per block."),
    Option("d_head", "--d-head", WHOLE, "Width of a head."),
    Option("d_ff", "--d-ff", WHOLE, "Hidden width of the feed-forward part."),
    Option("kv_heads", "--kv-heads", WHOLE, "Distinct key and value heads (grouped queries)."),
    Option("style", "--style", str, f"Where the normalisation sits: {_one_of(STYLES)}."),
    Option("activation", "--activation", str, f"One of {_one_of(ACTIVATIONS)}."),
    Option("normaliser", "--normaliser", str, f"Scores to weights: {_one_of(NORMALISERS)}."),
    Option("temperature", "--temperature", NUMBER, "Scores are divided by it."),
    Option("normaliser_c", "--normaliser-c", NUMBER, "l_inf -> l_1 constant of a custom normaliser."),
    Option("normaliser_mu", "--normaliser-mu", NUMBER, "Largest l_1 mass of a custom normaliser."),
    Option("normalisation", "--normalisation", str, f"How rows are normalised: {_one_of(NORMALISATIONS)}."),
    Option("eps", "--eps", NUMBER, "Epsilon of the normalisation."),
    Option("variance_floor", "--variance-floor", NUMBER, "Variance of a row guaranteed before each normalisation."),
    Option("residual", "--residual/--no-residual", None, "Add sublayers to their input."),
    Option("bias", "--bias/--no-bias", None, "Offsets in linear maps and LayerNorms."),
    Option("gated", "--gated/--no-gated", None, "Gated feed-forward (SwiGLU and kin)."),
    Option("rope", "--rope/--no-rope", None, "Rotary positions (separate W_Q and W_K)."),
    Option("causal", "--causal/--no-causal", None, "Causal mask."),
    Option("vocabulary", "--vocabulary", WHOLE, "Rows of a trained token table; 0 for vector inputs."),
    Option("own_row", "--own-row", WHOLE, "Token that the row of a [CLS] read-out shows in every example."),
    Option("d_patch", "--d-patch", WHOLE, "Width of vector inputs mapped to d by a trained matrix; 0 for none."),
    Option("positions", "--positions", str, "One of none, fixed, learned."),
    Option("position_radius", "--position-radius", NUMBER, "Largest norm of a fixed position row."),
    Option("embedding_norm", "--embedding-norm/--no-embedding-norm", None, "Normalise after the embedding."),
    Option("pooler", "--pooler/--no-pooler", None, "A trained d x d map with tanh before the read-out."),
    Option("readout", "--readout", str, "What is read: cls (one row) or mean."),
    Option("classes", "--classes", WHOLE, "1 for a scalar score, else the number of logits."),
    Option("bits", "--bits", WHOLE, "Bits of every stored weight, fixed before the data (16 for bfloat16): G13."),
    Option("input_radius", "--input-radius", NUMBER, "Largest l2 norm of an input row (vector inputs)."),
    Option("margin", "--gamma", NUMBER, "Margin of the ramp loss."),
    Option("delta", "--delta", NUMBER, "Failure probability."),
    Option("train_error", "--train-error", NUMBER, "Share of training margins at most gamma, for risk bounds."),
    Option("lipschitz", "--lipschitz", NUMBER, "Lipschitz constant of another [0, 1] loss, instead of the ramp."),
)

OPTION_NAMES = {option.field: option.names for option in OPTIONS} | {"measured": "--measured"}
"""How each field of a setting is typed."""
_MEASURED = ("margin", "train-error")
_SAMPLE = {f.name for f in fields(Sample)}
_NORMALISER = {"normaliser": "name", "temperature": "temperature", "normaliser_c": "c", "normaliser_mu": "mu"}
WITH_LAYERS = {"seq_len", "input_radius", "classes", "bits", "n_train", "C", *_SAMPLE}
"""What may still be changed when a setting lists its layers one by one."""


DEFAULTS: Mapping[str, Any] = {
    **{f.name: f.default for part in (Architecture, Sample) for f in fields(part)},
    **{"C": 1.0, "normaliser": "softmax", "temperature": None, "normaliser_c": None, "normaliser_mu": None},
}
"""What each field is when nothing says otherwise."""


def _flag(option: Option) -> Callable[[Any], Any]:
    value = DEFAULTS[option.field]
    shown = value if isinstance(value, str) else value is not None and not isinstance(value, bool) and short(value)
    return click.option(
        option.names, option.field, type=option.type, default=None, help=option.help, show_default=shown
    )


setting_options = all_of(
    [
        click.option(
            "--preset",
            help=f"Architecture to start from: {_one_of(tuple(PRESETS))}.",
            show_default="edelman",
        ),
        click.option("--setting", "setting_file", type=FILE, help="A setting as JSON; options change it."),
        click.option("--norms", "norms_file", type=FILE, help="Norm budgets as JSON, by kind, block and head."),
        click.option("--norm", "norm_words", multiple=True, metavar="KIND=NORM:VALUE", help=NORM_HELP),
        *map(_flag, OPTIONS),
        click.option(
            "--measured",
            type=click.Choice(_MEASURED),
            multiple=True,
            help="Chosen after a look at the sample, so P1 is paid for it (repeatable).",
        ),
    ]
)
"""All options that describe a setting."""

SECTIONS = ("The network", "Its norms", "The sample")
_NORMS = ("C", "norms_file", "norm_words", "input_radius", "position_radius", "variance_floor")


def section_of(command: click.Command, option: click.Parameter) -> str:
    """Under which heading --help lists an option: the setting's have their own, where a command takes a setting."""
    if option.name not in parameters() or "setting_file" not in [each.name for each in command.params]:
        return "Options"
    if option.name in _NORMS:
        return "Its norms"
    return "The sample" if option.name in _SAMPLE else "The network"


def parameters() -> list[str]:
    """The names under which a command gets the setting's options."""
    return [*(option.field for option in OPTIONS), "measured", "preset", "setting_file", "norms_file", "norm_words"]


class Question(NamedTuple):
    """A setting, and where its values are from: "given", "preset", "file", or else assumed."""

    setting: Setting
    origin: Mapping[str, str]
    sources: tuple[str, ...] = ()
    """The options that named a preset or a file."""

    def refuse(self, field: str, why: str) -> None:
        """Refuses an option of the setting that was given and changes nothing."""
        if self.origin.get(field) == "given":
            raise InvalidSetting(f"{OPTION_NAMES[field]} would change nothing: {why}")

    def assumed(self, field: str) -> bool:
        """Whether nobody asked for this value."""
        return field not in self.origin


def take_setting(options: dict[str, Any], start: Setting | None = None, *, complete: bool = True) -> Question:
    """Removes the setting's options from a command's and makes the setting.

    `start`: what the options change where neither a preset nor a file is named. `complete`: whether every weight must
    have a budget.
    """
    given = {option.field: options.pop(option.field) for option in OPTIONS}
    given = {name: value for name, value in given.items() if value is not None}
    measured = options.pop("measured")
    if measured:
        given["measured"] = tuple(name.replace("-", "_") for name in measured)
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
        useless = [name for name in given if name not in WITH_LAYERS]
        if useless:
            raise InvalidSetting(
                f"the setting lists its layers one by one, so {_typed(useless[0])} would change nothing: "
                "change the layers"
            )
    origin |= dict.fromkeys(given, "given")
    setting = changed(start, given, norms)
    if complete:
        refuse_missing(setting.norms, setting.architecture)
    if "C" in given and not setting.reads_knob:
        raise InvalidSetting(
            "--C would change nothing: every weight has a norm budget of its own; leave one of them out"
        )
    named = (("--preset", preset), ("--setting", setting_file), ("--norms", norms_file), ("--norm", norm_words or None))
    return Question(setting, origin, tuple(name for name, value in named if value is not None))


def changed(start: Setting, given: Mapping[str, Any], norms: Norms | None = None) -> Setting:
    """A setting with the values of some options, and other norms."""
    changes = {_NORMALISER[name]: value for name, value in given.items() if name in _NORMALISER}
    rest = {name: value for name, value in given.items() if name not in _NORMALISER}
    if changes:
        if changes.get("name", "custom") != "custom":
            changes = {"c": None, "mu": None} | changes
        rest["normaliser"] = replace(start.architecture.normaliser, **changes)
    return start.but(norms=norms, **rest)


def _typed(field: str) -> str:
    return OPTION_NAMES.get(field, field)


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
    sparse = setting.to_json()
    architecture = {f.name: getattr(setting.architecture, f.name) for f in fields(Architecture)}
    if setting.architecture.layers is None:
        del architecture["layers"]
        normaliser = setting.architecture.normaliser
        architecture["normaliser"] = {f.name: getattr(normaliser, f.name) for f in fields(normaliser)}
    else:
        architecture = {name: architecture[name] for name in ("depth", "seq_len", "input_radius", "bits")}
    architecture = {**architecture, **{k: v for k, v in sparse["architecture"].items() if k != "normaliser"}}
    sample = {f.name: getattr(setting.sample, f.name) for f in fields(Sample)}
    sample["measured"] = list(setting.sample.measured)
    return {"architecture": architecture, "norms": sparse["norms"], "sample": sample}
