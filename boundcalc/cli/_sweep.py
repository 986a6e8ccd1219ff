"""`boundcalc sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import read_json
from boundcalc.base.rounding import near
from boundcalc.cli._options import (
    FILE_OR_FOLDER,
    STORE,
    assignments,
    command_with,
    option,
    refuse_given,
    refuse_others,
    several,
)
from boundcalc.cli._text import progress, write_table
from boundcalc.cli._train import certify_options
from boundcalc.lab.train.trial import Request, wanted

if TYPE_CHECKING:
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import Sweep

_STORE = "boundcalc-runs.db"
_COLUMNS = ("task", "T", "m", "seed", "status", "test_error", "gap")


@command_with("""\
  boundcalc sweep smoke
  boundcalc sweep conjunction --jobs 2 --store runs.db
  DASK_SCHEDULER_ADDRESS=tcp://10.0.0.1:8786 boundcalc sweep my_sweep.json --backend dask --jobs -1
  boundcalc sweep conjunction --seeds 5 --set train.lr=0.002
  boundcalc sweep smoke --certify holdout --certify p2l
  boundcalc sweep --store runs.db            the stored trials

A sweep file (JSON) has the keys task, model, init, train, m, n_test, seeds and grid, such as

\b
  {"task": {"task": "parity", "s": 2}, "seeds": 5, "grid": {"T": [16, 32]}}

Interrupt it whenever you like: run it again and it goes on. A store is one SQLite file: copy it to move it, and read it
with any program that reads SQLite.""")
@click.argument("what", metavar="[PRESET|FILE]", type=FILE_OR_FOLDER, required=False)
@option("--store store_path", STORE, "SQLite file of results.", _STORE, envvar="BOUNDCALC_STORE")
@option("--jobs", int, "Processes (-1: one per core).", 1)
@option("--backend", str, "Back end of joblib: loky (the default), ray, dask, ...")
@option("--seeds", click.IntRange(1), "Seeds per point, instead of those of the sweep.")
@several("--set changes", "Change a field, such as train.lr=0.002.", "NAME=VALUE")
@certify_options
def command(what: str | None, store_path: Path, methods: tuple[str, ...], **options: Any) -> None:
    """Train the trials of a preset or of a file that are not in the store yet; results are stored as they come.

    Without a preset or a file, the stored trials, a line each.
    """
    from boundcalc.lab.train.store import Store

    if what is None:
        refuse_others("without a preset or a file to train", {"store_path"})
        with Store(store_path, create=False) as store:
            _list(store)
        return
    if not methods:
        refuse_given("without --certify, which says by which method", "delta", "prefix")
    from boundcalc.lab.train.run import certify_sweep, run_sweep

    plans = [Request(name, options["delta"], options["prefix"]) for name in wanted(methods)]
    sweep = _sweep(what, options["seeds"], assignments(options["changes"]))
    jobs, backend = options["jobs"], options["backend"]
    certified = None
    with Store(store_path) as store, progress(10.0) as show:

        def tell(what: str, done: int, total: int) -> None:
            show(f"{done} of {total} {what} are in the store")

        ran = run_sweep(sweep, store, jobs=jobs, backend=backend, tell=tell)
        if plans:
            certified = certify_sweep(sweep.trials, store, plans, jobs=jobs, backend=backend, tell=tell)
    for name, done, failed in ((f"sweep {sweep.name}", ran, "diverged"), ("certificates", certified, "refused")):
        if done is not None:
            bad = f", {done.failed} of them {failed}" if done.failed else ""
            click.echo(f"{name}: {done.present} were there, {done.added} added{bad}")
    click.echo(f"see `boundcalc sweep --store {store_path}`")


def _list(store: Store) -> None:
    """A line per trial: its hash, what was trained, how it ended, its errors and gap."""
    rows: list[tuple[str, ...]] = [("hash", *_COLUMNS)]
    for record in store.records():
        values = record.places | {"status": record.result["status"], "gap": record.result["gap"]}
        values["test_error"] = record.result["test"]["error"]
        cells = (values[name] for name in _COLUMNS)
        rows.append((record.hash[:12], *(near(x) if isinstance(x, float) else str(x) for x in cells)))
    if len(rows) > 1:
        write_table(rows)
    names = ", ".join(f"{name} ({count})" for name, count in store.sweeps().items())
    click.echo(f"{len(rows) - 1} trials; sweeps: {names or 'none'}")


def _sweep(what: str, seeds: int | None, changes: dict[str, Any]) -> Sweep:
    """The sweep of a preset or of a file, with changes."""
    from boundcalc.lab.train.sweep import PRESETS, changed, sweep_from_json

    if what in PRESETS:
        data: Any = {"name": what, **PRESETS[what]}
    elif what.endswith(".json") or Path(what).exists():
        data = read_json(Path(what), "the sweep file")
    else:
        raise InvalidSetting(f"there is no preset or file {what!r}; presets: {', '.join(PRESETS)}")
    if isinstance(data, dict):
        data = changed(data | ({} if seeds is None else {"seeds": seeds}), changes)
    return sweep_from_json(data, name=Path(what).stem)
