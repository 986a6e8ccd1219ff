"""A complete question: which architecture, which norms, which sample; every budget given is read, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import (
    ClosedShare,
    Described,
    Positive,
    Share,
    Size,
    check_fields,
    declare,
    read,
    write,
)
from boundcalc.base.validate import choice, shown
from boundcalc.layers.base import Weight, weights_of
from boundcalc.layers.merged import products_of
from boundcalc.setting._architecture import PRESETS, Architecture
from boundcalc.setting.norms import JSON_NAMES, Budget, Norms, place_of

MARGIN = 0.12
"""The default gamma: with every norm at most 1 a network of the first paper with one or two blocks has larger margins
on inputs of both labels, so that a risk bound at a small training error is about networks that exist (G0e)."""
_OF_MARGINS = ("margin", "train_error", "measured")
"""Fields that belong to the ramp loss."""


@dataclass(frozen=True, slots=True, repr=False)
class Sample(Described):
    """m sequences drawn independently, a loss in [0, 1], and the failure probability.

    `lipschitz` is the Lipschitz constant of another [0, 1] loss in the read-out, instead of the ramp: risk bounds by
    margins then do not apply. `measured`: which of "margin" and "train_error" were seen on the sample before they were
    chosen, so that a bound must correct for that.
    """

    SHOWN: ClassVar = ("n_train", "delta", "margin", "train_error")

    n_train: Size = declare(
        10**6, "number of training sequences", latex="m", help="Training sequences.", typical=(10, 10**7)
    )
    delta: Share = declare(
        0.05, "failure probability", latex=r"\delta", help="Failure probability.", typical=(0.001, 0.5)
    )
    margin: Positive = declare(
        MARGIN, "margin of the ramp loss", latex=r"\gamma", help="Margin of the ramp loss.", typical=(0.2, 2.0)
    )
    train_error: ClosedShare = declare(
        0.0,
        "share of training sequences with margin at most gamma",
        help="Share of training margins at most gamma, for risk bounds.",
    )
    lipschitz: Positive | None = declare(
        None, "Lipschitz constant of a [0, 1] loss other than the ramp", label="loss Lipschitz constant"
    )
    measured: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.measured:
            choice("measured", name, ("margin", "train_error"))
        object.__setattr__(self, "measured", tuple(dict.fromkeys(self.measured)))
        self.refuse_unread()

    def unread(self, name: str) -> str | None:
        if self.lipschitz is None or name not in _OF_MARGINS:
            return None
        other = f"the loss is another one, {shown(self.lipschitz)}-Lipschitz; leave out one of them"
        return f"margins belong to the ramp loss, and {other}"


_PARTS: Mapping[str, type] = {"architecture": Architecture, "sample": Sample}
_OWNER = {f.name: part for part, cls in _PARTS.items() for f in fields(cls)}


@dataclass(frozen=True)
class Setting:
    """An architecture, the norms its weights may have, and the sample it is trained on."""

    architecture: Architecture = Architecture()
    norms: Norms = Norms(C=1.0)
    sample: Sample = Sample()

    def __post_init__(self) -> None:
        check_fields(self, "a setting's ")
        if self.norms.budgets:
            if self.norms.headed and not isinstance(self.architecture.heads, int):
                raise InvalidSetting(f"budgets of single heads need a number of heads, got {self.architecture.heads}")
            account(self.norms, self.architecture)

    def __repr__(self) -> str:
        parts = (repr(part).partition("(")[2][:-1] for part in (self.architecture, self.norms, self.sample))
        return f"Setting({'; '.join(parts)})"

    @classmethod
    def of(
        cls, preset: str = "edelman", *, C: float | None = None, norms: Norms | None = None, **values: Any
    ) -> Setting:
        """A setting from a preset's name and any fields of `Architecture` and `Sample`, by name.

        C is 1 unless norms are given.
        """
        validate.choice("preset", preset, PRESETS)
        return cls(Architecture(**PRESETS[preset])).but(
            C=1.0 if C is None and norms is None else C, norms=norms, **values
        )

    def but(self, *, C: float | None = None, norms: Norms | None = None, **values: Any) -> Setting:
        """The same setting with some fields of its parts changed."""
        changes: dict[str, dict[str, Any]] = {"architecture": {}, "sample": {}}
        for name, value in validate.known_keys("a setting", values, _OWNER).items():
            changes[_OWNER[name]][name] = value
        new = self.norms if norms is None else norms
        if C is not None:
            new = replace(new, C=C)
        return Setting(
            self.architecture.with_fields(**changes["architecture"]), new, self.sample.with_fields(**changes["sample"])
        )

    def lookups(self) -> Iterator[tuple[Weight, str | None]]:
        """Every weight whose budget is looked up, with the key of that budget; None where C is its default."""
        return lookups(self.norms, weights_of(self.architecture.stages, self.architecture.seq_len))

    def default_kinds(self) -> list[str]:
        """The kinds of weights that take the default budget C."""
        return list(dict.fromkeys(weight.kind for weight, key in self.lookups() if key is None))

    def refuse_missing(self) -> None:
        """Refuses norms that leave weights without a budget and without the knob: all of them at once."""
        if self.norms.C is None and (kinds := self.default_kinds()):
            raise InvalidSetting(
                f"no norm budget for {', '.join(kinds)}: set their default C (--C 1), or give each, such as "
                f"--norm {kinds[0]}=op:2.5,21:8"
            )

    def refuse_symbols(self) -> None:
        """Values and proofs are of numbers."""
        todo: list[Any] = [self]
        while todo:
            value = todo.pop()
            if is_dataclass(value):
                todo += (getattr(value, f.name) for f in fields(value))
            elif isinstance(value, Mapping | tuple):
                todo += value.values() if isinstance(value, Mapping) else value
            elif getattr(value, "free_symbols", None):
                raise InvalidSetting(f"a value needs numbers, got {value}: `closed_form` derives a formula of symbols")

    def to_json(self) -> dict[str, Any]:
        """What differs from the defaults, as a JSON object; `complete_json` leaves nothing out."""
        return {name: write(getattr(self, name)) for name in ("architecture", "norms", "sample")}

    def complete_json(self) -> dict[str, Any]:
        """Every field, as proofs have it: `read_complete` of `boundcalc.base.schema` reads it back."""
        return write(self, complete=True)

    @classmethod
    def from_json(cls, data: object) -> Setting:
        """A setting from its JSON object (or the text of one)."""
        if isinstance(data, str):
            from boundcalc.base.files import parse_json

            data = parse_json(data, "the setting")
        return read(cls, data, "setting")


# -- every budget is read by some layer, or refused: one that is ignored leaves the knob C in its place


def account(norms: Norms, architecture: Architecture) -> None:
    """Refuses budgets that no lookup of an architecture reads, block by block and head by head."""
    weights = list(weights_of(architecture.stages, architecture.seq_len))
    products = list(products_of(architecture.stages, architecture.seq_len))
    places: dict[str, dict[int | None, int]] = {}
    for part in (part for weight in (*weights, *products) for part in weight.all):
        places.setdefault(part.kind, {})[part.block] = part.heads
    for key in norms.budgets:
        _check_place(key, places)
    read = {key: weight for weight, key in lookups(norms, weights) if key is not None}
    read |= {key: product for product in products if (key := norms.place(product.kind, product.block)) is not None}
    for key, budget in norms.budgets.items():
        if key not in read:
            raise InvalidSetting(f"norms of {key}: it would be ignored, as each of its places reads another budget")
        _check_limits(read[key], key, budget)


def _check_place(key: str, places: dict[str, dict[int | None, int]]) -> None:
    """Kinds, blocks and heads that exist."""
    kind, block, head = place_of(key)
    blocks = places[choice(f"norms of {key}: the kind", kind, places)]
    if block is not None and block not in blocks:
        numbers = [b for b in blocks if b is not None]
        have = f"its blocks are {min(numbers)} to {max(numbers)}" if numbers else "it belongs to no block"
        raise InvalidSetting(f"norms of {key}: {kind} has no block {block}; {have}")
    if head is not None and head >= blocks[block]:
        raise InvalidSetting(f"norms of {key}: no head {head}; {kind} has {blocks[block]}, numbered from 0")


def _check_limits(weight: Weight, key: str, budget: Budget) -> None:
    """Refuses limits that no bound can use for such a weight: they would be ignored."""
    for part, limits in ((budget, weight.limits), (budget.distance, weight.limits - {"distance"})):
        for symbol, name in JSON_NAMES.items():
            if part is not None and name not in limits and getattr(part, name) is not None:
                usable = ", ".join(word for word, field in JSON_NAMES.items() if field in limits)
                where = "" if part is budget else "distance: "
                raise InvalidSetting(
                    f"norms of {key}: {where}nothing reads {symbol!r} of {weight.kind}; what can be used is {usable}"
                )


def lookups(norms: Norms, weights: Iterable[Weight]) -> Iterator[tuple[Weight, str | None]]:
    """Every weight that is looked up, with the key that is found, head by head where heads have own budgets."""
    for weight in weights:
        for head in range(weight.heads) if norms.headed and weight.heads else (None,):
            for part in weight.read(norms, head):
                yield part, norms.place(part.kind, part.block, head)
