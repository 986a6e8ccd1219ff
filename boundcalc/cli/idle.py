"""Refusals of options that would change nothing."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.core import ParameterSource

from boundcalc.base.errors import InvalidSetting


def refuse_given(names: Mapping[str, str]) -> None:
    """Refuse each parameter of the running command that was given, by why it has no effect."""
    context = click.get_current_context()
    flags = {parameter.name: max(parameter.opts, key=len) for parameter in context.command.params}
    for name, why in names.items():
        if context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT):
            raise InvalidSetting(f"{flags[name]} has no effect {why}")


def refuse_idle(needs: Mapping[str, str]) -> None:
    """Refuse each parameter of the running command that was given while what it needs was not."""
    context = click.get_current_context()
    flags = {parameter.name: max(parameter.opts, key=len) for parameter in context.command.params}
    for name, needed in needs.items():
        typed = context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)
        if typed and not context.params[needed] and context.params[name] not in (False, ()):
            raise InvalidSetting(f"{flags[name]} has no effect without {flags[needed]}")
