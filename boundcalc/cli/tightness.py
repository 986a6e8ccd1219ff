"""`boundcalc tightness`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import down, up
from boundcalc.cli.setting import BY_FIELD, Question, setting_options, take_setting
from boundcalc.cli.values import short, upper

if TYPE_CHECKING:
    from boundcalc.setting import Setting

DEPTHS, KNOBS, LENGTHS, SAMPLES = (1, 2, 4), (1.0, 2.0), (64, 4096), (10**6, 10**7, 10**8)


@click.command(
    name="tightness",
    short_help="What explicit constants gain over the published ones.",
    epilog="""\b
Examples:
  boundcalc tightness                        the table of the README
  boundcalc tightness --ladder                where the factor comes from, at the default setting
  boundcalc tightness --ladder --depth 4 --C 2 --m 1e8
  boundcalc tightness --without               what each ingredient is worth: the best bounds without it
  boundcalc tightness --covers --d 768        what covers of one matrix cost, beside the volumes""",
)
@setting_options
@click.option(
    "--ladder", "steps", is_flag=True, help="From the published constants to the best bound, one ingredient at a time."
)
@click.option("--without", "apart", is_flag=True, help="The best gap and risk without each ingredient, one at a time.")
@click.option(
    "--covers", "one", is_flag=True, help="Nats per entry of covers of one d x d matrix, beside what volumes leave."
)
def command(steps: bool, apart: bool, one: bool, **options: Any) -> None:
    """How much smaller the best bound is than the same theorem with the constants of the literature.

    Prints Markdown. The table runs over depth, C, T and m (the other options hold in every row); with --ladder, one
    setting is taken apart; with --without, each ingredient of its best bounds is left out in turn. --covers is about one
    matrix alone, whose norm is at most 1, on points of norm at most 1.
    """
    question = take_setting(options)
    if one:
        if steps or apart:
            raise click.UsageError("--covers and --ladder or --without are two tables: ask for one of them")
        _refuse_setting(question)
        _print(_covers(question.setting.architecture.d))
        return
    question.refuse("train_error", "the comparison is made at training error 0")
    if steps and apart:
        raise click.UsageError("--ladder and --without are two tables: ask for one of them")
    if not (steps or apart):
        question.refuse("bits", "the table compares covers; --ladder and --without take it")
        for name, values in (("depth", DEPTHS), ("C", KNOBS), ("seq_len", LENGTHS), ("n_train", SAMPLES)):
            question.refuse(
                name,
                f"the table has rows and columns for {', '.join(map(short, values))}; --ladder and --without take one",
            )
    setting = question.setting
    _print(_ladder(setting) if steps else _without(setting) if apart else _table(setting))


def _print(rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        click.echo("| " + " | ".join(row) + " |")


def _refuse_setting(question: Question) -> None:
    """Of a setting the table of covers reads the width alone."""
    for field in question.origin:
        if field in BY_FIELD and field != "d":
            question.refuse(field, "--covers is about one matrix: of a setting it reads --d")
    if question.sources:
        raise InvalidSetting(f"{question.sources[0]} would change nothing: --covers is about one matrix, of --d")


def _covers(d: int) -> list[Sequence[str]]:
    from boundcalc.engine.coverings import BUDGETS, coverings

    heads = [f"{lemma} ({norm})" for lemma, norm in BUDGETS.items()]
    rows: list[Sequence[str]] = [[f"{d} x {d}, eps", *heads, "volumes"], ["---:"] * (len(heads) + 2)]
    for row in coverings(d, d):
        counts = [up(count) for count in row.counts.values()]
        rows.append([f"{row.eps:g}", *counts, down(row.floor) if row.floor > 0 else "below 0"])
    return rows


def _table(setting: Setting) -> list[Sequence[str]]:
    from boundcalc.engine.tightness import compare_with_published

    rows: list[Sequence[str]] = [["depth", "C", "T", *(f"m = 10^{len(str(m)) - 1}" for m in SAMPLES)]]
    rows.append(["---:"] * len(rows[0]))
    for depth in DEPTHS:
        for knob in KNOBS:
            for length in LENGTHS:
                cells = [str(depth), f"{knob:g}", str(length)]
                for m in SAMPLES:
                    found = compare_with_published(setting.but(depth=depth, C=knob, seq_len=length, n_train=m))
                    same = "trivial" if found.same is None else f"{upper(found.same)}: {_factor(found.factor_same)}"
                    cells.append(f"{same}, {_factor(found.factor_any)}")
                rows.append(cells)
    return rows


def _ladder(setting: Setting) -> list[Sequence[str]]:
    from boundcalc.engine.tightness import ladder

    rows: list[Sequence[str]] = [
        ["from published to best", "statement", "gap", "factor"],
        ["---", "---", "---:", "---:"],
    ]
    before: float | None = None
    for rung in ladder(setting):
        factor = "" if before is None else _factor(before - rung.log10)
        rows.append([rung.name, rung.statement, upper(rung.log10), factor])
        before = rung.log10
    return rows


def _without(setting: Setting) -> list[Sequence[str]]:
    from boundcalc.engine.tightness import without

    rows: list[Sequence[str]] = [
        ["without", "statement", "gap", "factor", "risk at training error 0", "factor"],
        ["---", "---", "---:", "---:", "---:", "---:"],
    ]
    whole: list[float | None] | None = None
    for left in without(setting):
        values = [left.gap, left.risk]
        cells = [left.name if whole else "nothing", left.statement]
        for value, best in zip(values, whole or values, strict=True):
            factor = "" if value is None or best is None or whole is None else _factor(value - best)
            cells += ["-" if value is None else upper(value), factor]
        rows.append(cells)
        whole = whole or values
    return rows


def _factor(log10: float | None) -> str:
    """Three digits; powers of ten beyond 10^4; nothing to divide by where the bound is trivial."""
    if log10 is None:
        return "-"
    return f"×{float(f'{10**log10:.3g}'):g}" if log10 < 4 else f"×10^{log10:.1f}"
