"""The gallery made: its trials trained, its plates drawn, the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from boundcalc.base import output
from boundcalc.base.errors import BoundcalcError, NoSolution
from boundcalc.lab.plot import render
from boundcalc.lab.plot.gallery import CERTIFIED, Plate, sweep_name, sweeps
from boundcalc.lab.plot.spec import Spec

_Say = Callable[[str], None]


def train(
    plates: Sequence[Plate],
    store: Path,
    *,
    quick: bool,
    jobs: int,
    say: _Say,
    dry: bool = False,
    watched: Callable[[], AbstractContextManager[Any]],
) -> None:
    """Train what the store does not have of the sweeps these plates need; `dry` only notes which trials are theirs."""
    from boundcalc.lab.train.store import Store
    from boundcalc.lab.train.sweep import missing, sweep_from_json

    if dry and not store.exists():
        raise NoSolution(f"there is no store {store}: without --no-train `boundcalc gallery --store {store}` makes one")
    data = sweeps(quick=quick)
    with Store(store, create=not dry) as opened:
        for name in dict.fromkeys(name for plate in plates if plate.sweep for name in (plate.sweep, *plate.certified)):
            sweep = sweep_from_json({**data[name], "name": sweep_name(name, quick=quick)}, device="cpu")
            todo = missing(sweep.trials, opened.hashes())
            say(f"sweep {name}: {len(sweep.trials)} trials, {len(todo)} {'missing' if dry else 'to train'}")
            absent = {trial.hash for trial in todo}
            opened.enrol(sweep.name, [trial.hash for trial in sweep.trials if trial.hash not in absent])
            if dry:
                continue
            from boundcalc.lab.train.certify import Asked
            from boundcalc.lab.train.run import Workers, certify_sweep, run_sweep

            workers = Workers(jobs)
            errors: Any = []
            if todo:
                with watched() as progress:
                    errors = run_sweep(sweep, opened, workers=workers, progress=progress).errors
            if not errors and name in CERTIFIED:
                made = certify_sweep(
                    sweep.trials, opened, [Asked(method) for method in CERTIFIED[name]], workers=workers
                )
                say(f"certificates of {name}: {made.present} were there, {made.added} made")
                errors = made.errors
            if errors:
                raise BoundcalcError(f"sweep {name}: {len(errors)} stacks failed; the first: {errors[0]}")


def build(
    folder: Path,
    store: Path,
    plates: Sequence[Plate],
    *,
    quick: bool,
    command: str,
    say: _Say,
) -> Iterator[tuple[Plate, render.Drawn]]:
    """Draw the plates into a folder, one by one."""
    for plate in plates:
        spec = specification(plate, store, quick=quick)
        data = render.collect(spec)
        drawn = render.save(spec, data, folder / f"{plate.name}.png", command)
        if plate.vector:
            render.save(spec, data, folder / f"{plate.name}.pdf", command)
        say(f"{drawn.image}")
        yield plate, drawn


def specification(plate: Plate, store: Path, *, quick: bool = False) -> Spec:
    """What a plate shows; its trials are read from a store."""
    raw = {**plate.spec, **(plate.quick if quick else {})}
    if plate.sweep:
        name = sweep_name(plate.sweep, quick=quick)
        raw |= {"store": str(store), "runs": {**raw.get("runs", {}), "sweep": name}}
    if plate.certified:
        raw["runs"]["certified"] = [sweep_name(each, quick=quick) for each in plate.certified]
    return Spec.from_json(raw)


def _alt_of(drawn: render.Drawn) -> str:
    """The text for those who do not see the picture, as its JSON has it, without what ends the brackets of Markdown."""
    return str(json.loads(drawn.record.read_text(encoding="utf-8"))["alt"]).translate({ord("["): "(", ord("]"): ")"})


def _again(plate: Plate, command: str) -> str:
    """The command that makes one picture alone."""
    store = " --store runs.db" if plate.sweep and "--store" in command else ""
    return f"boundcalc gallery --only {plate.name}{store}"


def write_index(folder: Path, made: Sequence[tuple[Plate, render.Drawn]], command: str) -> Path:
    """A page with every picture and what to conclude from it."""
    lines = [
        "# Figures",
        "",
        f"Made by `{command}`. Beside every image stands a JSON with the numbers drawn, the versions and",
        "the hashes of the trials; `boundcalc plot --from NAME.json -o NAME.pdf` draws it again.",
        "[docs/figures.md](../docs/figures.md) tells how to read them.",
        "",
    ]
    for plate, drawn in made:
        alt = _alt_of(drawn)
        lines += [f"## {plate.title}", "", f"![{alt}]({drawn.image.name})", "", drawn.caption, ""]
        lines += [f"`{_again(plate, command)}`", ""]
    path = folder / "README.md"
    output.write_text(path, "\n".join(lines), force=True)
    return path
