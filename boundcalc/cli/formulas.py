"""Options of `derive`: sizes as numbers or symbols, and the formula they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.lazy import near
from boundcalc.cli.options import all_of
from boundcalc.cli.setting import numbers, pairs
from boundcalc.cli.values import exactly
from boundcalc.formulas.theorems import POLICIES, THEOREMS, Theorem, theorem_called
from boundcalc.formulas.theorems.network import with_symbols
from boundcalc.formulas.theorems.theorem import QUANTITIES

_LETTERS = {"depth": "D", "T": "T", "heads": "H"}
"""Sizes with an option of their own, and the letters that keep them symbols."""


class _NumberOrSymbol(click.ParamType):
    """A whole number, or the letter that stands for the size."""

    name = "number|letter"

    def __init__(self, size: str) -> None:
        self.size = size

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        letter = _LETTERS[self.size]
        if value in (letter, self.size):
            return None
        whole = value if isinstance(value, int) else exactly(value)
        if whole is None or whole < 1:
            self.fail(f"needs a whole number of at least 1 or the letter {letter}, got {value!r}", param, ctx)
        return whole


formula_options = all_of(
    [
        click.option(
            "--bound", default="edelman2022", show_default=True, help=f"Theorem: {', '.join(THEOREMS)}, or your own."
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
                f"--{name}", name, type=_NumberOrSymbol(name), help=f"{words} A number, or {_LETTERS[name]} (default)."
            )
            for name, words in (
                ("depth", "Blocks."),
                ("T", "Rows (tokens) per sequence."),
                ("heads", "Attention heads per block."),
            )
        ),
        click.option(
            "--set", "others", multiple=True, metavar="NAME=VALUE", help="Any other symbol of the theorem (repeatable)."
        ),
    ]
)
"""The theorem, the quantity and its sizes."""


class _Asked(NamedTuple):
    """What the options ask for; `theorem` where it is one."""

    what: Any
    quantity: str | None
    values: Mapping[str, Any]
    theorem: Theorem | None = None


def take_formula(options: dict[str, Any]) -> _Asked:
    """Removes the options of a formula from a command's, and resolves them."""
    bound, preset, quantity = (options.pop(name) for name in ("bound", "preset", "quantity"))
    values = {name: value for name in _LETTERS if (value := options.pop(name)) is not None}
    others = numbers(pairs(options.pop("others")))
    for name in values.keys() & others.keys():
        raise InvalidSetting(f"--{name} and --set {name}=... give the same size: leave one out")
    values |= others
    theorem = theorem_called(bound)
    if theorem is None:
        if bound in POLICIES:
            raise InvalidSetting(
                f"policy {bound!r} gives numbers, not a formula: `boundcalc eval --bound {bound} --explain` prints the "
                "proof of its number; `boundcalc list theorems` names the formulas"
            )
        raise InvalidSetting(near(f"no theorem is called {bound!r}", bound, [*THEOREMS, *POLICIES]))
    if preset in (None, "edelman"):
        return _Asked(theorem, quantity, values, theorem)
    if theorem.name != "edelman2022":
        raise InvalidSetting(
            f"theorem {bound} is not stated for preset {preset}: leave out --preset, or --bound (the closed form of "
            f"edelman2022 exists for every preset); `boundcalc eval --preset {preset} --bound {bound}` gives a number"
        )
    sizes = {name: values.pop(name) for name in ("d", "heads") if name in values}
    return _Asked(with_symbols(preset, **sizes), quantity, values)
