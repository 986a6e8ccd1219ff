"""Options of the commands that show formulas: sizes as numbers or symbols, and the formula they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.inputs import OF_PAIRS, pairs
from boundcalc.cli.lazy import near
from boundcalc.cli.options import all_of
from boundcalc.cli.values import exactly, number
from boundcalc.formulas.theorems import POLICIES, THEOREMS, theorem_called
from boundcalc.formulas.theorems.network import with_symbols
from boundcalc.formulas.theorems.theorem import QUANTITIES


class _Size(NamedTuple):
    """An option for a size: how it is typed, the letter that stands for it, and its name in formulas."""

    option: str
    letter: str
    name: str
    whole: bool
    help: str


_SIZES = (
    _Size("--depth", "D", "depth", True, "Blocks."),
    _Size("--T", "T", "T", True, "Rows (tokens) per sequence."),
    _Size("--m", "m", "m", True, "Training sequences."),
    _Size("--C", "C", "C", False, "Norm budget of every matrix."),
    _Size("--d", "d", "d", True, "Width of a row."),
    _Size("--heads", "H", "heads", True, "Attention heads per block."),
    _Size("--gamma", "gamma", "gamma", False, "Margin of the ramp loss."),
    _Size("--delta", "delta", "delta", False, "Failure probability."),
    _Size("--L", "L", "L", True, f"Key-value pairs a query sees ({OF_PAIRS})."),
)


class _NumberOrSymbol(click.ParamType):
    """A number, or the letter that stands for the size."""

    name = "number|letter"

    def __init__(self, size: _Size) -> None:
        self.size = size

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        letters = {self.size.letter, self.size.name}
        if not isinstance(value, str) or value in letters:
            return self.size.letter if isinstance(value, str) else value
        found = number(value)
        if found is None or isinstance(found, complex):
            self.fail(f"needs a number or the letter {self.size.letter}, got {value!r}", param, ctx)
        if self.size.whole:
            whole = exactly(value)
            if whole is None or whole < 1:
                self.fail(
                    f"needs a whole number of at least 1 or the letter {self.size.letter}, got {value!r}", param, ctx
                )
            return whole
        if not 0 < found < float("inf"):
            self.fail(f"needs a number above 0 or the letter {self.size.letter}, got {value!r}", param, ctx)
        return found


formula_options = all_of(
    [
        click.option(
            "--bound",
            default="edelman2022",
            show_default=True,
            help=f"Theorem: {', '.join(THEOREMS)}.",
        ),
        click.option(
            "--preset", help="Architecture to start from (bert, gpt2, llama, vit): its closed form, for edelman2022."
        ),
        click.option(
            "--quantity",
            type=click.Choice(QUANTITIES),
            help="What to bound; by default the gap, or what the theorem is about.",
        ),
        *(
            click.option(
                size.option,
                size.name,
                type=_NumberOrSymbol(size),
                help=f"{size.help} A number, or {size.letter} (default) to keep it a symbol.",
            )
            for size in _SIZES
        ),
        click.option("--set", "others", multiple=True, metavar="NAME=VALUE", help="Any other symbol of the theorem."),
    ]
)
"""The theorem, the quantity and its sizes."""


class _Asked(NamedTuple):
    """What the options ask for."""

    what: Any
    quantity: str | None
    values: Mapping[str, Any]


def take_formula(options: dict[str, Any]) -> _Asked:
    """Removes the options of a formula from a command's, and resolves them."""
    bound, preset, quantity = (options.pop(name) for name in ("bound", "preset", "quantity"))
    given = {size.name: options.pop(size.name) for size in _SIZES}
    values = {name: value for name, value in given.items() if value is not None and not isinstance(value, str)}
    others = pairs(options.pop("others"))
    twice = next((size for size in _SIZES if size.name in others and given[size.name] is not None), None)
    if twice is not None:
        raise click.UsageError(f"{twice.option} and --set {twice.name}=... give the same size: leave one out")
    values |= others
    theorem = theorem_called(bound)
    if theorem is None:
        if bound in POLICIES:
            raise click.UsageError(_policy(bound))
        raise click.UsageError(near(f"no theorem is called {bound!r}", bound, [*THEOREMS, *POLICIES]))
    if preset in (None, "edelman"):
        return _Asked(theorem, quantity, values)
    if theorem.policy is None:
        raise InvalidSetting(f"theorem {bound} is not about an architecture: leave out --preset {preset}")
    if theorem.name != "edelman2022":
        covers = " and ".join(sorted(THEOREMS["edelman2022"].lemmas or ()))
        raise InvalidSetting(
            f"theorem {bound} is stated for the architecture edelman: leave out --preset, or --bound (the closed form "
            f"of {covers} exists for every preset); `boundcalc eval --preset {preset} --bound {bound}` gives a number"
        )
    return _Asked(_of_preset(preset, values), quantity, values)


def _policy(name: str) -> str:
    """Policies have no formula; the theorems with the same covers have one."""
    policy = POLICIES[name]
    near_ones = [t.name for t in THEOREMS.values() if t.policy is not None and t.policy.lemmas == policy.lemmas]
    nearest = near_ones[0] if near_ones else "edelman2022"
    return (
        f"policy {name!r} gives numbers, not a formula: `boundcalc derive --bound {nearest}` is the nearest "
        f"formula, `boundcalc eval --bound {name} --explain` the proof of its number"
    )


def _of_preset(preset: str, values: dict[str, Any]) -> Any:
    """A preset with symbols for all that formulas keep as symbols; d and heads are part of the architecture."""
    return with_symbols(preset, **{name: values.pop(name) for name in ("d", "heads") if name in values})
