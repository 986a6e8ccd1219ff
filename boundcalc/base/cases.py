"""What a registration brings, so that its laws can be tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.records import dataclass

_Subject = TypeVar("_Subject", covariant=True)
_Example = TypeVar("_Example", covariant=True)

_PARTS = (
    ("examples", "the laws hold anywhere"),
    ("refusals", "it refuses what it is not for"),
    ("wrong", "the laws would see a mistake"),
)


@dataclass(frozen=True, slots=True)
class Cases(Generic[_Subject, _Example]):
    """What a registration brings, so that it can be checked; without any of the three it is incomplete.

    Attributes:
        examples: where the laws are tried. None is guessed.
        refusals: what must be refused, each with a regular expression that the reason must match; None says that there is
            nothing it could be asked and must refuse.
        wrong: variants that are false, by name; the laws must reject each, or they would not have seen a mistake.
    """

    examples: Sequence[_Example]
    refusals: Sequence[tuple[Any, str]] | None
    wrong: Mapping[str, _Subject]

    @property
    def missing(self) -> tuple[str, ...]:
        """What was not brought, and what therefore nothing shows."""
        return tuple(
            f"no {what} were brought, so nothing shows that {shows}"
            for what, shows in _PARTS
            if getattr(self, what) is not None and not getattr(self, what)
        )


Brought = Cases[Any, Any] | Callable[[], Cases[Any, Any]]
"""Cases, or what makes them when the laws are tried."""


def refuse_incomplete(kind: str, name: str, cases: object) -> None:
    """Refuses what is registered without its cases."""
    if isinstance(cases, Cases):
        missing: tuple[str, ...] = cases.missing
    else:
        missing = () if callable(cases) else ("it brings no cases",)
    if missing:
        raise InvalidSetting(
            f"the {kind} {name!r} is not registered: {'; '.join(missing)}; give boundcalc.laws.Cases(examples, refusals, "
            f"wrong), by which boundcalc.check_{kind} tries its laws"
        )


def complete(kind: str, name: str, brought: Brought) -> Cases[Any, Any]:
    """The cases of something, made now if they were to be made late; refuses what is missing."""
    made: Any = brought
    if not isinstance(brought, Cases):
        try:
            made = brought()
        except KeyError as error:
            if error.args != (name,):
                raise
            made = None  # a table of cases has no row for it
    refuse_incomplete(kind, name, made)
    return made
