"""Names for the shell to complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _of(names: Callable[[], Iterable[str]], *, files: bool = False) -> Complete:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        del context, parameter
        found = [CompletionItem(name) for name in dict.fromkeys(names()) if name.startswith(incomplete)]
        return found or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


def _presets() -> Iterable[str]:
    from boundcalc.setting import PRESETS

    return PRESETS


def _tasks() -> Iterable[str]:
    from boundcalc.lab.train.tasks import task_names

    return task_names()


def _figures() -> Iterable[str]:
    from boundcalc.lab.plot.gallery import PLATES
    from boundcalc.lab.plot.registry import FIGURES

    return [*FIGURES, *(plate.name for plate in PLATES)]


def _plates() -> Iterable[str]:
    from boundcalc.lab.plot.gallery import PLATES

    return [plate.name for plate in PLATES]


def _sweeps() -> Iterable[str]:
    from boundcalc.lab.train.presets import PRESETS

    return PRESETS


def _families() -> Iterable[str]:
    from boundcalc.checkpoints.families import FAMILIES

    return FAMILIES


def _bounds() -> Iterable[str]:
    from boundcalc.formulas.theorems import BOUNDS, THEOREMS

    return [*BOUNDS, *THEOREMS]


preset, task, plate, family = _of(_presets), _of(_tasks), _of(_plates), _of(_families)
figure, sweep, bound = _of(_figures, files=True), _of(_sweeps, files=True), _of(_bounds, files=True)
