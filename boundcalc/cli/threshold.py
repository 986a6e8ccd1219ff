"""`boundcalc threshold`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from boundcalc.cli.learning import chosen_runs, read_store_option, runs_option
from boundcalc.cli.options import form_option, write_json
from boundcalc.cli.values import WHOLE


@click.command(
    name="threshold",
    short_help="How many examples are needed, and how that grows with T.",
    epilog="""\b
Examples:
  boundcalc sweep conjunction && boundcalc threshold --runs sweep=conjunction
  boundcalc threshold --runs sweep=conjunction --runs sweep=conjunction-2048 --held-out 2048
  boundcalc threshold --runs task=majority --share 0.5
  boundcalc threshold --runs sweep=conjunction --predict 2048 --format json""",
)
@read_store_option
@runs_option
@click.option(
    "--accuracy", type=click.FloatRange(0, 1), default=0.99, show_default=True, help="Test accuracy that counts."
)
@click.option(
    "--share",
    type=click.FloatRange(0.01, 0.99),
    default=0.8,
    show_default=True,
    help="Share of trials that must reach it.",
)
@click.option("--bootstrap", type=click.IntRange(10, 100000), default=1000, show_default=True, help="Resamples.")
@click.option("--predict", type=WHOLE, multiple=True, metavar="T", help="Prediction interval of m* at another T.")
@click.option("--held-out", type=WHOLE, multiple=True, metavar="T", help="Leave this T out of the fits; compare.")
@form_option("table", "json")
def command(
    store_path: Path,
    runs: tuple[str, ...],
    accuracy: float,
    share: float,
    bootstrap: int,
    predict: tuple[int, ...],
    held_out: tuple[int, ...],
    form: str,
) -> None:
    """m*: the number of examples at which a share of trials succeeds, by a logistic fit in log m, for every T.

    Intervals are by bootstrap over trials. Three laws of m* in T are fitted to log m*.
    """
    from boundcalc.base.errors import InvalidSetting, NoSolution
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.threshold import analyse, cells
    from boundcalc.setting import validate

    for T in predict:
        validate.size("T", T)
    which = chosen_runs(runs)
    with Store(store_path, create=False, read_only=True) as store:
        records = list(store.select(**which))
        names, tasks = store.sweeps(), store.tasks()
    for said in store.damaged:
        click.echo(f"left out: {said}", err=True)
    if not records:
        asked = " with " + " and ".join(runs) if runs else ""
        raise NoSolution(
            f"{store_path} has no trials{asked}; it has {_listed('tasks', tasks)} and {_listed('sweeps', names)}"
        )
    kinds = sorted({_kind(record.config) for record in records})
    if len(kinds) > 1:
        raise InvalidSetting(
            f"{len(kinds)} kinds are mixed among {len(records)} trials: choose with --runs task=NAME, or --runs sweep=NAME: "
            f"{' or '.join(names) or '(none is named here)'}"
        )
    found = analyse(cells(records, accuracy), level=share, draws=bootstrap, held_out=held_out)
    predictions = {str(T): {fit.model: found.prediction(fit.model, T) for fit in found.fits} for T in predict}
    if form == "json":
        write_json({**found.to_json(), "predictions": predictions})
        return
    click.echo(f"m* at {share:.0%} of trials with test accuracy >= {accuracy:g}")
    click.echo("T      m*      95% interval     trials")
    for t in (*found.thresholds, *found.held_out):
        left_out = "  held out" if t in found.held_out else ""
        click.echo(f"{t.T:<5d}  {t.m_star:6.1f}  [{t.low:6.1f}, {t.high:6.1f}]  {t.trials}{left_out}")
    if found.fits:
        best = min(fit.aic for fit in found.fits)
        click.echo("\nfit     R^2    AIC - least  formula")
        for fit in found.fits:
            click.echo(f"{fit.model:<6}  {fit.r2:.3f}  {fit.aic - best:<11.1f}  m* = {fit.formula}")
    for T, intervals in predictions.items():
        for model, (low, high) in intervals.items():
            click.echo(f"prediction at T = {T} by {model}: [{low:.1f}, {high:.1f}]")
    click.echo("")
    for line in found.words():
        click.echo(line)


def _listed(what: str, counts: dict[str, int]) -> str:
    return f"the {what} " + ", ".join(f"{name} ({n})" for name, n in counts.items()) if counts else f"no {what}"


def _kind(config: dict[str, Any]) -> str:
    """What must agree for trials to be comparable: all but T, m and the seed."""
    import json

    task = {k: v for k, v in config["task"].items() if k not in ("T", "L")}
    model = {k: v for k, v in config["architecture"].items() if k != "seq_len"}
    return json.dumps([task, model, config["init"], config["optimisation"]], sort_keys=True)
