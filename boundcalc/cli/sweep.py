"""`boundcalc sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from boundcalc.base.files import assignments
from boundcalc.cli.files import NAME_OR_FILE, FileCommand
from boundcalc.cli.idle import refuse_given
from boundcalc.cli.learning import say_positions, store_option
from boundcalc.cli.predictors import certify_options
from boundcalc.cli.progress import clock, kept
from boundcalc.lab.train.certify import Request, wanted


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc sweep smoke
  boundcalc sweep conjunction --jobs 2 --store runs.db
  DASK_SCHEDULER_ADDRESS=tcp://10.0.0.1:8786 boundcalc sweep my_sweep.json --backend dask --jobs -1
  boundcalc sweep conjunction --seeds 5 --set train.lr=0.002 --list
  boundcalc sweep smoke --certify holdout --certify p2l

A sweep file (JSON) has the keys task, model, init, train, m, n_test, seeds and grid, such as

\b
  {"task": {"task": "parity", "s": 2}, "seeds": 5, "grid": {"T": [16, 32]}}

Interrupt it whenever you like: run it again and it goes on.""",
)
@click.argument("what", metavar="PRESET|FILE", type=NAME_OR_FILE)
@store_option
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes (-1: one per core).")
@click.option("--backend", help="Back end of joblib: loky (the default), ray, dask, ...")
@click.option("--seeds", type=click.IntRange(1), help="Seeds per point, instead of those of the sweep.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a field, such as train.lr=0.002.")
@certify_options
@click.option("--list", "only_list", is_flag=True, help="Print what would be trained, and stop.")
def command(
    what: str,
    store_path: Path,
    jobs: int,
    backend: str | None,
    seeds: int | None,
    changes: tuple[str, ...],
    methods: tuple[str, ...],
    delta: float,
    prefix: float,
    only_list: bool,
) -> None:
    """Train the trials of a preset or of a file that are not in the store yet; results are stored as they come."""
    from boundcalc.lab.train.run import Workers, certify_sweep, run_sweep
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import missing

    if not methods:
        refuse_given(dict.fromkeys(("delta", "prefix"), "without --certify, which says by which method"))
    plans = [Request(name, delta, prefix) for name in wanted(methods)]
    sweep = _sweep(what, seeds, assignments(changes, "--set"))
    say_positions(sweep.trials)
    if only_list:
        refuse_given(dict.fromkeys(("jobs", "backend"), "with --list, which trains nothing"))
        present: set[str] = set()
        if store_path.exists():
            with Store(store_path, create=False) as store:
                present = store.hashes()
        todo = missing(sweep.trials, present)
        click.echo(f"sweep {sweep.name}: {len(sweep.trials)} trials, {len(todo)} of them not in {store_path}")
        return
    workers = Workers(jobs, backend)
    certified = None
    with Store(store_path) as store, kept(store, sweep.trials) as tell:
        ran = run_sweep(sweep, store, workers=workers, tell=tell)
        if plans and not ran.errors:
            certified = certify_sweep(sweep.trials, store, plans, workers=workers, tell=tell)
    diverged = f", {ran.failed} of them diverged" if ran.failed else ""
    click.echo(
        f"sweep {sweep.name}: {ran.present} trials were there, {ran.added} added{diverged} "
        f"in {clock(ran.seconds)}; see `boundcalc runs --store {store_path}`"
    )
    if certified is not None:
        refused = f", {certified.failed} of them refused" if certified.failed else ""
        click.echo(
            f"certificates: {certified.present} were there, {certified.added} added{refused} in "
            f"{clock(certified.seconds)}"
        )
    if ran.errors:
        raise click.ClickException(f"{len(ran.errors)} stacks failed; the first: {ran.errors[0]}")


def _sweep(what: str, seeds: int | None, changes: dict[str, Any]) -> Any:
    import copy

    from boundcalc.base.errors import InvalidSetting
    from boundcalc.base.files import read_json
    from boundcalc.lab.train.sweep import PRESETS, sweep_from_json

    if what in PRESETS:
        data: Any = {"name": what, **copy.deepcopy(PRESETS[what])}
    elif what.endswith(".json") or Path(what).exists():
        data = read_json(Path(what), "the sweep file")
    else:
        raise InvalidSetting(f"there is no preset or file {what!r}; presets: {', '.join(PRESETS)}")
    if isinstance(data, dict):
        if seeds is not None:
            data["seeds"] = seeds
        for name, value in changes.items():
            _change(data, name, value)
    return sweep_from_json(data, name=Path(what).stem)


def _change(data: dict[str, Any], name: str, value: Any) -> None:
    from boundcalc.base.errors import InvalidSetting

    part, _, field = name.partition(".")
    if field and part in ("task", "model", "init", "train", "grid"):
        target = data.setdefault(part, {})
        if not isinstance(target, dict):
            raise InvalidSetting(f"--set {name}: the sweep's {part!r} is a list; edit a copy of it in a file instead")
        target[field] = value
    elif not field and name in ("m", "n_test", "seeds", "name"):
        data[name] = value
    else:
        raise InvalidSetting(
            f"--set takes task., model., init., train. or grid. and a field, or m, n_test; got {name!r}"
        )
