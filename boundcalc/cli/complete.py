"""Names for the shell to complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _named(place: str) -> Iterator[str]:
    """The names in what stands at module:attribute, which is imported now; or in what that returns."""
    from importlib import import_module

    module, _, attribute = place.partition(":")
    found: Any = getattr(import_module(module), attribute)
    entries: Any = found() if callable(found) else found
    for entry in entries:
        yield getattr(entry, "name", entry)


def _of(*places: str, files: bool = False) -> _Complete:
    """Names from places; with `files`, else that of a file."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        del context, parameter
        names = dict.fromkeys(name for place in places for name in _named(place))
        found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return found or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


_PLATES = "boundcalc.lab.plot.gallery:PLATES"
preset, plate = _of("boundcalc.setting:PRESETS"), _of(_PLATES)
task, family = _of("boundcalc.lab.train.tasks:task_names"), _of("boundcalc.checkpoints.families:FAMILIES")
figure = _of("boundcalc.lab.plot.registry:FIGURES", _PLATES, files=True)
sweep = _of("boundcalc.lab.train.presets:PRESETS", files=True)
theorem = _of("boundcalc.formulas.theorems:THEOREMS")
bound = _of("boundcalc.formulas.theorems:BOUNDS", "boundcalc.formulas.theorems:THEOREMS", files=True)
entry = _of("boundcalc.cli.catalogue:names")
