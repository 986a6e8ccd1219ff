"""Options that would change nothing, which are refused: given twice, or without the option that gives them a meaning."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.core import ParameterSource

from boundcalc.base.errors import InvalidSetting


class Command(click.Command):
    """A command that takes each option once, but for those that make a list: of two values one would be ignored."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # as completion does, of half a line
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            once = [each for each in given if isinstance(each, click.Option) and not (each.multiple or each.count)]
            for each in once:
                if once.count(each) > 1 and not each.is_eager:
                    flags = "/".join([max(each.opts, key=len), *each.secondary_opts])
                    raise click.UsageError(f"{flags} is given twice: give it once", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in groups: the command's own, then those of a setting, if it takes one."""
        from boundcalc.cli.setting import SECTIONS, section_of

        shown = [(section_of(self, each), each.get_help_record(ctx)) for each in self.get_params(ctx)]
        for title in ("Options", *SECTIONS):
            records = [record for section, record in shown if section == title and record is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


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
        given = context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)
        if given and not context.params[needed] and context.params[name] not in (False, ()):
            raise InvalidSetting(f"{flags[name]} has no effect without {flags[needed]}")
