"""Weights of so many bits: a finite class, counted instead of covered (G13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from boundcalc.base.system import Number, NumberSystem
from boundcalc.layers.base import flat
from boundcalc.setting import Setting
from boundcalc.setting.norms import place_named
from boundcalc.statements import gap
from boundcalc.statements.strategies.base import Known, Strategy, Term, confidence_term
from boundcalc.statements.strategies.margins import UniformMargin

if TYPE_CHECKING:
    from boundcalc.setting.architecture import Architecture
    from boundcalc.statements.comparison.sharp import Tuning


class _Stored(Strategy):
    """G13: every network of the class is its own centre, so there are no scales, and one count."""

    one_level = False
    uniform = True
    coverless = True
    stored = True

    def complexity(self, ns: NumberSystem, setting: Setting, tuning: Tuning | None) -> Number:
        del tuning
        return stored_count(ns, setting)

    def is_choice(self, architecture: Architecture) -> bool:
        return architecture.bits is not None

    def refuses(self, setting: Setting) -> str | None:
        if setting.architecture.bits is None:
            return "G13 needs the bits of a weight, fixed before the data, which the setting does not give (--bits 16)"
        return super().refuses(setting)

    def conditions(self, ns: NumberSystem, known: Known) -> Iterator[tuple[Number, Number, str]]:
        yield from ()

    def terms(self, ns: NumberSystem, known: Known) -> list[Term]:
        return [
            Term("log N = n b log 2, for n stored weights of b bits", known.counts[0], "G13"),
            confidence_term(known),
        ]


class StoredGap(_Stored):
    """G13, of the gap."""

    name = "stored-gap"
    title = "weights of so many bits: a finite class, fixed before the data"
    quantity = "gap"
    uses = ("G0", "G13")
    formula = "gap <= sqrt((n b log 2 + log(1/delta))/(2m)), n stored weights of b bits"

    def value(self, ns: NumberSystem, known: Known) -> Number:
        return gap.deviation(ns, known.counts[0] + known.log_inverse_delta, known.m)


class StoredMargin(_Stored, UniformMargin):
    """G13, of the risk."""

    name = "stored-margin"
    title = "weights of so many bits: a finite class, fixed before the data; any training error"
    uses = ("G0", "G0e", "G3", "G13")
    formula = (
        "risk <= largest p at which train error * m errors or fewer have the chance delta/2^(n b), n weights of b bits"
    )


def stored_weights(setting: Setting) -> dict[str, int]:
    """How many numbers a network of the class stores, by kind and block.

    Offsets of keys are stored even where softmax forgets them: rounded arithmetic may not.
    """
    found: dict[str, int] = {}
    for layer in flat(setting.architecture.stages):
        for weight in layer.stored(setting.architecture.seq_len):
            place = place_named(weight.kind, weight.block)
            found[place] = found.get(place, 0) + weight.parameters
    return found


def stored_count(ns: NumberSystem, setting: Setting) -> Number:
    """G13: log of how many networks the class has, at most."""
    bits = setting.architecture.bits
    assert bits is not None  # noqa: S101 - a strategy about stored weights refuses settings that do not say
    return gap.stored_count(ns, ns.number(sum(stored_weights(setting).values())), bits)
