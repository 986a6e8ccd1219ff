"""One vocabulary: one word per idea and one idea per word, over commands, options, JSON and Python.

The laws run over every command there is; what they would complain about and is meant so stands in `APART`, with its reason.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import click
import numpy as np
import pytest
from click.testing import CliRunner

from boundcalc import Setting, closed_gap, evaluate, solve, sweep
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import LETTERS
from boundcalc.cli import main
from boundcalc.cli.files import Output
from boundcalc.formulas.theorems import BOUNDS, POLICIES, THEOREMS, aliases
from boundcalc.setting import PRESETS, Architecture, Sample
from boundcalc.setting.architecture import STYLES
from tests.laws.test_options import commands

APART: Mapping[str, str] = {
    "--certificate": "which of its results a command certifies is the command's",
    "--bound": "a figure and a table have several, a formula and an equation one",
    "--L": "a number, or a list where a command measures at several",
    "--m": "a number, or a list where a command measures at several",
    "--temperature": "a number, or a list where a command measures at several",
    "--C": "a knob of norms not given, where some may be; else the norms",
    "--set": "any other input, by name, of what the command is about: a theorem, a config.json, a trial",
    "--quantity": "a formula is of more things than a number is",
    "--format": "the formats are what a command can write",
    "--sweep": "a figure has one axis, a table any number",
    "--store": "read, or written to",
    "--solve": "a bound is solved for m, a certificate for what would make it say something",
    "-o": "a file, or a folder where several are written",
    "--out": "a file, or a folder where several are written",
}
"""Options whose meaning, type or number of values differs between commands, and why that is meant."""

OTHER_FILES: Mapping[str, str] = {
    "--certificate": "beside what is printed or saved",
    "--certificate-risk": "the second certificate",
    "--certificates": "a folder of them",
    "--setting-out": "beside the norms",
    "--template": "a mapping, before there are norms",
    "--examples": "beside the model",
    "--store": "is read as well",
}
"""Options that write a file which is not the command's result."""


class Use(NamedTuple):
    """One command's option."""

    command: str
    name: str
    option: click.Option

    @property
    def meaning(self) -> str:
        """The first words of its help: up to a stop, a colon, a bracket."""
        return re.split(r"[.;:(]|, ", self.option.help or "")[0].strip().lower()

    @property
    def shape(self) -> tuple[object, ...]:
        """What is typed after it."""
        kind = self.option.type.name if not isinstance(self.option.type, click.Choice) else self.option.type.choices
        return kind, self.option.metavar, self.option.multiple, self.option.is_flag


def uses(listed: Mapping[str, click.Command]) -> dict[str, list[Use]]:
    """Every option by name."""
    found: dict[str, list[Use]] = {}
    for command, about in listed.items():
        for option in about.params:
            if isinstance(option, click.Option):
                for name in option.opts:
                    found.setdefault(name, []).append(Use(command, name, option))
    return found


def two_ideas(found: Mapping[str, list[Use]]) -> Iterator[str]:
    """Names that mean, or take, different things in different commands."""
    for name, each in found.items():
        if name in APART:
            continue
        for one, other in itertools.pairwise(each):
            if one.meaning != other.meaning and not symbol_of(one, other):
                yield f"{name}: {one.command} says {one.meaning!r}, {other.command} says {other.meaning!r}"
            elif one.shape != other.shape and not symbol_of(one, other):
                yield f"{name}: {one.command} takes {one.shape}, {other.command} takes {other.shape}"


def symbol_of(one: Use, other: Use) -> bool:
    """Whether one of two is the other's size, which may stay a letter (`derive`, `export`)."""
    return one.meaning == other.meaning and "number|letter" in (one.shape[0], other.shape[0])


def two_words(found: Mapping[str, list[Use]]) -> Iterator[str]:
    """Different names with the same help."""
    meant: dict[str, set[str]] = {}
    for each in found.values():
        for use in each:
            if use.option.help:
                longest = max(use.option.opts, key=len)
                meant.setdefault(use.option.help.lower(), set()).add(longest)
    yield from (f"{' and '.join(sorted(names))}: {text}" for text, names in meant.items() if len(names) > 1)


def unlike_out(found: Mapping[str, list[Use]]) -> Iterator[str]:
    """Options that write what a command is for, and are not called -o/--out."""
    for each in found.values():
        for use in each:
            names = {*use.option.opts}
            if isinstance(use.option.type, Output) and not names & {*OTHER_FILES} and names != {"-o", "--out"}:
                yield f"{use.command} {use.name}"


def complaints(listed: Mapping[str, click.Command]) -> list[str]:
    found = uses(listed)
    return [*two_ideas(found), *two_words(found), *unlike_out(found)]


LISTED = dict(commands())


def test_one_word_for_one_idea() -> None:
    assert complaints(LISTED) == []


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (click.Option(["--depth"], help="Of the sea."), "--depth: "),
        (click.Option(["--depth"], type=float, help="Blocks."), "--depth: "),
        (click.Option(["--layers"], help="Blocks."), "--depth and --layers"),
        (click.Option(["--output"], type=Output(lambda path, values: [])), "list --output"),
        (click.Option(["--quiet"], help="No noise from the keyboard."), "--quiet: "),
        (click.Option(["--runs"], multiple=True, metavar="KEY=VALUE", help="Which trials."), "--runs: "),
    ],
)
def test_the_law_finds_what_it_is_for(option: click.Option, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind that there was: one name with two meanings, two types, two words for one idea, another --out."""
    monkeypatch.setattr(LISTED["list"], "params", [*LISTED["list"].params, option])
    assert any(complaint in said for said in complaints(LISTED))


def test_reasons_are_for_what_there_is() -> None:
    found = uses(LISTED)
    assert set(APART) <= found.keys()
    assert set(OTHER_FILES) <= found.keys()
    without = {name: reason for name, reason in APART.items() if len(found[name]) < 2}
    assert not without


# ------------------------------------------------------------------------------------------- names of things


def test_a_name_is_of_one_thing() -> None:
    """Architectures (presets, styles) and bounds (policies, theorems) share no name; what does is the same thing."""
    assert not ({*PRESETS} | {*STYLES}) & ({*POLICIES} | {*THEOREMS})
    for name in {*PRESETS} & {*STYLES}:
        assert Setting.of(name).architecture == Architecture(style=name)
    for name in {*POLICIES} & {*THEOREMS}:
        assert BOUNDS[name] is POLICIES[name]
        theorem = THEOREMS[name].policy
        assert theorem is not None
        assert theorem.lemmas == POLICIES[name].lemmas


def test_bounds_of_the_same_rules_are_listed_as_aliases() -> None:
    assert aliases() == {"edelman2022": "closed", "trauger2024": "trauger"}
    setting = Setting.of(depth=1, n_train=10**7)
    for name, same in aliases().items():
        one, other = (evaluate(setting, bound) for bound in (name, same))
        assert (one.log10, one.log10_risk) == (other.log10, other.log10_risk)
    listed = CliRunner().invoke(main, ["list", "theorems"]).stdout
    assert all(f"= {same}" in listed for same in aliases().values())


def test_no_two_names_are_an_authors_alone_and_with_the_year() -> None:
    """`edelman` and `edelman2022` were different bounds: names of which one begins the other mean the same."""
    for one, other in itertools.permutations(BOUNDS, 2):
        if re.fullmatch(rf"{re.escape(one)}\d+", other):
            assert (BOUNDS[one].lemmas, BOUNDS[one].form) == (BOUNDS[other].lemmas, BOUNDS[other].form), (one, other)


# ------------------------------------------------------------------------------------------- other spellings


@pytest.mark.parametrize(("letter", "word"), LETTERS.items())
def test_letters_and_words_are_taken_alike(letter: str, word: str) -> None:
    value: Any = {"T": 16, "m": 10**7, "gamma": 0.4}[letter]
    rest: dict[str, Any] = {"depth": 1} | ({} if letter == "m" else {"n_train": 10**9})
    named = Setting.of(**rest, **{word: value})
    assert Setting.of(**rest, **{letter: value}) == named
    part = "sample" if word in {f.name for f in fields(Sample)} else "architecture"
    assert Setting.from_json({part: {letter: value}}) == Setting.from_json({part: {word: value}})
    ask: Any = solve
    assert ask(named, letter, 0.9, bound="closed") == ask(named, word, 0.9, bound="closed")
    gaps = [sweep(named, {name: [value, 2 * value]}, ["closed"]).columns["gap"] for name in (letter, word)]
    assert gaps[0] == gaps[1]
    arrays = [closed_gap(named, **{name: np.array([value, 2 * value])}) for name in (letter, word)]
    assert (arrays[0] == arrays[1]).all()
    swept = [
        CliRunner().invoke(main, ["eval", "--bound", "closed", "--sweep", f"{name}={value}", "--format", "csv"]).stdout
        for name in (letter, word)
    ]
    assert swept[0] == swept[1] != ""


def test_one_thing_is_not_said_twice() -> None:
    with pytest.raises(InvalidSetting, match="gives n_train twice"):
        Setting.of(m=10, n_train=10)
    with pytest.raises(InvalidSetting, match="gives seq_len twice"):
        Setting.from_json({"architecture": {"T": 4, "seq_len": 4}})


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("eval --head 3", "--heads"),
        ("eval --set activation=silo", "'silu'"),
        ("eval --bound trauger24", "'trauger2024'"),
        ("eval --set L=6", "layers are --depth"),
        ("eval --vocabulary 6", "--set vocabulary="),
        ("plot overlays", "'overlay'"),
        ("explain T22", "'T2'"),
    ],
)
def test_wrong_names_are_answered_with_right_ones(line: str, instead: str) -> None:
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == 2
    assert instead in result.stderr
    assert result.stderr.count("\n") == 1


def test_python_and_json_suggest_names_too() -> None:
    for name, instead in (("layers_count", None), ("dept", "depth"), ("n_trains", "n_train")):
        with pytest.raises(InvalidSetting) as caught:
            Setting.of(depth=1, **dict[str, Any]({name: 3}))
        assert instead is None or f"did you mean {instead!r}?" in str(caught.value)
